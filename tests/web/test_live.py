"""The dashboards' stream without a server: browsers are senders that a test holds back."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from buses import FaultyLog, running_bus, until
from handlers import scope_of
from msgspec import Raw

from herdr.bus.bus import Bus
from herdr.clock import SystemClock
from herdr.errors import HerdrError
from herdr.event import Draft
from herdr.web import live as live_module
from herdr.web.asgi import ABORT, Message, Reply
from herdr.web.auth import ANYONE
from herdr.web.live import WAITING_MAX, Block, Live, LiveStream
from herdr.web.samples import Samples
from herdr.web.streams import Streams


class NoLocks:
    held: dict[str, int] = {}  # noqa: RUF012 - nothing is put in
    waiting = 0


class HandClock(SystemClock):
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Browser:
    """One that reads when it is let."""

    def __init__(self) -> None:
        self.taken = b""
        self.pieces = 0
        self.reads = asyncio.Event()
        self.reads.set()
        self.left = asyncio.Event()
        self.is_cut = self.is_sent_to = False
        self.ended = False

    async def send(self, message: Message) -> None:
        self.is_sent_to = True
        await self.reads.wait()
        self.is_sent_to = False
        self.taken += message.get("body", b"")
        self.pieces += 1
        self.ended |= message["type"] == "http.response.body" and not message.get("more_body", False)

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    def cut(self) -> None:
        self.is_cut = True
        self.reads.set()
        self.left.set()

    def told(self, kind: str) -> list[dict[str, Any]]:
        blocks = [block.split("\n") for block in self.taken.decode().split("\n\n")]
        return [json.loads(b[1].removeprefix("data: ")) for b in blocks if b[0] == f"event: {kind}"]

    def events(self) -> list[str]:
        return [event["data"] for told in self.told("events") for event in told["events"]]


class World:
    def __init__(self, bus: Bus, live: Live, streams: Streams, clock: HandClock) -> None:
        self.bus, self.live, self.streams, self.clock = bus, live, streams, clock
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> Browser:
        browser = Browser()
        scope = {**scope_of(), ABORT: browser.cut}
        answer = self.live.follow(scope, browser.receive, Reply(scope, browser.send), ANYONE)
        self.tasks.append(asyncio.create_task(answer))
        await until(lambda: browser.pieces == 2 or self.tasks[-1].done())
        if self.tasks[-1].done():
            await self.tasks.pop()
        return browser

    async def publish(self, *data: str, size: int = 0) -> None:
        payloads = [Raw(json.dumps(text.ljust(size)).encode()) for text in data]
        drafts = [Draft("tool.result", data=payload) for payload in payloads]
        await self.bus.publisher.publish(drafts, "ci")


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(live_module, "BEAT_S", 0.001)
    clock = HandClock()
    async with running_bus(FaultyLog()) as bus:
        streams = Streams(3, 30.0, clock, lambda: 0.5)
        world = World(bus, Live(bus, Samples(bus, streams, NoLocks(), list, clock), streams), streams, clock)
        world.live.start()
        yield world
        world.live.stop()
        for task in world.tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_all_browsers_are_told_the_same(world: World) -> None:
    first = await world.open()
    await world.publish("a")
    await until(lambda: first.events() == ["a"])
    second = await world.open()
    assert [event["data"] for event in second.told("hello")[0]["recent"]] == ["a"]
    assert second.told("hello")[0]["head"] == 1
    await world.publish("b")
    await until(lambda: first.events() == ["a", "b"] and second.events() == ["b"])
    await until(lambda: second.told("sample"))
    assert second.told("sample")[0]["sse"] == 2
    assert b"id:" not in second.taken


async def test_what_a_new_one_begins_with_is_told_to_the_others_then_and_to_it_once(world: World) -> None:
    world.live.stop()
    first = await world.open()
    await world.publish("a")
    second = await world.open()
    await until(lambda: first.events() == ["a"])
    world.live.start()
    await world.publish("b")
    await until(lambda: first.events() == ["a", "b"] and second.events())
    assert second.events() == ["b"]


async def test_what_a_slow_browser_lost_is_counted(world: World) -> None:
    slow, other = await world.open(), await world.open()
    slow.reads.clear()
    sent = 0
    while sent * 5000 < 2 * WAITING_MAX:
        batch = [f"{sent + n}" for n in range(20)]
        sent += 20
        await world.publish(*batch, size=5000)
        await until(lambda: other.told("events") and int(other.events()[-1]) == sent - 1)  # noqa: B023
    slow.reads.set()
    await world.publish("last")
    await until(lambda: slow.events() and slow.events()[-1] == "last")
    told = slow.told("events")
    shown, skipped = len(slow.events()), sum(block["skipped"] for block in told)
    assert skipped > 0 and shown + skipped == sent + 1
    assert sum(block["skipped"] for block in other.told("events")) == 0


async def test_what_waits_for_a_browser_is_bounded(world: World) -> None:
    browser = Browser()
    stream = LiveStream(world.streams, Reply(scope_of(), browser.send), scope_of())
    for n in range(1000):
        stream.put(Block(b"%d" % (n % 10) * 10_000, 3))
    stream.put(Block(b""))
    world.streams.stopping = True
    await stream.run(b"", browser.receive)
    lost, _, rest = browser.taken.partition(b"\n\n")[2].partition(b"\n\n")
    waited = len(rest.partition(b"event: herdr.bye")[0])
    assert WAITING_MAX - 10_000 < waited <= WAITING_MAX
    assert json.loads(lost.partition(b"data: ")[2])["skipped"] == (1000 - waited // 10_000) * 3


async def test_one_that_takes_nothing_is_cut_off_and_makes_room(world: World) -> None:
    stalled = await world.open()
    stalled.reads.clear()
    await world.publish("a")
    await until(lambda: stalled.is_sent_to)
    world.clock.now += 29
    world.streams.look_round()
    assert not stalled.is_cut
    world.clock.now += 2
    world.streams.look_round()
    assert stalled.is_cut
    await until(lambda: world.tasks[0].done())
    assert (len(world.streams), world.streams.sse) == (0, 0)


async def test_a_silent_stream_is_kept_alive(world: World) -> None:
    world.live.stop()
    browser = await world.open()
    world.clock.now += 15
    world.streams.look_round()
    await until(lambda: browser.taken.endswith(b": keep-alive\n\n"))


async def test_there_are_as_many_as_connections_are_allowed(world: World) -> None:
    browsers = [await world.open() for _ in range(3)]
    with pytest.raises(HerdrError) as refused:
        await world.open()
    assert refused.value.code == "overloaded" and "max_connections" in refused.value.detail
    browsers[0].left.set()
    await until(lambda: world.tasks[0].done())
    assert (await world.open()).told("hello")


async def test_every_browser_gets_what_there_was_and_a_goodbye(world: World) -> None:
    browsers = [await world.open(), await world.open()]
    await world.streams.say_goodbye()
    for browser in browsers:
        assert browser.ended and browser.told("herdr.bye") == [{"retry_ms": 2500}]
    assert len(world.streams) == 0


async def test_a_mistake_does_not_end_the_stream(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    browser = await world.open()

    def broken(*_: object) -> None:
        raise ValueError("planted")

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(Samples, "take", broken)
        await until(lambda: "planted" in caplog.text)
    await world.publish("after")
    await until(lambda: browser.events() == ["after"])
