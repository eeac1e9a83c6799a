"""How long to wait before the next try: exponential with full jitter.

https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ compares the variants; full
jitter spreads a fleet that lost its gateway at one moment best.
"""

import random
from collections.abc import Callable

FIRST_S = 0.1
MAX_S = 10.0
CALM_S = 5.0  # a connection that lived so long was a good one: begin again at the bottom
ASKED_MAX_S = 60.0  # whatever the gateway asks for, look again within a minute or so


class Backoff:
    """Counts failures and says how long to wait after each."""

    def __init__(self, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._uniform = uniform
        self._failures = 0

    def next_s(self) -> float:
        """Count one failure; return seconds between 0 and a limit that doubles from 0.1 to 10."""
        limit = min(MAX_S, FIRST_S * 2 ** min(self._failures, 10))
        self._failures += 1
        return self._uniform(0, limit)

    def after_s(self, asked_s: float) -> float:
        """Return a wait of at least what the gateway asked for, and at most half more."""
        wait_s = min(max(asked_s, 0.0), ASKED_MAX_S)
        return self._uniform(wait_s, wait_s * 1.5)

    def reset(self) -> None:
        """Forget the failures."""
        self._failures = 0
