"""The bus as a whole: its parts, how they start and stop, and what happens after each commit."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec

from herdr.bus.deadlines import Deadlines
from herdr.bus.envelope import redacted_body
from herdr.bus.follow import Pages
from herdr.bus.log import Log
from herdr.bus.publish import Publisher
from herdr.bus.recent_ids import RecentIds
from herdr.bus.rulebook import Listed, Rulebook
from herdr.bus.subscriptions import Subscriptions
from herdr.bus.tail import Tail
from herdr.bus.undelivered import Overdue
from herdr.bus.versions import Versions
from herdr.bus.writer import Writer
from herdr.config import RouteRule
from herdr.errors import NotFound
from herdr.event import Event, Positions

REBUILD_ROWS = 1000  # a slice of the log, read at start to fill the memory of recent ids

_log = logging.getLogger("herdr.bus")


class AfterCommit:
    """What a commit sets in motion, in this order: the tail moves, followers wake, P0 deadlines run."""

    def __init__(self, tail: Tail, pages: Pages, deadlines: Deadlines) -> None:
        self.tail = tail
        self.pages = pages
        self.deadlines = deadlines
        self.listeners: list[Callable[[Sequence[Event]], None]] = []
        """Told of each commit's events, before followers wake."""

    def __call__(self, events: list[Event]) -> None:
        """Take note of newly committed events."""
        self.tail.extend(events)
        for listener in self.listeners:
            try:
                listener(events)
            except Exception:  # noqa: BLE001 - the writer, and with it everybody, must not stop for one of them
                _log.exception("something that listens to commits made a mistake")
        self.pages.wake()
        self.deadlines.watch(events)


class Bus:
    """The parts that a front uses, and what concerns all of them."""

    def __init__(
        self,
        log: Log,
        publisher: Publisher,
        subscriptions: Subscriptions,
        rulebook: Rulebook,
        writer: Writer,
        after_commit: AfterCommit,
    ) -> None:
        self.log = log
        self.publisher = publisher
        self.subscriptions = subscriptions
        self.rulebook = rulebook
        self._writer = writer
        self._pages = after_commit.pages
        self._tail = after_commit.tail
        self._deadlines = after_commit.deadlines
        self._after_commit = after_commit
        self._task: asyncio.Task[None] | None = None

    @property
    def epoch(self) -> str:
        """Identity of the log."""
        return self.log.epoch

    @property
    def head(self) -> int:
        """Newest committed `seq` that followers can see."""
        return self._tail.head

    @property
    def failure(self) -> str | None:
        """Why the log cannot be written now; None while it can."""
        return self._writer.failure

    def tell_commits(self, listener: Callable[[Sequence[Event]], None]) -> None:
        """Tell the listener of each commit's events, before followers wake."""
        self._after_commit.listeners.append(listener)

    async def start(self) -> None:
        """Start the writer and the deadlines; the log is open already."""
        self._task = asyncio.create_task(self._writer.run(), name="writer")
        self._task.add_done_callback(_report_crash)
        await self.subscriptions.recover()
        self._deadlines.start(self._report_overdue)

    async def stop(self) -> None:
        """Commit everything that was taken in or deferred, and stop."""
        self._deadlines.stop()
        self.publisher.flush()
        self._writer.stop()
        if self._task is not None:
            await self._task

    async def event(self, seq: int) -> Event:
        """Return one retained event; raises NotFound."""
        in_memory = (
            self._tail.get(seq) if seq >= self.log.first else None
        )  # the tail outlives a short retention
        event = in_memory or await self.log.get(seq)
        if event is None:
            raise NotFound(
                f"no event {seq} is retained; the log holds {self.log.first} to {self.head}", "unknown_event"
            )
        return event

    async def set_route(self, name: str, rule: RouteRule) -> Listed:
        """Put a rule into force once it is stored; raises InvalidInput."""
        checked = self.rulebook.check_put(name, rule)
        await self._store_route(name, checked)
        return self.rulebook.get(name)

    async def delete_route(self, name: str) -> None:
        """Take a rule out of force; raises NotFound."""
        self.rulebook.get(name)
        await self._store_route(name, None)

    def load_file_rules(self, rules: Iterable[RouteRule]) -> None:
        """Take over the configuration file's rules, all or (InvalidInput) none."""
        self.rulebook.load_file(rules)
        self.publisher.use_table(self.rulebook.table)

    async def remember(self, kind: str, key: str, value: bytes | None) -> None:
        """Commit one named value beside the log (None: forget it)."""
        await self._writer.put(kind, key, value)

    async def redact(self, seq: int) -> Event:
        """Blank a stored event's payload for good; raises NotFound."""
        event = await self.event(seq)
        body = redacted_body(event)
        if not await self._writer.between_batches(lambda: self.log.redact(seq, body)):
            raise NotFound(f"event {seq} is no longer retained", "unknown_event")
        redacted = msgspec.structs.replace(event, body=body, subject=None)
        self._tail.replace(redacted)
        self._pages.forget_shared()
        self.publisher.announce("herdr.redacted", {"seq": seq, "type": event.type, "source": event.source})
        return redacted

    async def _store_route(self, name: str, rule: RouteRule | None) -> None:
        stored = self.rulebook.stored_form(name, rule)
        await self._writer.put("route", name, stored)
        self.rulebook.apply(name, stored)
        self.publisher.use_table(self.rulebook.table)

    def _report_overdue(self, overdue: Overdue) -> None:
        data = {"seq": overdue.seq, "target": overdue.target}
        self.publisher.announce("herdr.undelivered", data, to=(overdue.source,))


async def load_versions(log: Log) -> Versions:
    """Return the stored versions of all subjects."""
    versions = Versions()
    versions.restore(await log.load("version"))
    return versions


async def load_recent_ids(log: Log, ids: RecentIds) -> None:
    """Fill the memory of ids: the index's hashes, and the ids of the log's newest events."""
    async for hashes in log.id_hashes():
        ids.load_hashes(hashes)
    place = max(log.head - ids.replay, log.first - 1)
    while place < log.head:
        positions: Positions = (place, place, place)
        for event in await log.read(positions, REBUILD_ROWS, 2**24):
            place = event.seq
            if not event.corrupt:
                for event_id in (event.id, *event.replaced_ids):
                    ids.remember(event.source, event_id, event.seq, event.accepted_us)


def _report_crash(task: "asyncio.Task[None]") -> None:
    """A writer that ends by an error would leave every publisher waiting: say so loudly."""
    if not task.cancelled() and task.exception() is not None:
        _log.critical("the writer has crashed", exc_info=task.exception())
