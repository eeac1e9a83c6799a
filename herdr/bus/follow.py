"""Following: a subscriber is a cursor over the log. It reads a bounded page, writes what matches, moves on.

No queue per subscriber: a slow reader costs nothing, and live and history are one path. A commit is only a
wake-up. Followers at the same place with the same selection share one page and its encodings.
"""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from herdr.bus.cursor import Cursor
from herdr.bus.log import Log
from herdr.bus.page import BYTES_MAX, EVENTS_MAX, Chooser, Item, Page, arrange, page_end
from herdr.bus.select import Selection, compile_selection
from herdr.bus.tail import Tail
from herdr.clock import Clock
from herdr.event import Event, Lane, Positions

PAGES_SHARED_MAX = (
    64  # distinct places times selections; a page is at most 256 KiB and its encodings as much again
)

ANY_HEAD = -1
"""Key of a page that ends before the head, and so does not depend on where the head is. No head is negative."""


class Gap(NamedTuple):
    """Events that a follower asked for and cannot get: said once, before it goes on from `positions`."""

    reason: str
    """`retention` (trimmed), `epoch` (another log) or `rewound` (past the head: a restored backup)."""
    from_: int
    """Where the follower wanted to go on."""
    to: int
    """The last event that is missing; for `epoch` and `rewound` the head of this log."""
    positions: Positions


class Start(NamedTuple):
    """Where a follower begins."""

    positions: Positions
    gap: Gap | None
    honours_timeouts: bool
    """False after an explicit cursor: who asks for a place sees everything from there, whatever its age."""


