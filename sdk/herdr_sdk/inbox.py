"""What a follow has received and not handed out yet: whole frames, each with the position after it."""

from collections import deque

from herdr_sdk.event import Event

# Room for a few of the gateway's pages, so that reading goes on while the consumer works.
FULL_EVENTS = 2048
FULL_BYTES = 8 * 1024 * 1024


class Inbox:
    """A bounded queue of frames. It tells when it is full; who fills it is to pause until it is half empty.

    A frame that is not handed out completely keeps its predecessor's position: resuming from `cursor`
    repeats the frame's events rather than losing some.
    """

    def __init__(self) -> None:
        self._frames: deque[tuple[list[Event], str, int]] = deque()
        self._current: deque[Event] = deque()
        self._current_cursor: str | None = None
        self._before: str | None = None
        self._events = 0
        self._size = 0

    @property
    def cursor(self) -> str | None:
        """The newest position before which every event has been handed out."""
        return self._before if self._current else self._current_cursor

    @property
    def full(self) -> bool:
        """True when no more should come."""
        return self._events >= FULL_EVENTS or self._size >= FULL_BYTES

    @property
    def half_empty(self) -> bool:
        """True when more may come again."""
        return self._events <= FULL_EVENTS // 2 and self._size <= FULL_BYTES // 2

    def put(self, events: list[Event], cursor: str, size: int) -> None:
        """Add a frame. Without events it only moves the position after what came before."""
        if events:
            self._frames.append((events, cursor, size))
            self._events += len(events)
            self._size += size
        elif self._frames:
            last_events, _, last_size = self._frames[-1]
            self._frames[-1] = (last_events, cursor, last_size)
        else:
            self._current_cursor = cursor

    def next(self) -> Event | None:
        """Hand out one event; None when there is none."""
        if not self._current:
            self._turn()
        return self._current.popleft() if self._current else None

    def next_batch(self) -> list[Event]:
        """Hand out the rest of the present frame, or the next one; empty when there is none."""
        if not self._current:
            self._turn()
        events = list(self._current)
        self._current.clear()
        return events

    def _turn(self) -> None:
        if self._frames:
            events, cursor, size = self._frames.popleft()
            self._before, self._current_cursor = self._current_cursor, cursor
            self._current.extend(events)
            self._events -= len(events)
            self._size -= size
