"""A lock table beside the naive one, and what must be so after each step."""

import copy
from itertools import pairwise, product

from lock_parts import name
from naive_locks import PATHS, Claimed, Edge, Naive, has_cycle, reached, steps

from herdr.locks.lock import Answer, Cycle, Expired, Granted, Held, Lock, Outcome, Released, Renewed, Ruling
from herdr.locks.table import Table


def insides(table: Table) -> object:
    """Everything in a table, to compare."""
    line = table._line
    every = tuple(map(name, PATHS))
    waits = table._waits
    return copy.deepcopy(
        [
            [table.held(), table.ghosts(), table.waiters(), table.waits()],
            [table._held._by_owner, line._by_owner],
            [set(table._held._index.find(every)), set(line._index.find(every))],
            [line.free(), line.in_way._rights, line.in_way._lefts, len(line.in_way)],
            [line.passing._rights, line.passing._lefts, len(line.passing)],
            [waits._between, waits._edges._rights, waits._edges._lefts],
        ]
    )


class Watched:
    """Both tables, the log of what came of them, and the locks as they would be stored."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.model = Naive()
        self.seq = 1
        self.log: list[Outcome] = []
        self.stored: dict[str, Lock] = {}
        self.snapshots: list[tuple[int, list[Lock]]] = []
        self.keep()

    def keep(self) -> None:
        changed = self.table.changed()
        for key in changed:
            lock = self.table.get(key)
            if lock is None:
                self.stored.pop(key, None)
            else:
                self.stored[key] = lock
        self.table.keep()
        self.kept = copy.deepcopy((self.model, self.seq, self.log, self.stored)), insides(self.table)
        assert self.stored == {lock.lock: lock for lock in (*self.table.held(), *self.table.ghosts())}
        self.snapshots.append((len(self.log), [*self.stored.values()]))

    def undo(self) -> None:
        self.table.undo()
        saved, inside = self.kept
        assert insides(self.table) == inside
        self.model, self.seq, self.log, self.stored = copy.deepcopy(saved)
        self.check()

    def waiting(self, *, passed: bool = True) -> set[Edge]:
        """Who waits for whom; without or with those who let a later one pass."""
        return self.model.firm() | self.model.standing(self.in_way(), passed=passed)

    def in_way(self) -> dict[str, frozenset[str]]:
        return {key: frozenset(self.table._line.in_way.rights(key)) for key in self.model.line}

    def pick_lock(self, pick: int) -> Claimed:
        return copy.copy(self.model.locks[sorted(self.model.locks)[pick % len(self.model.locks)]])

    def check_cycle(self, owner: str, answer: Answer | None, firm: set[Edge]) -> None:
        assert isinstance(answer, Cycle)
        assert answer.owners[0] == answer.owners[-1] == owner
        assert all(edge in firm for edge in pairwise(answer.owners))
        assert len(answer.owners) - 1 == steps(owner, firm, owner)

    def follow(self, ruling: Ruling, edges: set[Edge], asked: str | None = None) -> None:
        """Take over in the model what was ruled, and look whether each of it was right."""
        answers = dict(ruling.answers)
        assert len(answers) == len(ruling.answers)
        before = {key for key in self.model.line if key != asked}
        for outcome in ruling.outcomes:
            self.take_over(outcome, edges)
            self.log.append(outcome)
            self.seq += 1
        told = {}
        for key, answer in ruling.answers:
            if isinstance(answer, Held):
                told[answer.lock.lock] = answer.lock
                self.model.line.pop(key, None)
        assert all(lock == self.table.get(key) for key, lock in told.items())
        assert before - self.model.line.keys() <= answers.keys(), "somebody was not told"
        self.check()

    def take_over(self, outcome: Outcome, edges: set[Edge]) -> None:
        lock, model = outcome.lock, self.model
        match outcome:
            case Granted():
                claim = model.line.pop(lock.lock)
                assert lock.token == lock.renewed == self.seq
                assert lock.token > max((held.token for held in model.locks.values()), default=0)
                assert not model.locks_against(claim), "two hold one path"
                assert model.own(claim) is None, "extended, not granted"
                for other in model.line.values():
                    if other.came < claim.came and other.excludes(claim):
                        assert claim.owner in reached(other.owner, edges), "jumped the queue"
                claim.token = claim.renewed = self.seq
                model.locks[lock.lock] = claim
            case Renewed(_, seq, ttl_s):
                assert seq == self.seq and not model.locks[lock.lock].expired
                model.locks[lock.lock].renewed = seq
                model.locks[lock.lock].ttl_s = ttl_s
            case Released():
                assert not model.locks.pop(lock.lock).expired
            case Expired(_, saw):
                assert model.locks[lock.lock].renewed <= saw
                model.locks[lock.lock].expired = True

    def check(self) -> None:
        table, model = self.table, self.model
        locks = {lock.lock: lock for lock in (*table.held(), *table.ghosts())}
        assert locks.keys() == model.locks.keys()
        for key, lock in locks.items():
            told = model.locks[key]
            shown = (lock.owner, lock.paths, lock.mode, lock.token, lock.renewed, lock.ttl_s, lock.expired)
            kept = (told.owner, told.paths, told.mode, told.token, told.renewed, told.ttl_s, told.expired)
            assert shown == kept
        for one, other in product(model.locks.values(), repeat=2):
            assert one.expired or other.expired or not one.excludes(other)
        assert [waiter.key for waiter in table.waiters()] == [*model.line]
        assert {wait.wait: (wait.owner, wait.on) for wait in table.waits()} == model.waits
        self.check_line()

    def check_line(self) -> None:
        model, in_way = self.model, self.in_way()
        for key, waiter in model.line.items():
            others = {lock.key for lock in model.locks_against(waiter)}
            for other in model.line.values():
                if waiter.excludes(other):
                    assert (other.key in in_way[key]) is not (key in in_way[other.key])
                    others |= {other.key} & in_way[key]
            assert in_way[key] == others
            assert others, "a waiter is forgotten"
        assert not has_cycle(self.waiting()), "a deadlock that nobody is told of"
        unpassed = self.waiting(passed=False)
        for key, behind in in_way.items():
            waiter = model.line[key]
            for first in [model.line[one] for one in behind if one in model.line]:
                assert first.came < waiter.came or first.owner in reached(waiter.owner, unpassed)

    def check_replay(self, length: int, locks: list[Lock]) -> None:
        """The locks at any commit and the outcomes since then are the locks of now."""
        replayed = Table()
        replayed.restore(locks)
        for outcome in self.log[length:]:
            replayed.apply(outcome)
        assert replayed.held() == self.table.held()
        ghosts = set(replayed.ghosts())
        assert ghosts >= set(self.table.ghosts())
        assert all(lock.lock not in self.stored for lock in ghosts - set(self.table.ghosts()))

    def drain(self) -> None:
        """When all locks are given back, all who wait get theirs."""
        while self.model.line:
            lock = next(iter(self.table.held() + self.table.ghosts()))
            edges = self.waiting()
            if lock.expired:
                ruling = self.table.end_delay(lock.lock, self.seq, 0)
                del self.model.locks[lock.lock]
            else:
                ruling = self.table.release(lock.lock, lock.token, self.seq, 0)
            self.follow(ruling, edges)
