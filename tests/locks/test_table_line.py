"""Who stands in line behind whom, who may pass, and what is a deadlock."""

import pytest
from lock_parts import Locks, ask, owners_in

from herdr.locks.lock import (
    Cycle,
    Denied,
    Granted,
    Held,
    Queued,
    Released,
    Renewed,
    Ruling,
    Wait,
)

# The line.


def test_who_waits_is_served_in_turn() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    for owner in "bcd":
        locks.queue(owner, "x")
    assert locks.table.waiters_of(held.lock) == ("b", "c", "d")
    assert locks.release(held) == ["b"]
    assert locks.owners() == ["b"]
    assert [waiter.owner for waiter in locks.table.waiters()] == ["c", "d"]


def test_all_whose_way_is_clear_are_served_at_consecutive_seqs() -> None:
    locks = Locks()
    held = locks.take("a", "**")
    for path in ("x", "y", "x", "z"):
        locks.queue(f"wants-{path}", path, mode="intent" if path == "x" else "write")
    seq = locks.seq
    assert locks.release(held) == ["wants-x", "wants-y", "wants-x", "wants-z"]
    tokens = [outcome.lock.token for outcome in locks.last.outcomes if isinstance(outcome, Granted)]
    assert tokens == [seq + 1, seq + 2, seq + 4]
    assert [type(outcome) for outcome in locks.last.outcomes[3:4]] == [Renewed]


def test_a_later_request_stands_behind_an_earlier_waiter_that_it_collides_with() -> None:
    locks = Locks()
    locks.take("a", "x")
    waiting = locks.queue("b", "x", "y")
    assert [(b.lock, b.kind) for b in locks.deny("c", "y")] == [(waiting, "waiting")]
    locks.take("c", "z")
    assert owners_in(locks.deny("c", "y", mode="intent")) == ["b"]


def test_an_intent_does_not_stand_behind_an_intent() -> None:
    locks = Locks()
    locks.take("a", "x")
    locks.queue("b", "x", "y", mode="intent")
    locks.take("c", "y", mode="intent")


def test_a_waiter_that_goes_lets_those_behind_it_through() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    waiting = locks.queue("b", "x", "y")
    behind = locks.queue("c", "y")
    answers = locks.rule(locks.table.withdraw(waiting, locks.seq, 0))
    assert list(answers) == [waiting, behind]
    denied = answers[waiting]
    assert isinstance(denied, Denied) and [b.lock for b in denied.blockers] == [held.lock]
    assert isinstance(answers[behind], Held)
    assert locks.table.withdraw(waiting, locks.seq, 0) == Ruling()
    assert locks.table.withdraw("no", locks.seq, 0) == Ruling()


def test_one_owner_may_wait_twice_and_gets_one_lock_for_one_thing() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    first, second = locks.queue("b", "x"), locks.queue("b", "x")
    answers = locks.rule(locks.table.release(held.lock, held.token, locks.seq, 0))
    assert list(answers) == [first, second]
    assert {answer.lock.lock for answer in answers.values() if isinstance(answer, Held)} == {first}
    assert [type(outcome) for outcome in locks.last.outcomes] == [Released, Granted, Renewed]
    assert locks.table.waiters() == ()


def test_an_ask_that_waits_already_is_told_again_what_is_in_its_way() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    asked = ask("b", "x", waits=True)
    assert locks.ask(asked) == locks.ask(asked)
    assert [waiter.key for waiter in locks.table.waiters()] == [asked.lock]
    assert locks.release(held) == ["b"]


def test_the_id_of_a_lock_cannot_be_used_again() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    with pytest.raises(ValueError, match="id of its own"):
        locks.table.ask(ask("b", "y", lock=held.lock), 5, 0)


# Who may pass whom.


def test_who_holds_a_waiter_up_may_pass_it() -> None:
    locks = Locks()
    mine = locks.take("a", "x")
    locks.queue("b", "x", "y")
    locks.take("a", "y")
    assert owners_in(locks.deny("c", "y")) == ["a", "b"]
    assert locks.release(mine) == []


