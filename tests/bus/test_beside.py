"""What comes beside events: the right parts, once for all who ask at the same time, and never for long."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_contexts import FakeContexts, shown
from virtual_time import VirtualClock, pass_time, run

from herdr.bus.beside import AT_ONCE_MAX, BYTES_MAX, LOOK_S, Beside
from herdr.bus.follow import Follower, Pages, Start
from herdr.bus.log import Batch
from herdr.bus.page import Item, Page
from herdr.bus.select import Selection
from herdr.bus.tail import Tail
from herdr.event import Delivery, Event, WantedContext
from herdr.storage.memory import MemoryLog

P0, P1, P2 = 0, 1, 2
BOTH = WantedContext(2048, True)


def event(
    seq: int, wanted: WantedContext | None = BOTH, lane: int = P1, target: str = "t", **fields: Any
) -> Event:
    given = {"session": "s-1", "subject": "a.py", **fields}
    delivery = Delivery(target, 60_000, context=wanted)
    return Event(lane, str(seq), "a", "ci", "shop", "tool", b"{}", deliveries=(delivery,), seq=seq, **given)


def page(*events: Event) -> Page:
    items = [Item(e, (e.seq, e.seq, e.seq), e.deliveries[0]) for e in events]
    return Page(items, items[-1].after, True)


def contexts_of(page: Page) -> list[Any]:
    return [None if item.context is None else json.loads(item.context) for item in page.items]


async def look(beside: Beside, *events: Event) -> list[Any]:
    asked = page(*events)
    with beside.looking(asked) as looking:
        return contexts_of(await looking.beside(asked))


def play(main: Callable[[VirtualClock], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def whole() -> None:
        await main(clock)
        await pass_time(0.001)  # for what was cancelled

    run(whole(), clock)


async def test_each_part_comes_where_it_is_wanted_and_there_is_something() -> None:
    beside = Beside(FakeContexts({"s-1": "said"}, {"a.py": "def f()"}))
    found = await look(
        beside,
        event(1),
        event(2, WantedContext(64)),
        event(3, WantedContext(0, True)),
        event(4, session=None),
        event(5, subject=None),
        event(6, session=None, subject=None),
        event(7, None),
    )
    session, graph = shown("said"), shown("def f()")
    assert found == [
        {"session": session, "graph": graph},
        {"session": session},
        {"graph": graph},
        {"graph": graph},
        {"session": session},
        None,
        None,
    ]


async def test_the_question_is_about_the_events_own_session_workspace_and_file() -> None:
    contexts = FakeContexts()
    await look(Beside(contexts), event(1, WantedContext(99, True), session="s-2", subject="src/b.py"))
    assert contexts.asked == [("session", "s-2", 99), ("outline", "shop", "src/b.py")]


async def test_what_is_missing_says_why() -> None:
    contexts = FakeContexts()
    unknown = {"session": {"unavailable": "unknown_session"}, "graph": {"unavailable": "unknown_file"}}
    assert await look(Beside(contexts), event(1)) == [unknown]
    not_served = {"unavailable": "not_served"}
    assert await look(Beside(), event(1)) == [{"session": not_served, "graph": not_served}]


async def test_a_defect_costs_one_part_and_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    contexts = FakeContexts({"s-1": "said"}, {"b.py": "\ud800"})
    contexts.broken.add("a.py")
    found = await look(Beside(contexts), event(1), event(2, subject="b.py"))
    failed = {"session": shown("said"), "graph": {"unavailable": "failed"}}
    assert found == [failed, failed]
    assert "planted" in caplog.text and "surrogates not allowed" in caplog.text


async def test_events_and_followers_that_want_the_same_share_a_look_up() -> None:
    contexts = FakeContexts({"s-1": "said"}, {"a.py": "x"})
    beside = Beside(contexts)
    await asyncio.gather(*(look(beside, event(1), event(2)) for _ in range(10)))
    assert sorted(contexts.asked, key=str) == [("outline", "shop", "a.py"), ("session", "s-1", 2048)]


async def test_what_is_delivered_later_is_looked_up_again() -> None:
    contexts = FakeContexts({"s-1": "before"})
    beside = Beside(contexts)
    assert await look(beside, event(1, WantedContext(64))) == [{"session": shown("before")}]
    contexts.sessions["s-1"] = "after"
    assert await look(beside, event(1, WantedContext(64))) == [{"session": shown("after")}]


async def test_a_slow_reader_does_not_keep_for_others_what_it_got() -> None:
    contexts = FakeContexts({"s-1": "before"})
    beside, asked = Beside(contexts), page(event(1, WantedContext(64)))
    with beside.looking(asked) as looking:
        await looking.beside(asked)
        contexts.sessions["s-1"] = "after"
        assert await look(beside, event(1, WantedContext(64))) == [{"session": shown("after")}]
        assert contexts_of(await looking.beside(asked)) == [{"session": shown("before")}]


def test_a_page_waits_a_second_in_all() -> None:
    async def main(clock: VirtualClock) -> None:
        contexts = FakeContexts({"s-1": "said"})
        contexts.late = {f"{n}.py": asyncio.Event() for n in range(40)}
        found = await look(Beside(contexts), *(event(n, subject=f"{n}.py") for n in range(40)))
        assert clock.now == LOOK_S
        assert {json.dumps(one["graph"]) for one in found} == {'{"unavailable": "timeout"}'}
        assert found[0]["session"] == shown("said")
        assert contexts.under_way == 0, "whoever is not waited for any more is told so"

    play(main)


def test_only_so_many_are_looked_up_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        contexts = FakeContexts()
        gate = asyncio.Event()
        contexts.late = {f"{n}.py": gate for n in range(40)}
        asking = asyncio.create_task(
            look(Beside(contexts), *(event(n, subject=f"{n}.py") for n in range(40)))
        )
        await pass_time(0.1)
        assert contexts.under_way == AT_ONCE_MAX
        gate.set()
        assert [one["graph"]["unavailable"] for one in await asking] == ["unknown_file"] * 40

    play(main)


def test_a_look_up_ends_with_the_last_who_waits_for_it() -> None:
    async def main(clock: VirtualClock) -> None:
        contexts = FakeContexts(files={"a.py": "x"})
        contexts.late["a.py"] = asyncio.Event()
        beside = Beside(contexts)
        wanted = event(1, WantedContext(0, True))
        first, second = (asyncio.create_task(look(beside, wanted)) for _ in range(2))
        await pass_time(0.1)
        first.cancel()
        await pass_time(0.1)
        assert contexts.under_way == 1
        contexts.late["a.py"].set()
        assert await second == [{"graph": shown("x")}]
        contexts.late["a.py"].clear()
        third = asyncio.create_task(look(beside, wanted))
        await pass_time(0.1)
        third.cancel()
        await pass_time(0.1)
        assert contexts.under_way == 0 and beside._under_way == {}

    play(main)


async def test_a_page_carries_so_much_and_then_refs() -> None:
    large = "x" * (BYTES_MAX // 3)
    beside = Beside(FakeContexts({"s-1": large, "huge": "y" * (2 * BYTES_MAX)}))
    window = WantedContext(1_000_000)
    found = await look(beside, *(event(n, window) for n in range(4)))
    texts = ["text" in one["session"] for one in found]
    assert texts == [True, True, False, False]
    about = {name: value for name, value in shown(large).items() if name != "text"}
    assert found[3]["session"] == {"unavailable": "too_large", **about}
    found = await look(beside, event(1, window, session="huge"), event(2, window))
    assert ["text" in one["session"] for one in found] == [True, False], "one may be larger, as with events"


class World:
    """Followers near the head of a log."""

    def __init__(self) -> None:
        self.log = MemoryLog("0badcafe")
        self.tail = Tail(0, 1000)
        self.pages = Pages(self.log, self.tail, VirtualClock())

    async def commit(self, *events: Event) -> None:
        await self.log.append(Batch(events))
        self.tail.extend(list(events))
        self.pages.wake()

    def follow(self, place: int = 0) -> Follower:
        return Follower(self.pages, Selection(target="t"), Start((place, place, place), None, False))

    async def next(self, follower: Follower) -> Page:
        got = await follower.next()
        assert isinstance(got, Page)
        return got


async def written(beside: Beside, page: Page, follower: Follower, wrote: list[list[int]]) -> list[Page]:
    """Do what a stream does with a page."""
    ready = []
    with beside.looking(page) as looking:
        for piece in page.pieces():
            ready.append(await looking.beside(piece, follower))
            wrote.append([item.event.seq for item in piece.items])
    return ready


def test_p0_and_what_wants_nothing_do_not_wait_for_others() -> None:
    async def main(clock: VirtualClock) -> None:
        world, contexts = World(), FakeContexts({"s-1": "said"}, {"b.py": "x"})
        contexts.late["a.py"] = asyncio.Event()
        await world.commit(event(1), event(2, None), event(3, lane=P0, subject="b.py"), event(4, None, P0))
        follower, wrote = world.follow(), list[list[int]]()
        asked = await world.next(follower)
        writing = asyncio.create_task(written(Beside(contexts), asked, follower, wrote))
        await pass_time(0.1)
        assert wrote == [[3, 4]], "in this page everything before the first P1"
        contexts.late["a.py"].set()
        pieces = await writing
        assert wrote == [[3, 4], [1, 2]]
        assert [piece.end for piece in pieces] == [asked.items[1].after, asked.end]
        unknown = {"unavailable": "unknown_file"}
        assert contexts_of(pieces[0]) == [{"session": shown("said"), "graph": shown("x")}, None]
        assert contexts_of(pieces[1]) == [{"session": shown("said"), "graph": unknown}, None]

    play(main)


def test_a_p0_that_comes_meanwhile_ends_the_wait() -> None:
    async def main(clock: VirtualClock) -> None:
        world, contexts = World(), FakeContexts({"s-1": "said"})
        contexts.late["a.py"] = asyncio.Event()
        await world.commit(event(1))
        follower = world.follow()
        writing = asyncio.create_task(written(Beside(contexts), await world.next(follower), follower, []))
        await pass_time(0.1)
        await world.commit(event(2, lane=P1))
        await world.commit(event(3, lane=P0, target="somebody else"))
        await pass_time(0.1)
        assert not writing.done(), "neither a P1 nor a P0 for others is in a hurry here"
        await world.commit(event(4, None, P0))
        ready = await writing
        assert clock.now < LOOK_S
        assert contexts_of(ready[0]) == [{"session": shown("said"), "graph": {"unavailable": "overtaken"}}], (
            "what was there in time is there"
        )
        assert [item.event.seq for item in (await world.next(follower)).items] == [4, 2]
        assert not world.pages._moved

    play(main)


def test_p0_waits_for_its_own_context() -> None:
    async def main(clock: VirtualClock) -> None:
        world, contexts = World(), FakeContexts()
        contexts.late["a.py"] = asyncio.Event()
        await world.commit(event(1, lane=P0))
        follower = world.follow()
        writing = asyncio.create_task(written(Beside(contexts), await world.next(follower), follower, []))
        await pass_time(0.1)
        await world.commit(event(2, lane=P0))
        await writing
        assert clock.now == LOOK_S

    play(main)


def test_further_behind_nobody_overtakes() -> None:
    async def main(clock: VirtualClock) -> None:
        world, contexts = World(), FakeContexts()
        contexts.late["a.py"] = asyncio.Event()
        await world.commit(event(1), event(2, None, P0))
        follower = world.follow()
        _, first = await follower.read(1)
        assert not first.reached_head
        await written(Beside(contexts), first, follower, [])
        assert clock.now == LOOK_S

    play(main)


async def test_a_page_that_wants_context_is_not_shared() -> None:
    world = World()
    await world.commit(event(1), event(2, None))
    one, other = await world.next(world.follow()), await world.next(world.follow())
    assert one is not other and one.wants_context
    one, other = await world.next(world.follow(1)), await world.next(world.follow(1))
    assert one is other and not one.wants_context
