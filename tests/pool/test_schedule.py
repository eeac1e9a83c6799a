from collections.abc import Mapping

import msgspec
import pytest

from herdr.pool.schedule import Ask, Conversation, Schedule, Start
from herdr.pool.waiting import effective

TEXT = "the chain of a prompt"


def chain(text: str) -> tuple[bytes, ...]:
    return tuple(letter.encode() for letter in text)


def schedule(total: int = 4, shares: Mapping[str, float] | None = None, **other: object) -> Schedule:
    values = {"background_max": 2, **other}
    return Schedule(total, shares={} if shares is None else shares, **values)  # type: ignore[arg-type]


def ask(call: str, agent: str | None = "", **other: object) -> Ask:
    """A call of an agent of its own, at 0 s, unless told otherwise."""
    arrived = float(str(other.get("arrived", 0.0)))
    values = {
        "call": call,
        "route": "review",
        "priority": 5,
        "agent": f"agent of {call}" if agent == "" else agent,
        "prefix": "p",
        "chain": chain(call),
        "arrived": arrived,
        "deadline": arrived + 30.0,
        "side": False,
        **other,
    }
    return Ask(**values)  # type: ignore[arg-type]


def arrive(plan: Schedule, *asks: Ask, now: float = 0.0) -> None:
    for one in asks:
        plan.arrive(one, now)


def calls(starts: list[Start]) -> list[str]:
    return [start.call for start in starts]


def places(starts: list[Start]) -> dict[str, int]:
    return {start.call: start.slot for start in starts}


def run(plan: Schedule, one: Ask, now: float = 0.0, ended: float | None = None, tokens: int = 1000) -> Start:
    """Start a call that must start at once, and end it."""
    plan.arrive(one, now)
    (start,) = plan.decide(now)
    plan.finish(one.call, now if ended is None else ended, chain=one.chain, tokens=tokens)
    return start


# order


@pytest.mark.parametrize(
    ("priority", "waited_s", "expected"),
    [
        (9, 0, 9),
        (9, 2.9, 9),
        (9, 3, 8),
        (9, 23.9, 2),
        (9, 24, 1),
        (9, 3600, 1),
        (5, 12, 1),
        (1, 100, 1),
        (0, 0, 0),
        (0, 100, 0),
        (9, -5, 9),
    ],
)
def test_ageing(priority: int, waited_s: float, expected: int) -> None:
    assert effective(priority, waited_s, 3.0) == expected


def test_priority_first_then_arrival_then_the_order_of_coming() -> None:
    plan = schedule(6)
    arrive(
        plan,
        ask("nine", priority=9),
        ask("late", priority=2, arrived=1.0),
        ask("early", priority=2, arrived=0.5),
        ask("zero", priority=0, arrived=2.0),
        ask("same 1", priority=4, arrived=2.0),
        ask("same 2", priority=4, arrived=2.0),
        now=2.0,
    )
    assert calls(plan.decide(2.0)) == ["zero", "early", "late", "same 1", "same 2", "nine"]


def test_an_aged_nine_passes_a_fresh_one_but_not_a_zero() -> None:
    plan = schedule(1)
    arrive(plan, ask("runs"))
    plan.decide(0.0)
    arrive(plan, ask("nine", priority=9, deadline=99.0))
    arrive(plan, ask("one", priority=1, arrived=24.0), ask("zero", priority=0, arrived=24.0), now=24.0)
    order = []
    for running in ("runs", "zero", "nine"):
        plan.finish(running, 24.0, chain=None)
        order += calls(plan.decide(24.0))
    assert order == ["zero", "nine", "one"]


def test_a_steady_stream_of_better_calls_holds_a_nine_up_for_24_seconds_only() -> None:
    plan = schedule(1)
    arrive(plan, ask("nine", priority=9), ask("one at 0", priority=1))
    order = []
    for second in range(40):
        now = float(second)
        arrive(plan, ask(f"one at {second + 1}", priority=1, arrived=now + 0.5), now=now)
        for start in plan.decide(now + 0.5):
            order.append(start.call)
            plan.finish(start.call, now + 1.0, chain=None)
    assert order.index("nine") == 24


def test_a_retry_keeps_its_place() -> None:
    plan = schedule(1)
    arrive(plan, ask("runs"))
    plan.decide(0.0)
    arrive(plan, ask("other", arrived=10.0), now=10.0)
    arrive(plan, ask("retry", arrived=9.0), now=31.0)
    plan.finish("runs", 31.0, chain=None)
    assert calls(plan.decide(31.0)) == ["retry"]


