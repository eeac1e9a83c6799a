"""After a commit: what is remembered of it, who is answered, who is woken; also when it seemed to have failed."""

from collections.abc import Callable, Sequence

import msgspec

from herdr.bus.decide import Decision
from herdr.bus.errand import Tentative
from herdr.bus.log import Log, Put
from herdr.bus.rates import Rate
from herdr.bus.recent_ids import RecentIds
from herdr.bus.versions import Versions
from herdr.clock import Clock, rfc3339
from herdr.event import Event

PAGE_ROWS, PAGE_BYTES = 1000, 16 * 1024 * 1024  # read back at once; more than one batch ever holds

_encode = msgspec.json.Encoder().encode


class Settlement:
    """Applies committed decisions, in order. Holds what the next decisions are judged by."""

    def __init__(
        self,
        ids: RecentIds,
        versions: Versions,
        clock: Clock,
        head: int,
        on_commit: Callable[[list[Event]], None],
        tentatives: Sequence[Tentative],
    ) -> None:
        """`tentatives`: what errands change."""
        self.ids = ids
        self.committed = Rate()
        self._versions = versions
        self._clock = clock
        self.announced = head
        """Newest `seq` that followers have been told of."""
        self._on_commit = on_commit
        self._tentatives = tuple(tentatives)

    def puts(self, decision: Decision) -> list[Put]:
        """Return the named values that belong into the decision's transaction."""
        puts = [Put("version", f"{w}\0{s}", _encode(v)) for (w, s), v in decision.versions.items()]
        puts.extend(Put("version", f"{w}\0{s}", None) for w, s in self._versions.take_forgotten())
        puts.extend(decision.puts)
        return puts

    def undo(self) -> None:
        """Take back what errands changed for a decision that was not committed."""
        for tentative in self._tentatives:
            tentative.undo()

    def settle(self, decision: Decision) -> None:
        """Apply a decision that has been committed, then answer and announce it."""
        accepted_us = decision.events[0].accepted_us if decision.events else 0
        for (source, event_id), seq in decision.ids.items():
            self.ids.remember(source, event_id, seq, accepted_us)
        for event in decision.made:
            self.ids.remember_made(event.source, event.id, event.seq)
        for (workspace, subject), version in decision.versions.items():
            self._versions.set(workspace, subject, version)
        for tentative in self._tentatives:
            tentative.keep()
        for item, receipt in decision.answers:
            item.settle(receipt)
        for errand in decision.errands:
            errand.settle()
        self._announce(decision.events)

    async def catch_up(self, log: Log) -> None:
        """Apply what is in the log and was never settled: a commit that reported an error and has happened.

        A failed fsync does not say whether it has; the log, once it is open again, does. Its publishers were
        told of the error and send the same ids again, which are duplicates then.
        """
        while self.announced < log.head:
            place = (self.announced, self.announced, self.announced)
            events = await log.read(place, PAGE_ROWS, PAGE_BYTES)
            for event in (event for event in events if not event.corrupt):
                for event_id in (event.id, *event.replaced_ids):
                    self.ids.remember(event.source, event_id, event.seq, event.accepted_us)
            self._announce(events)
        self._versions.restore(await log.load("version"))
        for tentative in self._tentatives:
            tentative.reload(await log.load(tentative.kind))

    def _announce(self, events: list[Event]) -> None:
        if not events:
            return
        now = self._clock.monotonic()
        accepted = rfc3339(events[0].accepted_us)
        for event in events:
            event.committed = now
            event.accepted = accepted
        self.announced = events[-1].seq
        self.committed.add(len(events), now)
        self._on_commit(events)
