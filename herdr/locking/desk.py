"""What clients ask of the locks: take, renew, give back, look, wait. One desk serves HTTP and WebSockets."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from herdr.bus.errand import ERRAND_BYTES
from herdr.errors import HerdrError, NotFound
from herdr.event import Lane
from herdr.locking.held import HeldLocks
from herdr.locking.names import Names
from herdr.locks.lock import Answer, Ask, Cycle, Denied, Held, Lock, Outcome, Ruling, Wait, Wanted, size_of
from herdr.locks.refusals import Fenced
from herdr.locks.table import Table
from herdr.locks.views import Leased, Taken, leased, refusal, wait_view

CARRIED_BELOW = 0.75
"""Of a lease: a call with its token renews what is further spent, so that a thousand calls a second do not
become a thousand events."""


class Counts:
    """What the desk counts, for operators."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.denied = self.deadlocks = 0
        """Requests refused since the start because others were in the way, or would have been for ever."""

    @property
    def held(self) -> Mapping[str, int]:
        """Locks that are held, by mode."""
        return Counter(lock.mode for lock in self._table.held())

    @property
    def waiting(self) -> int:
        """Requests that stand in line."""
        return len(self._table.waiters())

    @property
    def waits(self) -> int:
        """Declared waits."""
        return len(self._table.waits())

    def refused(self, answer: Answer) -> None:
        """Count one that was not granted."""
        self.denied += isinstance(answer, Denied)
        self.deadlocks += isinstance(answer, Cycle)


