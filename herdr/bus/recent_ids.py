"""The memory of publishers' ids, from which a repeated publish gets the `seq` of the first one.

The newest ids stay in a map. Older ones move, by hash and in slices, to the log's id index; a Bloom filter
over those keeps the common case, an id never seen before, from reading the index at all.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from herdr.bus.log import RememberedId
from herdr.event import id_hash

FILTER_BITS_LOG2 = 26  # 8 MiB
_SEPARATOR = "\0"  # cannot occur in a source or an id


class RecentIds:
    """Maps (`source`, `id`) to `seq`: the newest `capacity` exactly, older ones as "maybe in the index".

    131,072 ids are a minute's worth and more at full load, far longer than a publisher retries. The writer
    moves what is over the capacity to the index with each batch; should it fall behind, the map grows to
    twice the capacity, and beyond that the oldest are forgotten.

    The filter has two probes: with 5,000,000 ids in 2**26 bits 1.9% of new ids cost a needless look-up (7%
    at 10,000,000). Ids that the retention removes from the index stay in the filter until the next start,
    which costs look-ups and is never wrong.
    """

    __slots__ = ("_bits", "_capacity", "_mask", "_seqs", "_shift", "_taken")

    def __init__(self, capacity: int = 131_072, filter_bits_log2: int = FILTER_BITS_LOG2) -> None:
        self._capacity = capacity
        self._shift = filter_bits_log2
        self._mask = (1 << filter_bits_log2) - 1
        self._bits: bytearray | None = None  # made with the first id that leaves the map
        # In order of arrival. One joined string takes half the memory of a tuple of two.
        self._seqs: dict[str, tuple[int, int]] = {}
        self._taken: list[str] = []

    def __len__(self) -> int:
        return len(self._seqs)

    @property
    def excess(self) -> int:
        """How many ids wait to move to the index."""
        return max(0, len(self._seqs) - self._capacity)

    def find(self, source: str, event_id: str) -> int | None:
        """Return the `seq` of an id in the map, or None; `maybe_on_disk` says whether to look further."""
        known = self._seqs.get(f"{source}\0{event_id}")
        return None if known is None else known[0]

    def remember(self, source: str, event_id: str, seq: int, accepted_us: int) -> None:
        """Keep an id that was just committed; one that is in the map already keeps its first `seq`."""
        seqs = self._seqs
        seqs.setdefault(f"{source}\0{event_id}", (seq, accepted_us))
        if len(seqs) > 2 * self._capacity:
            del seqs[next(iter(seqs))]

    def take_spill(self, limit: int = 512) -> list[RememberedId]:
        """Return up to `limit` of the oldest ids over the capacity, for the batch that is being formed.

        They stay in the map until `spilled` confirms the commit; without that they come again.
        """
        seqs = self._seqs
        self._taken = list(islice(seqs, min(limit, self.excess)))
        return [RememberedId(id_hash(*key.split(_SEPARATOR, 1)), *seqs[key]) for key in self._taken]

    def spilled(self, ids: Sequence[RememberedId]) -> None:
        """Drop from the map what the last `take_spill` returned (`ids`), now that it is committed."""
        self.load_hashes([remembered.hash for remembered in ids])
        for key in self._taken:
            self._seqs.pop(key, None)

    def load_hashes(self, hashes: Iterable[int]) -> None:
        """Add ids that the index holds to the filter."""
        if self._bits is None:
            self._bits = bytearray(max(1, (self._mask + 1) // 8))
        bits, mask, shift = self._bits, self._mask, self._shift
        for number in hashes:
            for probe in (number & mask, (number >> shift) & mask):
                bits[probe >> 3] |= 1 << (probe & 7)

    def maybe_on_disk(self, source: str, event_id: str) -> int | None:
        """Return the hash to look up in the index, or None when the index cannot hold this id."""
        bits = self._bits
        if bits is None:
            return None
        number = id_hash(source, event_id)
        probe = number & self._mask
        if not bits[probe >> 3] >> (probe & 7) & 1:
            return None
        probe = (number >> self._shift) & self._mask
        return number if bits[probe >> 3] >> (probe & 7) & 1 else None