class Pages:
    """Reads pages from the tail or the log, for all followers."""

    def __init__(self, log: Log, tail: Tail, clock: Clock) -> None:
        self._log = log
        self._tail = tail
        self._clock = clock
        self.expired = 0
        """P1 and P2 deliveries that were skipped because their time had run out."""
        self._shared: dict[tuple[Selection, Positions, int], Page] = {}
        self._moved: set[asyncio.Future[None]] = set()

    @property
    def head(self) -> int:
        """Newest committed `seq`."""
        return self._tail.head

    def gap_before(self, positions: Positions) -> Gap | None:
        """Return the gap between these positions and the oldest retained event, if there is one."""
        first = self._log.first
        wanted = min(positions) + 1
        if wanted >= first:
            return None
        p0, p1, p2 = (max(place, first - 1) for place in positions)
        return Gap("retention", wanted, first - 1, (p0, p1, p2))

    def wake(self) -> None:
        """Let every waiting follower look again: the head has moved."""
        moved, self._moved = self._moved, set()
        for future in moved:
            if not future.done():
                future.set_result(None)

    def forget_shared(self) -> None:
        """Drop shared pages: an event was redacted."""
        self._shared.clear()

    def waiter(self) -> "asyncio.Future[None]":
        """Return a future that `wake` resolves."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._moved.add(future)
        return future

    def drop_waiter(self, future: "asyncio.Future[None]") -> None:
        """Forget a waiter whose follower has gone or was woken otherwise."""
        self._moved.discard(future)

    async def read(
        self, selection: Selection, chooser: Chooser, start: Positions, aged: bool, limit: int
    ) -> Page:
        """Read one page after `start`. `aged` skips P1 and P2 events whose time for the target has run out."""
        head = self._tail.head
        in_tail = self._tail.covers(start)
        shareable = in_tail and not aged and limit == EVENTS_MAX
        if shareable:
            known = self._shared.get((selection, start, ANY_HEAD)) or self._shared.get(
                (selection, start, head)
            )
            if known is not None:
                return known
        if in_tail:
            events = self._tail.read(start, limit, BYTES_MAX)
        else:
            events = await self._log.read(start, limit, BYTES_MAX)
            # Up to the head as it was before: a commit during the read may be in these events or not, and one
            # that is not yet announced must not be written before its deadlines run
            events = [event for event in events if event.seq <= head]
        page = self._build(events, chooser, start, aged, head)
        if shareable and not page.wants_context:
            if len(self._shared) >= PAGES_SHARED_MAX:
                self._shared.clear()
            self._shared[selection, start, head if page.reached_head else ANY_HEAD] = page
        return page

    def has_p0_after(self, place: int, chooser: Chooser) -> bool:
        """Tell whether a P0 event for a follower near the head stands behind this place of its lane."""
        head = self._tail.head
        if place >= head or not self._tail.covers((place, head, head)):
            return False
        return any(
            chooser.wants(event)[0] for event in self._tail.read((place, head, head), EVENTS_MAX, BYTES_MAX)
        )

    def _build(self, events: list[Event], chooser: Chooser, start: Positions, aged: bool, head: int) -> Page:
        reached_head = not events or events[-1].seq >= head
        items = []
        expired = 0
        wants_context = False
        for event, after in arrange(events, start, reached_head):
            wanted, delivery = chooser.wants(event)
            if not wanted:
                continue
            if (
                aged
                and delivery is not None
                and event.lane != Lane.P0
                and self._is_over(event, delivery.timeout_ms)
            ):
                expired += 1
                continue
            if delivery is not None and delivery.context is not None:
                wants_context = True
            items.append(Item(event, after, delivery))
        end = page_end(events, start)
        if reached_head:
            end = (max(end[0], head), max(end[1], head), max(end[2], head))
        return Page(items, end, reached_head, expired, wants_context)

    def _is_over(self, event: Event, timeout_ms: int) -> bool:
        """Judge the age by the monotonic clock where the commit was seen, by the wall clock after a restart."""
        if event.committed:
            return (self._clock.monotonic() - event.committed) * 1000 > timeout_ms
        return (self._clock.wall_us() - event.accepted_us) / 1000 > timeout_ms


class Follower:
    """One subscriber: a selection and its positions. Not shared between tasks."""

    def __init__(self, pages: Pages, selection: Selection, start: Start) -> None:
        self.selection = selection
        # Where it resumes, should it be cut off before it hears of the gap: never past what it has not got
        self.positions = start.positions if start.gap is None else start.gap.positions
        self._pages = pages
        self._chooser = Chooser(selection, compile_selection(selection))
        self._gap = start.gap
        self._aged = start.honours_timeouts and selection.target is not None
        self._waiter: asyncio.Future[None] | None = None
        self._poked = False

    def set_attributes(self, attrs: Mapping[str, str]) -> None:
        """Change the subscriber's attributes for what is read from now on."""
        kept = tuple(sorted(attrs.items()))
        self.selection = Selection(
            **{f: getattr(self.selection, f) for f in self.selection.__struct_fields__} | {"attrs": kept}
        )
        self._chooser = Chooser(self.selection, compile_selection(self.selection))

    def poke(self) -> None:
        """Make `next` return soon, with an empty page if nothing is there (keep-alive, goodbye)."""
        self._poked = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> Page | Gap:
        """Return the next page that holds something, a gap, or (after a poke) an empty page.

        The follower's positions have moved past it when this returns.
        """
        while True:
            gap = self.take_gap()
            if gap is not None:
                return gap
            page = await self._read_whole(EVENTS_MAX)
            if page is None:
                continue
            self.positions = page.end
            if page.items or self._poked:
                self._poked = False
                return page
            if page.reached_head and min(page.end) >= self._pages.head:
                await self._sleep()

    async def read(self, limit: int) -> tuple[Gap | None, Page]:
        """Read one page without waiting, and move past it; with the gap, if any, that lies before it."""
        gap = self.take_gap()
        while (page := await self._read_whole(limit)) is None:
            later = self.take_gap()
            gap = (
                later
                if gap is None or later is None
                else gap._replace(to=later.to, positions=later.positions)
            )
        self.positions = page.end
        return gap, page

    async def _read_whole(self, limit: int) -> Page | None:
        """Read one page; None when retention has trimmed some of it meanwhile."""
        page = await self._pages.read(self.selection, self._chooser, self.positions, self._aged, limit)
        if self._pages.gap_before(self.positions):
            return None
        self._pages.expired += page.expired  # here, as a page of nothing else is never written
        return page

    def take_gap(self) -> Gap | None:
        """Return what lies between the follower and the oldest retained event, once, and step over it."""
        gap, self._gap = self._gap or self._pages.gap_before(self.positions), None
        if gap is not None:
            self.positions = gap.positions
        return gap

    async def overtaken(self) -> None:
        """Return once a P0 event is there for this follower, which has read up to the head."""
        while not self._pages.has_p0_after(self.positions[Lane.P0], self._chooser):
            waiter = self._pages.waiter()
            try:
                await waiter
            finally:
                self._pages.drop_waiter(waiter)

    async def _sleep(self) -> None:
        if self._poked:
            return
        self._waiter = self._pages.waiter()
        try:
            await self._waiter
        finally:
            self._pages.drop_waiter(self._waiter)
            self._waiter = None


def gap_of(cursor: Cursor, epoch: str, first: int, head: int) -> Gap | None:
    """Return the gap that stands between a cursor and this log, as far as the cursor alone tells."""
    oldest = min(cursor.positions)
    start = (first - 1, first - 1, first - 1)
    if cursor.epoch is not None and cursor.epoch != epoch:
        return Gap("epoch", oldest + 1, head, start)
    if max(cursor.positions) > head:
        return Gap("rewound", oldest + 1, head, start)
    return None
