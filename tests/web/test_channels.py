"""The sending side of one WebSocket: several follows, one socket, and the heartbeat that looks at them."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from buses import FaultyLog, running_bus, until

from herdr.bus.bus import Bus
from herdr.clock import SystemClock
from herdr.errors import InvalidInput
from herdr.event import Draft
from herdr.web.asgi import Message
from herdr.web.channels import Channels
from herdr.web.frames import Follow
from herdr.web.query import ATTRS_MAX
from herdr.web.socket import Socket
from herdr.web.streams import KEEP_ALIVE_S, Streams

STALL_S = 30.0


class HandClock(SystemClock):
    """Moves when told."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class World:
    """One WebSocket of which the test is the client."""

    def __init__(self, bus: Bus, log: FaultyLog) -> None:
        self.bus = bus
        self.log = log
        self.clock = HandClock()
        self.frames: list[dict[str, Any]] = []
        self.takes = asyncio.Event()
        self.takes.set()
        self.cut = False
        self.streams = Streams(10, STALL_S, self.clock, lambda: 0.0)
        self.socket = Socket(self._send, self.streams.now, False, self._abort)
        self.channels = Channels(bus.subscriptions, self.streams, self.socket, bus.epoch)

    async def _send(self, message: Message) -> None:
        await self.takes.wait()
        if message["type"] == "websocket.send":
            self.frames.append(json.loads(message["text"]))

    def _abort(self) -> None:
        self.cut = True

    def of(self, ref: int) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame.get("ref") == ref]

    async def follow(self, ref: int, **fields: Any) -> None:
        await self.channels.open(Follow(ref, fields))
        await until(lambda: self.of(ref))

    async def publish(self, type_: str) -> None:
        await self.bus.publisher.publish([Draft(type_)], "test")

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    log = FaultyLog()
    async with running_bus(log) as bus:
        world = World(bus, log)
        yield world
        world.takes.set()
        world.channels.close_all()


async def test_a_quiet_follow_beside_a_busy_one_is_told_its_cursor(world: World) -> None:
    await world.follow(1, type="tool.*")
    await world.follow(2, type="test.*")
    for _ in range(3):
        world.clock.now += KEEP_ALIVE_S / 2
        await world.publish("tool.result")
        await until(lambda: world.of(1)[-1]["events"])
        world.streams.look_round()
        await world.settle()
    quiet = world.of(2)
    assert len(quiet) == 2 and quiet[1]["events"] == []
    assert quiet[1]["cursor"] in [frame["cursor"] for frame in world.of(1)]
    assert all(frame["events"] for frame in world.of(1)[1:]), "the busy one needs no empty frames"


async def test_a_cursor_that_has_not_moved_is_not_said_again(world: World) -> None:
    await world.follow(1)
    for _ in range(3):
        world.clock.now += KEEP_ALIVE_S
        world.streams.look_round()
        await world.settle()
    assert len(world.of(1)) == 1


async def test_writers_that_come_later_do_not_hide_that_the_client_has_stalled(world: World) -> None:
    await world.follow(1)
    await world.follow(2, type="nothing")
    world.takes.clear()
    await world.publish("tool.result")
    await until(lambda: world.socket.writing_since is not None)
    for _ in range(4):
        world.clock.now += STALL_S / 4
        another = asyncio.create_task(world.socket.answer({"op": "pong"}))
        await world.settle()
        another.cancel()
        await world.settle()
    assert world.socket.writing_since == 0.0
    world.streams.look_round()
    assert not world.cut
    world.clock.now += 1
    world.streams.look_round()
    assert world.cut


async def test_a_client_that_takes_again_is_not_cut(world: World) -> None:
    await world.follow(1)
    world.takes.clear()
    await world.publish("tool.result")
    await until(lambda: world.socket.writing_since is not None)
    world.clock.now += STALL_S + 1
    world.takes.set()
    await until(lambda: world.of(1)[-1]["events"])
    world.streams.look_round()
    await world.settle()
    assert not world.cut and world.socket.writing_since is None


async def test_a_defect_ends_one_follow_with_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await world.follow(1, type="tool.*")
    await world.follow(2, type="test.*")
    follower = world.channels._open[1].follower

    async def broken() -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(follower, "next", broken)
    await world.publish("tool.result")  # what it waits for now was called before
    await world.publish("tool.result")
    await until(lambda: world.of(1)[-1]["op"] == "error")
    assert world.of(1)[-1]["code"] == "internal"
    assert "planted" in caplog.text and "planted" not in str(world.frames)
    await world.publish("test.failed")
    await until(lambda: world.of(2)[-1]["events"])
    await world.follow(1, type="tool.*")  # the ref is free again


async def test_attributes_are_replaced_but_for_those_of_the_follow(world: World) -> None:
    await world.follow(1, attrs={"a": "own"})
    await world.follow(2)
    world.channels.set_attributes({"a": "1", "b": "2"})
    await world.follow(3, attrs={"b": "own"})
    world.channels.set_attributes({"a": "3", "c": "4"})
    shown = {ref: dict(channel.follower.selection.attrs) for ref, channel in world.channels._open.items()}
    assert shown == {1: {"a": "own", "c": "4"}, 2: {"a": "3", "c": "4"}, 3: {"a": "3", "b": "own", "c": "4"}}
    with pytest.raises(InvalidInput):
        world.channels.set_attributes({str(n): "" for n in range(ATTRS_MAX + 1)})
    assert dict(world.channels._open[2].follower.selection.attrs) == {"a": "3", "c": "4"}


async def test_after_the_goodbye_nothing_is_written(world: World) -> None:
    await world.socket.say_goodbye(2000)
    with pytest.raises(OSError, match="goodbye"):
        await world.socket.answer({"op": "pong"})
    assert world.frames == [{"op": "bye", "retry_ms": 2000}]
