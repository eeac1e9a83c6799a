"""Who follows from where: cursors, named targets, and their acknowledgements."""

from collections.abc import Sequence

from herdr.bus.cursor import Cursor, parse_cursor
from herdr.bus.deadlines import Deadlines
from herdr.bus.follow import Follower, Pages, Start, gap_of
from herdr.bus.log import Log
from herdr.bus.page import Page
from herdr.bus.rates import Rate
from herdr.bus.route import DEFAULT_TIMEOUT_MS
from herdr.bus.rulebook import Rulebook
from herdr.bus.select import Selection
from herdr.bus.targets import Targets, encode_target
from herdr.bus.writer import Writer
from herdr.clock import Clock
from herdr.errors import InvalidInput, NotFound
from herdr.event import Event, Lane, Positions

RECOVERED_S = 300  # a P0 event older than this was reported, or given up on, before the restart
RECOVERED_P0_MAX = 1000
RECOVERED_BYTES_MAX = 16 * 1024 * 1024


class Subscriptions:
    """Opens followers and keeps what is remembered of them."""

    def __init__(
        self,
        log: Log,
        pages: Pages,
        targets: Targets,
        rulebook: Rulebook,
        writer: Writer,
        deadlines: Deadlines,
        clock: Clock,
    ) -> None:
        self.delivered = Rate()
        self._log = log
        self._pages = pages
        self._targets = targets
        self._rulebook = rulebook
        self._writer = writer
        self._deadlines = deadlines
        self._clock = clock

    @property
    def head(self) -> int:
        """Newest committed `seq`."""
        return self._pages.head

    @property
    def expired(self) -> int:
        """P1 and P2 deliveries whose time ran out before the first write."""
        return self._pages.expired

    async def open(self, selection: Selection, after: str | None) -> Follower:
        """Open a follower. `after`: a cursor or `seq`; None for new events only, or a target's own place."""
        start = await self._start(selection.target, after)
        follower = Follower(self._pages, selection, start)
        if selection.target is not None and selection.target not in self._targets:
            await self._remember(selection.target, None)
        return follower

    async def ack(self, target: str, text: str) -> Positions:
        """Remember that a target has handled everything up to a cursor; answered once it is committed."""
        if target not in self._targets and not self._rulebook.knows_target(target):
            raise NotFound(
                f"no target is called {target!r}: no rule sends to it and nobody has followed as it",
                "unknown_target",
            )
        cursor = parse_cursor(text)
        if cursor.epoch not in (None, self._log.epoch) or max(cursor.positions) > self._pages.head:
            raise InvalidInput(
                f"the cursor {text[:80]!r} is not from this log ({self._log.epoch}); follow again to get one that is",
                "foreign_cursor",
            )
        await self._remember(target, cursor.positions)
        return cursor.positions

    def taken(self, target: str) -> int | None:
        """Return the `seq` up to which a target has handled everything; None when it never said so."""
        place = self._targets.positions(target)
        return None if place is None else min(place)

    async def took(self, target: str, events: Sequence[Event], seq: int) -> None:
        """Note that events were handed to a target that has asked, and remember `seq` as handled."""
        self.delivered.add(len(events), self._clock.monotonic())
        self._deadlines.written(target, [event.seq for event in events if event.lane == Lane.P0])
        p0, p1, p2 = (max(place, seq) for place in self._targets.positions(target) or (0, 0, 0))
        await self._remember(target, (p0, p1, p2))  # never back: it may follow as the target, too

    def wrote(self, page: Page, target: str | None) -> None:
        """Account for a page that has been written to its follower."""
        if not page.items:
            return
        self.delivered.add(len(page.items), self._clock.monotonic())
        if target is not None:
            self._deadlines.written(
                target, [item.event.seq for item in page.items if item.event.lane == Lane.P0]
            )

    def behind(self) -> list[tuple[str, int | None]]:
        """Return each known target, and how many events the head is past what it acknowledged (None: nothing)."""
        head = self._pages.head
        return [
            (name, None if (place := self._targets.positions(name)) is None else head - min(place))
            for name in self._targets.names()
        ]

    async def recover(self) -> None:
        """After a restart: watch again the P0 events that their target has not acknowledged.

        Written but not acknowledged looks like not written; their sender then hears once too often.
        """
        head = self._log.head
        recent = await self._log.seq_at(self._clock.wall_us() - RECOVERED_S * 1_000_000) - 1
        events = await self._log.read((recent, head, head), RECOVERED_P0_MAX, RECOVERED_BYTES_MAX)
        self._deadlines.watch(events, self._has_acknowledged)

    def _has_acknowledged(self, target: str, seq: int) -> bool:
        place = self._targets.positions(target)
        return place is not None and place[0] >= seq

    async def _remember(self, target: str, positions: Positions | None) -> None:
        forgotten = self._targets.set(target, positions)
        if forgotten is not None:
            await self._writer.put("target", forgotten, None)
        await self._writer.put("target", target, encode_target(positions))

    async def _start(self, target: str | None, after: str | None) -> Start:
        first, head = self._log.first, self._pages.head
        if after is not None:
            return self._start_at(parse_cursor(after), first, head)
        if target is None:
            return Start((head, head, head), None, honours_timeouts=False)
        place = self._targets.positions(target)
        if place is not None:
            gap = gap_of(Cursor(None, place), self._log.epoch, first, head)
            return Start(place, gap, honours_timeouts=True)
        # Never acknowledged: whatever may still be in time for it, and every P0, which is delivered late too
        longest_ms = max(*DEFAULT_TIMEOUT_MS, self._rulebook.timeout_max_ms())
        recent = await self._log.seq_at(self._clock.wall_us() - longest_ms * 1000) - 1
        return Start((first - 1, recent, recent), None, honours_timeouts=True)

    def _start_at(self, cursor: Cursor, first: int, head: int) -> Start:
        gap = gap_of(cursor, self._log.epoch, first, head)
        if gap is None and cursor.positions == (0, 0, 0):
            cursor = Cursor(None, (first - 1, first - 1, first - 1))  # `0` asks for the oldest there is
        return Start(cursor.positions, gap, honours_timeouts=False)
