"""The artifact cache at work: what goes in is cleaned of secrets, what leaves by itself is told."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence

import msgspec

from herdr.clock import Clock
from herdr.context.artifacts import COUNT_MAX, Artifact, Artifacts, Draft, Gone, Shelf, Stored, check
from herdr.context.redact import pieces_of, redact
from herdr.context.shown import told_artifact
from herdr.errors import HerdrError, NotFound
from herdr.sharing.graphs import Announce

LOOK_S = 60.0  # between looks for artifacts whose time is over when none is known to end sooner
READ_ONLY = "this gateway runs for CI and keeps nothing; store it with the gateway that you work with"


_log = logging.getLogger("herdr.context")


class ReadOnly(HerdrError):
    """The gateway was started with --ci: nothing is stored."""

    code = "read_only"

    def __init__(self) -> None:
        super().__init__(READ_ONLY)


class ArtifactShelf:
    """Takes and hands out artifacts; runs a task that ends those whose time is over."""

    def __init__(self, artifacts: Artifacts, clock: Clock, announce: Announce, read_only: bool) -> None:
        self._artifacts = artifacts
        self._clock = clock
        self._announce = announce
        self._read_only = read_only
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look for artifacts whose time is over; for CI nothing is removed either."""
        if self._read_only:
            return
        self._task = asyncio.create_task(self._expire(), name="artifacts")

    async def stop(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def put(self, draft: Draft, content: bytes) -> Stored:
        """Store an artifact; text is cleaned of what looks like a secret. Raises InvalidInput, ReadOnly."""
        if self._read_only:
            raise ReadOnly
        check(draft.kind, draft.ttl_s)
        cleaned, count = await _cleaned(content)
        stored = await self._artifacts.put(msgspec.structs.replace(draft, redacted=count), cleaned)
        self._announce("context.artifact.stored", told_artifact(stored.artifact), draft.workspace, None)
        self._tell(stored.gone)
        self._wake.set()
        return stored

    async def restore(self, draft: Draft, content: bytes) -> None:
        """Store an artifact of a snapshot, also where nothing else is stored."""
        check(draft.kind, draft.ttl_s)
        await self._artifacts.put(draft, content)

    async def all_of(self, workspace: str) -> Sequence[Artifact]:
        """List all artifacts of a workspace."""
        return (await self._artifacts.shelf(workspace, limit=COUNT_MAX)).artifacts

    async def get(self, workspace: str, name: str) -> tuple[Artifact, bytes]:
        """Return an artifact and its content; raises NotFound."""
        found = await self._artifacts.get(workspace, name)
        if found is None:
            raise _unknown(workspace, name)
        return found

    async def describe(self, workspace: str, name: str) -> Artifact:
        """Return an artifact without its content; raises NotFound."""
        found = await self._artifacts.describe(workspace, name)
        if found is None:
            raise _unknown(workspace, name)
        return found

    async def delete(self, workspace: str, name: str) -> None:
        """Remove an artifact; raises NotFound, ReadOnly."""
        if self._read_only:
            raise ReadOnly
        if await self._artifacts.delete(workspace, name) is None:
            raise _unknown(workspace, name)

    async def listed(self, workspace: str, kind: str | None, session: str | None, limit: int) -> Shelf:
        """List the artifacts of a workspace."""
        return await self._artifacts.shelf(workspace, kind, session, limit)

    @property
    def limit_bytes(self) -> int:
        """How much all of them together may have."""
        return self._artifacts.limit_bytes

    def _tell(self, gone: Iterable[Gone]) -> None:
        for artifact, reason in gone:
            told = {**told_artifact(artifact), "reason": reason}
            self._announce("context.artifact.expired", told, artifact.workspace, None)

    async def _expire(self) -> None:
        while True:
            try:
                self._wake.clear()
                gone: Sequence[Gone] = await self._artifacts.expire()
                self._tell(gone)
                pause_s = 0.0 if gone else await self._pause_s()
            except HerdrError as error:
                _log.error("artifacts whose time is over could not be removed: %s", error.detail)
                pause_s = LOOK_S
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause_s)

    async def _pause_s(self) -> float:
        soonest = await self._artifacts.next_expiry()
        if soonest is None:
            return LOOK_S
        return min(max(0.0, (soonest - self._clock.wall_us()) / 1e6), LOOK_S)


async def _cleaned(content: bytes) -> tuple[bytes, int]:
    """Return the content without secrets, and how many there were; what is no text stays as it is."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content, 0
    parts, total = [], 0
    for piece in pieces_of(text):  # a thread alone is not enough: a long search keeps the interpreter
        cleaned, count = await asyncio.to_thread(redact, piece)
        parts.append(cleaned)
        total += count
    return ("".join(parts).encode(), total) if total else (content, 0)


def _unknown(workspace: str, name: str) -> NotFound:
    return NotFound(
        f"no artifact is called {name[:200]!r} in workspace {workspace!r}; it may have expired, or gone to make room",
        "unknown_artifact",
    )
