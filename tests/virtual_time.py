"""An event loop whose clock jumps to the next timer when nothing else is left to do.

What takes minutes takes no time, and the same seed gives the same order. Only for code without sockets,
threads and processes: their events come whenever they like.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(Exception):
    """Nothing is ready and no timer is set: whoever waits would wait for ever."""


class _Selector(selectors.SelectSelector):
    """Lets the loop's time pass instead of waiting."""

    def __init__(self, clock: "VirtualClock") -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready at once; else move the clock on."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise Deadlock
        if not ready and timeout is not None and timeout > 0:
            self._clock.now += timeout
        return ready


class VirtualClock:
    """The loop's clock. Implements `herdr.clock.Clock`."""

    def __init__(self) -> None:
        self.now = 0.0

    def wall_us(self) -> int:
        """See `Clock.wall_us`."""
        return 1_700_000_000_000_000 + int(self.now * 1e6)

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return self.now


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_Selector(clock))
        self.time = clock.monotonic  # type: ignore[method-assign]


async def pass_time(seconds: float) -> None:
    """Let virtual time pass: the loop's clock jumps there, and everything that is due before happens first."""
    assert isinstance(asyncio.get_running_loop(), VirtualLoop), "this would really wait"
    await asyncio.sleep(seconds)


def run(main: Coroutine[Any, Any, T], clock: VirtualClock) -> T:
    """Run to the end, and fail if tasks are left over."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(_alone(main))


async def _alone(main: Coroutine[Any, Any, T]) -> T:
    result = await main
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"left over: {left}"
    return result
