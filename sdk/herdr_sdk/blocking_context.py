"""The blocking counterparts of `Context`, `Session`, `Artifacts` and `Snapshots`; made by the blocking hub."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack

from herdr_sdk import artifacts as asynchronous_artifacts
from herdr_sdk import context as asynchronous_context
from herdr_sdk import sessions as asynchronous_sessions
from herdr_sdk import snapshots as asynchronous_snapshots
from herdr_sdk.artifacts import Artifact, ArtifactFields, ArtifactFilters, ArtifactList
from herdr_sdk.event import Receipt
from herdr_sdk.graph import (
    Callees,
    Callers,
    Dependents,
    FileOutline,
    GraphState,
    Manifest,
    Map,
    Skipped,
    Symbols,
)
from herdr_sdk.loop_thread import LoopThread
from herdr_sdk.sessions import Content, MessageFields, Messages, Role, Window
from herdr_sdk.snapshots import SnapshotReport


class Context:
    """Blocking counterpart of `herdr_sdk.Context`."""

    def __init__(self, thread: LoopThread, context: asynchronous_context.Context) -> None:
        self._thread = thread
        self._context = context

    @property
    def workspace(self) -> str:
        """See `herdr_sdk.Context`."""
        return self._context.workspace

    def map(
        self,
        tokens: int = asynchronous_context.TOKENS,
        focus: str | Iterable[str] = (),
        names: str | Iterable[str] = (),
    ) -> Map:
        """See `herdr_sdk.Context.map`."""
        return self._thread.run(self._context.map(tokens, focus, names))

    def file(self, path: str) -> FileOutline:
        """See `herdr_sdk.Context.file`."""
        return self._thread.run(self._context.file(path))

    def symbols(
        self,
        name: str,
        *,
        kind: str | None = None,
        path: str | None = None,
        limit: int = asynchronous_context.LIMIT,
    ) -> Symbols:
        """See `herdr_sdk.Context.symbols`."""
        return self._thread.run(self._context.symbols(name, kind=kind, path=path, limit=limit))

    def callers(self, symbol: str, *, limit: int = asynchronous_context.LIMIT) -> Callers:
        """See `herdr_sdk.Context.callers`."""
        return self._thread.run(self._context.callers(symbol, limit=limit))

    def callees(self, symbol: str, *, limit: int = asynchronous_context.LIMIT) -> Callees:
        """See `herdr_sdk.Context.callees`."""
        return self._thread.run(self._context.callees(symbol, limit=limit))

    def dependents(self, path: str, *, depth: int = 1, limit: int = asynchronous_context.LIMIT) -> Dependents:
        """See `herdr_sdk.Context.dependents`."""
        return self._thread.run(self._context.dependents(path, depth=depth, limit=limit))

    def skipped(self, *, limit: int = asynchronous_context.LIMIT) -> Skipped:
        """See `herdr_sdk.Context.skipped`."""
        return self._thread.run(self._context.skipped(limit=limit))

    def manifest(self) -> Manifest:
        """See `herdr_sdk.Context.manifest`."""
        return self._thread.run(self._context.manifest())

    def index(self, fresh: bool = False) -> GraphState:
        """See `herdr_sdk.Context.index`."""
        return self._thread.run(self._context.index(fresh))


class Session:
    """Blocking counterpart of `herdr_sdk.Session`."""

    def __init__(self, thread: LoopThread, session: asynchronous_sessions.Session) -> None:
        self._thread = thread
        self._session = session

    @property
    def session(self) -> str:
        """See `herdr_sdk.Session`."""
        return self._session.session

    def window(self, tokens: int = asynchronous_sessions.TOKENS) -> Window:
        """See `herdr_sdk.Session.window`."""
        return self._thread.run(self._session.window(tokens))

    def say(self, role: Role, content: Content, **fields: Unpack[MessageFields]) -> Receipt:
        """See `herdr_sdk.Session.say`."""
        return self._thread.run(self._session.say(role, content, **fields))

    def record(self, messages: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """See `herdr_sdk.Session.record`. The messages are drawn on the calling thread, all of them at first."""
        return self._thread.run(self._session.record(list(messages)))

    def messages(self, after: int = 0, limit: int = asynchronous_sessions.LIMIT) -> Messages:
        """See `herdr_sdk.Session.messages`."""
        return self._thread.run(self._session.messages(after, limit))

    def delete(self) -> None:
        """See `herdr_sdk.Session.delete`."""
        self._thread.run(self._session.delete())


class Artifacts:
    """Blocking counterpart of `herdr_sdk.artifacts.Artifacts`."""

    def __init__(self, thread: LoopThread, artifacts: asynchronous_artifacts.Artifacts) -> None:
        self._thread = thread
        self._artifacts = artifacts

    def put(self, name: str, content: str | bytes, **fields: Unpack[ArtifactFields]) -> Artifact:
        """See `herdr_sdk.artifacts.Artifacts.put`."""
        return self._thread.run(self._artifacts.put(name, content, **fields))

    def get(self, name: str, *, workspace: str = "default") -> bytes:
        """See `herdr_sdk.artifacts.Artifacts.get`."""
        return self._thread.run(self._artifacts.get(name, workspace=workspace))

    def describe(self, name: str, *, workspace: str = "default") -> Artifact:
        """See `herdr_sdk.artifacts.Artifacts.describe`."""
        return self._thread.run(self._artifacts.describe(name, workspace=workspace))

    def list(self, **filters: Unpack[ArtifactFilters]) -> ArtifactList:
        """See `herdr_sdk.artifacts.Artifacts.list`."""
        return self._thread.run(self._artifacts.list(**filters))

    def delete(self, name: str, *, workspace: str = "default") -> None:
        """See `herdr_sdk.artifacts.Artifacts.delete`."""
        self._thread.run(self._artifacts.delete(name, workspace=workspace))


class Snapshots:
    """Blocking counterpart of `herdr_sdk.snapshots.Snapshots`."""

    def __init__(self, thread: LoopThread, snapshots: asynchronous_snapshots.Snapshots) -> None:
        self._thread = thread
        self._snapshots = snapshots

    def export(self, workspace: str, file: str | Path, *, sessions: bool = False) -> int:
        """See `herdr_sdk.snapshots.Snapshots.export`."""
        return self._thread.run(self._snapshots.export(workspace, file, sessions=sessions))

    def import_(self, workspace: str, file: str | Path) -> SnapshotReport:
        """See `herdr_sdk.snapshots.Snapshots.import_`."""
        return self._thread.run(self._snapshots.import_(workspace, file))
