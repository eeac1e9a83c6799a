"""The rules of the lock table, one by one."""

import pytest
from lock_parts import Locks, ask, name, owners_in

from herdr.errors import NotFound
from herdr.locks.lock import (
    Ask,
    Blocker,
    Cycle,
    Expired,
    Full,
    Granted,
    Held,
    Lock,
    Mode,
    Released,
    Renewed,
    Ruling,
    Wait,
)
from herdr.locks.refusals import Fenced
from herdr.locks.table import Table

# Granting and denying.


def test_a_free_path_is_granted_with_the_seq_as_its_token() -> None:
    asked = Ask("L", "a", (name("x"),), ("x",), 30.0, "intent", "shop", "why", "s1")
    ruling = Table().ask(asked, 17, 99)
    lock = Lock("L", 17, "a", "intent", "shop", ("x",), (name("x"),), 30.0, 99, 17, "why", "s1")
    assert ruling == Ruling((Granted(lock),), (("L", Held(lock)),))


def test_what_another_holds_is_denied_and_says_who_holds_it() -> None:
    locks = Locks()
    held = locks.take("a", "src/")
    assert locks.deny("b", "other", "src/x.py") == (
        Blocker(held.lock, "src/", "src/x.py", "a", "a's purpose", held.since_us, "held"),
    )
    assert locks.last.outcomes == ()


@pytest.mark.parametrize("first", ["write", "intent"])
@pytest.mark.parametrize("second", ["write", "intent"])
def test_only_intents_share_a_path(first: Mode, second: Mode) -> None:
    locks = Locks()
    locks.take("a", "x", mode=first)
    answer = locks.ask(ask("b", "x", mode=second))
    assert isinstance(answer, Held) is (first == second == "intent")


def test_of_several_paths_all_or_none_are_granted() -> None:
    locks = Locks()
    held = locks.take("a", "y")
    assert owners_in(locks.deny("b", "x", "y", "z")) == ["a"]
    locks.take("c", "x", "z")
    queued = locks.queue("d", "w", "y")
    locks.take("e", "v")
    assert locks.release(held) == ["d"]
    lock = locks.table.get(queued)
    assert lock is not None and lock.paths == ("w", "y")


def test_each_path_that_was_asked_for_names_what_is_in_its_way_once() -> None:
    locks = Locks()
    locks.take("a", "src/1", "src/2")
    told = {blocker.asked: blocker.path for blocker in locks.deny("b", "src/", "src/2")}
    assert told["src/2"] == "src/2"
    assert told["src/"] in ("src/1", "src/2")
    assert len(locks.deny("b", "src/", "src/2")) == 2


def test_at_most_twenty_are_named_and_locks_before_waiters() -> None:
    locks = Locks()
    held = [locks.take("a", f"f/{number}") for number in range(18)]
    locks.queue("b", "f/1", "g/1")
    locks.queue("b", "f/2", "g/2")
    locks.queue("b", "f/3", "g/3")
    kinds = [blocker.kind for blocker in locks.deny("c", "**")]
    assert kinds == ["held"] * 18 + ["waiting"] * 2
    assert len(held) == 18


def test_ones_own_locks_are_not_in_the_way() -> None:
    locks = Locks()
    first = locks.take("a", "src/x")
    second = locks.take("a", "src/", mode="intent")
    assert second.lock != first.lock
    assert locks.take("a", "src/").token == 3
    assert owners_in(locks.deny("b", "src/x")) == ["a", "a", "a"]


def test_what_all_names_take_together_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("herdr.locks.table.SEGMENTS_MAX", 10)
    locks = Locks()
    first = locks.take("a", "1/2/3/4", "5/6/7/8")
    assert locks.ask(ask("b", "x/y/z")) == Full("locks")
    locks.take("b", "x/y")
    assert locks.ask(ask("c", "1/2/3/4", waits=True)) == Full("locks")
    locks.table.release(first.lock, first.token, 9, 0)
    locks.take("c", "1/2/3/4")


