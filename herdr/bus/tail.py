"""The newest committed events, kept in memory so that followers near the head never touch the disk."""

from herdr.event import Event, Positions

BYTES_MAX = 64 * 1024 * 1024  # of bodies; ten thousand events of 6 KiB


class Tail:
    """A bounded window over the log that ends at its head; the oldest event gives way."""

    def __init__(self, head: int, events_max: int, bytes_max: int = BYTES_MAX) -> None:
        self._events: dict[int, Event] = {}
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._first = head + 1
        self.head = head

    def extend(self, events: list[Event]) -> None:
        """Add events that follow the head directly."""
        for event in events:
            self._events[event.seq] = event
            self._bytes += len(event.body)
        if events:
            self.head = events[-1].seq
        while len(self._events) > self._events_max or self._bytes > self._bytes_max:
            self._bytes -= len(self._events.pop(self._first).body)
            self._first += 1

    def covers(self, after: Positions) -> bool:
        """Tell whether every event after these positions is here."""
        return min(after) + 1 >= self._first

    def read(self, after: Positions, limit: int, bytes_max: int) -> list[Event]:
        """Return the events after each lane's position, as `Log.read` does; only where `covers` holds."""
        events = self._events
        found: list[Event] = []
        size = 0
        for seq in range(min(after) + 1, self.head + 1):
            event = events[seq]
            if seq <= after[event.lane]:
                continue
            size += len(event.body)
            if found and (len(found) >= limit or size > bytes_max):
                break
            found.append(event)
        return found

    def get(self, seq: int) -> Event | None:
        """Return one event if it is here."""
        return self._events.get(seq)

    def replace(self, event: Event) -> None:
        """Put a redacted event in the place of the original, if that is here."""
        if (old := self._events.get(event.seq)) is not None:
            self._bytes += len(event.body) - len(old.body)
            self._events[event.seq] = event
