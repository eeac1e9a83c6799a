"""The clocks that everything else is given; nothing else in Herdr reads the time."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that people read and that may jump, one that only moves forward."""

    def wall_us(self) -> int:
        """Microseconds since the Unix epoch, UTC; may jump when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never jumps."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def wall_us(self) -> int:
        """See `Clock.wall_us`."""
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return time.monotonic()


def rfc3339(wall_us: int) -> str:
    """Render microseconds since the epoch as RFC 3339 in UTC with milliseconds.

    >>> rfc3339(1_700_000_000_123_456)
    '2023-11-14T22:13:20.123Z'
    """
    seconds, micros = divmod(wall_us, 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{micros // 1000:03d}Z"
