"""The task table between the bus's writer and the clock: rulings are committed, leases run out."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import msgspec

from herdr.bus.errand import ERRAND_BYTES, Ruled, attempt
from herdr.bus.log import Put
from herdr.bus.publish import Publisher
from herdr.clock import Clock
from herdr.event import Event, Lane
from herdr.tasking.endings import Decide, Endings
from herdr.tasks.events import event_of
from herdr.tasks.table import Table
from herdr.tasks.task import Move, Ruling, Task

T = TypeVar("T")

_log = logging.getLogger("herdr.tasks")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Task).decode


class HeldTasks:
    """What there is to do, who does it and until when. Implements `herdr.bus.errand.Tentative`.

    Everything that changes the table is an errand of the writer, so the log's order is the order of decisions.
    Each task is stored beside the events that it stems from, in their transaction.
    """

    kind = "task"

    def __init__(self, stored: Mapping[str, bytes], clock: Clock) -> None:
        self.table = Table()
        self._asked: dict[str, asyncio.Future[Task]] = {}
        self._clock = clock
        self.endings = Endings(self.table, clock, lambda decide: self.decide(decide, Lane.P0))
        self._publisher: Publisher
        self.reload(stored)

    def start(self, publisher: Publisher) -> None:
        """Begin to let leases run out."""
        self._publisher = publisher
        self.endings.timers.start()

    async def stop(self) -> None:
        """Stop the timers; what is held stays held, and runs its full time after the next start."""
        await self.endings.timers.stop()

    def keep(self) -> None:
        """See `Tentative.keep`."""
        self.table.keep()

    def undo(self) -> None:
        """See `Tentative.undo`."""
        self.table.undo()

    def reload(self, stored: Mapping[str, bytes]) -> None:
        """See `Tentative.reload`; every lease runs its full time again."""
        tasks = [_decode(raw) for raw in stored.values()]
        for task in self.table.all():
            self.endings.timers.end(task.task)
        self.table.restore(tasks)
        for task in tasks:
            self.endings.arm(task)
            if task.ask is not None:
                self._answer(task.ask, task)

    def expect(self, ask: str) -> "asyncio.Future[Task]":
        """Return what will hold the task that somebody in line gets."""
        answer: asyncio.Future[Task] = asyncio.get_running_loop().create_future()
        self._asked[ask] = answer
        return answer

    def expect_no_more(self, ask: str) -> None:
        """Forget the ask."""
        del self._asked[ask]

    async def decide(self, decide: Decide, lane: Lane, size: int = ERRAND_BYTES) -> Ruling:
        """Have the table decide in the log's order; return its ruling once that is committed.

        `size`: bytes that it is about. Raises what the table raises, LogUnavailable, or HerdrError `overloaded`.
        """
        ruling: Ruling = await self._publisher.decide(partial(self._rule, decide), lane, size)
        return ruling

    async def look(self, at: Callable[[], T]) -> T:
        """Return what is seen between two commits: nothing that a crash could still take back.

        Raises what `at` raises, or LogUnavailable.
        """
        seen: T = await self._publisher.decide(lambda _seq, _now_us: Ruled(answer=at()), Lane.P0)
        return seen

    def expires_us(self, task: Task) -> int:
        """Return when a lease ends, as the wall clock stands now (microseconds)."""
        return self._clock.wall_us() + int(1e6 * self.endings.left_s(task))

    def _rule(self, decide: Decide, seq: int, now_us: int) -> Ruled:
        ruling = attempt(self.table, lambda: decide(seq, now_us), _log)
        events = [self._event(move) for move in ruling.moves]
        puts = [self._put(task) for task in self.table.changed()]
        return Ruled(events, puts, ruling, partial(self._committed, ruling))

    def _event(self, move: Move) -> Event:
        told, task = event_of(move), move.task
        return self._publisher.own_event(
            told.type,
            told.data,
            to=told.to,
            workspace=task.workspace,
            session=task.session,
            task=task.task,
        )

    def _put(self, task: str) -> Put:
        kept = self.table.get(task)
        return Put(self.kind, task, None if kept is None else _encode(kept))

    def _committed(self, ruling: Ruling) -> None:
        for move in ruling.moves:
            if move.step.what != "answered":  # what others do proves nothing about the holder
                self.endings.arm(move.task)
        for ask, task in ruling.grants:
            self._answer(ask, task)

    def _answer(self, ask: str, task: Task) -> None:
        asked = self._asked.get(ask)
        if asked is not None and not asked.done():
            asked.set_result(task)