def test_who_holds_a_waiter_up_through_others_may_pass_it() -> None:
    locks = Locks()
    locks.take("a", "x")
    locks.take("c", "z")
    locks.queue("c", "x")
    locks.queue("b", "y", "z")
    assert locks.declare("d", "b") is None
    locks.take("a", "y")
    assert owners_in(locks.deny("d", "y")) == ["a", "b"]


def test_a_place_in_line_is_no_deadlock_the_waiter_behind_is_let_through() -> None:
    locks = Locks()
    locks.take("a", "left")
    locks.take("h", "right")
    locks.queue("x", "left", "p")
    behind = locks.queue("h", "p")
    asked = ask("a", "right", waits=True)
    answers = locks.rule(locks.table.ask(asked, locks.seq, 0))
    assert isinstance(answers[asked.lock], Queued)
    assert isinstance(answers[behind], Held)


def test_a_declared_wait_lets_the_waiter_behind_through() -> None:
    locks = Locks()
    locks.take("z", "q")
    locks.queue("x", "p", "q")
    locks.queue("h", "p")
    assert locks.declare("x", "h") is None
    assert locks.promote() == ["h"]


def test_who_is_passed_is_not_served_first_when_both_could_be() -> None:
    """It would hold what the other needs, while it waits for the other: a deadlock that nobody asked for."""
    locks = Locks()
    held = locks.take("z", "p")
    theirs = locks.take("w", "q")
    locks.queue("v", "p")
    locks.queue("v", "q")
    locks.queue("w", "p")
    assert locks.release(held) == ["w"]
    assert locks.release(theirs) == ["v"]


def test_who_no_longer_waits_for_a_later_one_goes_first_again() -> None:
    locks = Locks()
    held = locks.take("z", "p")
    locks.queue("x", "p")
    assert locks.declare("x", "h") is None
    locks.queue("h", "p")
    locks.queue("i", "p")
    assert locks.table.withdraw_wait("x on h") == Wait("x on h", "x", "h")
    assert locks.promote() == []
    assert locks.release(held) == ["x"]
    assert [waiter.owner for waiter in locks.table.waiters()] == ["h", "i"]


# Deadlocks.


def test_a_request_that_would_close_a_cycle_does_not_wait() -> None:
    locks = Locks()
    locks.take("a", "x")
    second = locks.take("b", "y")
    locks.queue("a", "y")
    assert locks.ask(ask("b", "x", waits=True)) == Cycle(("b", "a", "b"))
    assert owners_in(locks.deny("b", "x")) == ["a"]
    assert [waiter.owner for waiter in locks.table.waiters()] == ["a"]
    assert locks.release(second) == ["a"]


def test_two_intents_that_both_want_to_write_are_a_deadlock() -> None:
    locks = Locks()
    locks.take("a", "x", mode="intent")
    theirs = locks.take("b", "x", mode="intent")
    locks.queue("a", "x")
    assert locks.ask(ask("b", "x", waits=True)) == Cycle(("b", "a", "b"))
    assert locks.release(theirs) == ["a"]
    assert [lock.mode for lock in locks.table.held()] == ["intent", "write"]


def test_a_declared_wait_that_would_close_a_cycle_is_refused() -> None:
    locks = Locks()
    locks.take("a", "x")
    locks.queue("b", "x")
    assert locks.declare("a", "b") == Cycle(("a", "b", "a"))
    assert locks.declare("a", "a") == Cycle(("a", "a"))
    assert locks.table.waits() == ()
    assert locks.declare("b", "a") is None


def test_a_declared_wait_counts_for_requests_until_it_ends() -> None:
    locks = Locks()
    locks.take("a", "x")
    assert locks.declare("a", "b") is None
    assert locks.declare("a", "b") is None
    assert locks.table.waits() == (Wait("a on b", "a", "b"),)
    assert locks.table.declared.between("a", "b") == Wait("a on b", "a", "b")
    assert locks.ask(ask("b", "x", waits=True)) == Cycle(("b", "a", "b"))
    assert locks.table.withdraw_wait("a on b") == Wait("a on b", "a", "b")
    assert locks.table.withdraw_wait("a on b") is None
    assert locks.table.withdraw_wait("a on b") is None
    assert locks.table.declared.between("a", "b") is None
    locks.queue("b", "x")
