"""A bus over a log in memory, with faults on demand; for tests that need no process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from herdr.app.bus import build_bus
from herdr.bus.bus import Bus
from herdr.bus.log import Batch
from herdr.clock import SystemClock
from herdr.config import BusSection, RouteRule
from herdr.errors import LogUnavailable
from herdr.event import Event, Positions
from herdr.storage.memory import MemoryLog
from herdr.storage.retention import Retention


class FaultyLog(MemoryLog):
    """A log in memory that yields as a disk would, and fails when `fails` says so."""

    def __init__(self, fails: Callable[[], bool] = lambda: False, retention: Retention | None = None) -> None:
        super().__init__("0badcafe", retention)
        self.fails = fails
        self.batches: list[int] = []
        self.held: asyncio.Event | None = None
        """While set and clear, commits wait for it."""
        self.holds = False
        """Whether a commit waits for it now."""
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        """Done during each read, after it has looked at the log, as what commits beside a reader's snapshot."""

    async def append(self, batch: Batch) -> None:
        await asyncio.sleep(0)
        if self.held is not None:
            self.holds = True
            await self.held.wait()
            self.holds = False
        if self.fails():
            raise LogUnavailable("the disk is full (planted)")
        await super().append(batch)
        self.batches.append(len(batch.events))

    async def read(self, after: Positions, limit: int, bytes_max: int) -> list[Event]:
        await asyncio.sleep(0)
        events = await super().read(after, limit, bytes_max)
        if self.meanwhile is not None:
            await self.meanwhile()
        return events


async def until(true: Callable[[], object]) -> None:
    """Let everything else run until it is so; the test's own timeout ends a wait in vain."""
    while not true():  # noqa: ASYNC110 - what is waited for is state that nobody announces
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def running_bus(
    log: MemoryLog, rules: Sequence[RouteRule] = (), settings: Mapping[str, object] | None = None
) -> AsyncIterator[Bus]:
    section = BusSection(**{"p2_per_s": 0, **(settings or {})})
    bus = await build_bus(log, section, tuple(rules), SystemClock())
    await bus.start()
    try:
        yield bus
    finally:
        await bus.stop()