def test_promote_raises_and_never_lowers() -> None:
    plan = schedule(1)
    arrive(plan, ask("first", priority=3), ask("second", priority=9))
    plan.promote("second", 2)
    plan.promote("second", 8)
    plan.promote("unknown", 0)
    assert plan.snapshot(0.0).queue == {2: 1, 3: 1}
    assert calls(plan.decide(0.0)) == ["second"]


def test_urgent_waits_for_at_most_one_running_call() -> None:
    plan = schedule(1)
    arrive(plan, ask("runs"))
    plan.decide(0.0)
    arrive(plan, *(ask(f"low {n}", priority=9) for n in range(8)))
    arrive(plan, ask("urgent", priority=0, arrived=29.0), now=29.0)
    plan.finish("runs", 29.0, chain=None)
    assert calls(plan.decide(29.0)) == ["urgent"]


def test_what_cannot_be_placed_holds_up_nobody() -> None:
    plan = schedule(4, {"owner": 0.5})
    arrive(plan, *(ask(f"other {n}", priority=0) for n in range(4)), ask("owner", priority=9, route="owner"))
    assert calls(plan.decide(0.0)) == ["other 0", "other 1", "owner"]


# shares and bounds


def test_the_others_never_take_the_owners_part_and_the_owner_may_take_theirs() -> None:
    plan = schedule(5, {"owner": 0.6})
    arrive(plan, *(ask(f"other {n}") for n in range(5)))
    assert len(plan.decide(0.0)) == 2
    arrive(plan, *(ask(f"owner {n}", route="owner", arrived=1.0) for n in range(5)), now=1.0)
    assert calls(plan.decide(1.0)) == ["owner 0", "owner 1", "owner 2"]
    plan.finish("other 0", 2.0, chain=None)
    assert calls(plan.decide(2.0)) == ["other 2"]
    plan.leave("other 3"), plan.leave("other 4")
    plan.finish("other 1", 3.0, chain=None)
    assert calls(plan.decide(3.0)) == ["owner 3"]


def test_at_most_so_many_background_calls_at_once() -> None:
    plan = schedule(6)
    arrive(plan, *(ask(f"background {n}", route="background") for n in range(4)), ask("other"))
    assert calls(plan.decide(0.0)) == ["background 0", "background 1", "other"]
    plan.finish("background 0", 1.0, chain=None)
    assert calls(plan.decide(1.0)) == ["background 2"]


def test_with_one_slot_priority_alone_decides() -> None:
    plan = schedule(1, {"owner": 0.6})
    arrive(plan, ask("owner", route="owner", priority=5), ask("other", priority=4))
    assert calls(plan.decide(0.0)) == ["other"]


def test_background_evicts_an_owner_only_above_its_part() -> None:
    plan = schedule(4, {"owner": 0.5})
    for n in range(4):
        run(plan, ask(f"owner {n}", route="owner"), float(n))
    assert run(plan, ask("b1", route="background"), 5.0).evicted == Conversation("agent of owner 0", "p")
    assert run(plan, ask("b2", route="background"), 6.0).evicted == Conversation("agent of owner 1", "p")
    assert run(plan, ask("b3", route="background"), 7.0).evicted == Conversation("agent of b1", "p")


def test_an_agent_never_holds_more_than_its_slots() -> None:
    plan = schedule(4)
    arrive(plan, *(ask(f"c{n}", "a", prefix=f"p{n}") for n in range(3)))
    assert calls(plan.decide(0.0)) == ["c0", "c1"]
    assert plan.decide(1.0) == [], "the third waits though slots are free"
    plan.finish("c1", 2.0, chain=chain("c1"))
    (start,) = plan.decide(2.0)
    assert (start.call, start.slot, start.evicted) == ("c2", 1, Conversation("a", "p1"))


# the choice of a slot


def test_a_conversation_goes_back_to_its_slot() -> None:
    plan = schedule(4)
    run(plan, ask("c1", "a"), 0.0)
    run(plan, ask("c2", "b"), 1.0)
    start = run(plan, ask("c3", "a", chain=chain("c1 more")), 2.0)
    assert (start.slot, start.evicted, start.shared, start.held_chain) == (0, None, 2, chain("c1"))


