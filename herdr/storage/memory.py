"""The reference model of a log: lists and dicts, obviously right. Tests and `herdr demo` use it."""

from collections.abc import AsyncIterator, Mapping, Sequence

from herdr.bus.log import Batch
from herdr.clock import Clock
from herdr.event import Event, Positions, encode_extra, restore_event
from herdr.storage.retention import IDS_KEPT_US, Retention


class MemoryLog:
    """Implements `herdr.bus.log.Log`; holds nothing beyond its own life. See there for the promises."""

    def __init__(self, epoch: str, retention: Retention | None = None, clock: Clock | None = None) -> None:
        """Start empty. Without a `retention` nothing is removed; without a `clock` nothing by age."""
        self.epoch = epoch
        self.first = 1
        self.head = 0
        self._retention = retention
        self._clock = clock
        self._events: dict[int, Event] = {}
        self._size = 0
        self._state: dict[tuple[str, str], bytes] = {}
        self._ids: dict[int, tuple[int, int]] = {}

    async def append(self, batch: Batch) -> None:
        """See `Log.append`."""
        expected = range(self.head + 1, self.head + 1 + len(batch.events))
        if [event.seq for event in batch.events] != list(expected):
            raise ValueError(f"a batch must carry on at seq {self.head + 1} without gaps")
        self._events.update({event.seq: event for event in batch.events})
        self._size += sum(len(event.body) for event in batch.events)
        self.head += len(batch.events)
        for kind, key, value in batch.puts:
            if value is None:
                self._state.pop((kind, key), None)
            else:
                self._state[kind, key] = value
        self._ids.update({known.hash: (known.seq, known.accepted_us) for known in batch.ids})

    async def read(self, after: Positions, limit: int, bytes_max: int) -> list[Event]:
        """See `Log.read`."""
        page: list[Event] = []
        size = 0
        for seq in range(max(self.first, min(after) + 1), self.head + 1):
            event = self._events[seq]
            if seq <= after[event.lane]:
                continue
            size += len(event.body)
            if len(page) == limit or (page and size > bytes_max):
                break
            page.append(event)
        return page

    async def get(self, seq: int) -> Event | None:
        """See `Log.get`."""
        return self._events.get(seq)

    async def seq_at(self, accepted_us: int) -> int:
        """See `Log.seq_at`."""
        return next(
            (seq for seq, event in self._events.items() if event.accepted_us >= accepted_us), self.head + 1
        )

    async def load(self, kind: str) -> Mapping[str, bytes]:
        """See `Log.load`."""
        return {key: value for (its_kind, key), value in self._state.items() if its_kind == kind}

    async def find_ids(self, hashes: Sequence[int]) -> Mapping[int, int]:
        """See `Log.find_ids`."""
        return {known: self._ids[known][0] for known in hashes if known in self._ids}

    async def id_hashes(self) -> AsyncIterator[Sequence[int]]:
        """See `Log.id_hashes`."""
        if self._ids:
            yield sorted(self._ids)

    async def redact(self, seq: int, body: bytes) -> bool:
        """See `Log.redact`."""
        event = self._events.get(seq)
        if event is None:
            return False
        self._size += len(body) - len(event.body)
        self._events[seq] = restore_event(seq, event.lane, event.accepted_us, encode_extra(event), body)
        return True

    async def tidy(self, calm: bool) -> bool:
        """See `Log.tidy`; all that is due happens at once."""
        while self._retention and self._events and self._is_over(self._retention):
            self._size -= len(self._events.pop(self.first).body)
            self.first += 1
        if self._clock is not None:
            horizon = self._clock.wall_us() - IDS_KEPT_US
            self._ids = {
                h: kept for h, kept in self._ids.items() if kept[0] >= self.first or kept[1] >= horizon
            }
        return False

    def _is_over(self, bounds: Retention) -> bool:
        horizon = self._clock.wall_us() - bounds.max_age_s * 1_000_000 if self._clock else 0
        return (
            len(self._events) > bounds.max_events
            or self._events[self.first].accepted_us < horizon
            or self._size > bounds.max_bytes
        )

    async def close(self) -> None:
        """See `Log.close`."""
