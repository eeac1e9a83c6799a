"""The configuration file's routes are read again when it changes; a broken file keeps the old table."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from watchfiles import awatch

from herdr.bus.bus import Bus
from herdr.config import RouteRule
from herdr.errors import HerdrError

_log = logging.getLogger("herdr.routes")


class RoutesFile:
    """Watches the folder of the file (editors replace files, mounts replace links) and reloads on a change."""

    def __init__(self, path: Path | None, read: Callable[[], Sequence[RouteRule]], bus: Bus) -> None:
        self._path = path
        self._read = read
        self._bus = bus

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Reload for as long as the context lasts."""
        task = asyncio.create_task(self._watch(), name="routes file")
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        if self._path is None:
            return
        name = self._path.name
        async for changes in awatch(self._path.parent, recursive=False, ignore_permission_denied=True):
            # Kubernetes and some editors replace a link that the file's name goes through
            if any(Path(path).name in (name, "..data") for _, path in changes):
                self.reload()

    def reload(self) -> None:
        """Read the file and put its rules into force, or say why not and keep the old ones."""
        try:
            rules = self._read()
            self._bus.load_file_rules(rules)
        except HerdrError as error:
            _log.error(
                "the changed configuration is not used, the old routes stay in force: %s", error.detail
            )
            self._bus.publisher.announce("herdr.routes_rejected", {"detail": error.detail})
        else:
            _log.info("the configuration's routes were read again: %d rules", len(rules))
            self._bus.publisher.announce("herdr.routes_loaded", {"rules": len(rules)})
