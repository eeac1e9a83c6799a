"""How locks end by themselves: leases run out, delays after them are over, whoever asked has gone."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from herdr.bus.leases import Timer
from herdr.bus.timers import Timers
from herdr.clock import Clock
from herdr.errors import HerdrError
from herdr.locks.lock import Answer, Lock, Outcome, Ruling
from herdr.locks.table import Table

RETRY_S = 1.0  # until an expiry that the log did not take is tried again
GONE_MAX = 10_000  # asks that nobody waits for, while the log fails: as many as there can be locks
GIVEN_UP = "given_up"
"""Why a lock is released that was granted while whoever asked for it went away."""

Decide = Callable[[int, int], Ruling]
"""A decision of the table, given the next `seq` and the batch's wall clock in microseconds."""

_log = logging.getLogger("herdr.locks")


class Endings:
    """Has the table decide, several at once, when something is due."""

    def __init__(
        self, table: Table, clock: Clock, delay_s: float, decide: Callable[[Decide], Awaitable[object]]
    ) -> None:
        """`delay_s`: how long others are kept off after a lease ran out. `decide` returns after the commit."""
        self.timers = Timers(clock, self._run_out)
        self._table = table
        self._delay_s = delay_s
        self._decide = decide
        self._gone: dict[str, None] = {}

    def arm(self, lock: Lock) -> None:
        """Let a lease, or the delay after one, run its whole time from now on."""
        if lock.expired:
            self.timers.begin(lock.lock, "delay", self._delay_s)
        else:
            self.timers.begin(lock.lock, "lease", lock.ttl_s, lock.renewed)

    def give_up(self, ask: str) -> None:
        """Leave nothing behind of an ask that nobody waits for any more; tried until the log takes it.

        Past the bound it is left to the end of the lease.
        """
        if len(self._gone) < GONE_MAX:
            self._gone[ask] = None
            self.timers.begin("gone", "gone", 0.0)

    def look_at_the_line(self) -> None:
        """Grant whose way is clear, though no ruling has said so."""
        self.timers.begin("line", "line", 0.0)

    def left_s(self, lock: Lock) -> float:
        """Return how many seconds a lock, or the delay after it, has left."""
        if lock.lock in self.timers:
            return self.timers.left_s(lock.lock)
        return self._delay_s if lock.expired else lock.ttl_s  # its commit is under way

    async def _run_out(self, timers: Sequence[Timer]) -> None:
        gone = tuple(self._gone)
        try:
            await self._decide(_joined(partial(self._end, timer) for timer in timers))
        except HerdrError as error:  # a disk that is full; the locks only stay longer than they had to
            _log.warning("the end of %d leases waits for the log: %s", len(timers), error.detail)
            for timer in timers:
                self.timers.again(timer, RETRY_S)
        else:
            for timer in timers:
                self.timers.settle(timer)
                for ask in gone if timer.kind == "gone" else ():
                    self._gone.pop(ask, None)

    def _end(self, timer: Timer, seq: int, now_us: int) -> Ruling:
        key, table = timer.key, self._table
        if timer.kind == "lease":
            return table.expire(key, timer.saw, seq, now_us)
        if timer.kind == "delay":
            return table.end_delay(key, seq, now_us)
        if timer.kind == "gone":
            return _joined(self._give_back(ask) for ask in tuple(self._gone))(seq, now_us)
        if (
            timer.kind == "wait"
            and (wait := table.declared.get(key)) is not None
            and wait.renewed <= timer.saw
        ):
            table.withdraw_wait(key)
        return table.promote(seq, now_us)

    def _give_back(self, ask: str) -> Decide:
        def decide(seq: int, now_us: int) -> Ruling:
            lock = self._table.get(ask)
            if lock is None or lock.expired:
                return self._table.withdraw(ask, seq, now_us)
            if lock.renewed != lock.token:  # another request of its owner was told that it holds it
                return Ruling()
            return self._table.release(ask, lock.token, seq, now_us, GIVEN_UP)

        return decide


def _joined(decisions: Iterable[Decide]) -> Decide:
    """Return the decision that takes several, one after the other."""

    def decide(seq: int, now_us: int) -> Ruling:
        outcomes: list[Outcome] = []
        answers: list[tuple[str, Answer]] = []
        for one in decisions:
            ruling = one(seq + len(outcomes), now_us)
            outcomes.extend(ruling.outcomes)
            answers.extend(ruling.answers)
        return Ruling(tuple(outcomes), tuple(answers))

    return decide