def test_a_conversation_waits_for_its_busy_slot_but_not_for_long() -> None:
    plan = schedule(4, affinity_wait_s=2.0)
    arrive(plan, ask("c1", "a"), ask("c2", "a"))
    assert calls(plan.decide(0.0)) == ["c1"]
    assert plan.next_wake(0.0) == 2.0
    assert plan.decide(1.9) == []
    assert places(plan.decide(2.0)) == {"c2": 1}


def test_the_wait_for_the_own_slot_counts_from_the_queueing_not_from_the_first_attempt() -> None:
    plan = schedule(4)
    arrive(plan, ask("c1", "a"))
    plan.decide(0.0)
    arrive(plan, ask("c2", "a", arrived=0.0), now=10.0)
    assert plan.decide(10.0) == []
    assert plan.next_wake(10.0) == 12.0


def test_a_slot_that_becomes_idle_is_taken_by_its_conversation_at_once() -> None:
    plan = schedule(4)
    arrive(plan, ask("c1", "a"), ask("c2", "a"))
    plan.decide(0.0)
    plan.finish("c1", 0.5, chain=chain("c1"))
    assert places(plan.decide(0.5)) == {"c2": 0}


def test_the_evicted_hand_over_their_number() -> None:
    plan = schedule(3)
    for n in range(3):
        run(plan, ask(f"c{n}"), float(n))
    plan.arrive(ask("new"), 5.0)
    (start,) = plan.decide(5.0)
    assert (start.slot, start.evicted) == (0, Conversation("agent of c0", "p"))
    assert run(plan, ask("newer"), 6.0).slot == 1


def test_after_some_idle_minutes_a_slot_is_free_and_its_content_still_counts() -> None:
    plan = schedule(3, slot_idle_s=300.0)
    run(plan, ask("c0", "a", chain=chain("abc")), 0.0)
    run(plan, ask("c1", "b", chain=chain("xyz")), 1.0)
    assert [slot.state for slot in plan.snapshot(299.9).slots] == ["warm", "warm", "free"]
    assert [slot.state for slot in plan.snapshot(300.0).slots] == ["free", "warm", "free"]
    start = run(plan, ask("c2", "c", chain=chain("xyq")), 302.0)
    assert (start.slot, start.shared, start.evicted) == (1, 2, None)


def test_side_calls_do_not_take_the_main_conversations_slot() -> None:
    plan = schedule(2)
    run(plan, ask("main", "a"), 0.0)
    run(plan, ask("other", "b"), 1.0)
    title = run(plan, ask("title", "a", side=True, route="background"), 2.0)
    assert (title.slot, title.evicted) == (1, Conversation("b", "p"))
    assert run(plan, ask("more", "a"), 3.0).slot == 0
    assert run(plan, ask("new", "c"), 4.0).slot == 1, "the side call's own slot goes first, though later used"


def test_with_one_slot_a_side_call_takes_the_main_conversations() -> None:
    plan = schedule(1)
    run(plan, ask("main", "a"), 0.0)
    assert run(plan, ask("title", "a", side=True), 1.0).evicted == Conversation("a", "p")


def test_without_identity_the_prompt_tells_the_conversation() -> None:
    plan = schedule(4)
    first = run(plan, ask("c0", None, chain=chain("ab")), 0.0)
    second = run(plan, ask("c1", None, chain=chain("xy")), 1.0)
    more = run(plan, ask("c2", None, chain=chain("abc")), 2.0)
    assert (first.slot, second.slot, more.slot) == (0, 1, 0)
    assert more.conversation == first.conversation != second.conversation
    assert more.evicted is None


def test_without_identity_a_busy_match_is_a_new_conversation_at_once() -> None:
    plan = schedule(4)
    arrive(plan, *(ask(f"c{n}", None, chain=chain(TEXT)) for n in range(4)))
    starts = plan.decide(0.0)
    assert places(starts) == {"c0": 0, "c1": 1, "c2": 2, "c3": 3}
    assert len({start.conversation for start in starts}) == 4


def test_a_client_without_identity_takes_over_nobody_elses_conversation() -> None:
    plan = schedule(2)
    run(plan, ask("c0", "a", chain=chain("ab")), 0.0)
    start = run(plan, ask("c1", None, chain=chain("abc")), 1.0)
    assert (start.slot, start.conversation.agent) == (1, None)
    plan = schedule(1)
    run(plan, ask("c0", "a", chain=chain("ab")), 0.0)
    start = run(plan, ask("c1", None, chain=chain("abc")), 1.0)
    assert (start.conversation.agent, start.evicted) == (None, Conversation("a", "p"))
    assert start.shared == 2, "its content is as good as any"


