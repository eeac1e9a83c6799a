"""The configuration file's routes are read again when it changes; a broken file keeps the old table."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from watchfiles import Change, awatch

from herdr.bus.bus import Bus
from herdr.config import ConfigError, RouteRule
from herdr.errors import HerdrError

RETRY_MIN_S, RETRY_MAX_S = 1.0, 60.0  # while the folder cannot be watched: missing, or no watches left
LOOK_MS = (
    2000  # a notice can be missed (a change while watches are placed, a mount without them): look anyway
)

_log = logging.getLogger("herdr.routes")


class RoutesFile:
    """Watches the folder of the file (editors replace files, mounts replace links) and reloads on a change."""

    def __init__(self, path: Path | None, read: Callable[[], Sequence[RouteRule]], bus: Bus) -> None:
        self._path = path
        self._read = read
        self._bus = bus
        self._seen = None if path is None else _stamp(path)

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
        pause_s = RETRY_MIN_S
        while True:
            try:
                if self._seen != (stamp := _stamp(self._path)):  # it changed while nobody looked
                    self._seen = stamp
                    self.reload()
                if not self._path.parent.is_dir():  # the library would wait for nothing, without a word
                    raise FileNotFoundError("the folder is missing")
                async for _ in awatch(
                    self._path.parent,
                    watch_filter=self._concerns,
                    recursive=False,
                    ignore_permission_denied=True,
                    rust_timeout=LOOK_MS,
                    yield_on_timeout=True,
                ):
                    pause_s = RETRY_MIN_S
                    if self._seen != (stamp := _stamp(self._path)):
                        self._seen = stamp
                        self.reload()
            except Exception as error:  # noqa: BLE001 - the library raises groups and types of its own
                _log.error("%s is not watched for %g s: %s", self._path.parent, pause_s, error)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_MAX_S)

    def _concerns(self, _: Change, path: str) -> bool:
        """Tell our file from its neighbours; Kubernetes replaces a link that its name goes through."""
        assert self._path is not None
        return Path(path).name in (self._path.name, "..data")

    def reload(self) -> None:
        """Read the file and put its rules into force, or say why not and keep the old ones."""
        try:
            rules = self._read()
            self._bus.load_file_rules(rules)
        except HerdrError as error:
            _log.error(
                "the changed configuration is not used, the old routes stay in force: %s", error.detail
            )
            self._bus.publisher.announce("herdr.routes_rejected", _shown(error))
        else:
            _log.info("the configuration's routes were read again: %d rules", len(rules))
            self._bus.publisher.announce("herdr.routes_loaded", {"rules": len(rules)})


def _shown(error: HerdrError) -> dict[str, object]:
    """Return what followers may know: paths and values of the file are for those who read the gateway's log."""
    count = len(error.problems) if isinstance(error, ConfigError) else 1
    return {
        "problems": count,
        "detail": "the changed configuration cannot be used; the gateway's log says why",
    }


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return what is another one after every change of a file; None while it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
