from hypothesis import given
from hypothesis import strategies as st

from herdr.bus.overflow import CHARS_MAX, GROUPS_MAX, IDS_MAX, PATHS_MAX, Collected, Overflow


def test_what_joins_within_a_second_comes_out_as_one() -> None:
    overflow = Overflow()
    assert overflow.next_due() is None
    assert overflow.add("cursor", "w", "a.py", "1", 10.0)
    assert overflow.add("cursor", "w", "b.py", "2", 10.5)
    assert overflow.add("cursor", "w", "a.py", "3", 10.75)
    assert overflow.next_due() == 11.0
    assert overflow.due(10.99) == []
    assert overflow.due(11.0) == [Collected("cursor", "w", ("a.py", "b.py"), ("1", "2", "3"), 3, False)]
    assert overflow.due(20.0) == []


def test_pairs_are_apart_and_come_in_order() -> None:
    overflow = Overflow()
    for number, (source, workspace) in enumerate([("b", "w"), ("a", "w"), ("a", "x")]):
        overflow.add(source, workspace, "p", "1", number / 4)
    assert [(c.source, c.workspace) for c in overflow.due(1.25)] == [("b", "w"), ("a", "w")]
    assert [(c.source, c.workspace) for c in overflow.flush()] == [("a", "x")]
    assert len(overflow) == 0


def test_an_id_joins_once() -> None:
    overflow = Overflow()
    overflow.add("s", "w", "a", "1", 0.0)
    overflow.add("s", "w", "b", "1", 0.0)
    assert overflow.flush() == [Collected("s", "w", ("a",), ("1",), 1, False)]


def test_paths_and_ids_are_bounded_and_the_rest_is_counted() -> None:
    overflow = Overflow()
    for number in range(PATHS_MAX + 5):
        assert overflow.add("s", "w", f"p{number}", str(number), 0.0)
    overflow.add("s", "w", "p0", "again", 0.0)
    [collected] = overflow.flush()
    assert (len(collected.paths), len(collected.ids)) == (PATHS_MAX, IDS_MAX)
    assert (collected.count, collected.truncated) == (PATHS_MAX + 6, True)


def test_as_many_paths_as_fit_are_not_truncated() -> None:
    overflow = Overflow()
    for number in range(PATHS_MAX):
        overflow.add("s", "w", f"p{number}", str(number), 0.0)
    overflow.add("s", "w", "p0", "again", 0.0)
    assert not overflow.flush()[0].truncated


def test_long_paths_are_bounded_by_characters() -> None:
    overflow = Overflow()
    for number in range(100):
        overflow.add("s", "w", f"{number:04}" * 1024, str(number), 0.0)
    overflow.add("s", "w", "short", "short", 0.0)
    [collected] = overflow.flush()
    assert len(collected.paths) == CHARS_MAX // 4096
    assert (collected.count, len(collected.ids), collected.truncated) == (101, 101, True)


def test_a_pair_beyond_the_bound_is_not_taken() -> None:
    overflow = Overflow()
    for number in range(GROUPS_MAX):
        assert overflow.add(f"s{number}", "w", "p", "1", 0.0)
    assert not overflow.add("one more", "w", "p", "1", 0.0)
    assert overflow.add("s0", "w", "q", "2", 0.5)
    assert len(overflow.due(1.0)) == GROUPS_MAX
    assert overflow.add("one more", "w", "p", "1", 1.0)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("pqr"), st.integers(0, 12)), max_size=60))
def test_nothing_is_lost_and_a_pair_speaks_once_a_second(steps: list[tuple[str, str, int]]) -> None:
    overflow = Overflow()
    now, spoken, count, paths = 0.0, {"a": -1.0, "b": -1.0}, 0, set()
    for number, (source, path, eighths) in enumerate(steps):
        now += eighths / 8
        for collected in overflow.due(now):
            assert now >= spoken[collected.source] + 1.0
            spoken[collected.source] = now
            count += collected.count
            paths |= {(collected.source, p) for p in collected.paths}
        assert overflow.add(source, "w", path, str(number), now)
    for collected in overflow.flush():
        count += collected.count
        paths |= {(collected.source, p) for p in collected.paths}
    assert count == len(steps)
    assert paths == {(source, path) for source, path, _ in steps}
