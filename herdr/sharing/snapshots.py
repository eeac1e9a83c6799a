"""Snapshots at work: a workspace's graph, artifacts and decisions into one file, and out of it again."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from herdr import __version__
from herdr.clock import Clock, rfc3339
from herdr.context.snapshot import (
    PART,
    Head,
    Kind,
    Record,
    SnapshotDamaged,
    read_head,
    read_records,
    write_records,
)
from herdr.sharing.graphs import Announce, Graphs
from herdr.sharing.intake import Intake
from herdr.sharing.sessions import Sessions
from herdr.sharing.shelf import ArtifactShelf

EXPORT_S = 300.0  # for an index that is being built, and for writing down the graph of a very large tree
UNDER_WAY = "snapshot-"
"""How the folders begin in which snapshots are written and unpacked."""

T = TypeVar("T")


class Snapshots:
    """Writes and reads snapshots, in a folder of its own for what is under way."""

    def __init__(
        self,
        graphs: Graphs,
        shelf: ArtifactShelf,
        sessions: Sessions,
        folder: Path,
        clock: Clock,
        announce: Announce,
    ) -> None:
        self._graphs = graphs
        self._shelf = shelf
        self._sessions = sessions
        self._folder = folder
        self._clock = clock
        self._announce = announce
        self._turn = asyncio.Lock()
        """One import at a time: two would take each other's graph away, and each may unpack to gigabytes."""

    def clear(self) -> None:
        """Delete what was under way when an earlier process was killed."""
        for left in self._folder.glob(f"{UNDER_WAY}*"):
            shutil.rmtree(left, ignore_errors=True)

    async def export(self, workspace: str, sessions: bool) -> Path:
        """Write a snapshot into a file that the caller removes with its folder.

        `sessions`: with all that was said. Raises what `Graphs.ask` does.
        """
        self._graphs.find(workspace)
        graph, file = await asyncio.to_thread(self._two_files)
        try:
            written = await self._graphs.ask(workspace, "export", EXPORT_S, file=str(graph))
            head = Head(
                workspace,
                rfc3339(self._clock.wall_us()),
                __version__,
                written["form"],
                (await asyncio.to_thread(graph.stat)).st_size,
                *await self._graphs.head(workspace),
                sessions,
            )
            decisions = await self._sessions.decisions(workspace)
            loop = asyncio.get_running_loop()
            records = self._records(head, graph, decisions, loop)
            await asyncio.to_thread(_write, file, records)
        except BaseException:
            _remove(file)  # with its folder: the indexer may only be about to write into it
            raise
        return file

    def _two_files(self) -> tuple[Path, Path]:
        """Return names for a graph, which SQLite makes itself, and for a snapshot, in a folder of their own."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self._folder, prefix=UNDER_WAY))
        return folder / "graph", folder / "snapshot"

    def _records(
        self, head: Head, graph: Path, decisions: list[dict[str, Any]], loop: asyncio.AbstractEventLoop
    ) -> Iterator[tuple[Kind, Any]]:
        """Yield the records, on a thread: what must be awaited is asked of the loop one by one."""

        def wait(coroutine: Coroutine[Any, Any, T]) -> T:
            return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

        yield "head", head
        with graph.open("rb") as opened:
            while part := opened.read(PART):
                yield "graph", part
        yield "decisions", decisions
        for artifact in wait(self._shelf.all_of(head.workspace)):
            content = wait(self._shelf.get(head.workspace, artifact.name))[1]
            yield "artifact", {"about": msgspec.to_builtins(artifact), "content": content}
        if head.sessions:
            for session in wait(self._sessions.all_of(head.workspace)):
                yield "session", msgspec.to_builtins(session, builtin_types=(bytes,))
                for message in wait(self._sessions.pages(session.session)):
                    yield "message", msgspec.to_builtins(message, builtin_types=(bytes,))

    async def receive(self, workspace: str, parts: AsyncIterator[bytes]) -> dict[str, Any]:
        """Verify and import a snapshot that comes in parts; nothing is changed unless it is whole."""
        graph, file = await asyncio.to_thread(self._two_files)
        try:
            with await asyncio.to_thread(file.open, "wb") as opened:
                async for part in parts:
                    await asyncio.to_thread(opened.write, part)
            return await self.load(workspace, file, graph)
        finally:
            _remove(file)

    async def load_file(self, workspace: str, file: Path) -> dict[str, Any]:
        """Verify and import a snapshot that lies on the disk, and stays there; raises InvalidInput, OSError."""
        graph, unused = await asyncio.to_thread(self._two_files)
        try:
            return await self.load(workspace, file, graph)
        finally:
            _remove(unused)

    async def load(self, workspace: str, file: Path, graph: Path) -> dict[str, Any]:
        """Verify and import a snapshot; `graph`: where its graph may be unpacked."""
        self._graphs.find(workspace)
        async with self._turn:
            return await self._load(workspace, file, graph)

    async def _load(self, workspace: str, file: Path, graph: Path) -> dict[str, Any]:
        head = await asyncio.to_thread(_unpack, file, graph)
        counts = await self._graphs.seed(workspace, graph)
        loop = asyncio.get_running_loop()
        taken = await asyncio.to_thread(self._intake(workspace, loop).take, file)
        answer = {
            "workspace": workspace,
            "from": {
                "workspace": head.workspace,
                "created": head.created,
                "branch": head.branch,
                "commit": head.commit,
            },
            "files": counts["files"],
            "reused": counts["parsed"] - counts["last_pass"]["parsed"],
            "parsed": counts["last_pass"]["parsed"],
            **taken,
        }
        self._announce("context.snapshot.imported", answer, workspace, None)
        return answer

    def _intake(self, workspace: str, loop: asyncio.AbstractEventLoop) -> Intake:
        return Intake(workspace, self._shelf, self._sessions, self._clock, loop)


def _remove(file: Path) -> None:
    shutil.rmtree(file.parent, ignore_errors=True)


def _write(file: Path, records: Iterator[tuple[Kind, Any]]) -> None:
    with file.open("wb") as opened:
        write_records(opened, records)


def _unpack(file: Path, graph: Path) -> Head:
    """Verify a whole snapshot and write its graph into a file of its own; raises InvalidInput."""
    with file.open("rb") as opened, graph.open("wb") as unpacked:
        records = read_records(opened)
        head = read_head(records)
        for record in records:
            if record.kind == "graph":
                unpacked.write(_bytes(record))
    return head


def _bytes(record: Record) -> bytes:
    if not isinstance(record.body, bytes):
        raise SnapshotDamaged("a part of the graph is none")
    return record.body
