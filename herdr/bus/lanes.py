"""The three queues before the one writer: what may enter when they fill, and what makes up a batch.

Pure: nothing here waits. A P0 that gets the answer WAIT is offered again by its caller when there is room.
"""

from collections import deque
from enum import Enum
from typing import Generic, TypeVar

from herdr.event import Lane

T = TypeVar("T")

BATCH_ITEMS_MAX = 256  # small transactions cost about 30% of throughput and keep P0 from waiting long
BATCH_BYTES_MAX = 1024 * 1024
BATCH_ITEMS_MAX_WITH_P0 = 32  # what rides along with a P0 must not delay its commit


class Admission(Enum):
    """The answer to an offered item."""

    ADMITTED = "admitted"
    WAIT = "wait"
    """The P0 lane is full; offer again after the next `take`. Only P0 gets this."""

    REFUSED = "refused"
    """The lanes are full: the event is dropped as `overloaded`. P0 never gets this."""


# Looked up once: an enum member costs more to reach than the whole comparison beside it.
_ADMITTED, _WAIT, _REFUSED = Admission.ADMITTED, Admission.WAIT, Admission.REFUSED
_P0, _P1 = int(Lane.P0), int(Lane.P1)


class Lanes(Generic[T]):
    """Three first-in, first-out lanes with one bound, counted in items and in bytes.

    While fewer than `buffer_size` items and `bytes_max` bytes wait in all lanes together, everything is
    admitted. From there on P2 is refused, and at twice that P1 too. P0 is never refused: it waits once its
    own lane alone holds `buffer_size` items or `bytes_max` bytes. The last item to be admitted may exceed the
    bytes by its own size. So offers fill the lanes to at most 3 x `buffer_size` items, and to 3 x `bytes_max`
    and two items' bytes.
    """

    __slots__ = ("_buffer_size", "_bytes", "_bytes_max", "_count", "_lanes", "_p0_bytes")

    def __init__(self, buffer_size: int = 10_000, bytes_max: int = 64 * 1024 * 1024) -> None:
        self._buffer_size = buffer_size
        self._bytes_max = bytes_max
        self._lanes: tuple[deque[tuple[T, int]], ...] = (deque(), deque(), deque())
        self._count = 0
        self._bytes = 0
        self._p0_bytes = 0

    def __len__(self) -> int:
        return self._count

    @property
    def depths(self) -> tuple[int, int, int]:
        """How many items wait in each lane."""
        p0, p1, p2 = self._lanes
        return len(p0), len(p1), len(p2)

    @property
    def waiting(self) -> int:
        """How many P1 and P2 items wait."""
        return self._count - len(self._lanes[_P0])

    @property
    def bytes_waiting(self) -> int:
        """The sizes of all waiting items together."""
        return self._bytes

    @property
    def is_full(self) -> bool:
        """Whether P2 is refused now."""
        return self._count >= self._buffer_size or self._bytes >= self._bytes_max

    @property
    def has_p0(self) -> bool:
        """Whether a P0 item waits."""
        return bool(self._lanes[_P0])

    def offer(self, lane: int, item: T, size: int) -> Admission:
        """Append the item to its lane if there is room; `size` is its bytes."""
        if self.is_full:
            answer = self._when_full(lane)
            if answer is not _ADMITTED:
                return answer
        self.admit(lane, item, size)
        return _ADMITTED

    def admit(self, lane: int, item: T, size: int) -> None:
        """Append the item however full the lanes are: for what has been answered `deferred` already.

        The debounce windows bound how many such items there are.
        """
        self._lanes[lane].append((item, size))
        self._count += 1
        self._bytes += size
        if lane == _P0:
            self._p0_bytes += size

    def put_back(self, lane: int, item: T, size: int) -> None:
        """Return an item that `take` gave out to the head of its lane; several in reverse order."""
        self.admit(lane, item, size)
        self._lanes[lane].rotate(1)

    def _when_full(self, lane: int) -> Admission:
        if lane == _P0:
            full = len(self._lanes[_P0]) >= self._buffer_size or self._p0_bytes >= self._bytes_max
            return _WAIT if full else _ADMITTED
        if lane == _P1 and self._count < 2 * self._buffer_size and self._bytes < 2 * self._bytes_max:
            return _ADMITTED
        return _REFUSED

    def take(self) -> list[T]:
        """Remove and return the next batch, in the order in which it gets its `seq`s; empty when idle.

        P0 first, then P1, then P2: up to 256 items or 1 MiB, or a single larger item. With a P0 in it the
        batch has at most 32 items, more only as long as they are P0 too.
        """
        batch: list[T] = []
        p0, p1, p2 = self._lanes
        left = _move(p0, batch, BATCH_ITEMS_MAX, BATCH_BYTES_MAX)
        self._p0_bytes -= BATCH_BYTES_MAX - left
        items_max = BATCH_ITEMS_MAX_WITH_P0 if batch else BATCH_ITEMS_MAX
        # A lane that still holds an item has been stopped by a limit: nothing of a lower lane goes before it.
        if not p0:
            left = _move(p1, batch, items_max, left)
            if not p1:
                left = _move(p2, batch, items_max, left)
        self._count -= len(batch)
        self._bytes -= BATCH_BYTES_MAX - left
        return batch


def _move(queue: deque[tuple[T, int]], batch: list[T], items_max: int, bytes_left: int) -> int:
    """Move items from the queue to the batch while they fit; return how many bytes are left after them."""
    while queue and len(batch) < items_max:
        size = queue[0][1]
        if size > bytes_left and batch:
            break
        batch.append(queue.popleft()[0])
        bytes_left -= size
    return bytes_left
