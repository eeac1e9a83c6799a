"""Identifiers: ULIDs for events, epochs for logs. The random source is injected."""

import secrets
from collections.abc import Callable

from herdr.clock import Clock

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32, https://github.com/ulid/spec
# Two characters (10 bits) a look-up: a third of the cost of going digit by digit.
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_TIME_SHIFTS = (40, 30, 20, 10, 0)
_HIGH_BITS, _LOW_BITS = 60, 20  # of a ULID's 80 random bits: fixed for a millisecond, and counted up in it
_HIGH_SHIFTS = (50, 40, 30, 20, 10, 0)


class UlidFactory:
    """Makes ULIDs that rise strictly, also within one millisecond and when the wall clock steps back."""

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] = secrets.randbits) -> None:
        self._wall_us = clock.wall_us
        self._random_bits = random_bits
        self._millisecond = -1
        self._head = ""
        self._low = 0

    def __call__(self) -> str:
        """Return the next ULID: 26 characters, time first."""
        now = self._wall_us() // 1000
        if now > self._millisecond:
            self._begin(now)
        else:
            self._low += 1
            if self._low >> _LOW_BITS:  # half a million in one millisecond: borrow the next one
                self._begin(self._millisecond + 1)
        return self._head + _PAIRS[self._low >> 10] + _PAIRS[self._low & 1023]

    def _begin(self, millisecond: int) -> None:
        self._millisecond = millisecond
        high = self._random_bits(_HIGH_BITS)
        time_text = "".join([_PAIRS[(millisecond >> shift) & 1023] for shift in _TIME_SHIFTS])
        self._head = time_text + "".join([_PAIRS[(high >> shift) & 1023] for shift in _HIGH_SHIFTS])
        self._low = self._random_bits(_LOW_BITS - 1)  # the top bit stays free, so that there is room to count


def new_epoch(random_bits: Callable[[int], int] = secrets.randbits) -> str:
    """Return the identity of a new log: 8 hex digits."""
    return f"{random_bits(32):08x}"