# What one holds already.


def test_what_one_holds_is_extended_with_the_same_token() -> None:
    locks = Locks()
    held = locks.take("a", "src/")
    answer = locks.ask(ask("a", "src/x", "src/y", ttl_s=5.0))
    assert locks.last.outcomes == (Renewed(held, 2, held.ttl_s),)  # never shorter than it was
    assert isinstance(answer, Held)
    assert (answer.lock.lock, answer.lock.token) == (held.lock, held.token)
    assert (answer.lock.renewed, answer.lock.ttl_s, answer.lock.paths) == (2, held.ttl_s, ("src/",))


def test_the_oldest_of_the_locks_that_hold_it_is_extended() -> None:
    locks = Locks()
    oldest = locks.take("a", "src/x")
    locks.take("a", "src/")
    assert locks.take("a", "src/x").lock == oldest.lock


@pytest.mark.parametrize(
    ("held", "asked", "extended"),
    [
        ("write", "write", True),
        ("write", "intent", True),
        ("intent", "intent", True),
        ("intent", "write", False),
    ],
)
def test_a_write_holds_an_intent_but_not_the_other_way_round(held: Mode, asked: Mode, extended: bool) -> None:
    locks = Locks()
    first = locks.take("a", "x", mode=held)
    assert (locks.take("a", "x", mode=asked).lock == first.lock) is extended


def test_what_one_holds_in_part_or_in_two_locks_is_a_new_lock() -> None:
    locks = Locks()
    taken = [locks.take("a", "x"), locks.take("a", "y"), locks.take("a", "x", "y"), locks.take("a", "x", "z")]
    assert len({lock.token for lock in taken}) == 4


def test_what_one_holds_is_extended_though_others_wait_for_it() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    locks.queue("b", "x")
    assert locks.take("a", "x").token == held.token


# Renewing, releasing, forcing.


def test_a_renewal_begins_the_lease_anew() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    ruling = locks.table.renew(held.lock, held.token, None, 7)
    assert ruling.outcomes == (Renewed(held, 7, 60.0),)
    lock = locks.table.get(held.lock)
    assert lock is not None and (lock.renewed, lock.ttl_s, lock.token) == (7, 60.0, held.token)
    assert ruling.answers == ((held.lock, Held(lock)),)
    locks.table.renew(held.lock, held.token, 9.0, 8)
    lock = locks.table.get(held.lock)
    assert lock is not None and (lock.renewed, lock.ttl_s) == (8, 9.0)


def test_a_wrong_token_and_an_unknown_lock_change_nothing() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    with pytest.raises(Fenced, match="2 is not the token"):
        locks.table.renew(held.lock, 2, None, 5)
    with pytest.raises(Fenced):
        locks.table.release(held.lock, 2, 5, 0)
    for wrong in (
        lambda: locks.table.renew("no", 1, None, 5),
        lambda: locks.table.release("no", 1, 5, 0),
        lambda: locks.table.force("no", "why", "admin", 5, 0),
    ):
        with pytest.raises(NotFound) as caught:
            wrong()
        assert caught.value.code == "unknown_lock"
    assert locks.table.get(held.lock) == held
    assert locks.table.changed() == ()


def test_a_release_says_who_and_why_and_can_be_done_once() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    ruling = locks.table.release(held.lock, held.token, 2, 0, "connection_closed")
    assert ruling == Ruling((Released(held, "connection_closed", "a"),))
    with pytest.raises(NotFound):
        locks.table.release(held.lock, held.token, 3, 0)
    assert locks.take("b", "x").owner == "b"


def test_a_lock_can_be_released_by_force() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    queued = locks.queue("b", "x")
    answers = locks.rule(locks.table.force(held.lock, "crashed", "admin", locks.seq, 0))
    assert locks.last.outcomes[0] == Released(held, "crashed", "admin")
    assert list(answers) == [queued]


