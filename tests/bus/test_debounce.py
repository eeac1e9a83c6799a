from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from herdr.bus.debounce import REPLACED_IDS_MAX, Closed, Debounce, Offered, Outcome

HELD, REPLACED, REPEATED = Offered(Outcome.HELD), Offered(Outcome.REPLACED), Offered(Outcome.REPEATED)
KEY = ("cursor", "default", "src/a.py")


@dataclass(frozen=True)
class Save:
    id: str
    content: int = 0


@pytest.mark.parametrize(
    ("saves", "closes_at", "kept", "replaced"),
    [
        ([(0.0, "a")], 0.5, "a", ()),
        ([(0.0, "a"), (0.25, "b")], 0.75, "b", ("a",)),
        ([(0.0, "a"), (0.25, "b"), (0.5, "c")], 1.0, "c", ("a", "b")),
        ([(0.0, "a"), (0.25, "a")], 0.5, "a", ()),
        ([(0.0, "a"), (0.25, "b"), (0.375, "a")], 0.75, "b", ("a",)),
        ([(n * 0.25, str(n)) for n in range(20)], 5.0, "19", tuple(str(n) for n in range(19))),
        ([(n * 0.25, str(n)) for n in range(21)], 5.0, "20", tuple(str(n) for n in range(20))),
    ],
    ids=["one", "replaced", "each save waits anew", "repeated", "late retry", "max_s", "at max_s"],
)
def test_window(
    saves: list[tuple[float, str]], closes_at: float, kept: str, replaced: tuple[str, ...]
) -> None:
    debounce: Debounce[Save] = Debounce()
    for now, event_id in saves:
        debounce.offer(KEY, Save(event_id), now)
    assert debounce.next_due() == closes_at
    assert debounce.due(closes_at - 2**-10) == []
    assert debounce.due(closes_at) == [Closed(Save(kept), replaced)]
    assert debounce.next_due() is None
    assert not debounce.is_open(KEY)


def test_answers_tell_what_happened() -> None:
    debounce: Debounce[Save] = Debounce()
    assert debounce.offer(KEY, Save("a"), 0.0) == HELD
    assert debounce.offer(KEY, Save("a"), 0.1) == REPEATED
    assert debounce.offer(KEY, Save("b"), 0.2) == REPLACED
    assert debounce.offer(KEY, Save("a"), 0.3) == REPEATED
    assert debounce.offer(KEY, Save("b"), 0.4) == REPEATED
    assert debounce.peek(KEY) == Save("b")
    assert debounce.peek("another") is None


def test_a_repeated_id_neither_replaces_the_item_nor_prolongs_the_window() -> None:
    debounce: Debounce[Save] = Debounce()
    debounce.offer(KEY, Save("a", content=1), 0.0)
    debounce.offer(KEY, Save("b", content=2), 0.25)
    debounce.offer(KEY, Save("a", content=1), 0.5)
    debounce.offer(KEY, Save("b", content=3), 0.5)
    assert debounce.due(0.75) == [Closed(Save("b", content=2), ("a",))]


def test_an_id_from_a_closed_window_opens_a_new_one() -> None:
    debounce: Debounce[Save] = Debounce()
    debounce.offer(KEY, Save("a"), 0.0)
    debounce.due(0.5)
    assert debounce.offer(KEY, Save("a"), 0.6) == HELD


def test_keys_do_not_touch_each_other() -> None:
    debounce: Debounce[Save] = Debounce()
    for number, key in enumerate([("a", "w", "p"), ("b", "w", "p"), ("a", "x", "p"), ("a", "w", "q")]):
        assert debounce.offer(key, Save("same id"), number / 8) == HELD
    assert len(debounce) == 4
    assert len(debounce.due(0.625)) == 2


def test_windows_close_in_the_order_of_their_times() -> None:
    debounce: Debounce[Save] = Debounce()
    for key in "abc":
        debounce.offer(key, Save(key), 0.0)
    debounce.offer("a", Save("a2"), 0.25)
    assert [closed.item.id for closed in debounce.due(10.0)] == ["b", "c", "a2"]


def test_a_window_beyond_the_bound_closes_the_one_that_would_close_soonest() -> None:
    debounce: Debounce[Save] = Debounce(windows_max=2)
    debounce.offer("a", Save("a1"), 0.0)
    debounce.offer("b", Save("b1"), 0.125)
    debounce.offer("a", Save("a2"), 0.25)
    assert debounce.offer("c", Save("c1"), 0.375) == Offered(Outcome.HELD, Closed(Save("b1"), ()))
    assert [debounce.is_open(key) for key in "abc"] == [True, False, True]
    assert debounce.offer("a", Save("a3"), 0.5) == REPLACED
    assert debounce.offer("d", Save("d1"), 0.5) == Offered(Outcome.HELD, Closed(Save("c1"), ()))
    assert [closed.item.id for closed in debounce.due(1.0)] == ["a3", "d1"]


