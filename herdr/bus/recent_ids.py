"""The memory of publishers' ids, from which a repeated publish gets the `seq` of the first one.

The newest ids stay in a map. Older ones leave it for the log's id index, by hash; a Bloom filter over all that
have left keeps the common case, an id never seen before, from reading the index at all.

They leave in groups of one hash range each. Written in order of age, every id would dirty an index page of its
own, and the write-ahead log would carry 4 KiB an event (measured: the gateway ran at 40% of its speed from the
moment the map was full); a group of 512 neighbours shares its pages.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from herdr.bus.log import RememberedId
from herdr.event import id_key, key_hash

CAPACITY = 65_536  # several seconds at full load, hours of a busy day: far longer than a publisher retries
GROUPS = 256
GROUP_SIZE = 512  # all groups full hold twice the capacity
BEHIND_GROUPS = 8  # as much again as one sixteenth of the map
FILTER_BITS_LOG2 = 26  # 8 MiB
MAYBE_IN_INDEX = 0
"""What `find` answers when only the index on disk can tell; never a `seq`."""

_NOT_INDEXED = -1


class RecentIds:
    """Maps (`source`, `id`) to `seq`: the newest `capacity` exactly, older ones by a 64-bit hash.

    The filter has two probes: with 5,000,000 ids in 2**26 bits 1.9% of new ids cost a needless look-up (7%
    at 10,000,000). Ids that the retention removes from the index stay in the filter until the next start,
    which costs look-ups and is never wrong.
    """

    __slots__ = (
        "_age_max",
        "_bits",
        "_capacity",
        "_group_size",
        "_groups",
        "_kept",
        "_leaving",
        "_mask",
        "_order",
        "_ready",
        "_seqs",
        "_shift",
        "_since",
        "_sizes",
        "_turn",
    )

    def __init__(
        self,
        capacity: int = CAPACITY,
        filter_bits_log2: int = FILTER_BITS_LOG2,
        groups: int = GROUPS,
        group_size: int = GROUP_SIZE,
    ) -> None:
        self._capacity = capacity
        self._group_size = group_size
        self._shift = filter_bits_log2
        self._mask = (1 << filter_bits_log2) - 1
        self._bits: bytearray | None = None  # made with the first id that leaves the map
        # One joined string takes half the memory of a tuple of two.
        self._seqs: dict[str, tuple[int, int]] = {}
        # A dict knows its first key too, but looks for it past all that have left (measured: 10 us an event).
        self._order: deque[str] = deque()
        self._groups: list[list[RememberedId]] = [[] for _ in range(groups)]
        # Smaller at first, each another size: groups that all filled together would spill all together
        self._sizes = [max(1, group_size * (place + 1) // groups) for place in range(groups)]
        # Few ids fill a group slowly, and none may stay out of the index until its event is out of `replay`. All
        # groups have had their turn within as many batches: 65,536 events, the half that is left to `replay`.
        self._age_max = groups * group_size * 3 // 2
        self._since = [0] * groups  # of each group's first id
        self._kept = 0  # how many ids have come in all
        self._turn = 0
        self._leaving: dict[int, int] = {}  # what the groups hold: hash to seq
        self._ready: deque[list[RememberedId]] = deque()

    def __len__(self) -> int:
        return len(self._seqs) + len(self._leaving)

    @property
    def replay(self) -> int:
        """How many of the log's newest events may have ids that are not in the index yet.

        The map, and the groups: one leaves when it is full, after `groups * group_size` ids on average, or when
        it has waited for half as long again.
        """
        return self._capacity + 2 * len(self._groups) * self._group_size

    def find(self, source: str, event_id: str) -> int | None:
        """Return the `seq` of a known id, None for one never seen, `MAYBE_IN_INDEX` if only the index can tell."""
        key = id_key(source, event_id)
        known = self._seqs.get(key)
        if known is not None:
            return known[0]
        bits = self._bits
        if bits is None:
            return None
        number = key_hash(key)
        probe = number & self._mask
        if not bits[probe >> 3] >> (probe & 7) & 1:
            return None
        probe = (number >> self._shift) & self._mask
        if not bits[probe >> 3] >> (probe & 7) & 1:
            return None
        return self._leaving.get(number, MAYBE_IN_INDEX)

    def remember(self, source: str, event_id: str, seq: int, accepted_us: int) -> None:
        """Keep an id that was just committed; one that is in the map already keeps its first `seq`."""
        self._keep(id_key(source, event_id), seq, accepted_us)

    def remember_made(self, source: str, event_id: str, seq: int) -> None:
        """Keep an id that the gateway made, while it is recent.

        Who was told it may publish under it again, but it is nobody's idempotency key: it is not indexed.
        """
        self._keep(id_key(source, event_id), seq, _NOT_INDEXED)

    def _keep(self, key: str, seq: int, accepted_us: int) -> None:
        seqs = self._seqs
        if key in seqs:
            return
        seqs[key] = (seq, accepted_us)
        self._kept += 1
        self._order.append(key)
        if len(seqs) > self._capacity:
            oldest = self._order.popleft()
            seq, accepted_us = seqs.pop(oldest)
            if accepted_us != _NOT_INDEXED:
                self._let_go(key_hash(oldest), seq, accepted_us)

    @property
    def is_behind(self) -> bool:
        """Whether several groups wait to be written, so that memory would grow without bound."""
        return len(self._ready) >= BEHIND_GROUPS

    def take_spill(self) -> Sequence[RememberedId]:
        """Return a group of neighbours for the batch that is being formed, if one is full or has waited long.

        They stay findable here until `spilled` confirms the commit; without that they come again.
        """
        place = self._turn = (self._turn + 1) % len(self._groups)
        if self._groups[place] and self._kept - self._since[place] > self._age_max:
            self._release(place)
        return self._ready[0] if self._ready else ()

    def spilled(self, ids: Sequence[RememberedId]) -> None:
        """Drop what the last `take_spill` returned, now that it is committed."""
        self._ready.popleft()
        for remembered in ids:
            self._leaving.pop(remembered.hash, None)

    def load_hashes(self, hashes: Iterable[int]) -> None:
        """Add ids that the index holds to the filter."""
        if self._bits is None:
            self._bits = bytearray(max(1, (self._mask + 1) // 8))
        bits, mask, shift = self._bits, self._mask, self._shift
        for number in hashes:
            for probe in (number & mask, (number >> shift) & mask):
                bits[probe >> 3] |= 1 << (probe & 7)

    def _let_go(self, number: int, seq: int, accepted_us: int) -> None:
        self.load_hashes((number,))
        self._leaving[number] = seq
        place = ((number + 2**63) * len(self._groups)) >> 64  # one range of hashes a group
        group = self._groups[place]
        if not group:
            self._since[place] = self._kept
        group.append(RememberedId(number, seq, accepted_us))
        if len(group) >= self._sizes[place]:
            self._release(place)

    def _release(self, place: int) -> None:
        self._ready.append(self._groups[place])
        self._groups[place] = []
        self._sizes[place] = self._group_size
