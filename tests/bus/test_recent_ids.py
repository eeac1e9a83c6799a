import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from herdr.bus.log import RememberedId
from herdr.bus.recent_ids import RecentIds
from herdr.event import id_hash


def remember(ids: RecentIds, count: int, start: int = 1) -> None:
    for seq in range(start, start + count):
        ids.remember("s", str(seq), seq, seq * 1000)


def test_an_id_is_known_by_source_and_id() -> None:
    ids = RecentIds()
    ids.remember("cursor", "1", 7, 1000)
    assert ids.find("cursor", "1") == 7
    assert ids.find("cursor", "2") is None
    assert ids.find("ci", "1") is None
    assert ids.find("cursor1", "") is None


def test_the_first_seq_stays() -> None:
    ids = RecentIds()
    ids.remember("s", "1", 7, 1000)
    ids.remember("s", "1", 9, 2000)
    assert ids.find("s", "1") == 7


def test_nothing_spills_up_to_the_capacity() -> None:
    ids = RecentIds(capacity=3)
    remember(ids, 3)
    assert (ids.excess, ids.take_spill()) == (0, [])
    assert ids.maybe_on_disk("s", "1") is None


def test_the_oldest_spill_first_and_in_slices() -> None:
    ids = RecentIds(capacity=3)
    remember(ids, 6)
    first = ids.take_spill(limit=2)
    assert first == [RememberedId(id_hash("s", str(n)), n, n * 1000) for n in (1, 2)]
    ids.spilled(first)
    assert [spilled.seq for spilled in ids.take_spill(limit=2)] == [3]
    assert (len(ids), ids.excess) == (4, 1)


def test_ids_stay_findable_until_their_commit_is_confirmed() -> None:
    ids = RecentIds(capacity=2)
    remember(ids, 4)
    taken = ids.take_spill()
    assert ids.find("s", "1") == 1
    assert ids.maybe_on_disk("s", "1") is None
    assert ids.take_spill() == taken  # the commit failed: they come again
    ids.spilled(taken)
    assert ids.find("s", "1") is None
    assert ids.maybe_on_disk("s", "1") == id_hash("s", "1")
    assert ids.find("s", "3") == 3
    assert ids.take_spill() == []


def test_ids_that_arrive_while_a_slice_is_being_committed_stay() -> None:
    ids = RecentIds(capacity=2)
    remember(ids, 4)
    taken = ids.take_spill()
    remember(ids, 2, start=5)
    ids.spilled(taken)
    assert [ids.find("s", str(n)) for n in range(1, 7)] == [None, None, 3, 4, 5, 6]


def test_beyond_twice_the_capacity_the_oldest_are_forgotten() -> None:
    ids = RecentIds(capacity=3)
    remember(ids, 6)
    taken = ids.take_spill(limit=2)
    remember(ids, 1, start=7)
    assert (len(ids), ids.find("s", "1"), ids.find("s", "2")) == (6, None, 2)
    ids.spilled(taken)
    assert [ids.find("s", str(n)) for n in range(1, 8)] == [None, None, 3, 4, 5, 6, 7]


def test_loaded_hashes_are_asked_for() -> None:
    ids = RecentIds()
    ids.load_hashes([])
    assert ids.maybe_on_disk("s", "1") is None
    ids.load_hashes([id_hash("s", "1"), id_hash("s", "2")])
    assert ids.maybe_on_disk("s", "1") == id_hash("s", "1")
    assert ids.maybe_on_disk("s", "3") is None


@pytest.mark.parametrize("bits_log2", [1, 3, 8, 26])
def test_a_loaded_hash_is_never_missed(bits_log2: int) -> None:
    ids = RecentIds(filter_bits_log2=bits_log2)
    names = [str(number) for number in range(500)]
    ids.load_hashes(id_hash("s", name) for name in names)
    assert all(ids.maybe_on_disk("s", name) == id_hash("s", name) for name in names)


def test_the_filter_is_as_selective_as_stated() -> None:
    """The load of 5,000,000 ids in 2**26 bits, scaled down by 2**10."""
    ids = RecentIds(filter_bits_log2=16)
    loaded, asked = 5_000_000 >> 10, 20_000
    ids.load_hashes(id_hash("s", str(number)) for number in range(loaded))
    wrong = sum(ids.maybe_on_disk("new", str(number)) is not None for number in range(asked))
    stated = (1 - math.exp(-2 * loaded / 2**16)) ** 2
    assert stated == pytest.approx(0.019, abs=0.001)
    assert wrong / asked == pytest.approx(stated, rel=0.3)


class RecentIdsMachine(RuleBasedStateMachine):
    """Whatever was remembered is found in the map, or is asked for on the disk, where it is."""

    @initialize(capacity=st.integers(1, 20))
    def start(self, capacity: int) -> None:
        self.capacity = capacity
        self.ids = RecentIds(capacity, filter_bits_log2=12)
        self.seqs: dict[tuple[str, str], int] = {}
        self.disk: dict[int, int] = {}

    @rule(source=st.sampled_from("ab"), event_id=st.text("xyz", min_size=1, max_size=4))
    def publish(self, source: str, event_id: str) -> None:
        key = (source, event_id)
        known = self._look_up(source, event_id)
        assert known == self.seqs.get(key)
        if known is None:
            self.seqs[key] = len(self.seqs) + 1
            self.ids.remember(source, event_id, self.seqs[key], 0)
        if self.ids.excess > self.capacity // 2:
            self.commit(limit=512, fails=False)

    @rule(limit=st.integers(1, 8), fails=st.booleans())
    def commit(self, limit: int, fails: bool) -> None:
        taken = self.ids.take_spill(limit)
        assert len(taken) == min(limit, self.ids.excess)
        if not fails:
            self.disk.update((spilled.hash, spilled.seq) for spilled in taken)
            self.ids.spilled(taken)

    @rule()
    def restart(self) -> None:
        """The log's newest ids are read again, the index's hashes loaded."""
        kept = list(self.seqs.items())[-len(self.ids) :]
        self.ids = RecentIds(self.capacity, filter_bits_log2=12)
        self.ids.load_hashes(self.disk)
        for (source, event_id), seq in kept:
            self.ids.remember(source, event_id, seq, 0)

    def _look_up(self, source: str, event_id: str) -> int | None:
        seq = self.ids.find(source, event_id)
        if seq is None and (hash_ := self.ids.maybe_on_disk(source, event_id)) is not None:
            seq = self.disk.get(hash_)
        return seq

    @invariant()
    def nothing_is_forgotten(self) -> None:
        assert all(self._look_up(*key) == seq for key, seq in self.seqs.items())
        assert len(self.ids) <= 2 * self.capacity


TestRecentIdsMachine = RecentIdsMachine.TestCase