def test_the_oldest_replaced_ids_are_forgotten() -> None:
    debounce: Debounce[Save] = Debounce(quiet_s=5.0)
    for number in range(REPLACED_IDS_MAX + 3):
        debounce.offer(KEY, Save(str(number)), 0.0)
    assert debounce.offer(KEY, Save("2"), 0.0) == REPEATED
    assert debounce.offer(KEY, Save("1"), 0.0) == REPLACED
    [closed] = debounce.flush()
    assert len(closed.replaced_ids) == REPLACED_IDS_MAX
    assert closed.replaced_ids[-1] == str(REPLACED_IDS_MAX + 2)


def test_flush_closes_everything() -> None:
    debounce: Debounce[Save] = Debounce()
    for key in "ab":
        debounce.offer(key, Save(key), 1e9)
    assert [closed.item.id for closed in debounce.flush()] == ["a", "b"]
    assert (len(debounce), debounce.next_due(), debounce.flush()) == (0, None, [])


def test_a_quiet_time_above_the_maximum_is_cut() -> None:
    debounce: Debounce[Save] = Debounce(quiet_s=10.0, max_s=5.0)
    debounce.offer(KEY, Save("a"), 0.0)
    assert debounce.next_due() == 5.0


@given(st.lists(st.integers(0, 3), max_size=300))
def test_the_schedule_holds_one_entry_a_window(keys: list[int]) -> None:
    debounce: Debounce[Save] = Debounce(windows_max=3)
    for number, key in enumerate(keys):
        debounce.offer(key, Save(str(number)), number / 8)
        assert len(debounce._heap) == len(debounce) <= 3


@dataclass
class NaiveWindow:
    item: Save
    opened: float
    last: float
    order: int
    replaced: list[str] = field(default_factory=list)

    @property
    def closes_at(self) -> float:
        return min(self.last + 0.5, self.opened + 5.0)


class DebounceMachine(RuleBasedStateMachine):
    """Against a model that scans everything; times are eighths, so that they compare exactly."""

    @initialize(windows_max=st.integers(1, 4))
    def start(self, windows_max: int) -> None:
        self.windows_max = windows_max
        self.real: Debounce[Save] = Debounce(windows_max=windows_max)
        self.model: dict[int, NaiveWindow] = {}
        self.now = 0.0
        self.opened = 0
        self.offered = 0

    def _soonest_first(self) -> list[int]:
        return sorted(self.model, key=lambda key: (self.model[key].closes_at, self.model[key].order))

    def _close(self, key: int) -> Closed[Save]:
        window = self.model.pop(key)
        return Closed(window.item, tuple(window.replaced))

    @rule(key=st.integers(0, 5), event_id=st.sampled_from("abcdef"))
    def offer(self, key: int, event_id: str) -> None:
        self.offered += 1
        item = Save(event_id, self.offered)
        window = self.model.get(key)
        if window is None:
            closed = self._close(self._soonest_first()[0]) if len(self.model) >= self.windows_max else None
            self.opened += 1
            self.model[key] = NaiveWindow(item, self.now, self.now, self.opened)
            expected = Offered(Outcome.HELD, closed)
        elif event_id in [window.item.id, *window.replaced]:
            expected = REPEATED
        else:
            window.replaced.append(window.item.id)
            window.item, window.last = item, self.now
            expected = REPLACED
        assert self.real.offer(key, item, self.now) == expected

    @rule(eighths=st.integers(0, 6))
    def wait(self, eighths: int) -> None:
        self.now += eighths / 8

    @rule()
    def due(self) -> None:
        keys = [key for key in self._soonest_first() if self.model[key].closes_at <= self.now]
        assert self.real.due(self.now) == [self._close(key) for key in keys]

    @rule()
    def flush(self) -> None:
        assert self.real.flush() == [self._close(key) for key in self._soonest_first()]

    @invariant()
    def same(self) -> None:
        soonest = self._soonest_first()
        assert self.real.next_due() == (self.model[soonest[0]].closes_at if soonest else None)
        for key in range(6):
            window = self.model.get(key)
            assert self.real.is_open(key) is (window is not None)
            assert self.real.peek(key) == (window.item if window else None)


TestDebounceMachine = DebounceMachine.TestCase
