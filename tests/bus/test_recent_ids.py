import functools
import math
import random
from collections.abc import Sequence

import pytest
from buses import FaultyLog, running_bus
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from herdr.app import bus as app
from herdr.bus.bus import Bus, load_recent_ids
from herdr.bus.log import Batch, RememberedId
from herdr.bus.recent_ids import CAPACITY, GROUP_SIZE, GROUPS, MAYBE_IN_INDEX, RecentIds
from herdr.errors import LogUnavailable
from herdr.event import Draft, Event, Receipt, id_hash
from herdr.storage.memory import MemoryLog


def remember(ids: RecentIds, count: int, start: int = 1) -> None:
    for seq in range(start, start + count):
        ids.remember("s", str(seq), seq, seq * 1000)


def found(ids: RecentIds, count: int) -> list[int | None]:
    return [ids.find("s", str(number)) for number in range(1, count + 1)]


def spill_one(ids: RecentIds) -> Sequence[RememberedId]:
    taken = ids.take_spill()
    assert taken
    ids.spilled(taken)
    return taken


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


def test_up_to_the_capacity_nothing_leaves() -> None:
    ids = RecentIds(capacity=3, groups=1, group_size=1)
    remember(ids, 3)
    assert not ids.take_spill()
    assert (len(ids), found(ids, 4)) == (3, [1, 2, 3, None])


def test_the_oldest_leave_first_and_a_group_at_a_time() -> None:
    ids = RecentIds(capacity=3, groups=1, group_size=2)
    remember(ids, 4)
    assert not ids.take_spill()  # its group is not full yet
    remember(ids, 4, start=5)
    for pair in ((1, 2), (3, 4)):
        assert spill_one(ids) == [RememberedId(id_hash("s", str(n)), n, n * 1000) for n in pair]
    assert not ids.take_spill()


def test_a_group_holds_neighbours_only() -> None:
    ids = RecentIds(capacity=1, groups=8, group_size=16)
    remember(ids, 500)
    ranges = [{(known.hash + 2**63) >> 61 for known in spill_one(ids)} for _ in range(8)]
    assert all(len(eighths) == 1 for eighths in ranges)
    assert len(set.union(*ranges)) > 4


def test_what_is_committed_is_the_indexs_to_tell() -> None:
    ids = RecentIds(capacity=2, groups=1, group_size=2)
    remember(ids, 4)
    taken = ids.take_spill()
    assert found(ids, 5) == [1, 2, 3, 4, None]
    assert ids.take_spill() == taken  # the commit failed: they come again
    ids.spilled(taken)
    assert found(ids, 5) == [MAYBE_IN_INDEX, MAYBE_IN_INDEX, 3, 4, None]
    assert (len(ids), ids.take_spill()) == (2, ())


def test_at_first_groups_fill_one_after_another_and_later_all_are_as_large() -> None:
    ids = RecentIds(capacity=1, groups=4, group_size=16)
    remember(ids, 400)
    sizes = dict[int, list[int]]()
    while taken := ids.take_spill():
        ids.spilled(taken)
        sizes.setdefault((taken[0].hash + 2**63) >> 62, []).append(len(taken))
    assert {place: first for place, (first, *_) in sizes.items()} == {0: 4, 1: 8, 2: 12, 3: 16}
    assert {size for _, *later in sizes.values() for size in later} == {16}


def test_a_group_that_fills_slowly_leaves_before_its_ids_are_out_of_what_is_replayed() -> None:
    ids = RecentIds(capacity=5, groups=2, group_size=20)
    ids.remember("s", "1", 1, 1000)
    seq = 1
    while not (taken := ids.take_spill()):
        seq += 1
        ids.remember_made("s", f"made-{seq}", seq)
        assert ids.find("s", "1") == 1
    assert taken == [RememberedId(id_hash("s", "1"), 1, 1000)]
    assert 5 + 40 < seq <= ids.replay


def test_an_id_that_the_gateway_made_is_known_while_it_is_recent_and_never_indexed() -> None:
    ids = RecentIds(capacity=3, groups=1, group_size=1)
    for seq in range(1, 10):
        ids.remember_made("s", str(seq), seq)
        assert not ids.take_spill()
    assert found(ids, 9) == [None] * 6 + [7, 8, 9]
    assert len(ids) == 3


