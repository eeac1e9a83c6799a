"""The project graphs: what the watchers and tools say goes to the indexer, and questions after it."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from herdr.clock import Clock, rfc3339
from herdr.context.graph.files import Numbers, numbers_of
from herdr.context.graph.frames import Answer
from herdr.context.watch.changes import Change, FileState
from herdr.context.watch.watcher import Watcher
from herdr.errors import HerdrError, NotFound
from herdr.event import Draft
from herdr.sharing.child import IndexerChild
from herdr.sharing.looking import Looking

LISTED_S = 60.0  # how long an import waits for a folder to be looked through
WAIT_S = 10.0
"""How long a question waits for an index that is being built, or a folder that is being looked through."""

SLICE = 2_000  # rows of the table in one frame, some 200 KiB; between two the loop serves others
HEAVY = "pieces"  # the question behind maps: a large one takes the indexer half a second
HEAVY_AT_ONCE = 2  # so that whoever asks something small is not behind hundreds of maps that nobody waits for
REOPEN_S = 2.0  # before a graph that could not be opened or kept is tried again

Announce = Callable[[str, Any, str, str | None], None]
"""Publishes an event of the gateway's own: type, data, workspace, subject."""

_log = logging.getLogger("herdr.indexer")


class Graph:
    """One workspace's graph, as the gateway knows it."""

    def __init__(self, name: str, watcher: Watcher, folder: Path, looking: Looking) -> None:
        self.name = name
        self.watcher = watcher
        place = f"{name}\0{watcher.root}".encode(errors="surrogateescape")
        self.file = folder / f"{blake2b(place, digest_size=8).hexdigest()}.db"
        self.looking = looking
        self.listed = asyncio.Event()
        """Set once the indexer, as it runs now, was sent the whole list of files."""
        self.listing: asyncio.Task[None] | None = None
        self._verified: tuple[float, str] | None = None

    def verified(self, clock: Clock) -> str:
        """Return when all files were looked at last; the same text for the same look."""
        at = self.watcher.verified_at
        if self._verified is None or self._verified[0] != at:
            age_us = int(1e6 * (clock.monotonic() - at))
            self._verified = at, rfc3339(clock.wall_us() - age_us)
        return self._verified[1]


