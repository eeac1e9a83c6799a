"""Publishing: drafts in, receipts out once they are true; and the gateway's own events."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from herdr.bus.errand import ERRAND_BYTES, Errand, Rule
from herdr.bus.intake import Intake, OnChange
from herdr.bus.lanes import Admission, Lanes
from herdr.bus.pending import Pending, Submission
from herdr.bus.rates import Rate
from herdr.bus.route import RoutingTable
from herdr.bus.writer import Writer
from herdr.clock import Clock
from herdr.errors import HerdrError
from herdr.event import Draft, Event, Lane, Receipt

DECODE_GATE_ROWS = 256  # one full batch: more decoded rows than that only lengthen a user's wait
FULL_RETRY_S = 0.1  # until held events are offered again to lanes that were full
FEW_BODY, FEW_EVENTS = 64 * 1024, 8  # payloads are not decoded, so such a body still takes microseconds
SMALL_BODY = 4096  # bytes; decoding less than this takes microseconds and needs no turn of its own


class Publisher:
    """Takes drafts in order, and waits for the writer on their behalf."""

    def __init__(
        self, lanes: Lanes[Pending | Errand], intake: Intake, writer: Writer, committed: Rate, clock: Clock
    ) -> None:
        self.committed = committed
        """Events that reached the log."""
        self.receipts: Counter[str] = Counter()
        """Receipts by status."""
        self.own_event = intake.own
        """Makes an event of the gateway's own, not yet in the log. See `Intake.own`."""
        self._lanes = lanes
        self._intake = intake
        self._writer = writer
        self._clock = clock
        self._gate = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")

    async def publish(self, drafts: Sequence[Draft], source: str) -> list[Receipt]:
        """Publish drafts in order; `source` stands in where a draft names none.

        Returns one receipt a draft, once all of them are known. Raises LogUnavailable when the log cannot
        be written: then nothing is acknowledged, and the same ids may be sent again.
        """
        if not drafts:
            return []
        submission = Submission(len(drafts), asyncio.get_running_loop().create_future())
        now = self._clock.monotonic()
        try:
            for index, draft in enumerate(drafts):
                waits = self._intake.take_in(draft, draft.source or source, submission, index, now)
                if waits is not None:
                    await self._wait_for_room(waits)
        finally:
            self._writer.wake()
            self._arm(now)
        receipts = await submission.done
        for receipt in receipts:
            self.receipts[receipt.status] += 1
        return receipts

    async def decoding_turn(self, body: bytes) -> None:
        """Wait for the turn to decode a body: large ones one at a time, while little waits.

        A few events may pass: one of them could be a user's instruction with pasted code in it, which must not
        queue behind everybody's batches.
        """
        if len(body) <= SMALL_BODY or (len(body) <= FEW_BODY and body.count(b'"type"') <= FEW_EVENTS):
            return
        async with self._gate:
            while self._lanes.waiting >= DECODE_GATE_ROWS:
                await self._writer.room()
            await asyncio.sleep(0)

    def announce(self, type_: str, data: Any, *, to: tuple[str, ...] = (), **fields: Any) -> None:
        """Publish an event of the gateway's own, addressed to the named targets; `fields` as in `own_event`."""
        self._intake.offer(Pending(self.own_event(type_, data, to=to, **fields), made_id=True))
        self._writer.wake()

    async def record(self, events: Sequence[Event]) -> list[Receipt]:
        """Commit events of the gateway's own (`own_event`) and return once they are in the log.

        Raises LogUnavailable. While the lanes are full they are dropped as anybody's are; the receipts say so.
        """
        submission = Submission(len(events), asyncio.get_running_loop().create_future())
        for index, event in enumerate(events):
            self._intake.offer(Pending(event, submission=submission, index=index, made_id=True))
        self._writer.wake()
        return await submission.done

    async def decide(self, rule: Rule, lane: Lane, size: int = ERRAND_BYTES) -> Any:
        """Let a rule decide in `seq` order within a batch; return its answer once that is committed.

        `size`: about how many bytes it leads to.
        Raises what the rule raises, LogUnavailable, and HerdrError `overloaded` while the lanes are full.
        """
        errand = Errand(rule, asyncio.get_running_loop().create_future())
        while (admission := self._lanes.offer(lane, errand, size)) is Admission.WAIT:
            self._writer.wake()
            await self._writer.room()
        if admission is Admission.REFUSED:
            raise HerdrError("too many events wait for the log; try again in a second", "overloaded")
        self._writer.wake()
        return await errand.done

    def use_table(self, table: RoutingTable) -> None:
        """Route what comes from now on by another table."""
        self._intake.table = table

    def tell_changes(self, listener: OnChange) -> None:
        """Tell the listener, too, of every change that a tool reports, at once when it comes in."""
        self._intake.on_change.append(listener)

    @property
    def dropped(self) -> Mapping[str, int]:
        """Events not stored, by reason."""
        return self._intake.dropped

    @property
    def depths(self) -> tuple[int, int, int]:
        """How many events wait for the writer, by lane."""
        return self._lanes.depths

    def flush(self) -> None:
        """Let go of everything that a debounce window holds."""
        if self._timer is not None:
            self._timer.cancel()
        self._intake.flush()
        self._writer.wake()

    async def _wait_for_room(self, pending: Pending) -> None:
        self._writer.wake()
        while self._intake.offer(pending) is Admission.WAIT:
            await self._writer.room()

    def _arm(self, now: float) -> None:
        """Come back when the first debounce window closes."""
        due = self._intake.next_due()
        if due is None or due >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due - now), self._on_due)

    def _on_due(self) -> None:
        now = self._clock.monotonic()
        self._timer_at = float("inf")
        if self._intake.due(now):
            self._writer.wake()
            self._arm(now)
        else:
            self._timer_at = now + FULL_RETRY_S
            self._timer = asyncio.get_running_loop().call_later(FULL_RETRY_S, self._on_due)