# Expiry.


def test_an_expired_lock_keeps_others_off_until_the_delay_ends() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    assert locks.expire(held) == {}
    assert locks.last.outcomes == (Expired(held, held.renewed),)
    assert locks.table.held() == ()
    assert [lock.lock for lock in locks.table.ghosts()] == [held.lock]
    assert [blocker.kind for blocker in locks.deny("b", "x")] == ["expired"]
    queued = locks.queue("b", "x")
    answers = locks.rule(locks.table.end_delay(held.lock, locks.seq, 0))
    assert list(answers) == [queued]
    assert locks.table.get(held.lock) is None
    assert [type(outcome) for outcome in locks.last.outcomes] == [Granted]


def test_an_expiry_is_void_after_a_renewal_that_it_did_not_see() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    locks.take("a", "x")
    assert locks.table.expire(held.lock, held.renewed, 5, 0) == Ruling()
    assert locks.table.expire("no", 1, 5, 0) == Ruling()
    assert locks.owners() == ["a"]


def test_an_expired_lock_cannot_be_renewed_released_or_expire_again() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    locks.expire(held)
    with pytest.raises(NotFound):
        locks.table.renew(held.lock, held.token, None, 5)
    with pytest.raises(NotFound):
        locks.table.release(held.lock, held.token, 5, 0)
    with pytest.raises(NotFound):
        locks.table.force(held.lock, "why", "admin", 5, 0)
    assert locks.expire(held) == {} and locks.last == Ruling()


def test_the_delay_of_a_lock_that_is_held_or_gone_does_not_end() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    assert locks.table.end_delay(held.lock, 5, 0) == Ruling()
    assert locks.table.end_delay("no", 5, 0) == Ruling()
    assert locks.owners() == ["a"]


def test_whose_lock_expired_may_take_it_again_with_a_higher_token() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    locks.expire(held)
    again = locks.take("a", "x")
    assert again.token > held.token
    assert {blocker.kind for blocker in locks.deny("b", "x")} == {"expired", "held"}
    locks.rule(locks.table.end_delay(held.lock, locks.seq, 0))
    assert locks.table.held() == (again,)


# Bounds.


def test_no_more_locks_are_granted_than_there_may_be() -> None:
    locks = Locks(locks_max=3)
    held = locks.take("a", "x")
    locks.take("a", "y")
    locks.queue("b", "x")  # it has its place: it can be granted at any time
    assert locks.ask(ask("c", "z")) == Full("locks")
    assert locks.ask(ask("c", "x", waits=True)) == Full("locks")
    locks.take("a", "x")
    assert locks.release(held) == ["b"]
    locks.take("c", "z")
    assert locks.ask(ask("c", "w")) == Full("locks")


def test_no_more_wait_than_may_and_a_deadlock_is_still_named() -> None:
    locks = Locks(waiters_max=1, waits_max=1)
    locks.take("a", "x")
    locks.take("b", "y")
    locks.queue("b", "x")
    assert locks.ask(ask("c", "x", waits=True)) == Full("waiters")
    assert isinstance(locks.ask(ask("a", "y", waits=True)), Cycle)
    assert locks.declare("c", "d") is None
    assert locks.declare("e", "d") == Full("waits")
    assert isinstance(locks.declare("d", "c"), Cycle)
    assert locks.declare("c", "d") is None


def test_what_stands_in_whose_way_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("herdr.locks.table.IN_WAY_MAX", 3)
    locks = Locks()
    locks.take("a", "x")
    locks.take("a", "y")
    locks.queue("b", "x", "y")
    assert locks.ask(ask("c", "x", "y", waits=True)) == Full("waiters")
    locks.table.withdraw(locks.table.waiters()[0].key, 9, 0)
    locks.queue("c", "**")
    locks.take("a", "z")
    assert locks.ask(ask("a", "w")) == Full("waiters")


