"""The lock table: who gets what, who waits, and who would wait forever. Pure: no clock, no ids, no I/O.

Locks are held by owners, on names. A `write` excludes every lock of others that overlaps, an `intent` only
the writes. A request gets all of its names or none. Who waits stands in line behind earlier waiters that
collide, except those that wait for whoever asks (`herdr.locks.graph` has the rule).

Every decision takes the `seq` at which its first outcome will be committed, and the wall clock, which is only
shown to people. Changes are tentative until `keep`.
"""

from herdr.errors import NotFound
from herdr.locks.blockers import blockers
from herdr.locks.claims import Claims, collide, segments_of
from herdr.locks.line import Waiter
from herdr.locks.lock import (
    Answer,
    Ask,
    Cycle,
    Denied,
    Expired,
    Full,
    Granted,
    Held,
    Lock,
    Name,
    Outcome,
    Queued,
    Released,
    Renewed,
    Ruling,
    Wait,
)
from herdr.locks.overlap import covers
from herdr.locks.refusals import Fenced
from herdr.locks.state import State

LOCKS_MAX = 10_000  # held, expired a moment ago, or waited for: 1 KiB each, mostly, and in every look-up
SEGMENTS_MAX = (
    300_000  # of all their names together, 0.6 KiB each: 10,000 locks of three names with ten of them
)
WAITERS_MAX = 1_000  # each a connection that is kept open
WAITS_MAX = 1_000
IN_WAY_MAX = 600_000  # pairs of a waiter and what it stands behind, 100 MB; 1,000 for one path are 499,500


class RulingDraft:
    """A ruling in the making."""

    def __init__(self, seq: int, now_us: int) -> None:
        self.now_us = now_us
        self._seq = seq
        self._outcomes: list[Outcome] = []
        self._answers: list[tuple[str, Answer]] = []

    @property
    def seq(self) -> int:
        """The `seq` of the next outcome."""
        return self._seq + len(self._outcomes)

    def add(self, outcome: Outcome) -> None:
        """Have an outcome committed."""
        self._outcomes.append(outcome)

    def answer(self, ask: str, answer: Answer) -> None:
        """Answer an ask."""
        self._answers.append((ask, answer))

    def ruling(self) -> Ruling:
        """Return what it has come to."""
        return Ruling(tuple(self._outcomes), tuple(self._answers))


