"""The lock table between the bus's writer and the clock: rulings are committed, leases run out."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from herdr.bus.errand import ERRAND_BYTES, Ruled, attempt
from herdr.bus.log import Put
from herdr.bus.publish import Publisher
from herdr.clock import Clock
from herdr.event import Event, Lane
from herdr.locking.endings import Decide, Endings
from herdr.locking.news import News
from herdr.locks.events import Told, deadlock_event, event_of
from herdr.locks.lock import Answer, Cycle, Granted, Held, Lock, Queued, Ruling
from herdr.locks.table import Table

CYCLE_QUIET_S = 10.0  # in which the same cycle is told once; its event is P0, and nothing limits those

OnGrant = Callable[[str, Sequence[str]], None]
"""Called with the workspace and the files."""

T = TypeVar("T")

_log = logging.getLogger("herdr.locks")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Lock).decode


class Asked(NamedTuple):
    """Whoever waits for the answer to an ask, also one that another's release leads to."""

    answer: "asyncio.Future[Answer]"
    until: float
    """Monotonic seconds."""


class HeldLocks:
    """What is held, and until when. Implements `herdr.bus.errand.Tentative`.

    Everything that changes the table is an errand of the writer, so the log's order is the order of decisions.
    Each lock is stored beside the events that it stems from, in their transaction.
    """

    kind = "lock"

    def __init__(self, stored: Mapping[str, bytes], clock: Clock, delay_s: float) -> None:
        """`delay_s`: how long others are kept off after a lease ran out."""
        self.table = Table()
        self._on_grant: OnGrant | None = None
        self._asked: dict[str, Asked] = {}
        self._tokens: dict[int, str] = {}
        self._clock = clock
        self.endings = Endings(self.table, clock, delay_s, lambda decide: self.decide(decide, Lane.P0))
        self._news = News(CYCLE_QUIET_S)
        self._publisher: Publisher
        self.reload(stored)

    def start(self, publisher: Publisher) -> None:
        """Begin to let leases run out."""
        self._publisher = publisher
        self.endings.timers.start()

    def tell_grants(self, listener: OnGrant) -> None:
        """Tell the listener of the single files of each new lock, once it is committed."""
        self._on_grant = listener

    async def stop(self) -> None:
        """Stop the timers; what is held stays held, and runs its full time after the next start."""
        await self.endings.timers.stop()

    # --- state that errands change ------------------------------------------------------------------

    def keep(self) -> None:
        """See `Tentative.keep`."""
        self.table.keep()

    def undo(self) -> None:
        """See `Tentative.undo`."""
        self.table.undo()

    def reload(self, stored: Mapping[str, bytes]) -> None:
        """See `Tentative.reload`; every lease runs its full time again."""
        locks = sorted((_decode(raw) for raw in stored.values()), key=lambda lock: lock.token)
        self.table.restore(locks)
        self._tokens = {lock.token: lock.lock for lock in locks if not lock.expired}
        for lock in locks:
            self.endings.arm(lock)
            self._answer(lock.lock, Held(lock))
        if self._asked:  # what went without a word may have cleared somebody's way
            self.endings.look_at_the_line()

    def expect(self, ask: str, wait_s: float) -> "asyncio.Future[Answer]":
        """Return what will hold the answer to an ask, other than that it stands in line."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[ask] = Asked(answer, self._clock.monotonic() + wait_s)
        return answer

    def expect_no_more(self, ask: str) -> None:
        """Forget the ask."""
        del self._asked[ask]

    def by_token(self, token: int) -> Lock | None:
        """Return the lock that is held under a token."""
        lock = self.table.get(self._tokens.get(token, ""))
        return None if lock is None or lock.expired else lock

    async def decide(
        self,
        decide: Decide,
        lane: Lane,
        *,
        workspace: str = "default",
        size: int = ERRAND_BYTES,
        then: Callable[[], None] = lambda: None,
    ) -> Ruling:
        """Have the table decide in the log's order; return its ruling once that is committed.

        `size`: bytes that it is about. `then` is called with the commit, also when nobody waits for it any more.
        Raises what the table raises, LogUnavailable, or HerdrError `overloaded`.
        """
        ruling: Ruling = await self._publisher.decide(
            partial(self._rule, decide, workspace, then), lane, size
        )
        return ruling

    async def look(self, at: Callable[[], T]) -> T:
        """Return what is seen between two commits: nothing that a crash could still take back.

        Raises what `at` raises, or LogUnavailable.
        """
        seen: T = await self._publisher.decide(lambda _seq, _now_us: Ruled(answer=at()), Lane.P0)
        return seen

    def _rule(self, decide: Decide, workspace: str, then: Callable[[], None], seq: int, now_us: int) -> Ruled:
        ruling = attempt(self.table, lambda: decide(seq, now_us), _log)
        events = [self._event(event_of(outcome), outcome.lock) for outcome in ruling.outcomes]
        for _, answer in ruling.answers:
            if isinstance(answer, Cycle) and self._news.is_news(
                frozenset(answer.owners), self._clock.monotonic()
            ):
                events.append(self._cycle_event(answer.owners, workspace))
        puts = [self._put(lock) for lock in self.table.changed()]
        return Ruled(events, puts, ruling, partial(self._committed, ruling, then))

    def _cycle_event(self, owners: tuple[str, ...], workspace: str) -> Event:
        told = deadlock_event(owners)
        return self._publisher.own_event(told.type, told.data, to=told.to, lane=Lane.P0, workspace=workspace)

    def _event(self, told: Told, lock: Lock) -> Event:
        subject = lock.paths[0] if len(lock.paths) == 1 else None
        return self._publisher.own_event(
            told.type,
            told.data,
            to=told.to,
            subject=subject,
            workspace=lock.workspace,
            session=lock.session,
        )

    def _put(self, lock: str) -> Put:
        kept = self.table.get(lock)
        return Put(self.kind, lock, None if kept is None else _encode(kept))

    def _committed(self, ruling: Ruling, then: Callable[[], None]) -> None:
        for outcome in ruling.outcomes:
            kept = self.table.get(outcome.lock.lock)
            if kept is None or kept.expired:
                self._tokens.pop(outcome.lock.token, None)
            else:
                self._tokens[kept.token] = kept.lock
            if kept is None:
                self.endings.timers.end(outcome.lock.lock)
            else:
                self.endings.arm(kept)
            if isinstance(outcome, Granted) and self._on_grant is not None:
                self._on_grant(outcome.lock.workspace, exact_paths(outcome.lock))
        for ask, answer in ruling.answers:
            if isinstance(answer, Cycle):
                self._news.tell(frozenset(answer.owners), self._clock.monotonic())
            self._answer(ask, answer)
        then()

    def _answer(self, ask: str, answer: Answer) -> None:
        asked = self._asked.get(ask)
        if asked is not None and not asked.answer.done() and not isinstance(answer, Queued):
            asked.answer.set_result(answer)

    # --- times ---------------------------------------------------------------------------------------

    def expires_us(self, key: str) -> int:
        """Return when `left_s` ends, as the wall clock stands now (microseconds)."""
        return self._clock.wall_us() + int(1e6 * self.left_s(key))

    def left_s(self, key: str) -> float:
        """Return how many seconds a lease, a delay, a wait in line or a declared wait has left."""
        if (lock := self.table.get(key)) is not None:
            return self.endings.left_s(lock)
        if (asked := self._asked.get(key)) is not None:
            return max(0.0, asked.until - self._clock.monotonic())
        return self.endings.timers.left_s(key)


def exact_paths(lock: Lock) -> list[str]:
    """Return the single files that a lock is about, as its own workspace has them."""
    return ["/".join(n.literal) for n in lock.names if n.space == lock.workspace and n.literal and not n.rest]