def test_an_id_that_was_made_and_is_given_back_is_kept_once() -> None:
    ids = RecentIds(capacity=2, groups=1, group_size=1)
    for _ in range(2):
        ids.remember_made("s", "1", 1)
        ids.remember("s", "1", 2, 0)
    assert ids.find("s", "1") == 1
    remember(ids, 5, start=2)
    assert len(ids) == 5


def test_ids_that_arrive_while_a_group_is_being_committed_stay() -> None:
    ids = RecentIds(capacity=2, groups=1, group_size=2)
    remember(ids, 4)
    taken = ids.take_spill()
    remember(ids, 3, start=5)
    ids.spilled(taken)
    assert found(ids, 7) == [MAYBE_IN_INDEX, MAYBE_IN_INDEX, 3, 4, 5, 6, 7]
    assert [known.seq for known in spill_one(ids)] == [3, 4]


def test_with_the_usual_numbers_what_waits_stays_within_the_groups() -> None:
    ids = RecentIds(filter_bits_log2=20)
    spilled = 0
    for batch in range(800):  # of 256 ids, and at most one group leaves with each
        remember(ids, 256, start=batch * 256 + 1)
        taken = ids.take_spill()
        if taken:
            ids.spilled(taken)
            spilled += len(taken)
            assert len(taken) <= GROUP_SIZE
        assert len(ids) <= CAPACITY + GROUPS * GROUP_SIZE
    assert len(ids) + spilled == 800 * 256
    assert spilled > 0


def test_loaded_hashes_are_asked_for() -> None:
    ids = RecentIds()
    ids.load_hashes([])
    assert ids.find("s", "1") is None
    ids.load_hashes([id_hash("s", "1"), id_hash("s", "2")])
    assert found(ids, 3) == [MAYBE_IN_INDEX, MAYBE_IN_INDEX, None]


@pytest.mark.parametrize("bits_log2", [1, 3, 8, 26])
def test_a_loaded_hash_is_never_missed(bits_log2: int) -> None:
    ids = RecentIds(filter_bits_log2=bits_log2)
    ids.load_hashes(id_hash("s", str(number)) for number in range(1, 501))
    assert found(ids, 500) == [MAYBE_IN_INDEX] * 500


def test_the_filter_is_as_selective_as_stated() -> None:
    """The load of 5,000,000 ids in 2**26 bits, scaled down by 2**10."""
    ids = RecentIds(filter_bits_log2=16)
    loaded, asked = 5_000_000 >> 10, 20_000
    ids.load_hashes(id_hash("s", str(number)) for number in range(loaded))
    wrong = sum(ids.find("new", str(number)) is not None for number in range(asked))
    stated = (1 - math.exp(-2 * loaded / 2**16)) ** 2
    assert stated == pytest.approx(0.019, abs=0.001)
    assert wrong / asked == pytest.approx(stated, rel=0.3)


