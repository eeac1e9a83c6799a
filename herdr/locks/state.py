"""The locks as the committed outcomes leave them, and who waits for them. Pure.

`apply` is the fold: the table's decisions go through it just as the outcomes of the log do, so a table that
is built from the log holds the same locks.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from herdr.journal import Revocable
from herdr.locks.blockers import blockers
from herdr.locks.claims import Claim, Claims
from herdr.locks.graph import Graph
from herdr.locks.line import Line, Waiter
from herdr.locks.lock import Blocker, Granted, Lock, Name, Outcome, Released, Renewed, Wait
from herdr.locks.waits import Waits


class State(Revocable):
    """Locks, waiters and declared waits: what is read of them, and the fold.

    Whatever changes is tentative until `keep`; `undo` takes it back exactly.
    """

    def __init__(self) -> None:
        super().__init__()
        self._held: Claims[Lock] = Claims(self._journal)
        self._line = Line(self._journal)
        self._waits = Waits(self._journal)
        self._graph = Graph(self._held, self._line, self._waits)

    def apply(self, outcome: Outcome) -> None:
        """Take over one outcome. One that is void changes nothing: about a lock that has gone, for instance."""
        now = self._held.get(outcome.lock.lock)
        if isinstance(outcome, Granted):
            self._take_up(outcome.lock)
        elif now is None or now.expired:
            return
        elif isinstance(outcome, Renewed):
            self._put(replace(now, renewed=outcome.seq, ttl_s=outcome.ttl_s))
        elif isinstance(outcome, Released):
            self._remove(now.lock)
        elif now.renewed <= outcome.saw:
            self._put(replace(now, expired=True))

    def restore(self, locks: Iterable[Lock]) -> None:
        """Replace the locks, expired ones included; final. Waiters stay, except those that hold theirs now.

        Whose way is clear by this is granted by the next decision, or by `promote`.
        """
        waiting = self.waiters()
        for waiter in waiting:
            self._line.leave(waiter.key)
        for lock in [*self._held]:
            self._held.drop(lock.lock)
        for lock in locks:
            self._held.put(lock.lock, lock)
        for waiter in waiting:
            if waiter.key not in self._held:
                self._graph.join(waiter, {overlap.key for overlap in self._held.against(waiter)})
        self.keep()

    def get(self, lock: str) -> Lock | None:
        """Return the lock, which may have expired; None if there is none."""
        return self._held.get(lock)

    def held(self) -> tuple[Lock, ...]:
        """Return the locks that are held, in the order in which they were granted."""
        return _by_token(lock for lock in self._held if not lock.expired)

    def ghosts(self) -> tuple[Lock, ...]:
        """Return the expired locks that still keep others off, in the order in which they were granted."""
        return _by_token(lock for lock in self._held if lock.expired)

    def find(self, names: tuple[Name, ...]) -> tuple[Lock, ...]:
        """Return the locks that overlap with the names, expired ones included, as they were granted."""
        found = {overlap.key: overlap.claim for overlap in self._held.overlapping(names)}
        return _by_token(found.values())

    def conflicts(self, claim: Claim) -> tuple[Blocker, ...]:
        """Return what would be in the way of such a request now, locks before waiters; 20 at most."""
        return blockers(self._held, self._line, claim, self._graph.rivals(claim)[0])

    def waiters(self) -> tuple[Waiter, ...]:
        """Return all who stand in line, as they came."""
        return tuple(sorted(self._line, key=lambda waiter: waiter.order))

    def waiters_of(self, lock: str) -> tuple[str, ...]:
        """Return the owners in whose way the lock is, as they stand in line."""
        found = self._line.sort(self._line.in_way.lefts(lock))
        return tuple(dict.fromkeys(waiter.owner for waiter in found))

    def blockers_of(self, ask: str) -> tuple[Blocker, ...]:
        """Return what is in the way of a waiter, locks before waiters; 20 at most."""
        return blockers(self._held, self._line, self._line[ask], self._line.in_way.rights(ask))

    def waits(self) -> tuple[Wait, ...]:
        """Return the declared waits, by id."""
        return tuple(sorted(self._waits, key=lambda wait: wait.wait))

    @property
    def declared(self) -> Waits:
        """The declared waits, to look at."""
        return self._waits

    def _put(self, lock: Lock) -> None:
        self._held.put(lock.lock, lock)
        self._changed[lock.lock] = None

    def _remove(self, lock: str) -> None:
        self._line.clear(lock)
        self._held.drop(lock)
        self._changed[lock] = None

    def _take_up(self, lock: Lock) -> None:
        if lock.lock in self._line:
            self._line.promote(lock.lock)
        else:
            for waiter in {overlap.key for overlap in self._line.against(lock)}:
                self._line.block(waiter, {lock.lock})
        self._put(lock)


def _by_token(locks: Iterable[Lock]) -> tuple[Lock, ...]:
    return tuple(sorted(locks, key=lambda lock: lock.token))
