from hypothesis import given
from hypothesis import strategies as st

from herdr.bus.rates import WINDOW_S, Rate


@given(
    st.floats(0, 1e6),
    st.lists(st.tuples(st.floats(0, 20), st.integers(0, 100)), max_size=30),
    st.floats(0, 20),
)
def test_the_rate_is_the_mean_of_the_last_whole_seconds(
    start: float, steps: list[tuple[float, int]], rest: float
) -> None:
    rate, now = Rate(), start
    happened: list[tuple[int, int]] = []
    for passed, count in steps:
        now += passed
        rate.add(count, now)
        happened.append((int(now), count))
    now += rest
    window = range(int(now) - WINDOW_S, int(now))
    assert rate.per_second(now) == sum(count for second, count in happened if second in window) / WINDOW_S
    assert rate.total == sum(count for _, count in happened)


def test_asking_changes_nothing() -> None:
    rate = Rate()
    rate.add(10, 100.0)
    assert [rate.per_second(at) for at in (100.5, 101.0, 101.0, 105.9, 106.0)] == [0, 2, 2, 2, 0]
