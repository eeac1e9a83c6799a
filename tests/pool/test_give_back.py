"""`Schedule.give_back`, and `finish` for a conversation that does not keep its slot."""

from typing import Any

import pytest

from herdr.pool.schedule import Ask, Schedule

LONG = (b"s", b"t", b"1", b"2", b"3")


def ask(
    call: str, agent: str | None, chain: tuple[bytes, ...] = LONG, route: str = "review", **more: Any
) -> Ask:
    fields: dict[str, Any] = {"priority": 5, "prefix": "p", "arrived": 0.0, "deadline": 30.0, "side": False}
    return Ask(call=call, route=route, agent=agent, chain=chain, **{**fields, **more})


def plan(total: int = 1, **more: Any) -> Schedule:
    return Schedule(total, shares={}, background_max=1, **more)


def start(it: Schedule, one: Ask, now: float = 0.0) -> int:
    it.arrive(one, now)
    (begun,) = it.decide(now)
    return begun.slot


def view(it: Schedule, now: float = 0.0, slot: int = 0) -> tuple[str, str | None, int]:
    seen = it.snapshot(now).slots[slot]
    return seen.state, seen.agent, seen.cached_tokens


def test_a_conversation_that_was_refused_has_its_slot_as_before() -> None:
    it = plan()
    start(it, ask("1", "a"))
    it.finish("1", 1.0, chain=LONG, tokens=500)
    start(it, ask("2", "a"), 2.0)
    it.give_back("2", 3.0)
    assert view(it, 3.0) == ("warm", "a", 500)
    it.arrive(ask("3", "a"), 4.0)
    (again,) = it.decide(4.0)
    assert (again.shared, again.held_chain, again.evicted) == (len(LONG), LONG, None)


def test_one_that_had_taken_it_from_another_leaves_it_free_with_what_is_in_it() -> None:
    it = plan()
    start(it, ask("1", "a"))
    it.finish("1", 1.0, chain=LONG, tokens=500)
    start(it, ask("2", "b", (b"other",)), 2.0)
    it.give_back("2", 3.0)
    assert view(it, 3.0) == ("free", None, 500)
    it.arrive(ask("3", "a"), 4.0)
    (back,) = it.decide(4.0)
    assert back.shared == len(LONG), "nothing ran there in between"


def test_a_place_that_never_ran_counts_no_longer() -> None:
    it = plan(2)
    start(it, ask("1", "a", route="background"))
    it.arrive(ask("2", "b", route="background"), 0.0)
    assert it.decide(0.0) == [], "one background call at once"
    it.give_back("1", 1.0)
    assert [begun.call for begun in it.decide(1.0)] == ["2"]


@pytest.mark.parametrize("call", ["never", "1"])
def test_who_does_not_run_gives_nothing_back(call: str) -> None:
    it = plan()
    start(it, ask("1", "a"))
    it.resize(1)
    it.give_back(call, 1.0)
    assert view(it, 1.0) == ("free", None, 0)


def test_after_a_restart_there_is_nothing_to_give_back() -> None:
    it = plan()
    start(it, ask("1", "a"))
    it.finish("1", 1.0, chain=LONG, tokens=500)
    start(it, ask("2", "a"), 2.0)
    it.forget_all()
    it.give_back("2", 3.0)
    assert view(it, 3.0) == ("free", None, 0)


@pytest.mark.parametrize("comes", ["b", "c"])
def test_what_was_not_overwritten_is_still_its_owners(comes: str) -> None:
    it = plan(spill=True)
    start(it, ask("1", "a"))
    it.finish("1", 1.0, chain=LONG, tokens=500)
    start(it, ask("2", "b", (b"other",)), 2.0)
    it.give_back("2", 3.0)
    it.arrive(ask("3", comes, (b"new",)), 4.0)
    (begun,) = it.decide(4.0)
    assert begun.save is not None
    it.saved(begun.save, True)
    it.finish("3", 5.0, chain=(b"new",), tokens=5)
    it.arrive(ask("4", "a"), 6.0)
    (back,) = it.decide(6.0)
    assert back.restore == begun.save


def test_a_slot_that_is_not_kept_is_free_and_has_its_content() -> None:
    it = plan(2)
    slot = start(it, ask("1", "prewarm"))
    it.finish("1", 1.0, chain=LONG, tokens=500, keeps=False)
    assert view(it, 1.0, slot) == ("free", None, 500)
    assert start(it, ask("2", "a", (*LONG, b"4")), 2.0) == slot


def test_a_slot_that_is_kept_is_not() -> None:
    it = plan(2)
    slot = start(it, ask("1", "a"))
    it.finish("1", 1.0, chain=LONG, tokens=500)
    assert view(it, 1.0, slot) == ("warm", "a", 500)
    assert start(it, ask("2", "b", (*LONG, b"4")), 2.0) != slot


def test_unknown_content_is_kept_by_nobody() -> None:
    it = plan()
    start(it, ask("1", "a"))
    it.finish("1", 1.0, chain=None, tokens=500)
    assert view(it, 1.0) == ("free", None, 0)
