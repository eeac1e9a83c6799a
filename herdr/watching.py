"""Watched workspaces on the bus: what the watchers see becomes events like everybody else's."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from herdr.bus.publish import Publisher
from herdr.clock import Clock
from herdr.config import WORKSPACES_MAX, Workspace
from herdr.context.watch.changes import Change
from herdr.context.watch.report import WorkspaceEvent
from herdr.context.watch.status import Settings
from herdr.context.watch.watcher import Watcher
from herdr.errors import InvalidInput, LogUnavailable, NotFound
from herdr.event import Draft, Name

SOURCE = "watcher"
RETRY_S = 1.0  # while the log fails; the watcher keeps what it has to say until then

Saw = Callable[[str, Sequence[Change]], None]
Left = Callable[[str, Sequence[str]], None]
Followed = Callable[[str, Watcher | None], None]
"""Hears of a workspace that is watched from now on, or (None) no longer."""

Remember = Callable[[str, str, bytes | None], Awaitable[None]]

_log = logging.getLogger("herdr.watch")
_encode = msgspec.json.Encoder().encode


class Watched(NamedTuple):
    """One workspace."""

    path: Path
    watcher: Watcher
    task: "asyncio.Task[None]"
    stopping: asyncio.Event
    roots: tuple[str, ...]
    known_as: tuple[str, ...]
    """Every path by which clients know the folder."""

    def stop(self) -> None:
        """Have the watcher report what it holds and end; what the log does not take now is given up."""
        self.stopping.set()
        self.watcher.stop()


class Watching:
    """The watchers of all workspaces, and the way from them to the bus.

    `data` is the gateway's own folder, which is not watched, and `own` its files: where a workspace is in that
    folder, or the folder itself, only these are left out. `remember(name, path)` keeps a workspace that was
    added while running; None as path forgets it.
    """

    def __init__(
        self,
        publisher: Publisher,
        clock: Clock,
        data: Path,
        own: Iterable[Path],
        remember: Remember,
    ) -> None:
        self._publisher = publisher
        self._clock = clock
        self._data = Path(os.path.realpath(data))
        self._own = tuple(os.path.realpath(path) for path in own)
        self._remember = remember
        self._saw: list[Saw] = []
        self._left: Left | None = None
        self._followed: Followed | None = None
        self._running: dict[str, Watched] = {}

    def tell_changes(self, listener: Saw) -> None:
        """Tell the listener at once of every change of every file."""
        self._saw.append(listener)

    def tell_workspaces(self, followed: Followed, left: Left) -> None:
        """Tell of workspaces that come and go, and of files that rules began to leave out."""
        self._followed, self._left = followed, left

    def start(self, configured: Iterable[Workspace], remembered: Mapping[str, bytes]) -> None:
        """Begin to watch; a folder that is missing now is waited for. The configuration's names win."""
        for workspace in configured:
            self._watch(workspace.name, Path(workspace.path), workspace.roots)
        for name, raw in remembered.items():
            if name in self._running:
                continue
            if len(self._running) >= WORKSPACES_MAX:
                _log.error("workspace %s is not watched: there are %d already", name, WORKSPACES_MAX)
            else:
                self._watch(name, Path(raw.decode()))

    def look_at(self, workspace: str, paths: Iterable[str]) -> None:
        """Learn what these files hold now, so that a touch of them is told from a change."""
        watched = self._running.get(workspace)
        if watched is not None:
            watched.watcher.hint([os.path.join(watched.path, path) for path in paths])

    async def add(self, name: str | None, path: str) -> str:
        """Watch one more folder from now on, also after restarts; returns its name. Raises InvalidInput."""
        folder = Path(path)
        if "\0" in path or not folder.is_absolute() or not await asyncio.to_thread(_is_folder, folder):
            raise InvalidInput(
                f"{path[:200]!r} is not the absolute path of a folder that the gateway can see",
                "bad_workspace",
            )
        name = name or _name_of(folder)
        if name in self._running:
            raise InvalidInput(f"a workspace called {name!r} is watched already", "workspace_exists")
        if len(self._running) >= WORKSPACES_MAX:
            raise InvalidInput(f"{WORKSPACES_MAX} workspaces are watched already", "too_many_workspaces")
        self._watch(name, folder)
        await self._remember("workspace", name, str(folder).encode())
        return name

    async def remove(self, name: str) -> None:
        """Stop watching a folder; raises NotFound."""
        if name not in self._running:
            raise NotFound(f"no workspace is called {name!r}", "unknown_workspace")
        # First, while the name is taken: later it would forget one that was added under the name meanwhile
        await self._remember("workspace", name, None)
        watched = self._running.pop(name, None)
        if watched is not None:
            if self._followed is not None:
                self._followed(name, None)
            watched.stop()
            await asyncio.wait([watched.task])

    def _watch(self, name: str, path: Path, roots: tuple[str, ...] = ()) -> None:
        stopping = asyncio.Event()

        async def emit(events: Sequence[WorkspaceEvent]) -> None:
            await self._publish(name, events, stopping)

        async def tap(changes: Sequence[Change]) -> None:
            for saw in self._saw:
                saw(name, changes)

        def left(paths: Sequence[str]) -> None:
            if self._left is not None:
                self._left(name, paths)

        settings = Settings(exclude=self._excluded(path))
        watcher = Watcher(name, path, emit, self._clock, settings, tap, left=left)
        task = asyncio.create_task(watcher.run(), name=f"watch {name}")
        task.add_done_callback(_report_crash)
        known_as = tuple(dict.fromkeys((str(path), os.path.realpath(path), *roots)))
        self._running[name] = Watched(path, watcher, task, stopping, roots, known_as)
        if self._followed is not None:
            self._followed(name, watcher)

    def _excluded(self, path: Path) -> tuple[str, ...]:
        root = Path(os.path.realpath(path))
        return self._own if root.is_relative_to(self._data) else (str(self._data),)

    async def stop(self) -> None:
        """Stop watching, once what was seen is published."""
        for watched in self._running.values():
            watched.stop()
        await asyncio.gather(*(w.task for w in self._running.values()), return_exceptions=True)
        self._running.clear()

    def state(self) -> Mapping[str, Any]:
        """Return each workspace's counts, for `/healthz`."""
        return {name: msgspec.to_builtins(w.watcher.state()) for name, w in self._running.items()}

    def paths(self) -> Mapping[str, str]:
        """Return where each workspace is; for those who may know, not for `/healthz`."""
        running = list(self._running.items())  # in one step: other threads ask, too
        return {name: str(watched.path) for name, watched in running}

    def roots(self) -> Mapping[str, tuple[str, ...]]:
        """Return the paths under which clients outside of the gateway's container know each workspace."""
        return {name: watched.roots for name, watched in self._running.items()}

    def folders(self) -> Mapping[str, tuple[str, ...]]:
        """Return every path by which clients know each workspace's folder: as it was given, the real one, `roots`."""
        return {name: watched.known_as for name, watched in self._running.items()}

    def troubles(self) -> list[str]:
        """Return what keeps folders from being followed, in words; empty when all is well."""
        said = []
        for name, watched in self._running.items():
            state = watched.watcher.state()
            if watched.task.done():
                said.append(
                    f"workspace {name}: its watcher has ended by an error; the gateway's log says which"
                )
            elif state.status == "lost":
                said.append(f"workspace {name}: the folder is missing; it is looked for until it is back")
            elif state.status == "sweeping":
                said.append(f"workspace {name}: not watched, only looked through now and then: {state.note}")
        return said

    async def _publish(
        self, workspace: str, events: Sequence[WorkspaceEvent], stopping: asyncio.Event
    ) -> None:
        drafts = [
            Draft(
                event.type, subject=event.subject, workspace=workspace, data=msgspec.Raw(_encode(event.data))
            )
            for event in events
        ]
        while True:
            try:
                await self._publisher.publish(drafts, SOURCE)
                return
            except LogUnavailable:
                if stopping.is_set():
                    raise  # the watcher counts it as undelivered, and says so
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), RETRY_S)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # not to be looked at, or a name that no folder can have
        return False


def _report_crash(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("%s has ended by an error", task.get_name(), exc_info=task.exception())


def _name_of(folder: Path) -> str:
    """Return the name that a folder gives its workspace; raises InvalidInput when it cannot be one."""
    try:
        return msgspec.convert(folder.name or "root", Name)
    except msgspec.ValidationError:
        raise InvalidInput(
            "the folder's own name cannot be a workspace's; give it another with `name`", "bad_workspace"
        ) from None
