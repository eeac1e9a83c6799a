"""The same hub for scripts without asyncio: the asynchronous one, run on a thread of its own.

from herdr_sdk.blocking import Hub

with Hub(name="nightly") as hub:
    hub.publish("tool.result", {"ok": True})
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice
from types import TracebackType
from typing import Any, Self, Unpack

from herdr_sdk import follow as asynchronous_follow
from herdr_sdk import hub as asynchronous
from herdr_sdk import locks as asynchronous_locks
from herdr_sdk import waits as asynchronous_waits
from herdr_sdk.blocking_context import Artifacts, Context, Session, Snapshots
from herdr_sdk.blocking_tasks import Tasks
from herdr_sdk.errors import Holder, LockLost
from herdr_sdk.event import Draft, DraftFields, Event, Receipt
from herdr_sdk.follow import AckMode, Filters
from herdr_sdk.lock_queries import LockInfo
from herdr_sdk.locks import LockFields, Mode
from herdr_sdk.loop_thread import LoopThread
from herdr_sdk.sessions import LIMIT, Sessions

CHUNK_EVENTS = 512  # handed to the loop's thread at once: a hand-over costs as much as publishing ten
CHUNKS_WAITING = 2  # beside the one being sent: enough to keep the thread busy


class Hub:
    """Blocking counterpart of `herdr_sdk.Hub`: same arguments, same errors. Any thread may use it."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        name: str | None = None,
        attrs: Mapping[str, str] | None = None,
        *,
        connect_timeout_s: float = 5.0,
        publish_timeout_s: float = 30.0,
        track_versions: bool = True,
    ) -> None:
        self._hub = asynchronous.Hub(
            url,
            token,
            name,
            attrs,
            connect_timeout_s=connect_timeout_s,
            publish_timeout_s=publish_timeout_s,
            track_versions=track_versions,
        )
        self._thread = LoopThread()
        self.artifacts = Artifacts(self._thread, self._hub.artifacts)
        self.snapshots = Snapshots(self._thread, self._hub.snapshots)
        self.tasks = Tasks(self._thread, self._hub.tasks)
        try:
            self._thread.run(self._hub.__aenter__())
        except BaseException:
            self._thread.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for outstanding receipts, disconnect, end the thread. Safe to call twice."""
        if self._thread.running:
            try:
                self._thread.run(self._hub.close())
            finally:
                self._thread.stop()

    def publish(
        self, type: str, data: Any = None, *, raise_on_stale: bool = False, **fields: Unpack[DraftFields]
    ) -> Receipt:
        """See `herdr_sdk.Hub.publish`."""
        return self._thread.run(self._hub.publish(type, data, raise_on_stale=raise_on_stale, **fields))

    def publish_many(self, events: Iterable[Draft | Mapping[str, Any]]) -> list[Receipt]:
        """See `herdr_sdk.Hub.publish_many`. The events are drawn on the calling thread."""
        feed = _Feed()
        receipts = self._thread.start(self._hub.publish_many(feed))
        iterator = iter(events)
        try:
            while chunk := list(islice(iterator, CHUNK_EVENTS)):
                self._thread.run(feed.put(chunk))
        finally:
            self._thread.run(feed.put([]))
        return receipts.result()

    def follow(
        self,
        *,
        as_: str | None = None,
        after: str | int | None = None,
        attrs: Mapping[str, str] | None = None,
        ack: AckMode | None = None,
        gaps: bool = True,
        **filters: Unpack[Filters],
    ) -> "Follow":
        """See `herdr_sdk.Hub.follow`. Following begins at once; iterate over the result, then close it."""
        following = self._hub.follow(as_=as_, after=after, attrs=attrs, ack=ack, gaps=gaps, **filters)
        return Follow(self._thread, following)

    def set_attrs(self, **attrs: str) -> None:
        """See `herdr_sdk.Hub.set_attrs`."""
        self._thread.run(self._hub.set_attrs(**attrs))

    def lock(self, *paths: str, **fields: Unpack[LockFields]) -> "Lock":
        """See `herdr_sdk.Hub.lock`; use it in `with`."""
        return Lock(self._thread, self._hub.lock(*paths, **fields))

    def waiting_for(self, on: str, *, purpose: str | None = None, owner: str | None = None) -> "WaitingFor":
        """See `herdr_sdk.Hub.waiting_for`; use it in `with`. The block cannot be cancelled."""
        return WaitingFor(self._thread, self._hub.waiting_for(on, purpose=purpose, owner=owner))

    def locks(
        self, *, workspace: str | None = None, path: str | None = None, owner: str | None = None
    ) -> list[LockInfo]:
        """See `herdr_sdk.Hub.locks`."""
        return self._thread.run(self._hub.locks(workspace=workspace, path=path, owner=owner))

    def check(
        self, *paths: str, workspace: str = "default", owner: str | None = None, mode: Mode = "write"
    ) -> list[Holder]:
        """See `herdr_sdk.Hub.check`."""
        return self._thread.run(self._hub.check(*paths, workspace=workspace, owner=owner, mode=mode))

    def context(self, workspace: str = "default") -> Context:
        """See `herdr_sdk.Hub.context`."""
        return Context(self._thread, self._hub.context(workspace))

    def session(self, session: str, workspace: str = "default") -> Session:
        """See `herdr_sdk.Hub.session`."""
        return Session(self._thread, self._hub.session(session, workspace))

    def sessions(self, *, workspace: str | None = None, limit: int = LIMIT) -> Sessions:
        """See `herdr_sdk.Hub.sessions`."""
        return self._thread.run(self._hub.sessions(workspace=workspace, limit=limit))

    def blob(self, ref: str) -> bytes:
        """See `herdr_sdk.Hub.blob`."""
        return self._thread.run(self._hub.blob(ref))


class Follow:
    """Blocking counterpart of `herdr_sdk.Follow`: a plain iterator."""

    def __init__(self, thread: LoopThread, following: asynchronous_follow.Follow) -> None:
        self._thread = thread
        self._following = following
        self._batch: deque[Event] = deque()
        thread.run(following.__aenter__())
        self._before = self._after = following.cursor

    @property
    def cursor(self) -> str | None:
        """See `herdr_sdk.Follow.cursor`."""
        return self._before if self._batch else self._after

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        if not self._batch:
            try:
                self._batch.extend(self._thread.run(self._following.next_unseen()))
            except StopAsyncIteration:
                raise StopIteration from None
            self._before, self._after = self._after, self._following.cursor
        event = self._batch.popleft()
        self._following.saw(event)
        return event

    def ack(self, cursor: str | None = None) -> None:
        """See `herdr_sdk.Follow.ack`."""
        self._thread.run(self._following.ack(cursor or self.cursor))

    def close(self) -> None:
        """End the follow. Safe to call twice, also after the hub was closed."""
        if self._thread.running:
            self._thread.run(self._following.aclose())


class Lock:
    """Blocking counterpart of `herdr_sdk.Lock`. It is renewed while the block works."""

    def __init__(self, thread: LoopThread, lock: asynchronous_locks.Lock) -> None:
        self._thread = thread
        self._lock = lock

    @property
    def lock(self) -> str:
        """See `herdr_sdk.Lock.lock`."""
        return self._lock.lock

    @property
    def token(self) -> int:
        """See `herdr_sdk.Lock.token`."""
        return self._lock.token

    @property
    def paths(self) -> tuple[str, ...]:
        """See `herdr_sdk.Lock.paths`."""
        return self._lock.paths

    @property
    def expires(self) -> str:
        """See `herdr_sdk.Lock.expires`."""
        return self._lock.expires

    @property
    def lost(self) -> bool:
        """See `herdr_sdk.Lock.lost`."""
        return self._lock.lost

    @property
    def error(self) -> LockLost | None:
        """See `herdr_sdk.Lock.error`."""
        return self._lock.error

    def wait_lost(self) -> None:
        """See `herdr_sdk.Lock.wait_lost`; for a thread beside the one that works."""
        self._thread.run(self._lock.wait_lost())

    def acquire(self) -> Self:
        """See `herdr_sdk.Lock.acquire`."""
        self._thread.run(self._lock.acquire())
        return self

    def release(self) -> None:
        """See `herdr_sdk.Lock.release`."""
        self.__exit__(None, None, None)

    def renew(self, ttl: float | None = None) -> None:
        """See `herdr_sdk.Lock.renew`."""
        self._thread.run(self._lock.renew(ttl))

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.running:
            self._thread.run(self._lock.__aexit__(kind, error, trace))
        elif error is None and self.error is not None:
            raise self.error


class WaitingFor:
    """Blocking counterpart of `herdr_sdk.WaitingFor`."""

    def __init__(self, thread: LoopThread, waiting: asynchronous_waits.WaitingFor) -> None:
        self._thread = thread
        self._waiting = waiting

    def __enter__(self) -> Self:
        self._thread.run(self._waiting.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.running:
            self._thread.run(self._waiting.__aexit__(kind, error, trace))


class _Feed:
    """Carries chunks of events to the loop's thread; an empty one ends them."""

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[list[Draft | Mapping[str, Any]]] = asyncio.Queue(CHUNKS_WAITING)

    async def put(self, chunk: list[Draft | Mapping[str, Any]]) -> None:
        await self._chunks.put(chunk)

    async def __aiter__(self) -> AsyncIterator[Draft | Mapping[str, Any]]:
        while chunk := await self._chunks.get():
            for event in chunk:
                yield event
