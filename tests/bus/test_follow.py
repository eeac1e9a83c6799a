"""What may happen between a follower's reads of the disk: commits, retention, another process's clock."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from buses import FaultyLog, running_bus

from herdr.bus.bus import Bus
from herdr.bus.follow import Follower, Gap, Pages, Start
from herdr.bus.log import Batch
from herdr.bus.page import Page
from herdr.bus.select import Selection
from herdr.bus.tail import Tail
from herdr.config import RouteRule
from herdr.event import Delivery, Draft, Event, Positions
from herdr.storage.retention import Retention

NOTHING_BY_AGE = 10**6
LONG_AGO_US = 10**12


class MovingClock:
    """Seconds that the test counts."""

    def __init__(self) -> None:
        self.now = 1000.0

    def wall_us(self) -> int:
        return int(self.now * 1e6)

    def monotonic(self) -> float:
        return self.now


class World:
    """A log with what happens while it is read, a tail that holds little of it, and followers."""

    def __init__(self, events_max: int = 100, tail_max: int = 1) -> None:
        self.log = FaultyLog(retention=Retention(NOTHING_BY_AGE, events_max, 2**30))
        self.clock = MovingClock()
        self.tail = Tail(0, tail_max)
        self.pages = Pages(self.log, self.tail, self.clock)

    async def commit(
        self, *lanes: int, deliveries: tuple[Delivery, ...] = (), announced: bool = True
    ) -> None:
        first = self.log.head + 1
        events = [
            Event(lane, str(seq), "a", "s", "w", "tool", b"{}", deliveries=deliveries, seq=seq)
            for seq, lane in enumerate(lanes, first)
        ]
        for event in events:
            event.accepted_us = self.clock.wall_us()
        await self.log.append(Batch(events))
        if announced:
            self.announce(events)

    def announce(self, events: list[Event]) -> None:
        self.tail.extend(events)
        self.pages.wake()

    async def trim(self) -> None:
        await self.log.tidy(calm=True)

    def follow(
        self, place: Positions = (0, 0, 0), target: str | None = None, honours_timeouts: bool = False
    ) -> Follower:
        return Follower(self.pages, Selection(target=target), Start(place, None, honours_timeouts))

    def during_reads(self, *deeds: Callable[[], Awaitable[None]]) -> None:
        """Do one of these while the first read of the log is under way, one while the second is, and so on."""
        left = list(deeds)

        async def next_deed() -> None:
            if left:
                await left.pop(0)()

        self.log.meanwhile = next_deed


async def read_on(follower: Follower, pages: Pages) -> list[object]:
    """Read up to the head: gaps as `(from, to)`, events by `seq`."""
    told: list[object] = []
    while min(follower.positions) < pages.head:
        got = await follower.next()
        if isinstance(got, Gap):
            told.append((got.from_, got.to))
        else:
            told.extend(item.event.seq for item in got.items)
    return told


async def test_retention_that_overtakes_a_read_leaves_a_gap_and_not_a_silence() -> None:
    world = World(events_max=4)
    await world.commit(*[1] * 10)
    world.during_reads(world.trim)
    assert await read_on(world.follow(), world.pages) == [(1, 6), 7, 8, 9, 10]


async def test_retention_that_overtakes_every_read_leaves_every_gap() -> None:
    world = World(events_max=4)
    await world.commit(*[1] * 10)

    async def more() -> None:
        await world.commit(1, 1)
        await world.trim()

    world.during_reads(more, more)
    assert await read_on(world.follow(), world.pages) == [(1, 8), (9, 10), 11, 12, 13, 14]


async def test_a_page_that_is_asked_for_comes_with_the_whole_gap_before_it() -> None:
    world = World(events_max=4)
    await world.commit(*[1] * 10)

    async def more() -> None:
        await world.commit(1, 1)
        await world.trim()

    world.during_reads(more, more)
    gap, page = await world.follow().read(100)
    assert gap == Gap("retention", 1, 10, (10, 10, 10))
    assert [item.event.seq for item in page.items] == [11, 12, 13, 14]


async def test_the_reason_of_the_first_gap_stays_when_retention_widens_it() -> None:
    world = World(events_max=4)
    await world.commit(*[1] * 10)
    world.during_reads(world.trim)
    start = Start((0, 0, 0), Gap("epoch", 900, 0, (0, 0, 0)), honours_timeouts=False)
    gap, page = await Follower(world.pages, Selection(), start).read(100)
    assert gap == Gap("epoch", 900, 6, (6, 6, 6))
    assert [item.event.seq for item in page.items] == [7, 8, 9, 10]


async def test_without_a_gap_there_is_none() -> None:
    world = World()
    await world.commit(1, 1)
    gap, page = await world.follow().read(100)
    assert (gap, len(page.items)) == (None, 2)


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_what_is_committed_and_not_announced_is_not_delivered_early(limit: int) -> None:
    world = World()
    await world.commit(1, 1)
    await world.commit(0, 1, announced=False)
    follower = world.follow()
    told = [await follower.read(limit) for _ in range(4)]
    assert [item.event.seq for _, page in told for item in page.items] == [1, 2]
    assert follower.positions == (2, 2, 2)
    waiting = asyncio.create_task(follower.next())
    await asyncio.sleep(0)
    world.announce([world.log._events[3], world.log._events[4]])
    page = await waiting
    assert isinstance(page, Page)
    assert [item.event.seq for item in page.items] == [3, 4]


async def test_a_commit_during_a_read_is_in_the_next_page() -> None:
    """A store reads as of the start of a read; what the read cannot hold must not count as seen."""
    world = World()
    await world.commit(*[1] * 5)
    world.during_reads(lambda: world.commit(0, 1, 2))
    follower = world.follow(place=(0, 5, 5))  # all of P1 and P2 is behind it, and there is no P0 yet
    assert await read_on(follower, world.pages) == [6, 7, 8]


async def test_a_new_target_misses_nothing_that_comes_while_it_looks_for_old_p0_events() -> None:
    log = FaultyLog()
    rule = RouteRule(event="user.*", target="tester")
    async with running_bus(log, [rule], {"buffer_size": 1}) as bus:
        for _ in range(5):
            await publish(bus, "tool.result")
        for event in log._events.values():
            event.accepted_us -= LONG_AGO_US
        log.meanwhile = lambda: publish(bus, "user.message")
        follower = await bus.subscriptions.open(Selection(target="tester"), None)
        assert follower.positions == (0, 5, 5)
        await follower.read(100)
        log.meanwhile = None
        _, page = await follower.read(100)
    assert [item.event.seq for item in page.items] == [6]


async def test_skipped_deliveries_are_counted_once_even_if_nothing_else_is_in_their_page() -> None:
    world = World(events_max=4, tail_max=100)
    await world.commit(1, 2, 1, deliveries=(Delivery("t", 500),))
    world.clock.now += 0.4
    in_time = world.follow(target="t", honours_timeouts=True)
    assert len((await in_time.read(100))[1].items) == 3
    world.clock.now += 0.2
    for follower, expired in (
        (world.follow(target="t", honours_timeouts=True), 3),
        (world.follow(target="t", honours_timeouts=False), 3),
        (world.follow(target="t", honours_timeouts=True), 6),
    ):
        await follower.read(100)
        assert world.pages.expired == expired


async def test_a_page_that_retention_overtook_counts_nothing() -> None:
    world = World(events_max=2)
    await world.commit(1, 1, 1, 1, deliveries=(Delivery("t", 500),))
    world.clock.now += 1
    world.during_reads(world.trim)
    await world.follow(target="t", honours_timeouts=True).read(100)
    assert world.pages.expired == 2


async def test_a_p0_event_is_never_too_old() -> None:
    world = World()
    await world.commit(0, 1, deliveries=(Delivery("t", 500),))
    world.clock.now += 10_000
    _, page = await world.follow(target="t", honours_timeouts=True).read(100)
    assert [item.event.lane for item in page.items] == [0]


async def publish(bus: Bus, type_: str) -> None:
    (receipt,) = await bus.publisher.publish([Draft(type_)], "s")
    assert receipt.status == "accepted"
