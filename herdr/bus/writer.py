"""The one owner of the log: takes batches from the lanes, decides, commits, answers, wakes followers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from herdr.bus.decide import Decision, Id, Judge
from herdr.bus.lanes import Lanes
from herdr.bus.log import Batch, Log, Put
from herdr.bus.pending import Pending
from herdr.bus.recent_ids import MAYBE_IN_INDEX, RecentIds
from herdr.bus.versions import Versions
from herdr.clock import Clock, rfc3339
from herdr.errors import LogUnavailable
from herdr.event import Event, id_hash

RETRY_S = 0.5  # between attempts while the log fails: soon enough that nobody restarts the gateway
IDLE_UPKEEP_S = 30.0  # an idle log still ages: retention looks at it this often
PUTS_MAX = 256  # named values a batch: acknowledgements and rules are small and rare

T = TypeVar("T")

_log = logging.getLogger("herdr.bus")
_encode = msgspec.json.Encoder().encode


class Writer:
    """Runs as one task. Everything that changes the log passes through it, in `seq` order."""

    def __init__(
        self,
        log: Log,
        lanes: Lanes[Pending],
        judge: Judge,
        ids: RecentIds,
        versions: Versions,
        clock: Clock,
        on_commit: Callable[[list[Event]], None],
        retry_s: float = RETRY_S,
    ) -> None:
        self._log = log
        self._lanes = lanes
        self._judge = judge
        self._ids = ids
        self._versions = versions
        self._clock = clock
        self._on_commit = on_commit
        self._retry_s = retry_s
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._puts: dict[tuple[str, str], tuple[bytes | None, list[asyncio.Future[None]]]] = {}
        self._chores: list[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = []
        self._doubtful: Decision | None = None
        self._stopping = False
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
        """Let `run` return once everything that waits is committed."""
        self._stopping = True
        self._wake.set()

    async def put(self, kind: str, key: str, value: bytes | None) -> None:
        """Commit one named value with the next batch; a newer value of the same key takes its place."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        _, waiting = self._puts.pop((kind, key), (None, []))
        self._puts[kind, key] = (value, [*waiting, done])
        self._wake.set()
        await done

    async def between_batches(self, chore: Callable[[], Awaitable[T]]) -> T:
        """Run a chore that writes to the log, while no batch is under way; returns what it returns."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._chores.append((chore, done))
        self._wake.set()
        return await done

    async def run(self) -> None:
        """Write until stopped and drained."""
        newest = await self._log.get(self._log.head)
        self._accepted_us = 0 if newest is None else newest.accepted_us
        while True:
            if not (len(self._lanes) or self._puts or self._chores):
                if self._stopping:
                    return
                await self._rest()
                continue
            if self._chores:
                await self._do_chore()
            await self._write_batch()
            if not self._lanes.has_p0 and await self._tidy():
                await asyncio.sleep(0)

    async def _rest(self) -> None:
        self._wake.clear()
        if self.failure is None and await self._tidy():
            return
        if self.failure is not None:
            await self._probe()
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

    async def _probe(self) -> None:
        """Find out whether a failed log takes writes again, so that health recovers without traffic."""
        self._settle_doubtful()
        await self._commit([], Decision(), [Put("probe", "probe", b"")], [])

    async def _do_chore(self) -> None:
        chore, done = self._chores.pop(0)
        try:
            result = await chore()
        except Exception as error:  # noqa: BLE001 - handed to whoever asked for the chore
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(result)

    async def _write_batch(self) -> None:
        self._settle_doubtful()
        items = self._lanes.take()
        self._room.set()
        self._room.clear()
        puts, waiting = self._take_puts()
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
        except Exception:  # noqa: BLE001 - a defect must not end the writer: everyone would wait for ever
            _log.exception("a batch of %d events could not be decided and is given up", len(items))
            self._give_up(items, waiting)
        if self.failure is not None:
            await asyncio.sleep(self._retry_s)  # what must not be lost went back into its lane

    def _take_puts(self) -> tuple[list[Put], list["asyncio.Future[None]"]]:
        puts: list[Put] = []
        waiting: list[asyncio.Future[None]] = []
        while self._puts and len(puts) < PUTS_MAX:
            (kind, key), (value, futures) = self._puts.popitem()
            puts.append(Put(kind, key, value))
            waiting.extend(futures)
        return puts, waiting

    async def _find_ids(self, items: Sequence[Pending]) -> dict[Id, int]:
        """Return those of a batch's ids that the log holds. Only what left memory costs a look at the disk."""
        known: dict[Id, int] = {}
        asked: dict[int, Id] = {}
        find = self._ids.find
        for item in items:
            if item.made_id:
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
        self, items: list[Pending], decision: Decision, puts: list[Put], waiting: list["asyncio.Future[None]"]
    ) -> None:
        # Only between P0 batches: the index's pages would make a user's instruction wait
        spill = () if self._lanes.has_p0 else self._ids.take_spill()
        for (workspace, subject), version in decision.versions.items():
            puts.append(Put("version", f"{workspace}\0{subject}", _encode(version)))
        try:
            await self._log.append(Batch(decision.events, puts, spill))
        except LogUnavailable as error:
            self._fail(error, items, waiting)
            if not self._settle_doubtful() and decision.events:
                self._doubtful = decision
            return
        self._doubtful = None
        if self.failure is not None:
            _log.warning("the log takes writes again")
            self.failure = None
        self._settle(decision)
        if spill:
            self._ids.spilled(spill)
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _settle_doubtful(self) -> bool:
        """Settle a commit that failed and has happened all the same; tell whether that was so.

        A failed fsync tells neither. The log, once it is open again, does: then it ends with the commit's last
        event. What was put back into its lane turns out to be a duplicate.
        """
        decision = self._doubtful
        if decision is None or self._log.head != decision.events[-1].seq:
            return False
        self._doubtful = None
        self._settle(decision)
        return True

    def _settle(self, decision: Decision) -> None:
        now = self._clock.monotonic()
        accepted = rfc3339(decision.events[0].accepted_us) if decision.events else ""
        for event in decision.events:
            event.committed = now
            event.accepted = accepted
        accepted_us = decision.events[0].accepted_us if decision.events else 0
        for (source, event_id), seq in decision.ids.items():
            self._ids.remember(source, event_id, seq, accepted_us)
        for event in decision.made:
            self._ids.remember_made(event.source, event.id, event.seq)
        for (workspace, subject), version in decision.versions.items():
            self._versions.set(workspace, subject, version)
        for item, receipt in decision.answers:
            item.settle(receipt)
        if decision.events:
            self._on_commit(decision.events)

    @staticmethod
    def _give_up(items: Sequence[Pending], waiting: Sequence["asyncio.Future[None]"]) -> None:
        error = LogUnavailable("the gateway made a mistake and stored nothing of this; its log says which")
        for item in items:
            item.fail(error)
        for future in waiting:
            if not future.done():
                future.set_exception(error)

    def _fail(
        self, error: LogUnavailable, items: Sequence[Pending], waiting: Sequence["asyncio.Future[None]"]
    ) -> None:
        if self.failure is None:
            _log.error("the log cannot be written: %s", error.detail)
        self.failure = error.detail
        for item in reversed(items):
            if item.submission is None:  # answered `deferred` before: it stays until the log is back
                self._lanes.put_back(item.event.lane, item, len(item.event.body))
            item.fail(error)
        for future in waiting:
            if not future.done():
                future.set_exception(error)


def _names_of(event: Event) -> set[Id]:
    return {(event.source, event.id), *((event.source, replaced) for replaced in event.replaced_ids)}
