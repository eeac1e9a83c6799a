"""Read your writes: what was reported of a workspace is looked at before the next answer about it."""

import asyncio

from herdr.clock import Clock
from herdr.context.watch.watcher import Watcher

DIRTY_MAX = 10_000  # reported paths nobody looked at yet; beyond it everything is looked at instead


class Looking:
    """What tools have reported of one workspace, and the looks that are under way."""

    def __init__(self, watcher: Watcher, ttl_s: float, clock: Clock) -> None:
        """`ttl_s`: how old the last look at everything may be, in seconds."""
        self._watcher = watcher
        self._ttl_s = ttl_s
        self._clock = clock
        self._dirty: set[str] = set()
        self._looks: set[asyncio.Task[None]] = set()

    def report(self, path: str) -> None:
        """Have a path looked at, in time for whoever asks next."""
        if len(self._dirty) < DIRTY_MAX:
            self._dirty.add(path)

    async def done(self) -> None:
        """Return once all that was reported before was looked at, and all files were within the time to live.

        A look that another question has begun is waited for as well, and goes on when that one is given up.
        """
        is_old = self._watcher.verified_at + self._ttl_s < self._clock.monotonic()
        if self._dirty or (is_old and not self._looks):
            dirty, self._dirty = self._dirty, set()
            look = asyncio.create_task(self._look(dirty), name="look")
            self._looks.add(look)
            look.add_done_callback(self._looks.discard)
        if self._looks:
            await asyncio.wait(set(self._looks))

    async def _look(self, dirty: set[str]) -> None:
        max_age_s = self._ttl_s if len(dirty) < DIRTY_MAX else 0.0
        await self._watcher.verify([f"{self._watcher.root}/{path}" for path in dirty], max_age_s)
