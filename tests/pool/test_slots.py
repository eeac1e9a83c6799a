import pytest

from herdr.pool.slots import Conversation, Slot, Slots
from herdr.pool.waiting import Ask

OWNS_NOTHING: dict[str, int] = {}


def chain(text: str) -> tuple[bytes, ...]:
    return tuple(letter.encode() for letter in text)


def ask(agent: str | None = "new", prompt: str = "xyz", **other: object) -> Ask:
    values = {
        "call": "c",
        "route": "review",
        "priority": 5,
        "agent": agent,
        "prefix": "p",
        "chain": chain(prompt),
        "arrived": 0.0,
        "deadline": 30.0,
        "side": False,
        **other,
    }
    return Ask(**values)  # type: ignore[arg-type]


def warm(slots: Slots, number: int, agent: str | None, at: float, prompt: str = "", **other: object) -> Slot:
    """Fill a slot with a conversation whose last call ended at `at`."""
    slot = slots.all[number]
    prefix, side = str(other.get("prefix", "p")), bool(other.get("side", False))
    conversation = Conversation(agent, prefix, side, number + 1 if agent is None else 0)
    slots.hold(slot, conversation, str(other.get("route", "review")), at)
    slots.start(slot, "before", at)
    slots.end(slot, at)
    slot.content_of, slot.chain = conversation, chain(prompt)
    return slot


def busy(slots: Slots, number: int, agent: str | None, at: float = 0.0, prompt: str = "") -> None:
    slots.start(warm(slots, number, agent, at, prompt), f"running {number}", at)


def number(slot: Slot | None) -> int | None:
    return None if slot is None else slot.number


def test_a_new_table_is_cold_and_numbered_from_zero() -> None:
    slots = Slots(3)
    assert [slot.number for slot in slots.all] == [0, 1, 2]
    assert slots.idle == 3
    assert number(slots.other(ask(), 2, OWNS_NOTHING)) == 0


def test_two_calls_in_one_slot_are_refused() -> None:
    slots = Slots(1)
    busy(slots, 0, "a")
    with pytest.raises(ValueError, match="slot 0 runs running 0"):
        slots.start(slots.all[0], "second", 1.0)
    assert slots.idle == 0


def test_own_is_the_idle_slot_with_most_of_the_prompt() -> None:
    slots = Slots(4)
    warm(slots, 0, "a", 3, "xa")
    warm(slots, 1, "a", 1, "xyq")
    busy(slots, 2, "a", 2, "xyz")
    warm(slots, 3, "b", 2, "xyz")
    conversation = Conversation("a", "p")
    assert [slot.number for slot in slots.held_by(conversation)] == [0, 1, 2]
    assert number(slots.own(conversation, chain("xyz"))) == 1
    assert number(slots.own(Conversation("a", "other"), chain("xyz"))) is None
    assert number(slots.own(Conversation("a", "p", side=True), chain("xyz"))) is None


def test_own_takes_the_latest_of_equals() -> None:
    slots = Slots(2)
    warm(slots, 0, "a", 1, "xy")
    warm(slots, 1, "a", 2, "xy")
    assert number(slots.own(Conversation("a", "p"), chain("xyz"))) == 1


@pytest.mark.parametrize(
    ("contents", "taken"),
    [
        (["xyz", "xy", "x"], 0),  # the longest
        (["", "q", "x"], 2),  # one entry is better than none
        (["q", "", "r"], 1),  # nothing in common: what was never used
        (["q", "r", "s"], 2),  # else what was used least recently
    ],
)
def test_among_free_slots_the_longest_shared_chain_wins(contents: list[str], taken: int) -> None:
    slots = Slots(3)
    for at, content in enumerate(contents):
        if content:
            warm(slots, at, f"agent {at}", 3.0 - at, content)
    slots.free_idle(10.0)
    assert number(slots.other(ask(prompt="xyz"), 2, OWNS_NOTHING)) == taken


def test_an_empty_slot_is_taken_before_content_that_somebody_may_want_again() -> None:
    slots = Slots(2)
    warm(slots, 0, "a", 1.0, "q")
    warm(slots, 1, "b", 5.0, "")
    slots.free_idle(10.0)
    assert number(slots.other(ask(prompt="xyz"), 2, OWNS_NOTHING)) == 1


def test_a_free_slot_is_taken_before_any_warm_one_however_much_that_shares() -> None:
    slots = Slots(2)
    warm(slots, 0, "a", 1, "xyz")
    assert number(slots.other(ask(prompt="xyz"), 2, OWNS_NOTHING)) == 1


def test_idle_slots_become_free_but_keep_their_content() -> None:
    slots = Slots(3)
    warm(slots, 0, "a", 10.0, "xyz")
    warm(slots, 1, "b", 11.0, "xyz")
    busy(slots, 2, "c", 1.0)
    slots.free_idle(10.0)
    assert [slot.held_by is None for slot in slots.all] == [True, False, False]
    assert slots.all[0].chain == chain("xyz")
    assert slots.of_agent("a") == [] and slots.held == {"review": 2}


def test_the_least_recently_used_gives_way() -> None:
    slots = Slots(3)
    for at, when in enumerate((5.0, 3.0, 4.0)):
        warm(slots, at, f"agent {at}", when)
    assert number(slots.other(ask(), 2, OWNS_NOTHING)) == 1


def test_a_side_call_gives_way_first() -> None:
    slots = Slots(3)
    warm(slots, 0, "a", 1.0)
    warm(slots, 1, "b", 9.0, side=True)
    warm(slots, 2, "c", 2.0)
    assert number(slots.other(ask(), 2, OWNS_NOTHING)) == 1


