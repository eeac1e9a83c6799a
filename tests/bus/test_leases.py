"""What runs out, when, and what does not any more."""

from hypothesis import given
from hypothesis import strategies as st

from herdr.bus.leases import Leases, Timer


def timer(at: float, key: str, saw: int = 0) -> Timer:
    return Timer(at, key, "lease", saw)


def test_what_has_run_out_comes_once_and_in_the_order_of_its_times() -> None:
    leases = Leases()
    for at, key in ((3.0, "c"), (1.0, "a"), (2.0, "b"), (9.0, "later")):
        leases.begin(timer(at, key))
    assert leases.next_at() == 1.0
    assert [t.key for t in leases.due(3.0, 99)] == ["a", "b", "c"]
    assert leases.due(3.0, 99) == [] and leases.next_at() == 9.0


def test_what_has_run_out_has_nothing_left_until_it_is_settled() -> None:
    leases = Leases()
    first, again = timer(1.0, "a"), timer(9.0, "a")
    leases.begin(first)
    assert leases.due(2.0, 99) == [first] and "a" in leases and leases.left_s("a", 2.0) == 0
    assert leases.is_current(first)
    leases.begin(again)
    assert leases.is_current(again) and not leases.is_current(first) and leases.left_s("a", 2.0) == 7


def test_not_more_come_at_once_than_are_wanted() -> None:
    leases = Leases()
    for n in range(5):
        leases.begin(timer(1.0, str(n)))
    assert [len(leases.due(1.0, 2)) for _ in range(4)] == [2, 2, 1, 0]


def test_a_renewed_lease_runs_out_at_its_new_time_only() -> None:
    leases = Leases()
    leases.begin(timer(1.0, "a", saw=5))
    leases.begin(timer(4.0, "a", saw=7))
    assert leases.due(2.0, 99) == [] and leases.next_at() == 4.0
    assert leases.due(4.0, 99) == [timer(4.0, "a", saw=7)]


def test_a_released_lock_does_not_run_out() -> None:
    leases = Leases()
    leases.begin(timer(1.0, "a"))
    leases.end("a")
    leases.end("never")
    assert leases.next_at() is None and leases.due(5.0, 99) == [] and "a" not in leases


def test_what_is_left_never_falls_below_zero() -> None:
    leases = Leases()
    leases.begin(timer(10.0, "a"))
    assert (leases.left_s("a", 4.0), leases.left_s("a", 11.0), leases.left_s("b", 0.0)) == (6.0, 0.0, 0.0)


def test_a_million_renewals_do_not_fill_the_memory() -> None:
    leases = Leases()
    for n in range(1000):
        leases.begin(timer(float(n), "a", saw=n))
    assert len(leases._heap) < 200 and [t.saw for t in leases.due(5000.0, 99)] == [999]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.sampled_from("abcd"), st.integers(0, 20)),
        st.tuples(st.just("end"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("due"), st.just(""), st.integers(0, 20)),
    ),
    max_size=80,
)


@given(STEPS)
def test_it_does_as_a_plain_dictionary_would(steps: list[tuple[str, str, int]]) -> None:
    leases, model, over = Leases(), dict[str, float](), set[str]()
    for step, key, at in steps:
        if step == "begin":
            leases.begin(timer(at, key))
            model[key] = at
            over.discard(key)
        elif step == "end":
            leases.end(key)
            model.pop(key, None)
            over.discard(key)
        else:
            expected = sorted((due, name) for name, due in model.items() if due <= at)
            assert [(t.at, t.key) for t in leases.due(at, 99)] == expected
            over |= {name for _, name in expected}
            model = {name: due for name, due in model.items() if due > at}
        assert leases.next_at() == min(model.values(), default=None)
        assert len(leases) == len(model) + len(over - set(model))
