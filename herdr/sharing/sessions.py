"""Sessions at work: what is said in them is folded from the log, and read back."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from herdr.bus.follow import Follower, Gap
from herdr.bus.publish import Publisher
from herdr.bus.select import Selection
from herdr.clock import rfc3339
from herdr.context.histories import Batch, Histories, Message, Session
from herdr.context.redact import redact_tree
from herdr.context.shown import shown_session
from herdr.context.tokens import Fallback
from herdr.errors import HerdrError, NotFound
from herdr.event import Draft, Event, Receipt
from herdr.sharing.folding import DELETED, TYPES, Folder, content_of, decisions_of
from herdr.sharing.shelf import ReadOnly

CATCH_UP_S = 10.0  # a read waits for the fold at most this long; it is some milliseconds behind
RETRY_S = 1.0  # while the context's file cannot be written; the log keeps what is not folded
UNSTORED_MAX = 10_000  # events of other types that are passed before that is written down
SESSIONS_MAX = 10_000  # of a snapshot
MESSAGES_A_PAGE = 1000

_log = logging.getLogger("herdr.context")


class Followers(Protocol):
    """Opens followers of the log."""

    @property
    def head(self) -> int:
        """Newest committed `seq`."""
        ...

    async def open(self, selection: Selection, after: str | None) -> Follower:
        """Follow from a `seq`."""
        ...


class Sessions:
    """The histories of one gateway. `run` folds; everything else may be called beside it."""

    def __init__(
        self,
        histories: Histories,
        followers: Followers,
        publisher: Publisher,
        folder: Folder,
        counter: Fallback,
        read_only: bool,
    ) -> None:
        self._histories = histories
        self._followers = followers
        self._publisher = publisher
        self._folder = folder
        self._counter = counter
        self._read_only = read_only
        self._folded = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._follower: Follower | None = None

    async def start(self, epoch: str) -> None:
        """Go on where the fold has ended; with `read_only` nothing is folded."""
        if self._read_only:
            return
        await self._histories.adopt(epoch, self._followers.head)
        self._folded = self._histories.folded
        self._task = asyncio.create_task(self._run(), name="sessions")
        self._task.add_done_callback(_report_crash)

    async def stop(self) -> None:
        """Stop folding; the next start goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # The fold

    async def _run(self) -> None:
        self._follower = follower = await self._followers.open(Selection(type=TYPES), str(self._folded))
        while True:
            page = await follower.next()
            if isinstance(page, Gap):
                _log.warning("sessions: events %d to %d are no longer in the log", page.from_, page.to)
                continue
            events = sorted((item.event for item in page.items), key=lambda event: event.seq)
            await self._fold(events, max(page.end))

    async def _fold(self, events: Sequence[Event], reached: int) -> None:
        while events or reached - self._histories.folded > UNSTORED_MAX:
            try:
                await self._histories.append(await self._batch(events, reached))
                break
            except HerdrError as error:
                _log.error("sessions could not be written: %s", error.detail)
                await asyncio.sleep(RETRY_S)
                # A commit that failed may have survived; the summaries are read anew, and may hold some of these
                self._folder.forget()
                events = [event for event in events if event.seq > self._histories.folded]
        self._folded = reached
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _batch(self, events: Sequence[Event], reached: int) -> Batch:
        for name in {event.session for event in events if event.session is not None}:
            if not self._folder.knows(name):
                found = await self._histories.state(name)
                self._folder.remember(name, b"" if found is None else found.state)
        folded = await asyncio.to_thread(self._folder.fold, events, self._histories.offset)
        tokens = iter((await self._counter.count(folded.texts)).tokens)
        entries = [
            msgspec.structs.replace(entry, tokens=next(tokens)) if isinstance(entry, Message) else entry
            for entry in folded.entries
        ]
        return Batch(reached, entries, folded.states)

    async def caught_up(self) -> None:
        """Return once everything that was accepted before is folded; raises HerdrError when that takes too long."""
        head = self._followers.head
        if self._read_only:
            return
        try:
            async with asyncio.timeout(CATCH_UP_S):
                while self._folded < head:
                    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.add(future)
                    if self._follower is not None:
                        self._follower.poke()  # events of other types do not wake it, and are passed then
                    await future
        except TimeoutError:
            raise HerdrError(
                "the sessions are behind the log; look at the gateway's log, and ask again",
                "context_unavailable",
            ) from None

    # What the API asks

    async def say(self, session: str, drafts: Sequence[Draft], source: str) -> list[Receipt]:
        """Put messages into a session's history; raises LogUnavailable, ReadOnly."""
        if self._read_only:
            raise ReadOnly
        cleaned = await asyncio.to_thread(lambda: [_cleaned(draft) for draft in drafts])
        return await self._publisher.publish(cleaned, source)

    async def delete(self, session: str) -> None:
        """Remove a session's messages and summary; raises NotFound, ReadOnly."""
        if self._read_only:
            raise ReadOnly
        found = await self.state(session)
        event = self._publisher.own_event(
            DELETED,
            {"session": session, "messages": found.messages},
            workspace=found.workspace,
            session=session,
        )
        (receipt,) = await self._publisher.record([event])
        if receipt.status != "accepted":
            raise HerdrError("too many events wait for the log; try again in a second", "overloaded")
        await self.caught_up()

    async def state(self, session: str) -> Session:
        """Return a session with its summary's state; raises NotFound."""
        await self.caught_up()
        found = await self._histories.state(session)
        if found is None:
            raise NotFound(
                f"no session is called {session!r}; GET /v1/sessions lists those that are known",
                "unknown_session",
            )
        return found

    async def newest(self, session: str, count: int, bytes_max: int) -> Sequence[Message]:
        """Return the last messages, oldest first."""
        return await self._histories.newest(session, count, bytes_max)

    async def count(self, text: str) -> int:
        """Return a text's tokens, counted as messages are."""
        return (await self._counter.count([text])).total

    async def listed(self, workspace: str | None, limit: int) -> dict[str, Any]:
        """List sessions, most recently updated first."""
        await self.caught_up()
        found = await self._histories.sessions(workspace, limit)
        return {"sessions": [shown_session(session) for session in found.sessions], "more": found.more}

    async def messages(self, session: str, after: int, limit: int) -> dict[str, Any]:
        """Return whole messages, oldest first; raises NotFound."""
        known = await self.state(session)
        page = await self._histories.page(session, after, limit)
        last = page[-1].seq if page else after
        more = await self._histories.page(session, last, 1) if page else ()
        return {
            "session": session,
            "messages": [_shown(message) for message in page],
            "total": known.messages,
            "more": bool(more),
        }

    # What snapshots ask

    async def all_of(self, workspace: str) -> list[Session]:
        """List all sessions of a workspace, with their summaries' states."""
        await self.caught_up()
        listed = await self._histories.sessions(workspace, SESSIONS_MAX)
        found = [await self._histories.state(session.session) for session in listed.sessions]
        return [session for session in found if session is not None]

    async def pages(self, session: str) -> list[Message]:
        """Return all messages of a session."""
        found: list[Message] = []
        while page := await self._histories.page(session, found[-1].seq if found else 0, MESSAGES_A_PAGE):
            found += page
        return found

    async def decisions(self, workspace: str) -> list[dict[str, Any]]:
        """Return what was decided in all sessions of a workspace, oldest first."""
        rows: list[dict[str, Any]] = []
        for session in await self.all_of(workspace):
            rows += await asyncio.to_thread(decisions_of, session.state)  # 0.5 ms each; others have turns
        return sorted(rows, key=lambda row: str(row.get("time", "")))

    async def restore(self, session: Session, messages: list[Message]) -> bool:
        """Put in a session of a snapshot; False when one of that name is here."""
        return await self._histories.restore(session, messages)


def _cleaned(draft: Draft) -> Draft:
    data = msgspec.json.encode(redact_tree(msgspec.json.decode(draft.data))[0])
    # The rate of P2, the lane of records, is for what may be lost; this was asked to be kept
    return msgspec.structs.replace(draft, data=Raw(data), priority="P1")


def _shown(message: Message) -> dict[str, Any]:
    return {
        "seq": message.seq,
        "id": message.id,
        "role": message.role,
        "source": message.source,
        "time": rfc3339(message.time_us),
        "tokens": message.tokens,
        **content_of(message),
    }


def _report_crash(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.critical("the sessions' fold has crashed", exc_info=task.exception())