@pytest.mark.parametrize("side", [False, True])
def test_another_prefix_takes_its_agents_main_slot_last(side: bool) -> None:
    slots = Slots(3)
    warm(slots, 0, "a", 1.0)
    warm(slots, 1, "b", 9.0)
    busy(slots, 2, "c")
    assert number(slots.other(ask("a", prefix="q", side=side), 2, OWNS_NOTHING)) == 1
    busy_slots = Slots(2)
    warm(busy_slots, 0, "a", 1.0)
    busy(busy_slots, 1, "b")
    assert number(busy_slots.other(ask("a", prefix="q", side=side), 2, OWNS_NOTHING)) == 0, "no other left"


def test_a_sub_agent_takes_its_parents_main_slot_last() -> None:
    slots = Slots(2)
    warm(slots, 0, "a", 1.0)
    warm(slots, 1, "b", 9.0)
    assert number(slots.other(ask("a/sub"), 2, OWNS_NOTHING)) == 0
    assert number(slots.other(ask("a/sub", parent="a"), 2, OWNS_NOTHING)) == 1


def test_an_agent_at_its_bound_takes_the_older_of_its_own_never_anothers() -> None:
    slots = Slots(4)
    warm(slots, 0, "b", 1.0)
    warm(slots, 1, "a", 5.0, prefix="p1")
    warm(slots, 2, "a", 4.0, prefix="p2")
    assert number(slots.other(ask("a", prefix="p3"), 2, OWNS_NOTHING)) == 2, "slot 3 is even free"
    assert number(slots.other(ask("a", prefix="p3"), 3, OWNS_NOTHING)) == 3, "not yet at its bound"


def test_a_side_call_at_the_bound_spares_the_main_conversation() -> None:
    slots = Slots(2)
    warm(slots, 0, "a", 1.0, prefix="main")
    warm(slots, 1, "a", 9.0, prefix="sub")
    assert number(slots.other(ask("a", prefix="title", side=True), 2, OWNS_NOTHING)) == 1
    assert number(slots.other(ask("a", prefix="third"), 2, OWNS_NOTHING)) == 0


def test_a_side_calls_conversation_is_never_the_main_one() -> None:
    slots = Slots(2)
    warm(slots, 0, "a", 1.0, prefix="probe", side=True)
    warm(slots, 1, "a", 9.0, prefix="main")
    assert number(slots.other(ask("a", prefix="title", side=True), 2, OWNS_NOTHING)) == 0


def test_an_agent_at_its_bound_waits_while_all_its_slots_are_busy() -> None:
    slots = Slots(4)
    busy(slots, 0, "a")
    busy(slots, 1, "a")
    assert slots.other(ask("a", prefix="q"), 2, OWNS_NOTHING) is None
    assert number(slots.other(ask("b"), 2, OWNS_NOTHING)) == 2


def test_a_client_without_identity_has_no_bound() -> None:
    slots = Slots(4)
    for at in range(3):
        busy(slots, at, None)
    assert number(slots.other(ask(None), 2, OWNS_NOTHING)) == 3


def test_an_owner_loses_slots_only_above_its_part() -> None:
    slots = Slots(3)
    warm(slots, 0, "a", 1.0, route="owner")
    warm(slots, 1, "b", 2.0, route="owner")
    warm(slots, 2, "c", 3.0, route="review")
    assert number(slots.other(ask(), 2, {"owner": 2})) == 2
    assert number(slots.other(ask(), 2, {"owner": 1})) == 0
    assert number(slots.other(ask(route="owner"), 2, {"owner": 2})) == 0


def test_an_agent_at_its_bound_gives_up_its_own_even_where_a_share_protects_it() -> None:
    slots = Slots(3)
    warm(slots, 0, "a", 1.0, route="owner", prefix="main")
    warm(slots, 1, "a", 2.0, route="owner", prefix="sub")
    title = ask("a", prefix="title", side=True, route="background")
    assert number(slots.other(title, 2, {"owner": 2})) == 1


def test_a_prompt_continues_only_an_idle_slot_of_a_client_without_identity() -> None:
    slots = Slots(6)
    warm(slots, 0, None, 1, "xy")
    warm(slots, 1, None, 1, "x")
    warm(slots, 2, None, 1, "xq")
    warm(slots, 3, "a", 1, "xyz")
    busy(slots, 4, None, 1, "xyz")
    assert number(slots.continued(chain("xyz"))) == 0, "the longest that the prompt begins with"
    assert number(slots.continued(chain("q"))) is None
    slots.free_idle(5.0)
    assert number(slots.continued(chain("xyz"))) is None, "free slots are nobody's"


def test_holding_again_keeps_since_when_and_follows_the_route() -> None:
    slots = Slots(2)
    slot = warm(slots, 0, "a", 1.0, route="owner")
    slots.hold(slot, Conversation("a", "p"), "review", 7.0)
    assert (slot.since, slots.held) == (1.0, {"review": 1})
    slots.hold(slot, Conversation("b", "p"), "review", 8.0)
    assert (slot.since, slots.of_agent("a"), slots.of_agent("b")) == (8.0, [], [slot])


def test_resize_forgets_everything() -> None:
    slots = Slots(2)
    busy(slots, 0, "a")
    slots.resize(3)
    assert (len(slots.all), slots.idle, slots.of_agent("a"), slots.held) == (3, 3, [], {})
