"""Any history of a lock table, watched by a model that goes through everything each time."""

from itertools import product

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from lock_parts import ask as new_ask
from lock_parts import name
from naive_locks import PATHS, matched, reached
from watched_locks import Watched

from herdr.errors import NotFound
from herdr.locks.lock import (
    Denied,
    Full,
    Held,
    Mode,
    Queued,
    Released,
    Ruling,
    Wait,
)
from herdr.locks.overlap import overlaps
from herdr.locks.refusals import Fenced
from herdr.locks.table import Table

OWNERS = st.sampled_from("pqrst")
FEW = st.sampled_from(["a", "b", "d/x", "f/x"])
ANY_PATHS = st.lists(st.sampled_from(PATHS), min_size=1, max_size=2, unique=True).map(tuple)
SOME_PATHS = st.one_of(FEW.map(lambda path: (path,)), st.tuples(FEW, FEW), ANY_PATHS)
MODES: st.SearchStrategy[Mode] = st.sampled_from(["write", "write", "write", "intent"])
LOCKS_MAX, WAITERS_MAX, WAITS_MAX = 18, 12, 4
PICK = st.integers(0, 1000)


class TableMachine(RuleBasedStateMachine, Watched):
    """The table and the model are told the same; after each step all the rules are checked."""

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        Watched.__init__(self, Table(locks_max=LOCKS_MAX, waiters_max=WAITERS_MAX, waits_max=WAITS_MAX))
        self.ids = 0

    # What happens.

    @rule(owner=OWNERS, paths=SOME_PATHS, mode=MODES, waits=st.booleans())
    def ask(self, owner: str, paths: tuple[str, ...], mode: Mode, waits: bool) -> None:
        self.check_ask(owner, paths, mode, waits)

    @rule(owner=OWNERS, paths=SOME_PATHS)
    def want(self, owner: str, paths: tuple[str, ...]) -> None:
        self.check_ask(owner, paths, "write", True)

    @rule(owner=OWNERS, path=FEW)
    def want_one(self, owner: str, path: str) -> None:
        self.check_ask(owner, (path,), "write", True)

    @rule(asks=st.lists(st.tuples(OWNERS, FEW), min_size=4, max_size=8))
    def want_many(self, asks: list[tuple[str, str]]) -> None:
        for owner, path in asks:
            self.check_ask(owner, (path,), "write", True)

    def check_ask(self, owner: str, paths: tuple[str, ...], mode: Mode, waits: bool) -> None:
        self.ids += 1
        asked = new_ask(owner, *paths, mode=mode, waits=waits, lock=f"L{self.ids:03}")
        claim = self.model.claim(asked)
        own, locks = self.model.own(claim), self.model.locks_against(claim)
        waiting = self.waiting()
        ahead = [
            other
            for other in self.model.line.values()
            if other.excludes(claim) and owner not in reached(other.owner, waiting)
        ]
        full = len(self.model.locks) + len(self.model.line) >= LOCKS_MAX
        firm = self.model.firm() | {(owner, lock.owner) for lock in locks if not lock.expired}
        ruling = self.table.ask(asked, self.seq, self.seq * 10)
        answers = dict(ruling.answers)
        answer = answers[asked.lock]
        if own is not None:
            assert isinstance(answer, Held) and answer.lock.lock == own.key
        elif not locks and not ahead:
            assert answer == Full("locks") if full else isinstance(answer, Held)
        elif not waits:
            assert isinstance(answer, Denied)
        elif owner in reached(owner, firm):
            self.check_cycle(owner, answer, firm)
        elif full or len(self.model.line) >= WAITERS_MAX:
            assert answer == Full("waiters" if len(self.model.line) >= WAITERS_MAX else "locks")
        else:
            assert isinstance(answer, Queued)
            self.model.line[asked.lock] = claim
        if isinstance(answer, Denied | Queued):
            expected = {claimed.key for claimed in [*locks, *ahead]}
            told = {blocker.lock for blocker in answer.blockers}
            if isinstance(answer, Denied):
                assert told == expected or len(answer.blockers) == 20
            assert all(blocker.owner != owner for blocker in answer.blockers)
        if isinstance(answer, Held) and own is None:
            assert answer.lock.lock == asked.lock
            self.model.line[asked.lock] = claim  # for a moment: its grant is among the outcomes
        self.follow(ruling, waiting | firm, asked.lock)

    @precondition(lambda self: self.model.line)
    @rule(pick=PICK)
    def ask_again(self, pick: int) -> None:
        waiter = self.table.waiters()[pick % len(self.model.line)]
        ruling = self.table.ask(waiter.ask, self.seq, 0)
        assert not ruling.outcomes and isinstance(ruling.answers[0][1], Queued)
        self.check()

    @precondition(lambda self: self.model.locks)
    @rule(pick=PICK, ttl_s=st.sampled_from([None, 5.0]), right=st.integers(0, 4))
    def renew(self, pick: int, ttl_s: float | None, right: int) -> None:
        lock = self.pick_lock(pick)
        token = lock.token if right else lock.token + 1
        if lock.expired:
            with pytest.raises(NotFound):
                self.table.renew(lock.key, token, ttl_s, self.seq)
        elif not right:
            with pytest.raises(Fenced):
                self.table.renew(lock.key, token, ttl_s, self.seq)
        else:
            ruling = self.table.renew(lock.key, token, ttl_s, self.seq)
            assert ruling.answers == ((lock.key, Held(self.table.get(lock.key))),)
            self.follow(ruling, self.waiting())
            assert self.model.locks[lock.key].ttl_s == (ttl_s or lock.ttl_s)

    @precondition(lambda self: self.model.locks)
    @rule(pick=PICK, right=st.integers(0, 9))
    def release(self, pick: int, right: int) -> None:
        lock = self.pick_lock(pick)
        if lock.expired or not right:
            with pytest.raises(NotFound if lock.expired else Fenced):
                self.table.release(lock.key, lock.token + (not right), self.seq, self.seq * 10)
            return
        edges = self.waiting()
        self.follow(self.table.release(lock.key, lock.token, self.seq, self.seq * 10), edges)
        assert lock.key not in self.model.locks

    @precondition(lambda self: self.model.locks)
    @rule(pick=PICK)
    def force(self, pick: int) -> None:
        lock = self.pick_lock(pick)
        if not lock.expired:
            edges = self.waiting()
            ruling = self.table.force(lock.key, "stuck", "admin", self.seq, self.seq * 10)
            assert ruling.outcomes[0] == Released(ruling.outcomes[0].lock, "stuck", "admin")
            self.follow(ruling, edges)
            assert lock.key not in self.model.locks

    @precondition(lambda self: self.model.locks)
    @rule(pick=PICK, late=st.integers(0, 4))
    def expire(self, pick: int, late: int) -> None:
        lock = self.pick_lock(pick)
        saw = lock.renewed if late else lock.renewed - 1
        is_void = lock.expired or not late
        edges = self.waiting()
        ruling = self.table.expire(lock.key, saw, self.seq, self.seq * 10)
        assert bool(ruling.outcomes) is not is_void
        self.follow(ruling, edges)
        assert self.model.locks[lock.key].expired is (lock.expired or not is_void)

    @precondition(lambda self: self.model.locks)
    @rule(pick=PICK)
    def end_delay(self, pick: int) -> None:
        lock = self.pick_lock(pick)
        edges = self.waiting()
        ruling = self.table.end_delay(lock.key, self.seq, self.seq * 10)
        if lock.expired:
            del self.model.locks[lock.key]
            self.stored.pop(lock.key, None)
        else:
            assert ruling == Ruling()
        self.follow(ruling, edges)

    @precondition(lambda self: self.model.line)
    @rule(pick=PICK)
    def withdraw(self, pick: int) -> None:
        key = sorted(self.model.line)[pick % len(self.model.line)]
        told = {blocker.lock for blocker in self.table.blockers_of(key)}
        edges = self.waiting()
        ruling = self.table.withdraw(key, self.seq, self.seq * 10)
        answer = dict(ruling.answers)[key]
        assert isinstance(answer, Denied) and {blocker.lock for blocker in answer.blockers} == told
        del self.model.line[key]
        self.follow(ruling, edges)

    @rule(owner=OWNERS, on=OWNERS)
    def declare(self, owner: str, on: str) -> None:
        firm = self.model.firm() | {(owner, on)}
        waiting = self.waiting() | {(owner, on)}
        self.ids += 1
        answer = self.table.declare(Wait(f"W{self.ids:03}", owner, on))
        if (owner, on) in self.model.waits.values():
            assert answer is None
        elif owner in reached(owner, firm):
            self.check_cycle(owner, answer, firm)
        elif len(self.model.waits) >= WAITS_MAX:
            assert answer == Full("waits")
        else:
            assert answer is None
            self.model.waits[f"W{self.ids:03}"] = (owner, on)
        self.follow(self.table.promote(self.seq, self.seq * 10), waiting)

    @precondition(lambda self: self.model.waits)
    @rule(pick=PICK)
    def end_wait(self, pick: int) -> None:
        wait = sorted(self.model.waits)[pick % len(self.model.waits)]
        owner, on = self.model.waits.pop(wait)
        edges = self.waiting()
        gone = self.table.withdraw_wait(wait)
        assert gone == Wait(wait, owner, on)
        assert self.table.withdraw_wait(wait) is None
        self.follow(self.table.promote(self.seq, self.seq * 10), edges)

    # What becomes of it.

    @rule()
    def commit(self) -> None:
        self.keep()

    @rule()
    def fail_to_commit(self) -> None:
        self.undo()

    @rule()
    def restore(self) -> None:
        self.keep()
        self.table.restore([*self.stored.values()])
        edges = self.waiting()  # who waits for whom may be settled anew, so that somebody goes first again
        self.follow(self.table.promote(self.seq, self.seq * 10), edges)
        self.keep()

    def teardown(self) -> None:
        self.keep()
        for length, locks in self.snapshots:
            self.check_replay(length, locks)
        self.drain()


def test_any_history() -> None:
    run_state_machine_as_test(
        TableMachine,
        settings=settings(
            max_examples=300,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        ),
    )


@pytest.mark.parametrize(("one", "other"), [*product(PATHS, repeat=2)])
def test_the_models_paths_tell_all_overlaps(one: str, other: str) -> None:
    assert overlaps(name(one), name(other)) is bool(matched((one,)) & matched((other,)))
