"""The kernel's notices, through watchfiles, in a thread of their own.

Folders are watched one by one and not as a tree: watchfiles would also watch everything that is ignored
(one inotify watch a folder), follow symbolic links out of the workspace, and walk link by link.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable

from watchfiles import watch

STEP_MS = 50  # a notice waits this long for its neighbours; the thread wakes this often when idle
GROUP_MS = 200  # ... and no longer than this, whatever goes on


class Notices:
    """One running set of watches. It only hints: watchfiles drops the kernel's overflow mark unseen."""

    def __init__(
        self,
        folders: Iterable[str],
        deliver: Callable[[set[str]], None],
        failed: Callable[[str], None],
        force_polling: bool | None,
    ) -> None:
        """Both callables are called on the running loop: `deliver` with absolute paths, `failed` at the end.

        `force_polling`: look every 0.3 s instead, for mounts without notices; None lets watchfiles decide.
        """
        self._folders = list(folders)
        self._deliver = deliver
        self._failed = failed
        self._force_polling = force_polling
        self._loop = asyncio.get_running_loop()
        self._placed = asyncio.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="herdr-watch", daemon=True)

    async def start(self) -> None:
        """Begin, and return once all watches are in place, or `failed` has been called."""
        self._thread.start()
        await self._placed.wait()

    async def stop(self) -> None:
        """End it; nothing is delivered after this has returned. Takes up to a step."""
        self._stop.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            self._watch()
        except (OSError, RuntimeError, ValueError) as error:  # ValueError: a path that is no text
            self._call(self._failed, _reason(error, len(self._folders)))
        self._call(self._placed.set)

    def _watch(self) -> None:
        changes = watch(
            *self._folders, watch_filter=None, debounce=GROUP_MS, step=STEP_MS, stop_event=self._stop,
            rust_timeout=STEP_MS, yield_on_timeout=True, raise_interrupt=False, recursive=False,
            force_polling=self._force_polling, ignore_permission_denied=True,
        )  # fmt: skip
        for batch in changes:
            self._call(self._placed.set)  # known from the first step on: the watches come before it
            if batch:
                self._call(self._deliver_now, {path for _change, path in batch})

    def _deliver_now(self, paths: set[str]) -> None:
        self._deliver(paths)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


def _reason(error: Exception, folders: int) -> str:
    text = str(error)
    if "limit reached" in text or "Too many open files" in text:
        return (
            f"the kernel's inotify limits do not allow {folders} more watched folders; raise "
            "fs.inotify.max_user_watches and max_user_instances. Until then changes are found by sweeps"
        )
    if "decode path" in text:
        return "a file whose name is not UTF-8 changed, which watchfiles cannot report"
    if isinstance(error, FileNotFoundError):
        return "a folder vanished while its watch was placed"
    return "watchfiles gave up: " + text.partition(" about [")[0]