def test_no_two_calls_in_one_slot_and_no_slot_that_is_not_there() -> None:
    plan = schedule(3)
    arrive(plan, *(ask(f"c{n}") for n in range(9)))
    assert sorted(places(plan.decide(0.0)).values()) == [0, 1, 2]
    assert plan.decide(0.0) == []


# places without a cache


def test_places_without_a_cache_have_no_affinity_and_no_bound_for_agents() -> None:
    plan = schedule(4, {"owner": 0.25}, sticky=False)
    arrive(plan, *(ask(f"c{n}", "a") for n in range(4)))
    assert calls(plan.decide(0.0)) == ["c0", "c1", "c2"]
    assert plan.next_wake(0.0) == 30.0
    plan.finish("c0", 1.0, chain=chain("c0"), tokens=1000)
    (start,) = plan.decide(1.0)
    assert (start.slot, start.evicted, start.save, start.shared) == (0, None, None, 0)
    assert [slot.state for slot in plan.snapshot(1.0).slots] == ["busy", "busy", "busy", "free"]


# leaving, expiry, waking up, pausing


def test_who_leaves_is_not_started() -> None:
    plan = schedule(1)
    arrive(plan, ask("c0"), ask("c1"))
    assert plan.leave("c0") and not plan.leave("c0")
    assert calls(plan.decide(0.0)) == ["c1"]
    assert not plan.leave("c1"), "it runs"


def test_expiry() -> None:
    plan = schedule(1)
    arrive(plan, ask("runs"), ask("c1", arrived=1.0), ask("c2", arrived=2.0))
    plan.decide(0.0)
    assert plan.next_wake(0.0) == 31.0
    assert plan.expired(30.9) == []
    assert plan.expired(31.0) == ["c1"]
    assert plan.expired(99.0) == ["c2"]
    assert plan.next_wake(99.0) is None


@pytest.mark.parametrize("again", ["c0", "c1"])
def test_a_call_arrives_once(again: str) -> None:
    plan = schedule(1)
    arrive(plan, ask("c0"), ask("c1"))
    plan.decide(0.0)
    with pytest.raises(ValueError, match=f"call {again}"):
        plan.arrive(ask(again), 1.0)


def test_without_an_idle_slot_only_deadlines_wake() -> None:
    plan = schedule(1)
    arrive(plan, ask("c0", "a"), ask("c1", "a"))
    plan.decide(0.0)
    assert plan.next_wake(0.0) == 30.0


def test_who_does_not_wait_for_its_own_slot_is_not_woken_for_it() -> None:
    plan = schedule(4, {"owner": 0.5})
    arrive(plan, *(ask(f"other {n}") for n in range(3)))
    assert len(plan.decide(0.0)) == 2
    assert plan.next_wake(0.0) == 30.0


def test_while_paused_nothing_starts_and_calls_still_expire() -> None:
    plan = schedule(2)
    plan.pause(40.0)
    plan.pause(35.0)  # an earlier end does not cut it short
    arrive(plan, ask("c0"), ask("c1", arrived=20.0))
    assert plan.paused_until == 40.0
    assert plan.decide(39.9) == []
    assert plan.next_wake(0.0) == 30.0
    assert plan.expired(30.0) == ["c0"]
    assert plan.next_wake(30.0) == 40.0
    assert plan.snapshot(30.0).paused_s == 10.0
    assert calls(plan.decide(40.0)) == ["c1"]


def test_retry_after_follows_the_queue_and_the_recent_runs() -> None:
    plan = schedule(2)
    assert plan.retry_after(0.0) == 1
    arrive(plan, *(ask(f"c{n}") for n in range(6)))
    plan.decide(0.0)
    assert plan.retry_after(0.0) == 20  # 4 wait, 10 s each as long as nothing is known, 2 slots
    plan.finish("c0", 4.0, chain=None)
    assert plan.retry_after(4.0) == 8
    plan.finish("c1", 14.0, chain=None)
    assert plan.retry_after(14.0) == 12  # the average is 4 + 0.2 * (14 - 4)
    plan.pause(54.0)
    assert plan.retry_after(14.0) == 40
    plan.pause(1000.0)
    assert plan.retry_after(14.0) == 60


# files