class RecentIdsMachine(RuleBasedStateMachine):
    """Whatever was remembered is found here, or is asked for in the index, where it is."""

    @initialize(capacity=st.integers(1, 20), groups=st.integers(1, 5), group_size=st.integers(1, 5))
    def start(self, capacity: int, groups: int, group_size: int) -> None:
        self.bound = capacity + groups * group_size
        self.group_size = group_size
        self.ids = RecentIds(capacity, 12, groups, group_size)
        self.seqs: dict[tuple[str, str], list[int]] = {}
        self.index: dict[int, int] = {}
        self.seq = 0

    @rule(source=st.sampled_from("ab"), event_id=st.text("xyz", min_size=1, max_size=4))
    def publish(self, source: str, event_id: str) -> None:
        known = self._look_up(source, event_id)
        assert known in self.seqs.get((source, event_id), [None])
        if known is None:
            self._remember(source, event_id)

    @rule(start=st.integers(0, 1000), count=st.integers(1, 30))
    def publish_many(self, start: int, count: int) -> None:
        for number in range(start, start + count):
            self.publish("c", str(number))

    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        """An id that is known already is noted again, for an event that stood in for it."""
        if self.seqs:
            self._remember(*data.draw(st.sampled_from(sorted(self.seqs))))

    @rule(count=st.integers(1, 20))
    def make(self, count: int) -> None:
        for _ in range(count):
            self.seq += 1
            self.ids.remember_made("herdr", f"{self.seq}", self.seq)
            assert self.ids.find("herdr", f"{self.seq}") == self.seq

    @rule(fails=st.booleans())
    def commit(self, fails: bool) -> None:
        taken = self.ids.take_spill()
        assert len(taken) <= self.group_size
        if taken and not fails:
            self.index.update((known.hash, known.seq) for known in taken)
            self.ids.spilled(taken)

    @rule()
    def catch_up(self) -> None:
        while self.ids.take_spill():
            self.commit(fails=False)
        assert len(self.ids) <= self.bound

    def _remember(self, source: str, event_id: str) -> None:
        self.seq += 1
        self.seqs.setdefault((source, event_id), []).append(self.seq)
        self.ids.remember(source, event_id, self.seq, 0)

    def _look_up(self, source: str, event_id: str) -> int | None:
        seq = self.ids.find(source, event_id)
        return self.index.get(id_hash(source, event_id)) if seq == MAYBE_IN_INDEX else seq

    @invariant()
    def nothing_is_forgotten(self) -> None:
        assert all(self._look_up(*key) in seqs for key, seqs in self.seqs.items())

    @invariant()
    def what_waits_is_bounded(self) -> None:
        backlog = sum(len(group) for group in self.ids._ready)
        assert len(self.ids) <= self.bound + backlog


TestRecentIdsMachine = RecentIdsMachine.TestCase


SMALL = functools.partial(RecentIds, capacity=50, groups=4, group_size=64)


async def publish(bus: Bus, first: int, count: int, nameless: int = 0) -> list[Receipt]:
    """Publish ids as one who repeats what was not answered, after some events without one."""
    drafts = [Draft("tool.result") for _ in range(nameless)]
    drafts += [Draft("tool.result", id=str(number)) for number in range(first, first + count)]
    while True:
        try:
            return await bus.publisher.publish(drafts, "s")
        except LogUnavailable:
            pass


@pytest.mark.parametrize("published", [20, 300, 3000])
async def test_after_a_crash_every_id_is_still_known(published: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new process has the log and its index, and nothing of what was in memory."""
    monkeypatch.setattr(app, "RecentIds", SMALL)
    rng = random.Random(published)
    log = FaultyLog(lambda: rng.random() < 0.1)
    async with running_bus(log) as bus:
        bus._writer._retry_s = 0.0
        for first in range(0, published, 10):
            await publish(bus, first, 10)
    assert log.head == published
    assert (0 < len(log._ids) < published) is (published >= 300)
    log.fails = lambda: False
    for life in range(2):  # what the first one read again goes to the index a second time
        async with running_bus(log) as bus:
            again = await publish(bus, 0, published)
            assert [(r.status, r.seq) for r in again] == [("duplicate", n + 1) for n in range(published)]
            (new,) = await publish(bus, published + life, 1)
            assert new.status == "accepted"
    assert log.head == published + 2


async def test_after_a_crash_ids_that_are_few_among_many_events_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The index is behind by ids, and what is read again at the start is counted in events."""
    monkeypatch.setattr(app, "RecentIds", SMALL)
    log = FaultyLog()
    async with running_bus(log) as bus:
        seqs = [(await publish(bus, number, 1, nameless=19))[-1].seq for number in range(100)]
    assert log.head == 2000 > 3 * SMALL().replay
    async with running_bus(log) as bus:
        again = await publish(bus, 0, 100)
    assert [(r.status, r.seq) for r in again] == [("duplicate", seq) for seq in seqs]


async def test_what_an_event_replaced_is_known_again_after_a_start() -> None:
    log = MemoryLog("0badcafe")
    event = Event(1, "3", "file.changed", "s", "w", "tool", b"{}", replaced_ids=("1", "2"), seq=1)
    await log.append(Batch([event]))
    ids = RecentIds()
    await load_recent_ids(log, ids)
    assert found(ids, 4) == [1, 1, 1, None]
