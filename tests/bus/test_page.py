import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.bus.follow import Follower, Pages, Start
from herdr.bus.log import Batch
from herdr.bus.page import Chooser, Item, Page, arrange, page_end
from herdr.bus.select import Selection, compile_selection
from herdr.bus.tail import Tail
from herdr.event import Delivery, Event, Lane, Positions, WantedContext, corrupt_event
from herdr.storage.memory import MemoryLog

ATTRS = (("activity", ("debug*", "test")), ("n", ("3",)))


class StillClock:
    """A clock that never moves: nothing here is about time."""

    def wall_us(self) -> int:
        return 1_700_000_000_000_000

    def monotonic(self) -> float:
        return 1000.0


def make_event(seq: int, lane: int = 1, type_: str = "a", deliveries: tuple[Delivery, ...] = ()) -> Event:
    return Event(lane, str(seq), type_, "ci", "default", "tool", b"{}", deliveries=deliveries, seq=seq)


def make_events(*lanes: int, first: int = 1) -> list[Event]:
    return [make_event(seq, lane) for seq, lane in enumerate(lanes, first)]


def order(arranged: list[tuple[Event, Positions]]) -> list[tuple[int, Positions]]:
    return [(event.seq, after) for event, after in arranged]


def test_behind_the_head_a_page_is_in_seq_order() -> None:
    arranged = arrange(make_events(2, 0, 1), (0, 0, 0), reached_head=False)
    assert order(arranged) == [(1, (1, 1, 1)), (2, (2, 2, 2)), (3, (3, 3, 3))]


def test_near_the_head_higher_lanes_overtake_and_each_lane_keeps_its_place() -> None:
    arranged = arrange(make_events(2, 1, 0, 2, 0), (0, 0, 0), reached_head=True)
    assert order(arranged) == [
        (3, (3, 0, 0)),
        (5, (5, 0, 0)),
        (2, (5, 2, 0)),
        (1, (5, 5, 1)),
        (4, (5, 5, 5)),
    ]


def test_a_lane_that_is_further_ahead_is_never_set_back() -> None:
    for reached_head in (True, False):
        arranged = arrange(make_events(0, 1), (0, 0, 90), reached_head=reached_head)
        assert all(after[2] == 90 for _, after in arranged)
    assert page_end(make_events(0, 1), (0, 0, 90)) == (2, 2, 90)


def test_an_empty_page_moves_nothing() -> None:
    assert arrange([], (1, 2, 3), reached_head=True) == []
    assert page_end([], (1, 2, 3)) == (1, 2, 3)


LANES = st.lists(st.integers(0, 2), max_size=30)
PLACES = st.tuples(*[st.integers(0, 32)] * 3)


@given(LANES, PLACES, st.booleans(), st.integers(1, 30))
def test_the_place_after_each_event_separates_what_is_out_from_what_is_not(
    lanes: list[int], start: Positions, reached_head: bool, limit: int
) -> None:
    page = [event for event in make_events(*lanes) if event.seq > start[event.lane]][:limit]
    arranged = arrange(page, start, reached_head)
    assert sorted(event.seq for event, _ in arranged) == [event.seq for event in page]
    out = set[int]()
    before = start
    for event, after in arranged:
        out.add(event.seq)
        assert all(new >= old for new, old in zip(after, before, strict=True))
        assert {e.seq for e in page if e.seq <= after[e.lane]} == out
        before = after
    assert before == page_end(page, start) or not page


COMMITS = st.tuples(
    st.just("commit"), st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=8)
)
READS = st.tuples(st.just("read"), st.integers(1, 6), st.none() | st.integers(0, 6))
SCRIPTS = st.lists(COMMITS | READS, max_size=25)


