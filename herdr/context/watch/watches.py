"""Keeping the kernel's watches in place, and trying again when they fail."""

import functools
import logging
from collections.abc import Callable, Iterable, Mapping

from herdr.clock import Clock
from herdr.context.watch.notices import Notices

LATE_FOLDERS_MAX = 200  # placing a watch holds Python's lock for 20 us: 4 ms for these, 60 ms for 3,000
RETRY_S = 0.5  # first wait before failed watches are placed again; doubles
RETRY_MAX_S = 15.0  # ... up to this: without watches, this is how often a sweep looks
CALM_S = 60.0  # watches that lived this long begin again with the first wait

_log = logging.getLogger("herdr.watch")


class Watches:
    """The running `Notices`, and what is known about their failures.

    watchfiles cannot add a folder to a running set, so there are two: one with the folders of the
    beginning, and a small one with those that came later, which is made anew for each.
    """

    def __init__(
        self, name: str, clock: Clock, deliver: Callable[[set[str]], None], force_polling: bool | None
    ) -> None:
        self.failing = False
        self.restarts = 0
        self.note: str | None = None
        """Why they fail."""
        self.retry_at: float | None = None
        self._name = name
        self._clock = clock
        self._deliver = deliver
        self._force_polling = force_polling
        self._first: Notices | None = None
        self._late: Notices | None = None
        self._late_folders: dict[str, int] = {}
        self._watched: dict[str, int] = {}
        self._generation = 0
        self._placed_at = 0.0
        self._retry_s = RETRY_S

    async def place(self, root: str, folders: Mapping[str, int], others: Iterable[str], anew: bool) -> None:
        """Watch these folders (relative to `root`, with inodes) and `others` (absolute).

        `anew`: also those that seem to be watched.
        """
        missing = dict(folders.items() - self._watched.items())
        late = {**self._late_folders, **missing}
        if anew or self._first is None or len(late) > LATE_FOLDERS_MAX:
            await self._place_all(root, folders, others)
        elif missing:
            await self._place_late(root, late)

    async def _place_all(self, root: str, folders: Mapping[str, int], others: Iterable[str]) -> None:
        await self.remove()
        self.failing, self.retry_at = False, None
        self._placed_at = self._clock.monotonic()
        self._watched = dict(folders)
        self._first = await self._start([*_absolute(root, folders), *others])
        if not self.failing:
            self.note = None

    async def _place_late(self, root: str, late: dict[str, int]) -> None:
        old, self._late_folders = self._late, late
        self._watched.update(late)
        self._late = await self._start(_absolute(root, late))
        if old is not None:
            await old.stop()

    async def _start(self, paths: Iterable[str]) -> Notices:
        failed = functools.partial(self._failed, self._generation)
        notices = Notices(paths, self._deliver, failed, self._force_polling)
        await notices.start()
        return notices

    async def remove(self) -> None:
        """Watch nothing any more; safe to call twice."""
        self._generation += 1
        running, self._first, self._late, self._late_folders = (self._first, self._late), None, None, {}
        for notices in running:
            if notices is not None:
                await notices.stop()

    def cover(self, folders: Mapping[str, int]) -> bool:
        """Tell whether each of these folders has its watch, or none can have one before the next try."""
        return self.failing or folders.items() <= self._watched.items()

    def forget(self, folders: Iterable[str]) -> None:
        """The kernel removed these watches with their folders."""
        for folder in folders:
            self._watched.pop(folder, None)
            self._late_folders.pop(folder, None)

    def take_retry(self, now: float) -> bool:
        """Tell, once, that it is time to place them again."""
        if self.retry_at is None or now < self.retry_at:
            return False
        self.retry_at = None
        return True

    def _failed(self, generation: int, reason: str) -> None:
        if generation != self._generation:
            return
        now = self._clock.monotonic()
        if now - self._placed_at >= CALM_S:
            self._retry_s = RETRY_S
        if reason != self.note:
            _log.warning("workspace %s: %s; trying again", self._name, reason)
        self.failing, self.note = True, reason
        self.restarts += 1
        self.retry_at = now + self._retry_s
        self._retry_s = min(self._retry_s * 2, RETRY_MAX_S)
        self._deliver(set())


def _absolute(root: str, folders: Iterable[str]) -> list[str]:
    return [f"{root}/{folder}" if folder else root for folder in folders]
