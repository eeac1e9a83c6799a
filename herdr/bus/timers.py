"""Runs what `herdr.bus.leases` says is due."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from herdr.bus.leases import Leases, Timer
from herdr.clock import Clock

STILL_S = (
    1.0  # late by more than that, the whole process stood still; renewals that wait in its sockets go first
)
SLICE = 32  # that run out in one transaction; after a restart thousands can end together

_log = logging.getLogger("herdr.bus")


class Timers:
    """Leases, and whatever else ends by itself, on the injected clock."""

    def __init__(self, clock: Clock, run_out: Callable[[Sequence[Timer]], Awaitable[None]]) -> None:
        """`run_out` is awaited for one slice of timers after the other, in the order of their times."""
        self._clock = clock
        self._run_out = run_out
        self._leases = Leases()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __contains__(self, key: str) -> bool:
        return key in self._leases

    def start(self) -> None:
        """Begin to run."""
        self._task = asyncio.create_task(self._run(), name="leases")
        self._task.add_done_callback(_report_crash)

    async def stop(self) -> None:
        """Run out nothing any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def begin(self, key: str, kind: str, after_s: float, saw: int = 0) -> None:
        """Let something run out after so many seconds, in place of what ran for its key."""
        self._leases.begin(Timer(self._clock.monotonic() + after_s, key, kind, saw))
        self._wake.set()

    def end(self, key: str) -> None:
        """Forget what runs for a key."""
        self._leases.end(key)

    def settle(self, timer: Timer) -> None:
        """Forget a timer that has run out, unless another one has begun."""
        if self._leases.is_current(timer):
            self._leases.end(timer.key)

    def again(self, timer: Timer, after_s: float) -> None:
        """Try once more later, unless another one has begun."""
        if self._leases.is_current(timer):
            self.begin(timer.key, timer.kind, after_s, timer.saw)

    def saw(self, key: str) -> int:
        """See `Leases.saw`."""
        return self._leases.saw(key)

    def left_s(self, key: str) -> float:
        """Return how many seconds a key has left; 0 when nothing runs for it."""
        return self._leases.left_s(key, self._clock.monotonic())

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            while timers := self._leases.due(before := self._clock.monotonic(), SLICE):
                await self._run_out(timers)
                await self._after_a_standstill(since=before)
            at = self._leases.next_at()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if at is None else max(0.0, at - self._clock.monotonic())):
                    await self._wake.wait()
            if at is not None:
                await self._after_a_standstill(since=at)

    async def _after_a_standstill(self, since: float) -> None:
        if self._clock.monotonic() - since > STILL_S:
            await asyncio.sleep(STILL_S)


def _report_crash(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.critical("leases do not run out any more", exc_info=task.exception())