class World:
    """A log, its tail and one client, whose connection may be cut after any event of a page."""

    def __init__(self, tail_max: int, start: Positions, selection: Selection) -> None:
        self.log = MemoryLog("0123abcd")
        self.tail = Tail(0, tail_max)
        self.pages = Pages(self.log, self.tail, StillClock())
        self.selection = selection
        self.committed: list[Event] = []
        self.received: list[Event] = []
        self.follower = self.follow_from(start)

    def follow_from(self, place: Positions) -> Follower:
        return Follower(self.pages, self.selection, Start(place, None, honours_timeouts=False))

    async def commit(self, rows: list[tuple[int, bool]]) -> None:
        first = len(self.committed) + 1
        events = [make_event(seq, lane, "ab"[wanted]) for seq, (lane, wanted) in enumerate(rows, first)]
        await self.log.append(Batch(events))
        self.tail.extend(events)
        self.committed += events

    async def read(self, limit: int, cut_after: int | None) -> bool:
        """Read a page as the client would; True when everything that is there has been read."""
        _, page = await self.follower.read(limit)
        if cut_after is None or cut_after >= len(page.items):
            self.received += [item.event for item in page.items]
        else:
            got = page.items[:cut_after]
            self.received += [item.event for item in got]
            if got:  # it comes back with the id of the last event that it saw
                self.follower = self.follow_from(got[-1].after)
            else:  # or with the place that it was told at the start
                self.follower = self.follow_from(self.before)
        self.before = self.follower.positions
        return page.reached_head and min(self.follower.positions) >= self.tail.head

    async def run(self, script: list[Any]) -> None:
        self.before = self.follower.positions
        for what, *arguments in script:
            await (self.commit(*arguments) if what == "commit" else self.read(*arguments))
        for _ in range(10_000):
            if await self.read(3, None):
                return
        raise AssertionError("the follower never reaches the head")


@given(SCRIPTS, PLACES, st.integers(1, 12), st.booleans())
def test_a_client_cut_anywhere_loses_nothing_and_sees_nothing_twice(
    script: list[Any], start: Positions, tail_max: int, filtered: bool
) -> None:
    selection = Selection(type=("b",)) if filtered else Selection()
    start = (0, 0, 0) if max(start) > 12 else start
    world = World(tail_max, start, selection)
    asyncio.run(world.run(script))
    wanted = [e.seq for e in world.committed if e.seq > start[e.lane] and (not filtered or e.type == "b")]
    received = [event.seq for event in world.received]
    assert sorted(received) == wanted
    for lane in Lane:
        of_lane = [event.seq for event in world.received if event.lane == lane]
        assert of_lane == sorted(of_lane)


async def test_p0_overtakes_within_a_page_only() -> None:
    world = World(100, (0, 0, 0), Selection())
    await world.commit([(2, True)] * 4 + [(0, True)])
    _, page = await world.follower.read(3)
    assert [item.event.seq for item in page.items] == [1, 2, 3]
    assert not page.reached_head
    _, page = await world.follower.read(3)
    assert [item.event.seq for item in page.items] == [5, 4]
    assert page.reached_head


async def test_followers_at_one_place_share_a_page_until_the_head_moves() -> None:
    world = World(100, (0, 0, 0), Selection())
    await world.commit([(1, True)])

    async def read() -> Page:
        return (await world.follow_from((0, 0, 0)).read(256))[1]

    first = await read()
    assert await read() is first
    await world.commit([(0, True)])
    third = await read()
    assert [item.event.seq for item in third.items] == [2, 1]
    world.pages.forget_shared()
    assert await read() is not third


async def test_a_follower_that_wants_nothing_of_a_page_still_moves() -> None:
    world = World(100, (0, 0, 0), Selection(type=("z",)))
    await world.commit([(1, True), (0, True)])
    _, page = await world.follower.read(256)
    assert (page.items, page.end, world.follower.positions) == ([], (2, 2, 2), (2, 2, 2))


