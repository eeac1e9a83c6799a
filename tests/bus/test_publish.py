"""The gateway's own events: `record` waits for the log, and says what became of each."""

import asyncio
import json

import pytest
from buses import FaultyLog, running_bus, until

from herdr.config import RouteRule
from herdr.errors import LogUnavailable
from herdr.event import Lane

EVERYTHING = RouteRule(event="*", target="watcher", name="all")


async def test_events_are_in_the_log_when_they_are_recorded() -> None:
    log = FaultyLog()
    async with running_bus(log) as bus:
        events = [bus.publisher.own_event("model.call", {"n": n}) for n in range(3)]
        receipts = await bus.publisher.record(events)
        assert [(r.status, r.seq) for r in receipts] == [("accepted", 1), ("accepted", 2), ("accepted", 3)]
        kept = await log.read((0, 0, 0), 10, 2**20)
        assert [json.loads(event.body)["data"]["n"] for event in kept] == [0, 1, 2]
        assert {event.source for event in kept} == {"herdr"}


async def test_nothing_is_recorded_before_the_commit() -> None:
    log = FaultyLog()
    log.held = asyncio.Event()
    async with running_bus(log) as bus:
        task = asyncio.create_task(bus.publisher.record([bus.publisher.own_event("model.call", {})]))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not task.done() and log.head == 0
        log.held.set()
        assert [receipt.status for receipt in await task] == ["accepted"]


async def test_a_log_that_fails_is_told() -> None:
    log = FaultyLog()
    async with running_bus(log) as bus:
        log.fails = lambda: True
        with pytest.raises(LogUnavailable, match="planted"):
            await bus.publisher.record([bus.publisher.own_event("model.call", {})])
        log.fails = lambda: False
        await until(lambda: bus.failure is None)


async def test_receipts_say_which_were_dropped() -> None:
    log = FaultyLog()
    log.held = asyncio.Event()
    async with running_bus(log, settings={"buffer_size": 1}) as bus:
        own = bus.publisher.own_event
        events = [own("model.call", {"n": n}, lane=Lane.P2 if n else Lane.P1, session="s") for n in range(3)]
        task = asyncio.create_task(bus.publisher.record(events))
        await until(lambda: bus.publisher.dropped.get("overloaded"))
        log.held.set()
        receipts = await task
        assert [r.status for r in receipts] == ["accepted", "dropped", "dropped"]
        assert receipts[1].reason == "overloaded"


@pytest.mark.parametrize(("lane", "routed"), [(Lane.P1, True), (Lane.P2, False)])
async def test_an_own_event_is_routed_only_when_it_is_to_be(lane: Lane, routed: bool) -> None:
    async with running_bus(FaultyLog(), [EVERYTHING]) as bus:
        event = bus.publisher.own_event("session.message", {}, lane=lane, routed=routed, session="s")
        assert event.lane is lane and event.session == "s"
        assert bool(event.deliveries) == routed
