"""A whole bus from one seed: publishers, followers and a disk that fails now and then, in shuffled order.

A failure names its seed; the same seed plays the same publishers, filters and faults again.
"""

import asyncio
import random

import msgspec
import pytest
from buses import FaultyLog, running_bus

from herdr.bus.bus import Bus
from herdr.bus.cursor import format_cursor
from herdr.bus.follow import Follower
from herdr.bus.page import Page
from herdr.bus.select import Selection
from herdr.errors import LogUnavailable
from herdr.event import Draft, Positions

SEEDS = 60
TYPES = ("user.message", "tool.result", "test.failed", "index.updated")


async def publish(
    bus: Bus, rng: random.Random, name: str, count: int, accepted: dict[tuple[str, str], int]
) -> None:
    """Send events, some of them twice, and again whenever the log failed."""
    sent = [
        Draft(rng.choice(TYPES), id=f"{n}", source=name, data=msgspec.Raw(b'"%d"' % n)) for n in range(count)
    ]
    place = 0
    while place < len(sent):
        batch = sent[place : place + rng.randint(1, 9)]
        twice = batch[: rng.choice([0, 0, 0, 1])]
        try:
            receipts = await bus.publisher.publish([*batch, *twice], "nobody")
        except LogUnavailable:
            continue
        for receipt in receipts:
            if receipt.status == "dropped":  # with 30 places, and a disk that fails, background events may be
                continue
            assert receipt.seq is not None
            known = accepted.setdefault((name, receipt.id), receipt.seq)
            assert known == receipt.seq
        place += len(batch) if rng.random() < 0.8 else rng.randint(0, len(batch))


async def follow(bus: Bus, rng: random.Random, selection: Selection, done: asyncio.Event) -> list[int]:
    """Follow, now and then cut off in the middle of a page and resumed from the last event seen."""
    seen: list[int] = []
    place: Positions = (0, 0, 0)
    while True:
        follower = await bus.subscriptions.open(selection, format_cursor(bus.epoch, place))
        for _ in range(rng.randint(1, 6)):
            page = await next_page(follower, done)
            if page is None:
                return seen
            cut = rng.randint(0, len(page.items)) if rng.random() < 0.3 else len(page.items)
            seen.extend(item.event.seq for item in page.items[:cut])
            if cut:
                place = page.items[cut - 1].after
            if cut < len(page.items):
                break
            place = page.end
            for _ in range(rng.choice([0, 0, 1, 5])):
                await asyncio.sleep(0)


async def next_page(follower: Follower, done: asyncio.Event) -> Page | None:
    """Return the next page; None once everything is published and read."""
    waiting = asyncio.ensure_future(follower.next())
    ended = asyncio.ensure_future(done.wait())
    await asyncio.wait([waiting, ended], return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    if not waiting.done():
        follower.poke()
    got = await waiting
    assert isinstance(got, Page)
    return got if got.items or not done.is_set() else None


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_nothing_is_lost_or_repeated(seed: int) -> None:
    rng = random.Random(seed)
    log = FaultyLog(lambda: rng.random() < 0.02)
    accepted: dict[tuple[str, str], int] = {}
    done = asyncio.Event()
    selections = [Selection(), Selection(type=("test.*",)), Selection(priority=("P0", "P2"))]
    buffer_size = rng.choice([30, 10_000])  # a short tail makes slow followers read from the log
    async with running_bus(log, settings={"buffer_size": buffer_size}) as bus:
        bus._writer._retry_s = 0.0
        followers = [asyncio.create_task(follow(bus, rng, s, done)) for s in selections for _ in range(2)]
        async with asyncio.TaskGroup() as publishers:
            for number in range(rng.randint(1, 4)):
                publishers.create_task(publish(bus, rng, f"p{number}", rng.randint(1, 80), accepted))
        done.set()
        seen = await asyncio.gather(*followers)
    stored = {(e.source, e.id): e.seq for e in log._events.values()}
    assert stored == accepted
    assert sorted(log._events) == list(range(1, log.head + 1))
    for selection, seqs in zip([s for s in selections for _ in range(2)], seen, strict=True):
        wanted = [e.seq for e in log._events.values() if _fits(selection, e.type, e.lane)]
        assert sorted(seqs) == wanted, f"seed {seed}: {selection}"


def _fits(selection: Selection, type_: str, lane: int) -> bool:
    if selection.type:
        return type_.startswith("test.")
    return lane in (0, 2) if selection.priority else True
