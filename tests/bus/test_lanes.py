import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from herdr.bus.lanes import (
    BATCH_BYTES_MAX,
    BATCH_ITEMS_MAX,
    BATCH_ITEMS_MAX_WITH_P0,
    Admission,
    Lanes,
)
from herdr.event import Lane

ADMITTED, WAIT, REFUSED = Admission.ADMITTED, Admission.WAIT, Admission.REFUSED
KIB = 1024


def fill(lanes: Lanes[str], p0: int = 0, p1: int = 0, p2: int = 0, size: int = 1) -> None:
    for lane, count in enumerate((p0, p1, p2)):
        for number in range(count):
            lanes.admit(lane, f"P{lane}.{number}", size)


def counts(batch: list[str]) -> tuple[int, int, int]:
    p0, p1, p2 = (sum(item.startswith(lane.name) for item in batch) for lane in Lane)
    return p0, p1, p2


@pytest.mark.parametrize(
    ("held", "answers"),
    [
        ((0, 0, 0), (ADMITTED, ADMITTED, ADMITTED)),
        ((3, 3, 3), (ADMITTED, ADMITTED, ADMITTED)),
        ((0, 0, 10), (ADMITTED, ADMITTED, REFUSED)),
        ((4, 3, 3), (ADMITTED, ADMITTED, REFUSED)),
        ((0, 19, 0), (ADMITTED, ADMITTED, REFUSED)),
        ((0, 20, 0), (ADMITTED, REFUSED, REFUSED)),
        ((0, 10, 10), (ADMITTED, REFUSED, REFUSED)),
        ((9, 20, 10), (ADMITTED, REFUSED, REFUSED)),
        ((10, 0, 0), (WAIT, ADMITTED, REFUSED)),
        ((10, 10, 0), (WAIT, REFUSED, REFUSED)),
    ],
)
@pytest.mark.parametrize("unit", ["items", "bytes"])
def test_what_is_admitted_when(held: tuple[int, int, int], answers: tuple[Admission, ...], unit: str) -> None:
    for lane, answer in zip(Lane, answers, strict=True):
        lanes: Lanes[str] = Lanes(10, 10**9) if unit == "items" else Lanes(10**9, 10 * KIB)
        fill(lanes, *held, size=1 if unit == "items" else KIB)
        assert lanes.offer(lane, "one more", 1) is answer, lane
        assert len(lanes) == sum(held) + (answer is ADMITTED)


def test_an_item_larger_than_all_bytes_is_admitted_when_there_is_room() -> None:
    lanes: Lanes[str] = Lanes(10, bytes_max=100)
    assert lanes.offer(Lane.P2, "large", 1000) is ADMITTED
    assert lanes.offer(Lane.P2, "next", 1) is REFUSED
    assert lanes.take() == ["large"]
    assert lanes.offer(Lane.P2, "next", 1) is ADMITTED


def test_a_waiting_p0_is_admitted_after_a_take() -> None:
    lanes: Lanes[str] = Lanes(2)
    fill(lanes, p0=2)
    assert lanes.offer(Lane.P0, "later", 1) is WAIT
    lanes.take()
    assert lanes.offer(Lane.P0, "later", 1) is ADMITTED


def test_what_was_deferred_is_admitted_however_full() -> None:
    lanes: Lanes[str] = Lanes(1)
    fill(lanes, p2=5)
    assert lanes.depths == (0, 0, 5)
    assert lanes.take() == [f"P2.{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("held", "size", "taken"),
    [
        ((0, 0, 0), 1, (0, 0, 0)),
        ((0, 5, 5), 1, (0, 5, 5)),
        ((0, 200, 200), 1, (0, 200, 56)),
        ((0, 300, 5), 1, (0, 256, 0)),
        ((1, 0, 0), 1, (1, 0, 0)),
        ((1, 100, 100), 1, (1, 31, 0)),
        ((1, 20, 100), 1, (1, 20, 11)),
        ((31, 5, 5), 1, (31, 1, 0)),
        ((32, 5, 5), 1, (32, 0, 0)),
        ((40, 5, 5), 1, (40, 0, 0)),
        ((300, 5, 5), 1, (256, 0, 0)),
        ((0, 0, 20), 100 * KIB, (0, 0, 10)),
        ((0, 4, 20), 100 * KIB, (0, 4, 6)),
        ((4, 4, 20), 100 * KIB, (4, 4, 2)),
        ((20, 4, 20), 100 * KIB, (10, 0, 0)),
        ((0, 0, 3), 512 * KIB, (0, 0, 2)),
        ((1, 1, 1), 2048 * KIB, (1, 0, 0)),
        ((0, 1, 1), 2048 * KIB, (0, 1, 0)),
        ((0, 0, 3), BATCH_BYTES_MAX, (0, 0, 1)),
    ],
)
def test_what_makes_a_batch(held: tuple[int, int, int], size: int, taken: tuple[int, int, int]) -> None:
    lanes: Lanes[str] = Lanes()
    fill(lanes, *held, size=size)
    batch = lanes.take()
    assert counts(batch) == taken
    assert batch == sorted(batch, key=lambda item: (item[:2], int(item[3:])))
    assert lanes.depths == tuple(before - after for before, after in zip(held, taken, strict=True))


