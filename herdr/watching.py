"""Watched workspaces on the bus: what the watchers see becomes events like everybody else's."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from herdr.bus.publish import Publisher
from herdr.clock import Clock
from herdr.context.watch.report import WorkspaceEvent
from herdr.context.watch.status import Settings
from herdr.context.watch.watcher import Watcher
from herdr.errors import InvalidInput, LogUnavailable
from herdr.event import Draft

SOURCE = "watcher"
RETRY_S = 1.0  # while the log fails; the watcher keeps what it has to say until then

_log = logging.getLogger("herdr.watch")
_encode = msgspec.json.Encoder().encode


class Watching:
    """The watchers of all workspaces, and the way from them to the bus."""

    def __init__(self, publisher: Publisher, clock: Clock, exclude: Path) -> None:
        self._publisher = publisher
        self._clock = clock
        self._exclude = exclude
        self._running: dict[str, tuple[Watcher, asyncio.Task[None]]] = {}

    async def start(self, workspaces: Sequence[tuple[str, Path]]) -> None:
        """Begin to watch; a folder that is missing now is waited for."""
        for name, path in workspaces:
            self.add(name, path)

    def add(self, name: str, path: Path) -> None:
        """Watch one more folder; raises InvalidInput when the name is taken by another."""
        if name in self._running:
            raise InvalidInput(f"a workspace called {name!r} is watched already", "workspace_exists")

        async def emit(events: Sequence[WorkspaceEvent]) -> None:
            await self._publish(name, events)

        watcher = Watcher(name, path, emit, self._clock, Settings(exclude=(str(self._exclude.resolve()),)))
        self._running[name] = (watcher, asyncio.create_task(watcher.run(), name=f"watch {name}"))

    async def stop(self) -> None:
        """Stop watching, once what was seen is published."""
        for watcher, _ in self._running.values():
            watcher.stop()
        await asyncio.gather(*(task for _, task in self._running.values()), return_exceptions=True)
        self._running.clear()

    def state(self) -> Mapping[str, Any]:
        """Return each workspace's counts, for `/healthz`."""
        return {name: msgspec.to_builtins(watcher.state()) for name, (watcher, _) in self._running.items()}

    async def _publish(self, workspace: str, events: Sequence[WorkspaceEvent]) -> None:
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
                await asyncio.sleep(RETRY_S)
