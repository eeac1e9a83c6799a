import heapq
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.bus.rate_limit import FairBucket

NOISY = 1000.0  # attempts a second


class Run:
    """What a bucket did with periodic sources in virtual time."""

    def __init__(self, bucket: FairBucket, per_s: Mapping[str, float], seconds: float = 60.0) -> None:
        self.tried = dict.fromkeys(per_s, 0)
        self.admitted = dict.fromkeys(per_s, 0)
        self.tracked_max = 0
        # each source starts at a phase of its own
        agenda = [(number * 0.37 % 1 / rate, source) for number, (source, rate) in enumerate(per_s.items())]
        heapq.heapify(agenda)
        while agenda[0][0] < seconds:
            now, source = agenda[0]
            self.tried[source] += 1
            self.admitted[source] += bucket.take(source, now)
            self.tracked_max = max(self.tracked_max, len(bucket))
            heapq.heapreplace(agenda, (now + 1 / per_s[source], source))

    def share(self, source: str) -> float:
        return self.admitted[source] / self.tried[source]


def noisy(count: int) -> dict[str, float]:
    return {f"noisy{number}": NOISY + number for number in range(count)}


def test_a_burst_is_one_second_long_then_the_rate_holds() -> None:
    bucket = FairBucket(20.0)
    assert sum(bucket.take("a", 0.0) for _ in range(100)) == 20
    assert [bucket.take("a", 0.0625), bucket.take("a", 0.0625)] == [True, False]
    assert sum(bucket.take("a", 0.5625) for _ in range(100)) == 10
    assert sum(bucket.take("a", 100.0) for _ in range(100)) == 20


def test_a_lone_source_at_exactly_the_rate_loses_nothing_after_its_burst() -> None:
    bucket = FairBucket(20.0)
    assert sum(bucket.take("a", 0.1) for _ in range(20)) == 20
    assert all(bucket.take("a", 0.1 + number * 0.05) for number in range(1, 1000))


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_no_rate_is_no_limit(rate: float) -> None:
    bucket = FairBucket(rate)
    assert all(bucket.take("a", 0.0) for _ in range(1000))
    assert len(bucket) == 0


@pytest.mark.parametrize("rate", [0.5, 1.0, 20.0, 333.3])
def test_a_lone_source_gets_the_whole_rate(rate: float) -> None:
    run = Run(FairBucket(rate), {"a": 10 * rate + 1}, seconds=120.0)
    assert 0.99 * rate * 120 <= run.admitted["a"] <= rate * 120 + max(1.0, rate) + 1


@pytest.mark.parametrize("noisy_count", [1, 3, 20])
@pytest.mark.parametrize("part_of_share", [0.1, 0.5, 0.95])
def test_a_quiet_source_beside_noisy_ones_gets_through(noisy_count: int, part_of_share: float) -> None:
    share = 20.0 / (noisy_count + 1)
    run = Run(FairBucket(20.0), noisy(noisy_count) | {"quiet": share * part_of_share})
    assert run.share("quiet") >= 0.95
    assert 0.99 * 20 * 60 <= sum(run.admitted.values()) <= 20 * 60 + 30


def test_at_a_low_rate_there_is_room_for_a_quiet_source_too() -> None:
    run = Run(FairBucket(1.0), {"noisy": NOISY, "quiet": 0.25}, seconds=400.0)
    assert run.share("quiet") >= 0.95
    assert run.admitted["noisy"] == pytest.approx(300, abs=5)


def test_several_quiet_sources_beside_noisy_ones_get_through() -> None:
    quiet = {f"quiet{number}": 1.0 + number / 100 for number in range(12)}
    run = Run(FairBucket(20.0), noisy(3) | quiet)
    assert min(run.share(source) for source in quiet) >= 0.95


def test_what_a_quiet_source_leaves_is_shared_by_the_others() -> None:
    run = Run(FairBucket(20.0), {"noisy": NOISY, "middle": 8.0, "quiet": 1.0})
    assert run.share("quiet") >= 0.99
    assert run.share("middle") >= 0.99  # an equal share of all three would be 6.7 a second
    assert run.admitted["noisy"] == pytest.approx(11 * 60, abs=25)


