"""What a snapshot holds beside the graph, put where it belongs. Runs on a thread; the stores are the loop's."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from herdr.clock import Clock
from herdr.context.artifacts import TTL_MAX_S, Draft
from herdr.context.histories import STATE_MAX, Message, Session, size_of
from herdr.context.snapshot import SnapshotDamaged, read_records
from herdr.event import Name, Subject
from herdr.sharing.folding import content_of
from herdr.sharing.sessions import Sessions
from herdr.sharing.shelf import ArtifactShelf

DECISIONS = "snapshot/decisions.json"
"""The artifact that an import leaves the decisions in."""

SESSION_BYTES_MAX = 256 * 1024 * 1024
"""Of one session's messages, which are held until the last of them has come."""

US_MIN, US_MAX = (
    -62_135_596_800_000_000,
    253_402_300_799_999_999,
)  # the years 1 to 9999; numbers are within, too

T = TypeVar("T")
R = TypeVar("R", Message, Session)
Microseconds = Annotated[int, Meta(ge=US_MIN, le=US_MAX)]


class _About(msgspec.Struct):
    """What a snapshot says of an artifact: it may have been written by anybody."""

    name: Subject
    kind: str
    content_type: Annotated[str, Meta(pattern="^[ -~]{1,256}$")]
    created_us: Microseconds
    expires_us: Microseconds
    by: Name
    session: Name | None
    based_on: Annotated[str, Meta(max_length=256)] | None
    redacted: Annotated[int, Meta(ge=0, le=2**31)]


class Intake:
    """Takes in the records of one verified snapshot."""

    def __init__(
        self,
        workspace: str,
        shelf: ArtifactShelf,
        sessions: Sessions,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._workspace = workspace
        self._shelf = shelf
        self._sessions = sessions
        self._clock = clock
        self._loop = loop
        self._session: Session | None = None
        self._messages: list[Message] = []
        self._bytes = 0
        self._counts = {"artifacts": 0, "decisions": 0, "sessions": 0}

    def take(self, file: Path) -> dict[str, int]:
        """Take in all records; returns how many of each kind. Raises InvalidInput."""
        with file.open("rb") as opened:
            for kind, body in ((record.kind, record.body) for record in read_records(opened)):
                try:
                    self._take(kind, body)
                except (msgspec.DecodeError, KeyError, TypeError, RecursionError) as error:
                    raise SnapshotDamaged(f"its {kind} is none ({error})") from None
        self._end_session()
        return self._counts

    def _take(self, kind: str, body: Any) -> None:
        if kind == "message":
            self._take_message(msgspec.convert({**body, "workspace": self._workspace}, Message))
            return
        self._end_session()
        if kind == "artifact":
            self._take_artifact(
                msgspec.convert(body["about"], _About), msgspec.convert(body["content"], bytes)
            )
        elif kind == "decisions":
            self._take_decisions(body)
        elif kind == "session":
            self._session = _checked(msgspec.convert({**body, "workspace": self._workspace}, Session))
            if len(self._session.state) > STATE_MAX:
                raise SnapshotDamaged("a session's summary is larger than any can be")

    def _take_message(self, message: Message) -> None:
        content_of(_checked(message))
        self._bytes += size_of(message)
        if self._session is None or self._bytes > SESSION_BYTES_MAX:
            raise SnapshotDamaged("a message belongs to no session, or to one that is larger than any can be")
        self._messages.append(message)

    def _take_artifact(self, about: _About, content: bytes) -> None:
        ttl_s = min(max((about.expires_us - about.created_us) // 1_000_000, 1), TTL_MAX_S)
        draft = Draft(
            workspace=self._workspace,
            name=about.name,
            kind=about.kind,
            content_type=about.content_type,
            ttl_s=ttl_s,
            by=about.by,
            session=about.session,
            based_on=about.based_on,
            redacted=about.redacted,
        )
        self._wait(self._shelf.restore(draft, content))
        self._counts["artifacts"] += 1

    def _take_decisions(self, decisions: Any) -> None:
        self._counts["decisions"] = len(decisions)
        if decisions:
            draft = Draft(
                workspace=self._workspace,
                name=DECISIONS,
                kind="decisions",
                content_type="application/json",
                ttl_s=TTL_MAX_S,
                by="herdr",
            )
            self._wait(self._shelf.restore(draft, msgspec.json.encode(decisions)))

    def _end_session(self) -> None:
        session, self._session = self._session, None
        messages, self._messages, self._bytes = self._messages, [], 0
        if session is not None:
            self._counts["sessions"] += self._wait(self._sessions.restore(session, messages))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def _checked(record: R) -> R:
    """Return what can be stored and shown; raises ValidationError for names and numbers that cannot."""
    for field in msgspec.structs.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, int) and not isinstance(value, bool):
            msgspec.convert(value, Microseconds)
        elif isinstance(value, str):
            msgspec.convert(value, Name)
    return record
