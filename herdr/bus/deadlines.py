"""The clock of P0 events: one `herdr.undelivered` to the sender when a target was not reached in time."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from herdr.bus.undelivered import Overdue, Undelivered
from herdr.clock import Clock
from herdr.event import Event, Lane

UNTIMELY = ("herdr.", "conflict.", "lock.")
"""Types that never raise `herdr.undelivered`: notices about notices would not end."""


class Deadlines:
    """Watches committed P0 events until their first write to each target."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watched = Undelivered()
        self._timer: asyncio.TimerHandle | None = None
        self._report: Callable[[Overdue], None] | None = None

    def start(self, report: Callable[[Overdue], None]) -> None:
        """Begin to report what is overdue."""
        self._report = report
        self._arm()

    def stop(self) -> None:
        """Report nothing more."""
        self._report = None
        if self._timer is not None:
            self._timer.cancel()

    def watch(self, events: Sequence[Event], is_done: Callable[[str, int], bool] | None = None) -> None:
        """Start the clock of the P0 events among these; `is_done` leaves out a (target, `seq`)."""
        urgent = [e for e in events if e.lane == Lane.P0 and e.deliveries and not e.type.startswith(UNTIMELY)]
        if not urgent:
            return
        now = self._clock.monotonic()
        for event in urgent:
            for delivery in event.deliveries:
                if is_done is None or not is_done(delivery.target, event.seq):
                    deadline = now + delivery.timeout_ms / 1000
                    self._watched.watch(delivery.target, event.seq, event.source, deadline)
        self._arm()

    def written(self, target: str, seqs: Iterable[int]) -> None:
        """Note the first write of events to a target."""
        for seq in seqs:
            self._watched.written(target, seq)

    def _arm(self) -> None:
        due = self._watched.next_due()
        if due is None or self._report is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(
            max(0.0, due - self._clock.monotonic()), self._on_due
        )

    def _on_due(self) -> None:
        for overdue in self._watched.due(self._clock.monotonic()):
            if self._report is not None:
                self._report(overdue)
        self._arm()