def test_two_that_want_more_than_their_share_get_equally_much() -> None:
    run = Run(FairBucket(20.0), {"very noisy": NOISY, "noisy": 15.0})
    assert run.admitted["very noisy"] == pytest.approx(run.admitted["noisy"], abs=20)


def test_a_short_burst_of_a_quiet_source_gets_through() -> None:
    bucket = FairBucket(20.0)
    for number in range(5000):
        bucket.take("noisy", number / 1000)
    assert [bucket.take("quiet", 5.0) for _ in range(5)] == [True] * 5


def test_the_noisy_one_pays_the_overdraft_back() -> None:
    bucket = FairBucket(20.0)
    for _ in range(100):
        bucket.take("noisy", 0.0)
    assert all(bucket.take("quiet", 0.0) for _ in range(5))
    refused_until = next(n for n in range(1000) if bucket.take("noisy", n / 1000))
    assert refused_until == 300  # five of the overdraft and one new token, at 20 a second


def test_a_source_that_stops_is_forgotten() -> None:
    bucket = FairBucket(20.0)
    for source in "abc":
        bucket.take(source, 0.0)
    assert len(bucket) == 3
    bucket.take("d", 10.0)
    assert len(bucket) == 1


def test_invented_names_break_neither_the_rate_nor_the_memory() -> None:
    bucket = FairBucket(20.0)
    admitted = 0
    for number in range(60_000):
        admitted += bucket.take(f"invented{number}", number / 1000)
        assert len(bucket) <= 82
    assert admitted <= 20 * 60 + 30


def test_beyond_the_tracked_sources_the_others_share_one_account() -> None:
    bucket = FairBucket(100.0, sources_max=4)
    assert sum(bucket.take(f"s{number}", 0.0) for number in range(1000)) == 100
    assert len(bucket) == 5
    assert bucket.take("s0", 0.0)  # still known, and owes less than the overdraft holds
    assert not bucket.take("s999", 0.0)


@given(
    rate=st.sampled_from([0.5, 1.0, 3.0, 20.0]),
    steps=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 40), st.floats(0.0, 3.0)), max_size=60),
)
def test_no_stretch_of_time_admits_more_than_its_bound(
    rate: float, steps: list[tuple[int, int, float]]
) -> None:
    bucket = FairBucket(rate)
    allowance = max(1.0, rate) + max(1.0, rate / 2)
    now, admitted = 0.0, []
    for source, attempts, pause in steps:
        now += pause
        admitted += [now for _ in range(attempts) if bucket.take(str(source), now)]
        for number, start in enumerate(admitted):
            assert len(admitted) - number <= allowance + rate * (now - start) + 1e-6


@given(
    rate=st.sampled_from([0.5, 3.0, 20.0]),
    steps=st.lists(st.tuples(st.integers(0, 40), st.floats(0.0, 2.0)), max_size=200),
)
def test_debts_are_what_was_admitted_and_not_paid(rate: float, steps: list[tuple[int, float]]) -> None:
    """Against processor sharing computed in small, plain steps."""
    bucket, debts, now = FairBucket(rate), dict[str, float](), 0.0
    for number, pause in steps:
        left = pause * rate
        while debts and left > 1e-12:
            part = min(min(debts.values()), left / len(debts))
            left -= part * len(debts)
            debts = {source: debt - part for source, debt in debts.items() if debt - part > 1e-12}
        now += pause
        source = str(number % 7)
        if bucket.take(source, now):
            debts[source] = debts.get(source, 0.0) + 1.0
        owed = {source: finish - bucket._virtual for source, finish in bucket._finish.items()}
        assert sum(owed.values()) == pytest.approx(sum(debts.values()), abs=1e-6)
        for known in debts.keys() | owed.keys():
            assert owed.get(known, 0.0) == pytest.approx(debts.get(known, 0.0), abs=1e-6)
