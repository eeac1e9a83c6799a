"""What a snapshot holds beside the graph, put where it belongs. Runs on a thread; the stores are the loop's."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from herdr.clock import Clock
from herdr.context.artifacts import TTL_MAX_S, Artifact, Draft
from herdr.context.histories import Message, Session
from herdr.context.snapshot import SnapshotDamaged, read_records
from herdr.sharing.sessions import Sessions
from herdr.sharing.shelf import ArtifactShelf

DECISIONS = "snapshot/decisions.json"
"""The artifact that an import leaves the decisions in."""

T = TypeVar("T")


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
        self._counts = {"artifacts": 0, "decisions": 0, "sessions": 0}

    def take(self, file: Path) -> dict[str, int]:
        """Take in all records; returns how many of each kind. Raises InvalidInput."""
        with file.open("rb") as opened:
            for kind, body in ((record.kind, record.body) for record in read_records(opened)):
                try:
                    self._take(kind, body)
                except (msgspec.ValidationError, KeyError, TypeError) as error:
                    raise SnapshotDamaged(f"its {kind} is none ({error})") from None
        self._end_session()
        return self._counts

    def _take(self, kind: str, body: Any) -> None:
        if kind == "message":
            self._messages.append(msgspec.convert({**body, "workspace": self._workspace}, Message))
            return
        self._end_session()
        if kind == "artifact":
            self._take_artifact(
                msgspec.convert(body["about"], Artifact), msgspec.convert(body["content"], bytes)
            )
        elif kind == "decisions":
            self._take_decisions(body)
        elif kind == "session":
            self._session = msgspec.convert({**body, "workspace": self._workspace}, Session)

    def _take_artifact(self, about: Artifact, content: bytes) -> None:
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
        messages, self._messages = self._messages, []
        if session is not None:
            self._counts["sessions"] += self._wait(self._sessions.restore(session, messages))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
