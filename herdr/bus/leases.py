"""Pure: when leases and whatever else ends by itself run out, on a clock that never jumps; `now` is an argument.

Nothing of it is stored: after a restart everything runs its full time again, so neither a wall clock that
jumps nor a gateway that was down can end a lease early.
"""

import heapq
from typing import NamedTuple


class Timer(NamedTuple):
    """Something that ends by itself."""

    at: float
    """Monotonic seconds."""
    key: str
    """What it is that ends."""
    kind: str
    """The owner's own word: `lease`, and whatever else it has run."""
    saw: int = 0
    """The renewal that the timer knows of."""


class Leases:
    """At most one timer a key; a new one takes the old one's place."""

    def __init__(self) -> None:
        self._timers: dict[str, Timer] = {}
        self._heap: list[Timer] = []

    def __contains__(self, key: str) -> bool:
        return key in self._timers

    def __len__(self) -> int:
        return len(self._timers)

    def begin(self, timer: Timer) -> None:
        """Start a timer, in place of the key's old one."""
        self._timers[timer.key] = timer
        heapq.heappush(self._heap, timer)
        if len(self._heap) > 2 * len(self._timers) + 64:  # renewals leave their predecessors in the heap
            self._heap = list(self._timers.values())
            heapq.heapify(self._heap)

    def end(self, key: str) -> None:
        """Forget the key's timer."""
        self._timers.pop(key, None)

    def due(self, now: float, limit: int) -> list[Timer]:
        """Return, once, up to `limit` timers that have run out, in the order of their times.

        Each stays its key's timer, with nothing left, until another one begins or `end` is called.
        """
        found: list[Timer] = []
        while self._heap and self._heap[0].at <= now and len(found) < limit:
            timer = heapq.heappop(self._heap)
            if self.is_current(timer):
                found.append(timer)
        return found

    def is_current(self, timer: Timer) -> bool:
        """Tell whether nothing has taken the timer's place."""
        return self._timers.get(timer.key) is timer

    def saw(self, key: str) -> int:
        """Return the renewal that the key's timer knows of; 0 without a timer."""
        timer = self._timers.get(key)
        return 0 if timer is None else timer.saw

    def next_at(self) -> float | None:
        """Return when the next timer runs out (monotonic seconds), or None."""
        while self._heap and not self.is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0].at if self._heap else None

    def left_s(self, key: str, now: float) -> float:
        """Return how many seconds the key has left; 0 when no timer runs for it."""
        timer = self._timers.get(key)
        return 0.0 if timer is None else max(0.0, timer.at - now)