class Desk:
    """Where requests become decisions; every error says who, why, until when and what to do."""

    def __init__(self, held: HeldLocks, naming: Names, new_id: Callable[[], str]) -> None:
        self.counts = Counts(held.table)
        self._held = held
        self._table = held.table
        self._naming = naming
        self._new_id = new_id
        self._declarations = count(1)

    async def lock(self, wanted: Wanted) -> Taken:
        """Lock all paths or none, waiting in line for as long as is wanted.

        Raises Locked, Deadlock, TooMany, InvalidInput, NotFound or LogUnavailable. Whoever is cancelled while
        waiting leaves the line, and what was granted in that moment is given back.
        """
        shown, names = await self._naming.names(wanted.workspace, wanted.paths, wanted.mode)
        lock = self._new_id()
        ask = Ask(
            lock,
            wanted.owner or f"anonymous-{lock}",
            names,
            shown,
            wanted.ttl_s,
            wanted.mode,
            wanted.workspace,
            wanted.purpose,
            wanted.session,
            waits=wanted.wait_s > 0,
            # Nobody can report under a name made up here
            reports=wanted.reports and wanted.owner is not None,
        )
        asked = self._held.expect(ask.lock, wanted.wait_s)
        try:
            answer = await self._answer(ask, asked, wanted.wait_s)
        except BaseException as error:
            if not (isinstance(error, HerdrError) and error.code == "overloaded"):  # then it was never let in
                self._held.endings.give_up(ask.lock)
            raise
        finally:
            self._held.expect_no_more(ask.lock)
        leased = self._leased(answer)
        return Taken(leased, is_new=leased.lock == ask.lock)

    async def renew(self, lock: str, token: int, ttl_s: float | None = None) -> Leased:
        """Let a lease run anew, for `ttl_s` seconds or as long as before. Raises NotFound, Fenced."""
        ruling = await self._held.decide(lambda seq, _: self._table.renew(lock, token, ttl_s, seq), Lane.P0)
        return self._leased(ruling.answers[0][1])

    async def release(self, lock: str, token: int, reason: str = "released") -> None:
        """Give a lock back. Raises NotFound, Fenced."""
        await self._held.decide(
            lambda seq, now_us: self._table.release(lock, token, seq, now_us, reason), Lane.P0
        )

    def give_back(self, lock: str) -> None:
        """Release, soon, a new lock whose asker has gone; not if its owner has asked for it again since."""
        self._held.endings.give_up(lock)

    async def force(self, lock: str, reason: str, by: str) -> None:
        """Release somebody's lock for them; they are told who did it and why. Raises NotFound."""
        await self._held.decide(lambda seq, now_us: self._table.force(lock, reason, by, seq, now_us), Lane.P0)

    async def carried(self, tokens: Sequence[int]) -> None:
        """Renew the leases whose tokens a call carries. Raises Fenced when one is not held any more."""

        def decide(seq: int, _now_us: int) -> Ruling:
            outcomes: list[Outcome] = []
            for lock in [self._by_token(token) for token in dict.fromkeys(tokens)]:
                is_spent = self._held.left_s(lock.lock) < CARRIED_BELOW * lock.ttl_s
                in_this_batch = lock.renewed > self._held.endings.timers.saw(lock.lock)
                if is_spent and not in_this_batch:
                    ruling = self._table.renew(lock.lock, lock.token, None, seq + len(outcomes))
                    outcomes.extend(ruling.outcomes)
            return Ruling(tuple(outcomes))

        await self._held.decide(decide, Lane.P0)

    async def declare(self, owner: str, on: str, purpose: str | None, ttl_s: float) -> dict[str, Any]:
        """Declare that `owner` waits for `on`, for at most `ttl_s` seconds. Raises Deadlock, TooMany."""
        number = next(self._declarations)
        declared: list[Answer | Wait] = []

        def decide(seq: int, now_us: int) -> Ruling:
            known = self._table.declared.between(owner, on)
            if known is not None:
                self._table.withdraw_wait(known.wait)
            wait = Wait(known.wait if known is not None else self._new_id(), owner, on, purpose, number)
            refused = self._table.declare(wait)
            declared.append(wait if refused is None else refused)
            ruling = self._table.promote(seq, now_us)  # who waits for nothing else may pass others in line
            return (
                ruling
                if refused is None
                else ruling._replace(answers=(*ruling.answers, (wait.wait, refused)))
            )

        def begin() -> None:
            if isinstance(wait := declared[-1], Wait):
                self._held.endings.timers.begin(wait.wait, "wait", ttl_s, number)

        await self._held.decide(decide, Lane.P1, then=begin)
        found = declared[-1]
        if not isinstance(found, Wait):
            raise self._refusal(found)
        return wait_view(found, self._held.expires_us(found.wait))

    async def end_wait(self, wait: str) -> None:
        """End a declared wait. Raises NotFound."""

        def decide(seq: int, now_us: int) -> Ruling:
            if self._table.withdraw_wait(wait) is None:
                raise NotFound(
                    f"nobody waits under {wait[:64]!r}: it has ended, or never was", "unknown_wait"
                )
            return self._table.promote(seq, now_us)  # who stood behind it in a line may pass now

        await self._held.decide(decide, Lane.P0)
        self._held.endings.timers.end(wait)

    async def end_wait_of(self, owner: str, on: str) -> None:
        """End the wait of one owner for another. Raises NotFound."""
        wait = self._table.declared.between(owner, on)
        if wait is None:
            raise NotFound(f"{owner[:64]!r} has not declared to wait for {on[:64]!r}", "unknown_wait")
        await self.end_wait(wait.wait)

    # -------------------------------------------------------------------------------------------------

    async def _answer(self, ask: Ask, asked: "asyncio.Future[Answer]", wait_s: float) -> Answer:
        await self._held.decide(
            lambda seq, now_us: self._table.ask(ask, seq, now_us),
            Lane.P1,
            workspace=ask.workspace,
            size=ERRAND_BYTES + size_of(ask.names),
        )
        if not asked.done():
            await asyncio.wait([asked], timeout=wait_s)
        if not asked.done():
            await self._held.decide(lambda seq, now_us: self._table.withdraw(ask.lock, seq, now_us), Lane.P0)
        # Not answered even so: it has left the line in no ruling, as the log turned out to hold other than it said
        return asked.result() if asked.done() else Denied(self._table.conflicts(ask))

    def _leased(self, answer: Answer) -> Leased:
        if isinstance(answer, Held):
            return leased(answer.lock, self._held.expires_us(answer.lock.lock))
        raise self._refusal(answer)

    def _refusal(self, answer: Answer) -> HerdrError:
        """Return the error for a request that was not granted, and count it."""
        self.counts.refused(answer)
        return refusal(answer, self._held.expires_us, self._held.left_s)

    def _by_token(self, token: int) -> Lock:
        lock = self._held.by_token(token)
        if lock is None:
            raise Fenced(
                f"no lock with the token {token} is held any more: its lease ran out, or it was released. "
                "Nothing of this call was done; lock again, and look at what changed meanwhile"
            )
        return lock
