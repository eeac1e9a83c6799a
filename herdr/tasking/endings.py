"""How a hold ends by itself: its lease runs out, or whoever asked for the task has gone."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from herdr.bus.leases import Timer
from herdr.bus.timers import Timers
from herdr.clock import Clock
from herdr.errors import HerdrError
from herdr.tasks.granting import WAITERS_MAX
from herdr.tasks.table import Table
from herdr.tasks.task import Move, Ruling, Task

RETRY_S = 1.0  # until an expiry that the log did not take is tried again
GONE_MAX = 10 * WAITERS_MAX  # asks that nobody waits for, while the log fails; past it the lease has to end

Decide = Callable[[int, int], Ruling]
"""A decision of the table, given the next `seq` and the batch's wall clock in microseconds."""

_log = logging.getLogger("herdr.tasks")


class Endings:
    """Has the table decide, several at once, when something is due."""

    def __init__(self, table: Table, clock: Clock, decide: Callable[[Decide], Awaitable[object]]) -> None:
        """`decide` returns after the commit."""
        self.timers = Timers(clock, self._run_out)
        self._table = table
        self._decide = decide
        self._gone: dict[str, None] = {}

    def arm(self, task: Task) -> None:
        """Let a lease run its whole time from now on; end the one of a task that nobody holds."""
        if task.holder is None:
            self.timers.end(task.task)
        else:
            self.timers.begin(task.task, "lease", task.ttl_s, task.renewed)

    def give_up(self, ask: str) -> None:
        """Leave nothing behind of an ask that nobody waits for any more; tried until the log takes it."""
        if len(self._gone) < GONE_MAX:
            self._gone[ask] = None
            self.timers.begin(_GONE, "gone", 0.0)

    def left_s(self, task: Task) -> float:
        """Return how many seconds a lease has left."""
        if task.task in self.timers:
            return self.timers.left_s(task.task)
        return task.ttl_s  # its commit is under way

    async def _run_out(self, timers: Sequence[Timer]) -> None:
        gone = tuple(self._gone)
        try:
            await self._decide(_joined(partial(self._end, timer, gone) for timer in timers))
        except HerdrError as error:  # a disk that is full; the tasks only stay held longer than they had to
            _log.warning("the end of %d leases waits for the log: %s", len(timers), error.detail)
            for timer in timers:
                self.timers.again(timer, RETRY_S)
        else:
            for timer in timers:
                self.timers.settle(timer)
                for ask in gone if timer.kind == "gone" else ():
                    self._gone.pop(ask, None)

    def _end(self, timer: Timer, gone: Sequence[str], seq: int, now_us: int) -> Ruling:
        if timer.kind == "lease":
            return self._table.expire(timer.key, timer.saw, seq, now_us)
        return _joined(partial(self._table.give_back, ask) for ask in gone)(seq, now_us)


_GONE = "\0gone"
"""A key beside those of tasks, whose ids have no control characters."""


def _joined(decisions: Iterable[Decide]) -> Decide:
    """Return the decision that takes several, one after the other."""

    def decide(seq: int, now_us: int) -> Ruling:
        moves: list[Move] = []
        grants: list[tuple[str, Task]] = []
        for one in decisions:
            ruling = one(seq + len(moves), now_us)
            moves.extend(ruling.moves)
            grants.extend(ruling.grants)
        return Ruling(tuple(moves), None, tuple(grants))

    return decide
