"""Pure: which P0 events have not yet been written to a target that they are for, and since when too long."""

import heapq
from typing import NamedTuple

WATCHED_MAX = 10_000  # as many as one lane holds; beyond it the oldest is reported early, never forgotten


class Overdue(NamedTuple):
    """A P0 event whose time ran out before its first write to a target. It is still delivered, late."""

    target: str
    seq: int
    source: str


class Undelivered:
    """Deadlines by (target, seq); a heap with lazily removed entries."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], str] = {}
        self._heap: list[tuple[float, int, str]] = []

    def watch(self, target: str, seq: int, source: str, deadline: float) -> None:
        """Expect a first write to the target before the deadline (monotonic seconds)."""
        self._open[target, seq] = source
        heapq.heappush(self._heap, (deadline, seq, target))
        if len(self._heap) > 2 * WATCHED_MAX + len(self._open):  # mostly written long before their deadline
            self._heap = [entry for entry in self._heap if (entry[2], entry[1]) in self._open]
            heapq.heapify(self._heap)

    def written(self, target: str, seq: int) -> None:
        """Note the first write; later ones change nothing."""
        self._open.pop((target, seq), None)

    def due(self, now: float) -> list[Overdue]:
        """Return, once each, what is overdue, and the oldest beyond the bound."""
        found = []
        while self._heap and (self._heap[0][0] <= now or len(self._open) > WATCHED_MAX):
            _, seq, target = heapq.heappop(self._heap)
            source = self._open.pop((target, seq), None)
            if source is not None:
                found.append(Overdue(target, seq, source))
        return found

    def next_due(self) -> float | None:
        """Return when `due` next has something to say (at once: minus infinity), or None."""
        if len(self._open) > WATCHED_MAX:
            return float("-inf")
        while self._heap and (self._heap[0][2], self._heap[0][1]) not in self._open:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._open)
