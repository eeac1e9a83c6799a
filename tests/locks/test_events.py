"""Outcomes as events, and back again."""

import msgspec
import pytest

from herdr.locks.events import Told, deadlock_event, event_of, outcome_of
from herdr.locks.lock import Expired, Granted, Lock, Name, Outcome, Released, Renewed

LOCK = Lock(
    "01A", 7, "cursor", "write", "shop", ("src/",), (Name("shop", ("src",), ("**",), "src/"),),
    60.0, 1_700_000_000_000_000, 7, "rename", "s1",
)  # fmt: skip
OUTCOMES: list[Outcome] = [
    Granted(LOCK),
    Renewed(LOCK, 9, 30.0),
    Released(LOCK, "released", "cursor"),
    Released(LOCK, "it hangs", "admin"),
    Expired(LOCK, 9),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda o: f"{type(o).__name__} {o[1:]}")
def test_an_outcome_survives_the_log(outcome: Outcome) -> None:
    told = event_of(outcome)
    seq = outcome.seq if isinstance(outcome, Renewed) else 7
    held = {} if isinstance(outcome, Granted) else {LOCK.lock: LOCK}
    assert outcome_of(told.type, msgspec.json.encode(told.data), seq, held) == outcome


def test_who_lost_a_lock_is_told_and_who_gave_it_back_knows() -> None:
    assert [event_of(outcome).to for outcome in OUTCOMES] == [(), (), (), ("cursor",), ("cursor",)]


def test_the_token_is_the_seq_of_the_grant() -> None:
    assert event_of(Granted(LOCK)).data["token"] == 7


def test_what_does_not_change_the_table_is_passed_over() -> None:
    assert outcome_of("tool.result", b'"anything"', 1, {}) is None
    assert outcome_of("lock.deadlock", b"{}", 1, {}) is None
    assert outcome_of("lock.released", b'{"lock":"01A","reason":"released","by":"cursor"}', 1, {}) is None


def test_a_deadlock_is_told_to_everybody_but_who_closed_it() -> None:
    told = deadlock_event(("a", "b", "c", "a"))
    assert told == Told("lock.deadlock", {"cycle": ("a", "b", "c", "a"), "closed_by": "a"}, ("b", "c"))