def test_the_evicted_are_saved_and_restored_when_they_return() -> None:
    plan = schedule(1, spill=True)
    run(plan, ask("c0", "a", chain=chain("ab")), 0.0)
    plan.arrive(ask("c1", "b"), 1.0)
    (start,) = plan.decide(1.0)
    assert (start.save, start.restore) == (0, None)
    plan.saved(0, True)
    plan.finish("c1", 2.0, chain=chain("c1"), tokens=1000)
    plan.arrive(ask("c2", "a", chain=chain("abc")), 3.0)
    (start,) = plan.decide(3.0)
    assert (start.save, start.restore) == (1, 0)
    assert (start.shared, start.held_chain) == (2, chain("ab")), "of what is restored"
    assert plan.snapshot(3.0).slots[0].cached_tokens == 1000


def test_a_conversation_in_its_own_slot_saves_nothing() -> None:
    plan = schedule(1, spill=True)
    run(plan, ask("c0", "a"), 0.0)
    assert run(plan, ask("c1", "a"), 1.0).save is None


@pytest.mark.parametrize(("priority", "is_saved"), [(0, False), (2, False), (3, True), (9, True)])
def test_nothing_is_saved_while_an_urgent_call_waits(priority: int, is_saved: bool) -> None:
    plan = schedule(2, {"owner": 0.5}, spill=True)
    run(plan, ask("c0", "a", route="owner"), 0.0)
    run(plan, ask("c1", "b", route="owner"), 1.0)
    arrive(plan, ask("runs", priority=0), now=2.0)
    plan.decide(2.0)
    arrive(plan, ask("waits", priority=priority), ask("starts", route="owner"), now=3.0)
    (start,) = plan.decide(3.0)
    assert start.call == "starts"
    assert (start.save is not None) is is_saved


@pytest.mark.parametrize(("priority", "is_saved"), [(2, False), (3, True)])
def test_an_urgent_call_does_not_wait_for_the_file_of_the_one_that_it_evicts(
    priority: int, is_saved: bool
) -> None:
    plan = schedule(1, spill=True)
    run(plan, ask("c0"), 0.0)
    assert (run(plan, ask("c1", priority=priority), 1.0).save is not None) is is_saved


@pytest.mark.parametrize("how", ["leaves", "expires", "is started"])
def test_an_urgent_call_that_is_gone_keeps_nobody_from_saving(how: str) -> None:
    plan = schedule(2, spill=True)
    run(plan, ask("c0"), 0.0)
    run(plan, ask("c1"), 1.0)
    plan.arrive(ask("urgent", "agent of c0", priority=9, deadline=5.0), 2.0)
    plan.promote("urgent", 0)
    if how == "leaves":
        plan.leave("urgent")
    elif how == "expires":
        plan.expired(5.0)
    else:
        plan.decide(5.0)
    assert run(plan, ask("c2"), 5.0).save is not None


def test_a_backend_that_does_not_restore_is_not_asked_again() -> None:
    plan = schedule(1, spill=True)
    run(plan, ask("c0", "a"), 0.0)
    assert plan.snapshot(0.0).restores
    plan.restore_failed()
    assert run(plan, ask("c1", "b"), 1.0).save is None
    assert not plan.snapshot(0.0).restores
    plan.forget_all()
    assert plan.snapshot(0.0).restores, "another server, maybe with another model"


def test_files_that_nobody_confirmed_make_room_when_their_call_ends() -> None:
    plan = schedule(1, spill=True)
    run(plan, ask("c0"), 0.0)
    numbers = [run(plan, ask(f"c{n}"), float(n)).save for n in range(1, 6)]
    assert None not in numbers and set(numbers) <= {0, 1}


def test_places_without_a_cache_have_nothing_to_restore() -> None:
    assert not schedule(2, sticky=False, spill=True).snapshot(0.0).restores


def test_without_spill_nothing_is_saved() -> None:
    plan = schedule(1)
    run(plan, ask("c0"), 0.0)
    assert run(plan, ask("c1"), 1.0).save is None


# the backend's own life


def test_unknown_content_makes_a_slot_cold() -> None:
    plan = schedule(2)
    plan.arrive(ask("c0", "a"), 0.0)
    plan.decide(0.0)
    plan.finish("c0", 1.0, chain=None, tokens=1000)
    view = plan.snapshot(2.0).slots[0]
    assert (view.state, view.agent, view.cached_tokens) == ("free", None, 0)
    start = run(plan, ask("c1", "a", chain=chain("c0")), 2.0)
    assert (start.shared, start.held_chain, start.evicted) == (0, (), None)