class Table(State):
    """The decisions."""

    def __init__(
        self, *, locks_max: int = LOCKS_MAX, waiters_max: int = WAITERS_MAX, waits_max: int = WAITS_MAX
    ) -> None:
        super().__init__()
        self._locks_max = locks_max
        self._waiters_max = waiters_max
        self._waits_max = waits_max
        self._came = 0

    def ask(self, ask: Ask, seq: int, now_us: int) -> Ruling:
        """Grant, extend what the owner holds already, deny, or let it wait in line.

        An ask that waits already is told again what is in its way. Raises ValueError when a lock has its id.
        """
        draft = RulingDraft(seq, now_us)
        own = covering(self._held, ask)
        if ask.lock in self._line:
            draft.answer(ask.lock, Queued(self.blockers_of(ask.lock)))
        elif own is not None:
            draft.answer(ask.lock, Held(self._extend(own, ask, draft)))
        elif ask.lock in self._held:
            raise ValueError(f"there is a lock {ask.lock} already; each ask needs an id of its own")
        else:
            self._decide(ask, draft)
        self._promote(draft)
        return draft.ruling()

    def renew(self, lock: str, token: int, ttl_s: float | None, seq: int) -> Ruling:
        """Begin a lease anew, for as long as before unless `ttl_s` (seconds) says otherwise.

        Raises NotFound (`unknown_lock`) when it is not held any more, and Fenced when the token is another's.
        """
        held = self._find_held(lock, token)
        renewed = Renewed(held, seq, held.ttl_s if ttl_s is None else ttl_s)
        self.apply(renewed)
        return Ruling((renewed,), ((lock, Held(self._held[lock])),))

    def release(self, lock: str, token: int, seq: int, now_us: int, reason: str = "released") -> Ruling:
        """End a lock for its holder. Raises as `renew` does."""
        held = self._find_held(lock, token)
        return self._end(Released(held, reason, held.owner), seq, now_us)

    def force(self, lock: str, reason: str, by: str, seq: int, now_us: int) -> Ruling:
        """End a lock for somebody else. Raises NotFound (`unknown_lock`) when it is not held any more."""
        return self._end(Released(self._find_held(lock), reason, by), seq, now_us)

    def expire(self, lock: str, saw: int, seq: int, now_us: int) -> Ruling:
        """End a lease that ran out; nothing when it was renewed after `saw`, or is gone.

        The lock goes on keeping others off until `end_delay`.
        """
        held = self._held.get(lock)
        if held is None or held.expired or held.renewed > saw:
            return Ruling()
        return self._end(Expired(held, saw), seq, now_us)

    def end_delay(self, lock: str, seq: int, now_us: int) -> Ruling:
        """Let others have what an expired lock kept; nothing when there is no such. No event tells of it."""
        held = self._held.get(lock)
        if held is None or not held.expired:
            return Ruling()
        self._remove(lock)
        return self.promote(seq, now_us)

    def withdraw(self, ask: str, seq: int, now_us: int) -> Ruling:
        """Take a waiter out of the line and tell it what was in its way; nothing when it does not wait."""
        if ask not in self._line:
            return Ruling()
        draft = RulingDraft(seq, now_us)
        draft.answer(ask, Denied(self.blockers_of(ask)))
        self._line.leave(ask)
        self._promote(draft)
        return draft.ruling()

    def promote(self, seq: int, now_us: int) -> Ruling:
        """Grant those in line whose way is clear.

        Every other ruling does so too; call it after `declare`, `withdraw_wait` and `restore`,
        which can clear a way but do not rule.
        """
        draft = RulingDraft(seq, now_us)
        self._promote(draft)
        return draft.ruling()

    def declare(self, wait: Wait) -> Answer | None:
        """Note that an owner waits for another; None when that is so now, or was so already.

        Cycle when it would never end, Full when there are too many.
        """
        if wait.owner == wait.on:
            return Cycle((wait.owner, wait.on))
        if self._waits.between(wait.owner, wait.on) is not None:
            return None
        cycle = self._graph.cycle(wait.owner, {wait.on})
        if cycle is not None:
            return Cycle(cycle)
        if len(self._waits) >= self._waits_max:
            return Full("waits")
        self._waits.add(wait)
        self._graph.untangle(wait.owner)
        return None

    def withdraw_wait(self, wait: str) -> Wait | None:
        """Forget a declared wait, and return it; None when there is none."""
        found = self._waits.get(wait)
        if found is not None:
            self._waits.remove(found)
        return found

    def _decide(self, ask: Ask, draft: RulingDraft) -> None:
        behind, passed = self._graph.rivals(ask)
        found = blockers(self._held, self._line, ask, behind)
        answer: Answer
        if found:
            answer = self._queue(ask, draft.now_us) if ask.waits else Denied(found)
        else:
            answer = self._full(ask, in_way=len(passed)) or Held(self._grant(ask, draft))
        draft.answer(ask.lock, answer)

    def _queue(self, ask: Ask, now_us: int) -> Answer:
        locks = {overlap.key: overlap.claim for overlap in self._held.against(ask)}
        cycle = self._graph.cycle(ask.owner, {lock.owner for lock in locks.values() if not lock.expired})
        if cycle is not None:
            return Cycle(cycle)
        if len(self._line) >= self._waiters_max:
            return Full("waiters")
        full = self._full(ask, in_way=len(locks) + len(self._line))
        if full is not None:
            return full
        self._came += 1
        self._graph.join(Waiter(ask, now_us, self._came), locks.keys())
        return Queued(self.blockers_of(ask.lock))

    def _full(self, ask: Ask, in_way: int) -> Full | None:
        """Return which bound one more lock or waiter would exceed, by which so much more is in somebody's way."""
        segments = self._held.segments + self._line.segments + segments_of(ask)
        if len(self._held) + len(self._line) >= self._locks_max or segments > SEGMENTS_MAX:
            return Full("locks")  # who waits has its place
        return Full("waiters") if len(self._line.in_way) + in_way > IN_WAY_MAX else None

    def _grant(self, ask: Ask, draft: RulingDraft) -> Lock:
        lock = Lock(
            lock=ask.lock,
            token=draft.seq,
            owner=ask.owner,
            mode=ask.mode,
            workspace=ask.workspace,
            paths=ask.paths,
            names=ask.names,
            ttl_s=ask.ttl_s,
            since_us=draft.now_us,
            renewed=draft.seq,
            purpose=ask.purpose,
            session=ask.session,
            reports=ask.reports,
        )
        granted = Granted(lock)
        draft.add(granted)
        self.apply(granted)
        return lock

    def _extend(self, own: Lock, ask: Ask, draft: RulingDraft) -> Lock:
        renewed = Renewed(
            own, draft.seq, max(own.ttl_s, ask.ttl_s)
        )  # whoever shares the lock counts on its lease
        draft.add(renewed)
        self.apply(renewed)
        return self._held[own.lock]

    def _promote(self, draft: RulingDraft) -> None:
        """Grant those whose way is clear, as they came. They do not collide, so that clears nobody else's."""
        self._graph.straighten()
        for waiter in self._line.free():
            own = covering(self._held, waiter.ask)
            if own is None:
                lock = self._grant(waiter.ask, draft)
            else:  # granted to the same owner meanwhile
                lock = self._extend(own, waiter.ask, draft)
                self._line.leave(waiter.key)  # those behind it stand behind that lock, too
            draft.answer(waiter.key, Held(lock))

    def _end(self, outcome: Released | Expired, seq: int, now_us: int) -> Ruling:
        draft = RulingDraft(seq, now_us)
        draft.add(outcome)
        self.apply(outcome)
        self._promote(draft)
        return draft.ruling()

    def _find_held(self, lock: str, token: int | None = None) -> Lock:
        held = self._held.get(lock)
        if held is None or held.expired:
            raise NotFound(
                f"no lock {lock} is held: it was released, or its lease ran out; ask for its paths again",
                "unknown_lock",
            )
        if token is not None and token != held.token:
            raise Fenced(
                f"{token} is not the token of lock {lock}; send the one that came with its grant, "
                "or ask for the paths again if the lock was somebody else's"
            )
        return held


def covering(held: Claims[Lock], ask: Ask) -> Lock | None:
    """Return a lock of the owner's that holds all of the ask already, at least as exclusively; the oldest such."""
    if not held.of(ask.owner):
        return None
    names = set(ask.names)
    covered: dict[str, set[Name]] = {}
    for key, lock, has, asked in held.overlapping(ask.names):
        if collide(lock, ask):  # then none of the owner's own can hold that: no need to look through all
            return None
        if lock.owner == ask.owner and _holds(lock, ask) and covers(has, asked):
            covered.setdefault(key, set()).add(asked)
    full = [held[key] for key, found in covered.items() if found == names]
    return min(full, key=lambda lock: lock.token, default=None)


def _holds(lock: Lock, ask: Ask) -> bool:
    return lock.mode in (ask.mode, "write") and not lock.expired
