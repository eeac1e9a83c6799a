import random
from heapq import heapreplace
from math import exp, factorial

import pytest

from herdr.pool.plan import OTHERS, erlang_c, plan


def test_the_load_of_the_example_needs_21_slots() -> None:
    found = plan(concurrency=10, seconds_per_call=20, interval_s=10)
    assert (found.load, found.slots_needed, found.slots) == (20, 21, 21)
    assert found.possible
    assert found.utilisation == pytest.approx(20 / 21)
    assert found.share_needed is None


@pytest.mark.parametrize(
    ("slots", "possible", "concurrency_max", "interval_min_s"),
    [(4, False, 1, 50.0), (20, False, 9, 10.0), (21, True, 10, 200 / 21), (40, True, 19, 5.0)],
)
def test_what_is_possible(slots: int, possible: bool, concurrency_max: int, interval_min_s: float) -> None:
    found = plan(10, 20, 10, slots)
    assert found.possible is possible
    assert found.concurrency_max == concurrency_max
    assert found.interval_min_s == pytest.approx(interval_min_s)
    assert (found.wait_s is None) is not possible
    assert plan(concurrency_max, 20, 10, slots).possible
    assert not plan(concurrency_max + 1, 20, 10, slots).possible
    assert plan(10, 20, interval_min_s * 1.001, slots).possible


def test_impossible_says_how_far_off() -> None:
    found = plan(10, 20, 10, 4)
    assert found.utilisation == 5.0
    assert found.wait_chance == 1.0


@pytest.mark.parametrize(
    ("slots", "load", "chance"),
    [
        (1, 0.5, 0.5),  # M/M/1: the chance is the utilisation
        (1, 0.9, 0.9),
        (2, 1.0, 1 / 3),  # textbook values
        (3, 2.0, 4 / 9),
        (5, 4.0, 0.5541),
        (10, 8.0, 0.4092),
        (2, 2.0, 1.0),  # full
        (2, 5.0, 1.0),
    ],
)
def test_erlang_c(slots: int, load: float, chance: float) -> None:
    assert erlang_c(slots, load) == pytest.approx(chance, abs=1e-4)


def test_erlang_c_agrees_with_the_closed_formula() -> None:
    for slots in range(1, 30):
        load = slots * 0.8
        top = load**slots / factorial(slots) * slots / (slots - load)
        below = sum(load**k / factorial(k) for k in range(slots))
        assert erlang_c(slots, load) == pytest.approx(top / (below + top))


def test_erlang_c_does_not_overflow() -> None:
    assert 0 < erlang_c(5000, 4990) < 1
    assert exp(-1) < erlang_c(100_000, 99_990) < 1


def test_the_wait_is_what_a_simulated_queue_shows() -> None:
    slots, seconds, agents, interval = 4, 10.0, 3, 10.0
    source = random.Random(7)
    free = [0.0] * slots
    now = waited = 0.0
    calls = 200_000
    for _ in range(calls):
        now += source.expovariate(agents / interval)
        start = max(now, free[0])
        waited += start - now
        heapreplace(free, start + source.expovariate(1 / seconds))
    assert plan(agents, seconds, interval, slots).wait_s == pytest.approx(waited / calls, rel=0.05)


def test_what_each_share_gets() -> None:
    routes = plan(2, 20, 60, 4, {"primary_agent": 0.6}).routes
    assert list(routes) == ["primary_agent", OTHERS]
    assert (routes["primary_agent"].part, routes[OTHERS].part) == (2, 2)
    assert routes["primary_agent"].calls_per_minute == 6.0
    assert routes["primary_agent"].agents == 6.0


def test_the_share_that_a_load_needs_gives_it_its_slots() -> None:
    found = plan(5, 20, 40, 8)
    assert (found.slots_needed, found.share_needed) == (3, 3 / 8)
    again = plan(5, 20, 40, 8, {"a": 3 / 8})
    assert again.routes["a"].part == 3


def test_a_load_that_needs_every_slot_cannot_be_a_share() -> None:
    assert plan(7, 10, 10, 8).share_needed is None


@pytest.mark.parametrize("bad", [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0), (-1, 1, 1, 1)])
def test_numbers_must_be_above_zero(bad: tuple[int, float, float, int]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        plan(*bad)


def test_an_absurd_load_is_refused_and_not_computed() -> None:
    with pytest.raises(ValueError, match="beyond"):
        plan(10, 1e9, 1e-3, 4)
    with pytest.raises(ValueError, match="beyond"):
        plan(1, 1, 1, 10**9)
