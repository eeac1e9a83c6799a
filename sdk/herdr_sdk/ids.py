"""Event ids. The SDK names every event before it sends it, so that sending it again cannot store it twice."""

import secrets
import time
from collections.abc import Callable

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32, as in https://github.com/ulid/spec
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)  # 10 bits a look-up
_TIME_SHIFTS = (40, 30, 20, 10, 0)
_RANDOM_SHIFTS = (50, 40, 30, 20, 10, 0)
_COUNTER_MAX = 1 << 20


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class IdFactory:
    """Makes ULIDs: 26 characters that rise strictly, also when the wall clock steps back.

    48 bits of time, 60 random bits drawn once a millisecond, and a 20-bit counter within it that starts
    at random in its lower half. Two processes meet only if they draw the same 60 bits in one millisecond.
    """

    def __init__(
        self, wall_ms: Callable[[], int] = _wall_ms, random_bits: Callable[[int], int] = secrets.randbits
    ) -> None:
        self._wall_ms = wall_ms
        self._random_bits = random_bits
        self._millisecond = -1
        self._counter = _COUNTER_MAX
        self._prefix = ""

    def __call__(self) -> str:
        """Return the next id."""
        now = self._wall_ms()
        self._counter += 1
        if now > self._millisecond or self._counter >= _COUNTER_MAX:
            self._turn(max(now, self._millisecond + 1))
        counter = self._counter
        return self._prefix + _PAIRS[counter >> 10] + _PAIRS[counter & 1023]

    def _turn(self, millisecond: int) -> None:
        self._millisecond = millisecond
        random = self._random_bits(60)
        self._counter = self._random_bits(19)
        self._prefix = "".join(
            [_PAIRS[(millisecond >> shift) & 1023] for shift in _TIME_SHIFTS]
            + [_PAIRS[(random >> shift) & 1023] for shift in _RANDOM_SHIFTS]
        )
