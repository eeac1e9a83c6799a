"""Debouncing of file events: of many saves of one file in a short time only the last is kept.

A pure state machine: `now` is monotonic seconds, and nothing happens between calls. The caller asks
`next_due` when to come back and takes what has closed from `due`.
"""

from collections.abc import Hashable
from enum import Enum
from heapq import heappop, heappush, heapreplace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

REPLACED_IDS_MAX = 64  # a window lasts seconds and people and tools save a few times a second at most


class Identified(Protocol):
    """What can be held: anything with an id that its publisher chose."""

    @property
    def id(self) -> str:
        """The idempotency key, unique within the window's key."""
        ...


T = TypeVar("T", bound=Identified)


class Outcome(Enum):
    """What became of an offered item."""

    HELD = "held"
    """It opened a window."""

    REPLACED = "replaced"
    """It took the place of the item in an open window."""

    REPEATED = "repeated"
    """Its id is in the window already, as the current one or a replaced one; nothing changed."""


class Closed(NamedTuple, Generic[T]):
    """A closed window: the item that stayed, and the ids that it replaced, oldest first."""

    item: T
    replaced_ids: tuple[str, ...]


class Offered(NamedTuple, Generic[T]):
    """The answer to `Debounce.offer`."""

    outcome: Outcome
    closed: Closed[T] | None = None
    """Another window that had to close early to make room; the caller passes it on at once."""


class _Window(Generic[T]):
    __slots__ = ("closes_at", "closes_by", "item", "key", "replaced")

    def __init__(self, key: Hashable, item: T, closes_at: float, closes_by: float) -> None:
        self.key = key
        self.item = item
        self.closes_at = closes_at
        self.closes_by = closes_by
        self.replaced: dict[str, None] = {}

    def replace(self, item: T, closes_at: float) -> None:
        replaced = self.replaced
        replaced[self.item.id] = None
        if len(replaced) > REPLACED_IDS_MAX:
            del replaced[next(iter(replaced))]
        self.item = item
        self.closes_at = closes_at


# Every answer but the rare early close is one of these three: no allocation per event.
_HELD: Offered[Any] = Offered(Outcome.HELD)
_REPLACED: Offered[Any] = Offered(Outcome.REPLACED)
_REPEATED: Offered[Any] = Offered(Outcome.REPEATED)


class Debounce(Generic[T]):
    """Holds the newest item of each key until `quiet_s` passed without another, at most `max_s` in all.

    At most `windows_max` windows are open (10,000 by default, as many as events may wait for the writer); a
    window beyond that closes the one that would close soonest. A window remembers its last 64 replaced ids
    and forgets older ones, so that a retry of a forgotten id counts as a new event. A window stays open
    until `due` or `flush` returns it, even when its time has passed.
    """

    __slots__ = ("_heap", "_max_s", "_opened", "_quiet_s", "_windows", "_windows_max")

    def __init__(self, quiet_s: float = 0.5, max_s: float = 5.0, windows_max: int = 10_000) -> None:
        self._quiet_s = quiet_s
        self._max_s = max_s
        self._windows_max = windows_max
        self._windows: dict[Hashable, _Window[T]] = {}
        # One entry per window. A replacement only moves `closes_at`; the entry follows when it comes up.
        self._heap: list[tuple[float, int, _Window[T]]] = []
        self._opened = 0

    def __len__(self) -> int:
        return len(self._windows)

    def is_open(self, key: Hashable) -> bool:
        """Tell whether an item with this key would join an open window."""
        return key in self._windows

    def peek(self, key: Hashable) -> T | None:
        """Return the item that the key's window holds, or None."""
        window = self._windows.get(key)
        return None if window is None else window.item

    def offer(self, key: Hashable, item: T, now: float) -> Offered[T]:
        """Hold the item; the answer says how, and carries a window that had to close early for it."""
        window = self._windows.get(key)
        if window is None:
            return self._open(key, item, now)
        if item.id == window.item.id or item.id in window.replaced:
            return _REPEATED
        window.replace(item, min(now + self._quiet_s, window.closes_by))
        return _REPLACED

    def next_due(self) -> float | None:
        """Return when the next window closes, in the caller's clock; None when none is open."""
        heap = self._heap
        while heap:
            at, order, window = heap[0]
            if at == window.closes_at:
                return at
            heapreplace(heap, (window.closes_at, order, window))
        return None

    def due(self, now: float) -> list[Closed[T]]:
        """Close and return every window whose time has come, in closing order."""
        closed = []
        while (at := self.next_due()) is not None and at <= now:
            closed.append(self._close_soonest())
        return closed

    def flush(self) -> list[Closed[T]]:
        """Close and return every window, in closing order; for a clean stop."""
        return self.due(float("inf"))

    def _open(self, key: Hashable, item: T, now: float) -> Offered[T]:
        closed = self._close_soonest() if len(self._windows) >= self._windows_max else None
        window = _Window(key, item, now + min(self._quiet_s, self._max_s), now + self._max_s)
        self._windows[key] = window
        self._opened += 1
        heappush(self._heap, (window.closes_at, self._opened, window))
        return Offered(Outcome.HELD, closed) if closed else _HELD

    def _close_soonest(self) -> Closed[T]:
        self.next_due()  # puts the right window on top of the heap
        _, _, window = heappop(self._heap)
        del self._windows[window.key]
        return Closed(window.item, tuple(window.replaced))