class Graphs:
    """All graphs. Freshness is kept here: an answer knows every change that was reported before it was asked."""

    def __init__(
        self, folder: Path, ttl_s: float, clock: Clock, announce: Announce, watcher_source: str
    ) -> None:
        """`folder` gets the files; `ttl_s`: how old the last look at everything may be, in seconds.

        `watcher_source`: the source of what the watchers publish, which need not be looked at again.
        """
        self.child = IndexerChild(self._began, self._heard)
        self.folder = folder
        """Where the graphs' files are, and what is on its way in or out."""
        self._ttl_s = ttl_s
        self._clock = clock
        self._announce = announce
        self._watcher_source = watcher_source
        self._graphs: dict[str, Graph] = {}
        self._turns = asyncio.Semaphore(HEAVY_AT_ONCE)

    async def stop(self) -> None:
        """End the indexer."""
        for graph in self._graphs.values():
            _cancel(graph.listing)
        await self.child.stop()

    # What the watchers and tools say

    def followed(self, workspace: str, watcher: Watcher | None) -> None:
        """Index a workspace from now on, or (None) no longer."""
        if watcher is None:
            graph = self._graphs.pop(workspace, None)
            if graph is not None:
                _cancel(graph.listing)
                graph.listed.set()  # who waits for it asks on, and hears that there is no such workspace
                self.child.tell("close", workspace, forget=True)
            return
        looking = Looking(watcher, self._ttl_s, self._clock)
        graph = self._graphs[workspace] = Graph(workspace, watcher, self.folder, looking)
        if self.child.is_running:
            self._open(graph)
        else:
            self.child.start()

    def saw(self, workspace: str, changes: Sequence[Change]) -> None:
        """Hear of changes that a watcher found."""
        graph = self._graphs.get(workspace)
        if graph is None:
            return
        paths = [change.path for change in changes]
        paths += [change.old_path for change in changes if change.old_path is not None]
        self.child.tell("look", workspace, paths=paths)

    def left(self, workspace: str, paths: Sequence[str]) -> None:
        """Hear of files that rules began to leave out."""
        if workspace in self._graphs:
            self.child.tell("drop", workspace, paths=list(paths))

    def reported(self, draft: Draft, source: str, hash_: str | None) -> None:
        """Hear of a change that a tool reports, when it comes in and before any window holds it."""
        graph = self._graphs.get(draft.workspace)
        if (
            graph is None
            or draft.subject is None
            or source == self._watcher_source
            or not _is_within(draft.subject)
        ):
            return
        graph.looking.report(draft.subject)

    # Questions

    async def ask(self, workspace: str, question: str, wait_s: float = WAIT_S, **args: Any) -> Any:
        """Put a question to a graph that knows all that was reported before.

        Raises NotFound for an unknown workspace; HerdrError `workspace_lost` while its folder is missing,
        `indexing` while the first index takes longer than `wait_s`, `graph_unavailable` when the indexer fails.
        """
        graph = self.find(workspace)
        try:
            async with asyncio.timeout(wait_s):
                if await _is_gone(graph):
                    raise _lost(graph.name)
                await graph.listed.wait()
                await graph.looking.done()
                async with self._turns if question == HEAVY else contextlib.nullcontext():
                    return await self.child.ask(question, workspace, **args)
        except TimeoutError:
            raise _still_reading(workspace) from None

    async def state(self, workspace: str) -> dict[str, Any]:
        """Return the graph's part of the manifest, without waiting for anything but the indexer's loop."""
        graph = self._graphs.get(workspace)
        if graph is None:
            return {"state": "none"}
        if await _is_gone(graph):
            return {"state": "lost", "detail": "the workspace's folder is missing; it is looked for"}
        if not graph.listed.is_set() or not self.child.is_running:
            return {"state": "indexing", "progress": None}
        try:
            async with asyncio.timeout(WAIT_S):
                found: dict[str, Any] = await self.child.ask("status", workspace)
        except (TimeoutError, HerdrError) as error:
            return {"state": "failed", "detail": getattr(error, "detail", "the indexer does not answer")}
        watched = graph.watcher.state()
        left_out = {**watched.skipped, "ignored": watched.ignored}
        return {**found, "left_out": left_out, "verified": graph.verified(self._clock)}

    async def index(self, workspace: str, fresh: bool) -> None:
        """Look at all files again; `fresh`: and parse each of them, whatever is known."""
        graph = self.find(workspace)
        if await _is_gone(graph):
            raise _lost(workspace)
        if fresh:
            await self.child.ask("read_all", workspace)
        else:
            graph.listed.clear()
            self._list(graph, anew=True)

    async def head(self, workspace: str) -> tuple[str | None, str | None]:
        """Return the branch and commit of a workspace's repository; None where there is none."""
        graph = self._graphs.get(workspace)
        return (None, None) if graph is None else await graph.watcher.head()

    async def seed(self, workspace: str, file: Path) -> dict[str, Any]:
        """Begin a graph anew from a snapshot's; returns the counts once all files were compared with it.

        Raises HerdrError as `ask` does.
        """
        graph = self.find(workspace)
        if await _is_gone(graph):
            raise _lost(workspace)
        self._open(graph, str(file))
        try:
            async with asyncio.timeout(LISTED_S):
                await graph.listed.wait()
        except TimeoutError:
            raise _still_reading(workspace) from None
        found: dict[str, Any] = await self.child.ask("counts", workspace)
        return found

    def names(self) -> list[str]:
        """Return the workspaces that are indexed."""
        return list(self._graphs)

    def find(self, workspace: str) -> Graph:
        """Return a workspace's graph; raises NotFound."""
        graph = self._graphs.get(workspace)
        if graph is None:
            raise NotFound(
                f"no folder is watched as workspace {workspace!r}; GET /v1/workspaces lists those that are",
                "unknown_workspace",
            )
        return graph

    # The indexer

    def _began(self) -> None:
        """A new process knows nothing: open everything anew."""
        for graph in self._graphs.values():
            self._open(graph)

    def _open(self, graph: Graph, seed: str | None = None) -> None:
        graph.listed.clear()
        self.child.tell("open", graph.name, root=graph.watcher.root, file=str(graph.file), seed=seed)
        self._list(graph)

    def _reopen(self, graph: Graph) -> None:
        if self._graphs.get(graph.name) is graph:
            self._open(graph)

    def _list(self, graph: Graph, anew: bool = False) -> None:
        _cancel(graph.listing)
        graph.listing = asyncio.create_task(self._send_table(graph, anew), name=f"list {graph.name}")

    async def _send_table(self, graph: Graph, anew: bool) -> None:
        """Send the list of all files once it is complete; what changes meanwhile is told beside it.

        `anew`: have the watcher look at all of them first.
        """
        await graph.watcher.ready()
        if anew:
            await graph.watcher.verify((), 0.0)
        rows = list(graph.watcher.table.items())
        for start in range(0, max(len(rows), 1), SLICE):
            part = [_row(path, state) for path, state in rows[start : start + SLICE]]
            last = start + SLICE >= len(rows)
            self.child.tell("table", graph.name, rows=part, first=start == 0, last=last)
            await asyncio.sleep(0)
        graph.listed.set()

    def _heard(self, answer: Answer) -> None:
        """Publish what the indexer found; open anew what it cannot keep."""
        if answer.note == "failed":
            if (graph := self._graphs.get(answer.workspace)) is not None:
                asyncio.get_running_loop().call_later(REOPEN_S, self._reopen, graph)
            return
        data = {"workspace": answer.workspace, **answer.body}
        paths = [file["path"] for file in data.get("files", ())] if answer.note == "changed" else []
        subject = paths[0] if len(paths) == 1 and "more" not in data else None
        self._announce(f"context.{answer.note}", data, answer.workspace, subject)


async def _is_gone(graph: Graph) -> bool:
    """Tell whether the folder is missing; the watcher may not know it yet."""
    if graph.watcher.state().status == "lost":
        return True
    if await asyncio.to_thread(os.path.isdir, graph.watcher.root):
        return False
    graph.watcher.hint([graph.watcher.root])  # nothing tells of a folder that is moved away itself
    return True


def _still_reading(workspace: str) -> HerdrError:
    return HerdrError(
        f"the files of workspace {workspace!r} are still being read; ask again in some seconds, "
        f"or look how far it is: GET /v1/context/{workspace}",
        "indexing",
    )


def _lost(workspace: str) -> HerdrError:
    return HerdrError(
        f"the folder of workspace {workspace!r} is missing; put it back, or ask again when it is there",
        "workspace_lost",
    )


def _row(path: str, state: FileState) -> tuple[str, Numbers]:
    return path, numbers_of(state.size, state.mtime_ns, state.inode, state.settled)


def _is_within(path: str) -> bool:
    """Tell whether a reported path stays in the workspace, by its text; anybody may report anything."""
    return not any(part in ("", ".", "..") for part in path.split("/"))


def _cancel(task: "asyncio.Task[None] | None") -> None:
    if task is not None:
        task.cancel()
