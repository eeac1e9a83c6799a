"""Pages are shared between followers at one place, and never between a place then and the same place now."""

import asyncio

import msgspec
from buses import FaultyLog, running_bus, until

from herdr.bus.follow import Gap
from herdr.bus.select import Selection
from herdr.event import Draft


async def test_who_follows_an_empty_log_gets_its_first_event() -> None:
    async with running_bus(FaultyLog()) as bus:
        follower = await bus.subscriptions.open(Selection(), "0")
        first = asyncio.create_task(follower.next())
        await until(lambda: bus._pages._moved)
        await bus.publisher.publish([Draft("tool.result", data=msgspec.Raw(b"1"))], "a")
        page = await asyncio.wait_for(first, 10)
    assert not isinstance(page, Gap)
    assert [item.event.seq for item in page.items] == [1]


async def test_followers_at_one_place_share_a_page() -> None:
    async with running_bus(FaultyLog()) as bus:
        await bus.publisher.publish([Draft("tool.result", data=msgspec.Raw(b"1"))], "a")
        one, two, other = [
            await bus.subscriptions.open(selection, "0")
            for selection in (Selection(), Selection(), Selection(type=("tool.*",)))
        ]
        pages = [await follower.next() for follower in (one, two, other)]
    assert pages[0] is pages[1]
    assert pages[0] is not pages[2]
