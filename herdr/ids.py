"""Identifiers: ULIDs for events, epochs for logs. The random source is injected."""

import secrets
from collections.abc import Callable

from herdr.clock import Clock

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32, https://github.com/ulid/spec
# Two characters (10 bits) a look-up: a third of the cost of going digit by digit.
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_RANDOM_BITS = 80
_RANDOM_SHIFTS = tuple(range(_RANDOM_BITS - 10, -1, -10))
_TIME_SHIFTS = (40, 30, 20, 10, 0)


class UlidFactory:
    """Makes ULIDs that rise strictly, also within one millisecond and when the wall clock steps back."""

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] = secrets.randbits) -> None:
        self._wall_us = clock.wall_us
        self._random_bits = random_bits
        self._millisecond = -1
        self._prefix = ""
        self._random = 0

    def __call__(self) -> str:
        """Return the next ULID: 26 characters, time first."""
        now = self._wall_us() // 1000
        if now > self._millisecond:
            self._millisecond = now
            self._prefix = "".join([_PAIRS[(now >> shift) & 1023] for shift in _TIME_SHIFTS])
            # The top bit stays free, so that a millisecond's increments cannot overflow into the time.
            self._random = self._random_bits(_RANDOM_BITS - 1)
        else:
            self._random += 1
        number = self._random
        return self._prefix + "".join([_PAIRS[(number >> shift) & 1023] for shift in _RANDOM_SHIFTS])


def new_epoch(random_bits: Callable[[int], int] = secrets.randbits) -> str:
    """Return the identity of a new log: 8 hex digits."""
    return f"{random_bits(32):08x}"