async def test_a_sleeping_follower_is_woken_by_a_commit_and_by_a_poke() -> None:
    world = World(100, (0, 0, 0), Selection())
    waiting = asyncio.create_task(world.follower.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    world.follower.poke()
    page = await waiting
    assert page.items == []  # type: ignore[union-attr]
    waiting = asyncio.create_task(world.follower.next())
    await asyncio.sleep(0)
    await world.commit([(1, True)])
    world.pages.wake()
    page = await waiting
    assert [item.event.seq for item in page.items] == [1]  # type: ignore[union-attr]
    waiting = asyncio.create_task(world.follower.next())
    await asyncio.sleep(0)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    assert not world.pages._moved


def chooser(target: str | None = None, *, type_: tuple[str, ...] = (), **attrs: str) -> Chooser:
    selection = Selection(type=type_, target=target, attrs=tuple(sorted(attrs.items())))
    return Chooser(selection, compile_selection(selection))


def test_without_a_target_the_filters_alone_decide() -> None:
    event = make_event(1, deliveries=(Delivery("t", 5),))
    assert chooser().wants(event) == (True, None)
    assert chooser(type_=("b",)).wants(event) == (False, None)


def test_a_target_gets_only_what_is_for_it_and_only_once() -> None:
    mine, other = Delivery("t", 5, "ref"), Delivery("u", 5)
    assert chooser("t").wants(make_event(1, deliveries=(other, mine, Delivery("t", 9)))) == (True, mine)
    assert chooser("t").wants(make_event(1, deliveries=(other,))) == (False, None)
    assert chooser("t").wants(make_event(1)) == (False, None)
    assert chooser("t", type_=("b",)).wants(make_event(1, deliveries=(mine,)))[0] is False


@pytest.mark.parametrize(
    ("attrs", "fits"),
    [
        ({"activity": "debugging", "n": "3"}, True),
        ({"activity": "test", "n": "3", "more": "x"}, True),
        ({"activity": "testing", "n": "3"}, False),
        ({"activity": "test"}, False),
        ({"n": "3"}, False),
        ({}, False),
    ],
)
def test_conditions_on_attributes_are_judged_for_each_subscriber(attrs: dict[str, str], fits: bool) -> None:
    strict, plain = Delivery("t", 5, "full", ATTRS), Delivery("t", 5, "ref")
    judge = chooser("t", **attrs)
    for _ in range(2):  # the second time from what it has remembered
        assert judge.wants(make_event(1, deliveries=(strict,)))[0] is fits
    assert judge.wants(make_event(1, deliveries=(strict, plain))) == (True, strict if fits else plain)


def test_a_corrupt_event_is_for_everyone() -> None:
    assert chooser("t", type_=("b",)).wants(corrupt_event(3, 1, 5)) == (True, None)


def pieces(*wanted: tuple[int, bool]) -> tuple[list[list[int]], list[Positions]]:
    """Cut a page of these lanes, and whether each event wants context."""
    context = WantedContext(64)
    items = [
        Item(make_event(seq, lane), (seq, seq, seq), Delivery("t", 5, context=context if wants else None))
        for seq, (lane, wants) in enumerate(wanted, 1)
    ]
    found = Page(items, (9, 9, 9), True).pieces()
    assert all(piece.reached_head for piece in found)
    return [[item.event.seq for item in piece.items] for piece in found], [piece.end for piece in found]


def test_a_page_is_cut_where_waiting_begins_and_where_p0_ends() -> None:
    assert pieces((0, False), (0, True), (0, False), (1, False), (2, True)) == (
        [[1], [2, 3], [4, 5]],
        [(1, 1, 1), (3, 3, 3), (9, 9, 9)],
    )
    assert pieces((0, True), (1, True)) == ([[1], [2]], [(1, 1, 1), (9, 9, 9)])
    assert pieces((1, False), (1, True), (0, False), (1, False)) == ([[1], [2, 3, 4]], [(1, 1, 1), (9, 9, 9)])
    assert pieces((1, True), (1, True)) == ([[1, 2]], [(9, 9, 9)])
    assert pieces((0, True)) == ([[1]], [(9, 9, 9)])


async def test_a_follower_can_change_its_attributes() -> None:
    world = World(100, (0, 0, 0), Selection(target="t"))
    event = make_event(1, deliveries=(Delivery("t", 5, "full", (("n", ("3",)),)),))
    await world.log.append(Batch([event]))
    world.tail.extend([event])
    assert (await world.follow_from((0, 0, 0)).read(5))[1].items == []
    follower = world.follow_from((0, 0, 0))
    follower.set_attributes({"n": "3"})
    assert [item.event.seq for item in (await follower.read(5))[1].items] == [1]
    assert follower.selection == Selection(target="t", attrs=(("n", "3"),))
