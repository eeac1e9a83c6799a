"""`Hub`: one connection to a gateway, to publish over, to follow, to lock files, and to share what is known."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self, Unpack

from herdr_sdk.artifacts import Artifacts
from herdr_sdk.connection import Connection
from herdr_sdk.context import Context
from herdr_sdk.errors import HerdrError, Holder, Stale
from herdr_sdk.event import Draft, DraftFields, Receipt
from herdr_sdk.follow import AckMode, Filters, Follow
from herdr_sdk.frames import attrs_frame
from herdr_sdk.lease import Leases
from herdr_sdk.lock_queries import LockInfo, LockQueries
from herdr_sdk.locks import Lock, Mode, Wish
from herdr_sdk.plain_http import PlainHttp
from herdr_sdk.publish import Many, Publisher
from herdr_sdk.sessions import Session, Sessions, list_sessions
from herdr_sdk.snapshots import Snapshots
from herdr_sdk.tasks import Tasks
from herdr_sdk.texts import Texts
from herdr_sdk.versions import Versions
from herdr_sdk.waits import WaitingFor, Waits

DEFAULT_URL = "http://127.0.0.1:8787"
CLOSE_DRAIN_S = 5.0  # how long leaving waits for receipts; a gateway that is up answers within a second


class Hub:
    """A client of one gateway. Use it as `async with Hub(name="my-tool") as hub:`.

    `url` and `token` default to HERDR_GATEWAY_URL and HERDR_GATEWAY_TOKEN; `name` becomes the `source` of
    what is published without one; `attrs` describe this client to routing rules. Entering raises
    ConnectionFailed when no gateway answers within `connect_timeout_s`; afterwards the hub reconnects by
    itself, as long as it takes. A publish gives up after `publish_timeout_s`. `track_versions` fills in
    `based_on` where a follow of this hub has shown a version of the event's subject.
    """

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
        self.url = url or os.environ.get("HERDR_GATEWAY_URL") or DEFAULT_URL
        self.name = name
        token = token or os.environ.get("HERDR_GATEWAY_TOKEN")
        self._connect_timeout_s = connect_timeout_s
        self._connection = Connection(self.url, token)
        self._attributes = _Attributes(self._connection, attrs or {})
        self._versions = Versions() if track_versions else None
        self._publisher = Publisher(self._connection, name, publish_timeout_s, self._versions)
        self._leases = Leases(self._connection)
        self._waits = Waits(self._connection)
        self._http = PlainHttp(self.url, token)
        self._queries = LockQueries(self._http)
        self._texts = Texts(self._http)
        self.artifacts = Artifacts(self._http, self._texts)
        """What tools have worked out and others may use."""
        self.snapshots = Snapshots(self._http)
        """What is known of a project, as a file."""
        self.tasks = Tasks(self._http, name, self.follow)
        """Work that goes from role to role."""

    @property
    def connected(self) -> bool:
        """True while there is a connection; without one, publishing waits and follows resume later."""
        return self._connection.up

    async def __aenter__(self) -> Self:
        await self._connection.open(self._connect_timeout_s)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait up to 5 s for the receipts of what was published, then disconnect. Safe to call twice.

        What is unanswered then raises OutcomeUnknown where it is awaited, or ConnectionFailed when it was
        never sent.
        """
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_DRAIN_S):
                    await self._publisher.drain()
        finally:
            await self._connection.close()

    async def publish(
        self, type: str, data: Any = None, *, raise_on_stale: bool = False, **fields: Unpack[DraftFields]
    ) -> Receipt:
        """Publish one event and return its receipt, once the gateway has committed or declined it.

        Look at `receipt.status`: `deferred`, `dropped` and `stale` are answers, not errors, unless
        `raise_on_stale` turns `stale` into Stale. Raises InvalidEvent, Unauthorized, ServerError,
        ConnectionFailed (not sent in time) or OutcomeUnknown (sent, not answered in time).
        """
        receipt = await (await self._publisher.submit(Draft(type, data, **fields)))
        if raise_on_stale and receipt.status == "stale":
            raise Stale(receipt.conflict)
        return receipt

    async def submit(
        self, type: str, data: Any = None, **fields: Unpack[DraftFields]
    ) -> asyncio.Future[Receipt]:
        """Queue one event and return a future of its receipt; `await` that later, or never.

        For pipelining: it waits only while 4,096 events or 16 MiB are unanswered. `data` is encoded at
        once, so it may be changed afterwards.
        """
        return await self._publisher.submit(Draft(type, data, **fields))

    async def publish_many(self, events: Many) -> list[Receipt]:
        """Publish `Draft`s or mappings of their fields, pipelined, and return their receipts in order.

        When some fail the others are published all the same; then the first error is raised, whose
        `results` hold each event's receipt or error. InvalidEvent names all wrong fields by the events'
        `index`, OutcomeUnknown all `ids`. The receipts are kept in memory: for an endless stream, use
        `submit`.
        """
        return await self._publisher.publish_many(events)

    def follow(
        self,
        *,
        as_: str | None = None,
        after: str | int | None = None,
        attrs: Mapping[str, str] | None = None,
        ack: AckMode | None = None,
        gaps: bool = True,
        **filters: Unpack[Filters],
    ) -> Follow:
        """Follow events: those that match the filters, or with `as_` those routed to that target.

        `after`: a `Follow.cursor`, a plain `seq`, or 0 for everything retained; without it only what is
        new, or for a target what it has not acknowledged. `ack="auto"` acknowledges a frame's events when
        the next one is asked for, `"manual"` leaves it to `Follow.ack`. Missed events show as an event
        `herdr.gap` unless `gaps` is False. Errors are raised by the iteration.
        """
        named = {"as": as_, "after": None if after is None else str(after), "attrs": attrs}
        query = {key.rstrip("_"): value for key, value in {**filters, **named}.items() if value is not None}
        return Follow(self._connection, query, ack, gaps, self._versions)

    def lock(
        self,
        *paths: str,
        wait: float = 0.0,
        ttl: float = 60.0,
        mode: Mode = "write",
        purpose: str | None = None,
        workspace: str = "default",
        owner: str | None = None,
        session: str | None = None,
    ) -> Lock:
        """Lock files, folders (`src/`), globs, `git:HEAD` or `git:index`, all or none: `async with hub.lock(…)`.

        `wait`: seconds to stand in line for it, else Conflict is raised at once. `ttl`: seconds after which
        the lock ends if this program hangs; it is renewed in the background. An `owner` (default: the hub's
        name) never excludes itself, so give each worker that is to exclude the others one of its own.
        """
        if not paths:
            raise ValueError("name at least one path to lock")
        fields = {
            **{"paths": paths, "owner": self._owner(owner), "workspace": workspace, "mode": mode},
            **{"ttl_s": ttl, "purpose": purpose, "session": session, "bound": True},
        }
        named = {key: value for key, value in fields.items() if value is not None}
        wish = Wish(self._connection, self._leases, named, wait)
        return Lock(wish, ttl, self._connect_timeout_s)

    def waiting_for(self, on: str, *, purpose: str | None = None, owner: str | None = None) -> WaitingFor:
        """Declare, for an `async with` block, that one goes on only when the owner `on` has delivered something.

        Raises Deadlock when `on` waits for this `owner` (default: the hub's name), for a lock or a result.
        """
        fields = {"owner": self._owner(owner), "on": on}
        if purpose is not None:
            fields["purpose"] = purpose
        return WaitingFor(self._waits, fields, self._connect_timeout_s)

    async def locks(
        self, *, workspace: str | None = None, path: str | None = None, owner: str | None = None
    ) -> list[LockInfo]:
        """Return who holds what; `path` selects every lock that it collides with."""
        query = {"workspace": workspace, "path": path, "owner": owner}
        return await self._queries.held({key: value for key, value in query.items() if value is not None})

    async def check(
        self, *paths: str, workspace: str = "default", owner: str | None = None, mode: Mode = "write"
    ) -> list[Holder]:
        """Return who would be in the way of locking the paths, without locking anything."""
        body = {"paths": paths, "workspace": workspace, "owner": owner or self.name, "mode": mode}
        return await self._queries.conflicts({key: value for key, value in body.items() if value is not None})

    def context(self, workspace: str = "default") -> Context:
        """Return the project graph of a workspace: its map, files, symbols, callers. Asks nothing yet."""
        return Context(self._http, self._texts, workspace)

    def session(self, session: str, workspace: str = "default") -> Session:
        """Return a conversation that all tools may read and add to. Asks nothing yet.

        `workspace`: what messages that are recorded here are about.
        """
        return Session(self._http, self._texts, session, workspace)

    async def sessions(self, *, workspace: str | None = None, limit: int = 100) -> Sessions:
        """Return the conversations that there are."""
        return await list_sessions(self._http, workspace, limit)

    async def blob(self, ref: str) -> bytes:
        """Return the content with this SHA-256: the `ref` of a map, an outline, a window, an artifact.

        Raises NotFound, or ServerError (`wrong_content`) when what came has another SHA-256.
        """
        return await self._texts.blob(ref)

    def _owner(self, owner: str | None) -> str:
        named = owner or self.name
        if not named:
            raise ValueError("whose lock is it? Give the hub a name=, or this call an owner=")
        return named

    async def set_attrs(self, **attrs: str) -> None:
        """Change attributes of this client, which routing rules can match as `attr.NAME`."""
        self._attributes.change(attrs)


class _Attributes:
    """This client's attributes; each new socket is told."""

    def __init__(self, connection: Connection, attrs: Mapping[str, str]) -> None:
        self._connection = connection
        self._attrs = dict(attrs)
        connection.listen(self)

    def change(self, attrs: Mapping[str, str]) -> None:
        self._attrs.update(attrs)
        self._connection.post(attrs_frame(self._attrs))

    def opened(self) -> None:
        if self._attrs:
            self._connection.post(attrs_frame(self._attrs))

    def lost(self, close_code: int | None) -> None:
        pass

    def failed(self, error: HerdrError) -> None:
        pass