def test_a_smaller_item_of_a_lower_lane_does_not_overtake_one_that_did_not_fit() -> None:
    lanes: Lanes[str] = Lanes()
    lanes.offer(Lane.P0, "P0 first", 600 * KIB)
    lanes.offer(Lane.P0, "P0 second", 600 * KIB)
    lanes.offer(Lane.P1, "P1", 1)
    assert lanes.take() == ["P0 first"]
    assert lanes.take() == ["P0 second", "P1"]


def test_what_waits() -> None:
    lanes: Lanes[str] = Lanes()
    assert (len(lanes), lanes.has_p0, lanes.waiting, lanes.bytes_waiting) == (0, False, 0, 0)
    fill(lanes, 1, 2, 3, size=10)
    assert (len(lanes), lanes.has_p0, lanes.waiting, lanes.bytes_waiting) == (6, True, 5, 60)
    lanes.take()
    assert (len(lanes), lanes.has_p0, lanes.waiting, lanes.bytes_waiting) == (0, False, 0, 0)


class LanesMachine(RuleBasedStateMachine):
    """Against plain lists that are counted anew at every step."""

    @initialize(buffer_size=st.integers(1, 60), bytes_max=st.integers(1, 3 * BATCH_BYTES_MAX))
    def start(self, buffer_size: int, bytes_max: int) -> None:
        self.buffer_size, self.bytes_max = buffer_size, bytes_max
        self.real: Lanes[tuple[int, int]] = Lanes(buffer_size, bytes_max)
        self.model: list[list[tuple[int, int]]] = [[], [], []]
        self.offered = 0

    def _fill_level(self, *lanes: int) -> float:
        """How full these lanes are together, by the fuller of the two measures; 1 is full."""
        sizes = [size for lane in lanes for _, size in self.model[lane]]
        return max(len(sizes) / self.buffer_size, sum(sizes) / self.bytes_max)

    @rule(
        lane=st.sampled_from(Lane),
        size=st.one_of(st.integers(0, 1000), st.sampled_from([BATCH_BYTES_MAX // 2, 2 * BATCH_BYTES_MAX])),
        times=st.integers(1, 80),
    )
    def offer(self, lane: Lane, size: int, times: int) -> None:
        for _ in range(times):
            self.offered += 1
            level = self._fill_level(0, 1, 2)
            if lane is Lane.P0:
                expected = ADMITTED if level < 1 or self._fill_level(0) < 1 else WAIT
            else:
                expected = ADMITTED if level < (2 if lane is Lane.P1 else 1) else REFUSED
            assert self.real.offer(lane, (self.offered, size), size) is expected
            if expected is ADMITTED:
                self.model[lane].append((self.offered, size))

    @rule()
    def take(self) -> None:
        batch = self.real.take()
        in_order = [(lane, item) for lane in Lane for item in self.model[lane]]
        assert batch == [item for _, item in in_order[: len(batch)]]
        assert self._is_largest_allowed([(lane, size) for lane, (_, size) in in_order], len(batch))
        for lane, (number, size) in in_order[: len(batch)]:
            self.model[lane].remove((number, size))

    @staticmethod
    def _is_largest_allowed(in_order: list[tuple[Lane, int]], length: int) -> bool:
        def allowed(count: int) -> bool:
            part = in_order[:count]
            only_p0 = all(lane is Lane.P0 for lane, _ in part)
            has_p0 = any(lane is Lane.P0 for lane, _ in part)
            items_max = BATCH_ITEMS_MAX_WITH_P0 if has_p0 and not only_p0 else BATCH_ITEMS_MAX
            return count <= 1 or (count <= items_max and sum(size for _, size in part) <= BATCH_BYTES_MAX)

        return allowed(length) and (length == len(in_order) or not allowed(length + 1))

    @invariant()
    def same(self) -> None:
        assert self.real.depths == tuple(len(lane) for lane in self.model)
        assert len(self.real) == sum(self.real.depths)
        assert self.real.bytes_waiting == sum(size for lane in self.model for _, size in lane)
        assert self.real.has_p0 is bool(self.model[0])
        assert self.real.waiting == len(self.model[1]) + len(self.model[2])
        assert len(self.real) <= 3 * self.buffer_size


TestLanesMachine = LanesMachine.TestCase
