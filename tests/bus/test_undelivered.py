from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.bus import undelivered as module
from herdr.bus.undelivered import Overdue, Undelivered


def test_what_is_not_written_in_time_is_reported_once() -> None:
    watched = Undelivered()
    watched.watch("a", 1, "ci", 10.0)
    assert watched.next_due() == 10.0
    assert watched.due(9.9) == []
    assert watched.due(10.0) == [Overdue("a", 1, "ci")]
    assert watched.due(99.0) == []
    assert watched.next_due() is None


def test_what_was_written_is_not_reported() -> None:
    watched = Undelivered()
    watched.watch("a", 1, "ci", 10.0)
    watched.watch("b", 1, "ci", 11.0)
    watched.written("a", 1)
    watched.written("a", 1)
    watched.written("nobody", 7)
    assert watched.next_due() == 11.0
    assert watched.due(20.0) == [Overdue("b", 1, "ci")]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["watch", "written", "due"]),
            st.sampled_from("ab"),
            st.integers(1, 6),
            st.integers(0, 9),
        )
    )
)
def test_it_behaves_like_a_plain_table(steps: list[tuple[str, str, int, int]]) -> None:
    watched, table = Undelivered(), dict[tuple[str, int], int]()
    ever: set[tuple[str, int]] = set()
    now = 0
    for what, target, seq, number in steps:
        if what == "watch" and (target, seq) not in ever:  # the gateway watches each delivery once
            ever.add((target, seq))
            watched.watch(target, seq, "s", now + number)
            table[target, seq] = now + number
        elif what == "written":
            watched.written(target, seq)
            table.pop((target, seq), None)
        elif what == "due":
            now += number
            late = {key for key, at in table.items() if at <= now}
            assert {(o.target, o.seq) for o in watched.due(now)} == late
            table = {key: at for key, at in table.items() if key not in late}
        assert len(watched) == len(table)
        assert watched.next_due() == min(table.values(), default=None)


def test_beyond_the_bound_the_oldest_is_reported_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WATCHED_MAX", 3)
    watched = Undelivered()
    for seq in range(1, 6):
        watched.watch("a", seq, "ci", 100.0 + seq)
    assert watched.next_due() == float("-inf")
    assert watched.due(0.0) == [Overdue("a", 1, "ci"), Overdue("a", 2, "ci")]
    assert watched.next_due() == 103.0
    assert len(watched) == 3


def test_what_was_written_long_before_its_deadline_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WATCHED_MAX", 10)
    watched = Undelivered()
    watched.watch("offline", 1, "ci", 1.0)  # stays on top of everything that comes later
    for seq in range(2, 1000):
        watched.watch("online", seq, "ci", 1.0 + seq)
        watched.written("online", seq)
    assert len(watched._heap) <= 3 * module.WATCHED_MAX
    assert watched.due(5000.0) == [Overdue("offline", 1, "ci")]


def test_clearing_up_keeps_the_order_of_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WATCHED_MAX", 8)
    random, watched, still = Random(1), Undelivered(), dict[int, float]()
    for seq in range(2000):
        still[seq] = random.random()
        watched.watch("a", seq, "ci", still[seq])
        if len(still) > 6:
            done = random.choice(list(still))
            watched.written("a", done)
            del still[done]
        assert watched.next_due() == min(still.values())
    assert [overdue.seq for overdue in watched.due(1.0)] == sorted(still, key=still.__getitem__)
