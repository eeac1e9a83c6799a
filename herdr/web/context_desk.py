"""What the API needs of the shared context."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from herdr.context.artifacts import Artifact, Draft, Shelf, Stored
from herdr.context.blobs import Blob
from herdr.event import Draft as EventDraft
from herdr.event import Receipt


class Graphs(Protocol):
    """The project graphs."""

    async def ask(self, workspace: str, question: str, **args: Any) -> Any:
        """Put a question to a graph that knows all that was reported before; raises HerdrError."""
        ...

    async def index(self, workspace: str, fresh: bool) -> None:
        """Look at all files again; `fresh`: and parse each of them. Raises NotFound."""
        ...


class Pictures(Protocol):
    """What is worked out of the graph, sessions and artifacts together, as answers ready to encode."""

    async def manifest(self, workspace: str) -> dict[str, Any]:
        """Return what there is of a workspace; raises NotFound."""
        ...

    async def map_of(
        self, workspace: str, tokens: int, focus: Sequence[str], names: Sequence[str]
    ) -> dict[str, Any]:
        """Return the ranked outline of the project."""
        ...

    async def file(self, workspace: str, path: str) -> dict[str, Any]:
        """Return the outline of one file; raises NotFound, InvalidInput."""
        ...

    async def window(self, session: str, tokens: int | None) -> dict[str, Any]:
        """Return a session's summary and newest messages; raises NotFound."""
        ...

    async def blob(self, ref: str) -> Blob:
        """Return content by its hash; raises NotFound, InvalidInput."""
        ...


class Sessions(Protocol):
    """The histories."""

    async def say(self, session: str, drafts: Sequence[EventDraft], source: str) -> list[Receipt]:
        """Put messages into a session's history; raises LogUnavailable, ReadOnly."""
        ...

    async def listed(self, workspace: str | None, limit: int) -> dict[str, Any]:
        """List sessions, most recently updated first."""
        ...

    async def messages(self, session: str, after: int, limit: int) -> dict[str, Any]:
        """Return whole messages; raises NotFound."""
        ...

    async def delete(self, session: str) -> None:
        """Remove a session's messages and summary; raises NotFound, ReadOnly."""
        ...


class Artifacts(Protocol):
    """The artifact cache."""

    @property
    def limit_bytes(self) -> int:
        """How much all of them together may have."""
        ...

    async def put(self, draft: Draft, content: bytes) -> Stored:
        """Store an artifact; raises InvalidInput, ArtifactTooLarge, ReadOnly."""
        ...

    async def get(self, workspace: str, name: str) -> tuple[Artifact, bytes]:
        """Return an artifact and its content; raises NotFound."""
        ...

    async def describe(self, workspace: str, name: str) -> Artifact:
        """Return an artifact without its content; raises NotFound."""
        ...

    async def delete(self, workspace: str, name: str) -> None:
        """Remove an artifact; raises NotFound, ReadOnly."""
        ...

    async def listed(self, workspace: str, kind: str | None, session: str | None, limit: int) -> Shelf:
        """List the artifacts of a workspace."""
        ...


class Snapshots(Protocol):
    """Snapshots of workspaces."""

    async def export(self, workspace: str, sessions: bool) -> Path:
        """Write a snapshot into a file that the caller removes; raises HerdrError."""
        ...

    async def receive(self, workspace: str, parts: AsyncIterator[bytes]) -> dict[str, Any]:
        """Verify and import a snapshot that comes in parts; raises InvalidInput, HerdrError."""
        ...
