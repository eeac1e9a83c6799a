"""A stream that waits for context, in virtual time: what it may hold up, and for how long."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from buses import FaultyLog, running_bus, until
from fake_contexts import FakeContexts, shown
from virtual_time import VirtualClock, pass_time, run

from herdr.bus.beside import LOOK_S, Beside
from herdr.bus.bus import Bus
from herdr.config import RouteRule
from herdr.config.routes import RouteContext
from herdr.event import Draft
from herdr.web.asgi import Message, Reply, Scope
from herdr.web.auth import ANYONE
from herdr.web.channels import Channels
from herdr.web.follow import FollowEvents
from herdr.web.frames import Follow
from herdr.web.socket import Socket
from herdr.web.streams import Streams

RULES = [
    RouteRule("slow.*", "t", context=RouteContext(64, True), priority="P1", timeout_ms=60_000),
    RouteRule("plain.*", "t", priority="P1", timeout_ms=60_000),
    RouteRule("urgent.*", "t", priority="P0"),
]


class World:
    """One follower as the target `t`, over SSE or the WebSocket, and the contexts that it waits for."""

    def __init__(self, bus: Bus, clock: VirtualClock, way: str) -> None:
        self.bus = bus
        self.clock = clock
        self.contexts = FakeContexts({"s-1": "said"}, {"a.py": "def a()"})
        self.seen: list[dict[str, Any]] = []
        self._beside = Beside(self.contexts)
        self._streams = Streams(10, 30.0, clock, lambda: 0.0)
        self._left = asyncio.Event()
        self._way = way

    async def follow(self) -> None:
        if self._way == "sse":
            self._task = asyncio.create_task(self._follow_sse())
            await until(lambda: len(self._streams))
            return
        socket = Socket(self._take_frame, self._streams.now, False, None)
        self.channels = Channels(self.bus.subscriptions, self._streams, socket, self.bus.epoch, self._beside)
        await self.channels.open(Follow(1, {"as": "t"}))

    async def leave(self) -> None:
        self._left.set()
        if self._way == "sse":
            await self._task
        else:
            self.channels.close_all()
        await pass_time(0.001)

    async def publish(self, *types: str) -> None:
        drafts = [Draft(type_, session="s-1", subject="a.py") for type_ in types]
        await self.bus.publisher.publish(drafts, "test")

    def types(self) -> list[str]:
        return [event["type"] for event in self.seen]

    async def _follow_sse(self) -> None:
        scope: Scope = {
            "method": "GET",
            "query_string": b"as=t",
            "headers": [(b"accept", b"text/event-stream")],
        }
        handler = FollowEvents(self.bus.subscriptions, self._streams, self.bus.epoch, self._beside)
        await handler(scope, self._receive, Reply(scope, self._take_block), ANYONE)

    async def _receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _take_block(self, message: Message) -> None:
        lines = message.get("body", b"").split(b"\n")
        self.seen += [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]

    async def _take_frame(self, message: Message) -> None:
        self.seen += json.loads(message["text"])["events"]


def play(way: str, main: Callable[[World], Awaitable[None]]) -> None:
    clock = VirtualClock()

    async def whole() -> None:
        async with running_bus(FaultyLog(), RULES) as bus:
            world = World(bus, clock, way)
            await world.follow()
            await main(world)
            await world.leave()

    run(whole(), clock)


both_ways = pytest.mark.parametrize("way", ["sse", "websocket"])


@both_ways
def test_a_p0_does_not_wait_for_the_context_of_others(way: str) -> None:
    async def main(world: World) -> None:
        world.contexts.late["a.py"] = asyncio.Event()
        await world.publish("slow.news")
        await until(lambda: world.contexts.under_way)
        assert world.seen == []
        await world.publish("urgent.word")
        await until(lambda: len(world.seen) == 2)
        assert world.clock.now < LOOK_S
        assert world.types() == ["slow.news", "urgent.word"]
        overtaken = {"session": shown("said"), "graph": {"unavailable": "overtaken"}}
        assert world.seen[0]["context"] == overtaken and "context" not in world.seen[1]

    play(way, main)


@both_ways
def test_what_stands_before_goes_out_at_once(way: str) -> None:
    async def main(world: World) -> None:
        world.contexts.late["a.py"] = asyncio.Event()
        await world.publish("plain.news", "slow.news", "plain.news", "urgent.word")
        await until(lambda: len(world.seen) == 2)
        assert world.types() == ["urgent.word", "plain.news"] and world.clock.now < LOOK_S
        world.contexts.late["a.py"].set()
        await until(lambda: len(world.seen) == 4)
        assert world.seen[2]["context"] == {"session": shown("said"), "graph": shown("def a()")}

    play(way, main)


@both_ways
def test_nobody_waits_longer_than_a_second(way: str) -> None:
    async def main(world: World) -> None:
        world.contexts.late = {"a.py": asyncio.Event(), "s-1": asyncio.Event()}
        began = world.clock.now
        await world.publish("slow.news", "slow.news")
        await pass_time(LOOK_S + 0.01)
        assert len(world.seen) == 2 and world.clock.now - began < LOOK_S + 0.1
        missing = {"unavailable": "timeout"}
        assert world.seen[1]["context"] == {"session": missing, "graph": missing}

    play(way, main)


@both_ways
def test_who_leaves_while_it_waits_ends_its_look_ups(way: str) -> None:
    async def main(world: World) -> None:
        world.contexts.late = {"a.py": asyncio.Event(), "s-1": asyncio.Event()}
        await world.publish("slow.news")
        await until(lambda: world.contexts.under_way == 2)
        await world.leave()
        assert world.contexts.under_way == 0 and world.clock.now < 2 * LOOK_S

    play(way, main)
