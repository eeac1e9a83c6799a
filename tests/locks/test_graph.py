"""Who waits for whom, and the shortest way round."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lock_parts import ask
from naive_locks import reached, steps

from herdr.locks.graph import reach, shortest_way
from herdr.locks.lock import Cycle, Held, Queued, Wait
from herdr.locks.table import Table

EDGES = st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=14)


@given(EDGES, st.sampled_from("abcdef"))
def test_reach_is_what_the_edges_lead_to(edges: set[tuple[str, str]], start: str) -> None:
    found = reach([start], lambda one: {to for at, to in edges if at == one})
    assert found == {start} | reached(start, edges)


@given(EDGES, st.sampled_from("abcdef"), st.sampled_from("abcdef"))
def test_the_shortest_way_is_a_way_and_none_is_shorter(
    edges: set[tuple[str, str]], start: str, goal: str
) -> None:
    way = shortest_way([start], goal, lambda one: {to for at, to in edges if at == one})
    if way is None:
        assert goal != start and goal not in reached(start, edges)
        return
    assert (way[0], way[-1]) == (start, goal)
    assert all(edge in edges for edge in pairwise(way))
    assert len(way) - 1 == (0 if start == goal else steps(start, edges, goal))


def test_of_two_ways_of_one_length_the_first_by_name_is_told() -> None:
    edges = {"s": {"y", "x"}, "x": {"goal"}, "y": {"goal"}}
    assert shortest_way(["s"], "goal", lambda one: edges.get(one, set())) == ("s", "x", "goal")


class Owners:
    """A table in which each owner holds a path of the same name."""

    def __init__(self, owners: str) -> None:
        self.table = Table()
        self.seq = 0
        for owner in owners:
            assert isinstance(self.want(owner, owner), Held)

    def want(self, owner: str, *paths: str) -> object:
        """Ask, and return the answer."""
        self.seq += 1
        asked = ask(owner, *paths, waits=True)
        return dict(self.table.ask(asked, self.seq, 0).answers)[asked.lock]


def test_the_shortest_of_several_cycles_is_told() -> None:
    owners = Owners("abcd")
    for owner, path in ("bc", "cd", "da", "ca"):
        assert isinstance(owners.want(owner, path), Queued)
    assert owners.want("a", "b") == Cycle(("a", "b", "c", "a"))


def test_locks_and_declared_waits_make_cycles_together() -> None:
    owners = Owners("ab")
    assert isinstance(owners.want("b", "a"), Queued)
    assert owners.table.declare(Wait("w", "a", "c")) is None
    assert owners.table.declare(Wait("x", "c", "b")) == Cycle(("c", "b", "a", "c"))
    assert owners.table.declare(Wait("y", "c", "c")) == Cycle(("c", "c"))


@pytest.mark.parametrize("length", [2, 3, 50])
def test_a_ring_of_any_length_is_found_when_it_is_closed(length: int) -> None:
    table = Table()
    names = [f"tool-{number:02}" for number in range(length)]
    for number, owner in enumerate(names):
        table.ask(ask(owner, owner), number + 1, 0)
    for owner, other in pairwise(names):
        assert isinstance(table.ask(ask(owner, other, waits=True), 100, 0).answers[0][1], Queued)
    last = table.ask(ask(names[-1], names[0], waits=True), 100, 0)
    assert [answer for _, answer in last.answers] == [Cycle((names[-1], *names))]
    assert len(table.waiters()) == length - 1


def test_an_expired_lock_makes_nobody_wait_for_its_owner() -> None:
    owners = Owners("ab")
    assert isinstance(owners.want("b", "a"), Queued)
    lock = owners.table.held()[0]
    owners.table.expire(lock.lock, lock.renewed, 10, 0)
    assert isinstance(owners.want("a", "b"), Queued)