# Taking back, storing, replaying.


def test_what_was_not_committed_is_taken_back() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    waiting = locks.queue("b", "x")
    table = locks.table
    table.release(held.lock, held.token, 5, 0)
    table.ask(ask("c", "z"), 7, 0)
    table.ask(ask("d", "x", waits=True), 8, 0)
    table.declare(Wait("w", "a", "c"))
    table.undo()
    assert table.held() == (held,)
    assert [waiter.key for waiter in table.waiters()] == [waiting]
    assert table.waits() == ()
    assert locks.release(held) == ["b"]


def test_what_changed_is_told_once_for_what_is_stored() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    waiting = locks.queue("b", "x")
    table = locks.table
    table.release(held.lock, held.token, 5, 0)
    assert table.changed() == (held.lock, waiting)
    assert table.changed() == ()
    table.ask(ask("c", "x", waits=True), 7, 0)
    assert table.changed() == ()
    lock = table.get(waiting)
    assert lock is not None
    table.expire(waiting, lock.renewed, 7, 0)
    assert table.changed() == (waiting,)
    table.end_delay(waiting, 8, 0)
    assert table.get(waiting) is None
    assert waiting in table.changed()
    table.release(table.held()[0].lock, table.held()[0].token, 9, 0)
    table.undo()
    assert table.changed() == ()


def test_the_stored_locks_are_taken_over_and_waiters_stay() -> None:
    locks = Locks()
    held = locks.take("a", "x")
    got, waiting = locks.queue("b", "x"), locks.queue("c", "x", "y")
    free = locks.queue("d", "y")
    table = locks.table
    table.release(held.lock, held.token, 5, 0)
    theirs = table.get(got)
    assert theirs is not None
    table.undo()
    table.restore([theirs])
    assert table.held() == (theirs,)
    assert [waiter.key for waiter in table.waiters()] == [waiting, free]
    assert [blocker.lock for blocker in table.blockers_of(waiting)] == [got]
    assert locks.promote() == []
    table.undo()
    assert table.held() == (theirs,)
    table.restore([])
    assert locks.promote() == ["c"]


def test_void_outcomes_change_nothing() -> None:
    table = Table()
    lock = Lock("L", 5, "a", "write", "default", ("x",), (name("x"),), 60.0, 0, 5)
    for outcome in (Renewed(lock, 6, 1.0), Released(lock, "released", "a"), Expired(lock, 9)):
        table.apply(outcome)
        assert table.held() == table.ghosts() == ()
    table.apply(Granted(lock))
    table.apply(Renewed(lock, 6, 30.0))
    table.apply(Expired(lock, 5))
    assert [held.renewed for held in table.held()] == [6]
    table.apply(Expired(lock, 6))
    table.apply(Renewed(lock, 8, 30.0))
    assert [(ghost.renewed, ghost.expired) for ghost in table.ghosts()] == [(6, True)]


def test_reading_tells_what_overlaps_and_what_would_be_in_the_way() -> None:
    locks = Locks()
    first, second = locks.take("a", "src/x"), locks.take("b", "src/y", mode="intent")
    expired = locks.take("c", "src/z")
    locks.expire(expired)
    waiting = locks.queue("d", "src/x", "lib")
    assert [lock.lock for lock in locks.table.find((name("src/"), name("src/x")))] == [
        first.lock,
        second.lock,
        expired.lock,
    ]
    assert locks.table.find((name("lib"),)) == ()
    assert sorted(owners_in(locks.table.conflicts(ask("b", "src/", "lib")))) == ["a", "c", "d", "d"]
    assert owners_in(locks.table.conflicts(ask("a", "lib", "src/y", mode="intent"))) == []
    assert [(waiter.key, waiter.owner) for waiter in locks.table.waiters()] == [(waiting, "d")]
    assert locks.table.waiters_of(first.lock) == ("d",)