def test_a_slot_that_is_not_kept_is_free_for_whoever_shares_its_content() -> None:
    plan = schedule(3)
    arrive(plan, ask("c0", "a", chain=chain("x")), ask("c1", "b", chain=chain("abc")))
    plan.decide(0.0)
    plan.finish("c0", 1.0, chain=chain("x"), tokens=1000)
    plan.finish("c1", 1.0, chain=chain("abc"), tokens=1000, keeps=False)
    assert [slot.state for slot in plan.snapshot(1.0).slots] == ["warm", "free", "free"]
    start = run(plan, ask("c2", "c", chain=chain("abq")), 2.0)
    assert (start.slot, start.shared, start.evicted) == (1, 2, None)


def test_after_a_restart_every_slot_is_cold_and_what_runs_leaves_nothing() -> None:
    plan = schedule(2, spill=True)
    run(plan, ask("c0", "a"), 0.0)
    plan.arrive(ask("c1", "b"), 1.0)
    plan.decide(1.0)
    plan.forget_all()
    assert [slot.state for slot in plan.snapshot(1.0).slots] == ["free", "busy"]
    plan.finish("c1", 2.0, chain=chain("c1"), tokens=1000)
    assert [slot.state for slot in plan.snapshot(2.0).slots] == ["free", "free"]
    for call, agent in (("c2", "a"), ("c3", "b")):
        start = run(plan, ask(call, agent, chain=chain(call)), 3.0)
        assert (start.shared, start.save, start.restore) == (0, None, None)


def test_files_are_lost_with_the_backend() -> None:
    plan = schedule(1, spill=True)
    run(plan, ask("c0", "a"), 0.0)
    start = run(plan, ask("c1", "b"), 1.0)
    assert start.save is not None
    plan.saved(start.save, True)
    plan.forget_all()
    assert run(plan, ask("c2", "a", chain=chain("c0")), 2.0).restore is None


@pytest.mark.parametrize("total", [1, 2, 6])
def test_a_backend_that_comes_back_with_other_slots(total: int) -> None:
    plan = schedule(4, {"owner": 0.5})
    arrive(plan, *(ask(f"old {n}", route="owner") for n in range(4)))
    plan.decide(0.0)
    plan.resize(total)
    arrive(plan, *(ask(f"new {n}", route="owner") for n in range(8)), now=1.0)
    assert sorted(places(plan.decide(1.0)).values()) == list(range(total))
    for n in range(4):
        plan.finish(f"old {n}", 2.0, chain=chain("old"), tokens=1)
    assert plan.decide(2.0) == [], "what ran before has no slot to free"
    assert [slot.state for slot in plan.snapshot(2.0).slots] == ["busy"] * total
    plan.finish("new 0", 3.0, chain=None)
    assert len(plan.decide(3.0)) == 1


def test_the_same_name_may_run_again_after_a_resize() -> None:
    plan = schedule(1)
    arrive(plan, ask("c0"))
    plan.decide(0.0)
    plan.resize(1)
    plan.arrive(ask("c0"), 1.0)
    assert calls(plan.decide(1.0)) == ["c0"]


def test_snapshot() -> None:
    plan = schedule(3, {"owner": 0.5}, spill=True)
    run(plan, ask("c0", "a", route="owner"), 0.0, 1.0, tokens=700)
    arrive(plan, ask("c1", "b"), ask("c2", "c", priority=7), ask("c3", "d", priority=7), now=2.0)
    plan.decide(2.0)
    assert msgspec.json.decode(msgspec.json.encode(plan.snapshot(4.5))) == {
        "slots": [
            {
                "slot": 0,
                "state": "warm",
                "agent": "a",
                "prefix": "p",
                "route": "owner",
                "call": None,
                "cached_tokens": 700,
                "last_used_s_ago": 3.5,
            },
            {
                "slot": 1,
                "state": "busy",
                "agent": "b",
                "prefix": "p",
                "route": "review",
                "call": "c1",
                "cached_tokens": 0,
                "last_used_s_ago": 2.5,
            },
            {
                "slot": 2,
                "state": "free",
                "agent": None,
                "prefix": None,
                "route": None,
                "call": None,
                "cached_tokens": 0,
                "last_used_s_ago": None,
            },
        ],
        "queue": {"7": 2},
        "shares": {
            "owner": {"part": 2, "running": 0, "held": 1},
            "review": {"part": 0, "running": 1, "held": 1},
        },
        "paused_s": 0.0,
        "restores": True,
    }
