"""The one owner of the log: takes batches from the lanes, decides, commits, answers, wakes followers."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from herdr.bus.decide import Decision, Id, Judge
from herdr.bus.errand import Errand
from herdr.bus.lanes import Lanes
from herdr.bus.log import Batch, Log, Put
from herdr.bus.pending import Pending
from herdr.bus.puts import PutQueue, Waiting, finish
from herdr.bus.recent_ids import MAYBE_IN_INDEX
from herdr.bus.settle import Settlement
from herdr.clock import Clock
from herdr.errors import LogUnavailable
from herdr.event import Event, id_hash

RETRY_S = 0.5  # between attempts while the log fails: soon enough that nobody restarts the gateway
IDLE_UPKEEP_S = 30.0  # an idle log still ages: retention looks at it this often
PROBE = Put("probe", "probe", b"")
"""Written to find out whether the log takes writes again."""
STOP_GRACE_S = 1.0  # for a failing log to come back, when the gateway is told to stop

T = TypeVar("T")

_log = logging.getLogger("herdr.bus")


class Writer:
    """Runs as one task. Everything that changes the log passes through it, in `seq` order."""

    def __init__(
        self,
        log: Log,
        lanes: Lanes[Pending | Errand],
        judge: Judge,
        settlement: Settlement,
        clock: Clock,
        retry_s: float = RETRY_S,
    ) -> None:
        self._log = log
        self._lanes = lanes
        self._judge = judge
        self._settlement = settlement
        self._clock = clock
        self._retry_s = retry_s
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._puts = PutQueue()
        self._chores: deque[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = deque()
        self._stop_by: float | None = None
        self._accepted_us = 0
        self.failure: str | None = None
        """Why the log cannot be written now; None while it can."""

    def wake(self) -> None:
        """Tell the writer that something waits."""
        self._wake.set()

    async def room(self) -> None:
        """Wait until the writer has taken a batch from the lanes."""
        await self._room.wait()

    def stop(self) -> None:
        """Let `run` return once everything that waits is committed, or cannot be."""
        self._stop_by = self._clock.monotonic() + STOP_GRACE_S
        self._wake.set()

    async def put(self, kind: str, key: str, value: bytes | None) -> None:
        """Commit one named value with the next batch; a newer value of the same key takes its place."""
        done = self._puts.add(kind, key, value)
        self._wake.set()
        await done

    async def between_batches(self, chore: Callable[[], Awaitable[T]]) -> T:
        """Run a chore that writes to the log, while no batch is under way; returns what it returns."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._chores.append((chore, done))
        self._wake.set()
        return await done

    async def run(self) -> None:
        """Write until stopped and drained. A defect is logged and survived: everyone would wait for ever."""
        await self._begin()
        while not self._is_over():
            try:
                await self._turn()
            except Exception:  # noqa: BLE001 - see above
                _log.exception("the writer goes on after an error of its own")
                await asyncio.sleep(self._retry_s)
        while len(self._lanes):  # only a failing log leaves any
            self._give_up(self._lanes.take(), [], "the gateway has stopped, and its log could not be written")

    async def _begin(self) -> None:
        try:
            newest = await self._log.get(self._log.head)
        except LogUnavailable as error:
            self._fail(error, [], [])
        else:
            if newest is not None and not newest.corrupt:
                self._accepted_us = newest.accepted_us

    def _is_over(self) -> bool:
        if self._stop_by is None:
            return False
        if self.failure is not None and self._clock.monotonic() > self._stop_by:
            if len(self._lanes):
                _log.error("stopped with a failing log: %d deferred events are lost", len(self._lanes))
            return True
        return not (len(self._lanes) or self._puts or self._chores)

    async def _turn(self) -> None:
        if self._log.head != self._settlement.announced:
            # A commit that failed has happened all the same, as the log found when it was opened again
            try:
                await self._settlement.catch_up(self._log)
            except LogUnavailable as error:
                self._fail(error, [], [])
                await asyncio.sleep(self._retry_s)
                return
        if not (len(self._lanes) or self._puts or self._chores):
            await self._rest()
            return
        if self._chores:
            await self._do_chore()
        await self._write_batch()
        if await self._tidy():
            await asyncio.sleep(0)

    async def _rest(self) -> None:
        self._wake.clear()
        if self.failure is None and await self._tidy():
            return
        if self.failure is not None:
            # Find out whether it takes writes again, so that health recovers without traffic
            await self._commit([], Decision(), [PROBE], [])
        try:
            async with asyncio.timeout(self._retry_s if self.failure is not None else IDLE_UPKEEP_S):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _tidy(self) -> bool:
        try:
            return await self._log.tidy(calm=not self._lanes.has_p0)
        except LogUnavailable as error:
            self._fail(error, [], [])
            return False

    async def _do_chore(self) -> None:
        chore, done = self._chores.popleft()
        try:
            result = await chore()
        except Exception as error:  # noqa: BLE001 - handed to whoever asked for the chore
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(result)

    async def _write_batch(self) -> None:
        items = self._lanes.take()
        self._room.set()
        self._room.clear()
        puts, waiting = self._puts.take()
        if not items and not puts:
            return
        try:
            known_ids = await self._find_ids(items)
            # Never falling, whatever the wall clock does: places in the log are found by time too
            self._accepted_us = max(self._accepted_us, self._clock.wall_us())
            decision = self._judge.decide(items, self._log.head + 1, self._accepted_us, known_ids)
            await self._commit(items, decision, puts, waiting)
        except LogUnavailable as error:
            self._fail(error, items, waiting)
        except Exception:
            self._settlement.undo()
            self._give_up(
                items, waiting, "the gateway made a mistake and stored nothing of this; its log says which"
            )
            raise
        if self.failure is not None:
            await asyncio.sleep(self._retry_s)  # what must not be lost went back into its lane

    async def _find_ids(self, items: Sequence[Pending | Errand]) -> dict[Id, int]:
        """Return those of a batch's ids that the log holds. Only what left memory costs a look at the disk."""
        known: dict[Id, int] = {}
        asked: dict[int, Id] = {}
        find = self._settlement.ids.find
        for item in items:
            if isinstance(item, Errand) or item.made_id:
                continue
            event = item.event
            seq = find(event.source, event.id)
            if seq is None:
                continue
            if seq == MAYBE_IN_INDEX:
                asked[id_hash(event.source, event.id)] = (event.source, event.id)
            else:
                known[event.source, event.id] = seq
        if asked:
            await self._ask_index(asked, known)
        return known

    async def _ask_index(self, asked: Mapping[int, Id], known: dict[Id, int]) -> None:
        for hash_, seq in (await self._log.find_ids(list(asked))).items():
            event = await self._log.get(seq)
            # 64 bits can collide: believe the event itself where it is still retained
            if event is None or asked[hash_] in _names_of(event):
                known[asked[hash_]] = seq

    async def _commit(
        self, items: list[Pending | Errand], decision: Decision, puts: list[Put], waiting: Waiting
    ) -> None:
        puts = [*puts, *self._settlement.puts(decision)]
        if not (decision.events or puts):
            if self.failure is None:
                self._settlement.settle(decision)  # duplicates and denials: nothing to wait for a disk for
                return
            # What failed may be in the log after all, and then these answers are wrong: find out first
            puts = [PROBE]
        # The index's pages would make a user's instruction wait; but not for ever, or the memory would grow
        ids = self._settlement.ids
        spill = () if self._lanes.has_p0 and not ids.is_behind else ids.take_spill()
        try:
            await self._log.append(Batch(decision.events, puts, spill))
        except LogUnavailable as error:
            self._settlement.undo()
            self._fail(error, items, waiting)
            return
        if self.failure is not None:
            _log.warning("the log takes writes again")
            self.failure = None
        self._settlement.settle(decision)
        if spill:
            ids.spilled(spill)
        finish(waiting)

    @staticmethod
    def _give_up(items: Sequence[Pending | Errand], waiting: Waiting, why: str) -> None:
        error = LogUnavailable(why)
        for item in items:
            item.fail(error)
        finish(waiting, error)

    def _fail(self, error: LogUnavailable, items: Sequence[Pending | Errand], waiting: Waiting) -> None:
        if self.failure is None:
            _log.error("the log cannot be written: %s", error.detail)
        self.failure = error.detail
        for item in reversed(items):
            # One that was answered `deferred` before stays until the log is back
            if isinstance(item, Pending) and item.submission is None:
                item.made_id = False  # it may be there already after all
                self._lanes.put_back(item.event.lane, item, len(item.event.body))
            item.fail(error)
        finish(waiting, error)


def _names_of(event: Event) -> set[Id]:
    return {(event.source, event.id), *((event.source, replaced) for replaced in event.replaced_ids)}
