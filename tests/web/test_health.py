import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from buses import FaultyLog, running_bus

from herdr.clock import SystemClock
from herdr.errors import LogUnavailable
from herdr.event import Draft
from herdr.web.asgi import WRITE_WHOLE, Headers, Message, Reply
from herdr.web.auth import Caller
from herdr.web.health import Health
from herdr.web.streams import Streams
from herdr.web.surface import Handler


class World:
    """The health of a bus whose log may fail."""

    def __init__(self, health: Health, streams: Streams, extra: dict[str, Any], log: FaultyLog) -> None:
        self.health = health
        self.streams = streams
        self.extra = extra
        self.log = log

    async def ask(self, handler: Handler) -> tuple[int, dict[str, Any]]:
        answers: list[tuple[int, bytes]] = []

        def write_whole(status: int, body: bytes, headers: Headers) -> bool:
            assert (b"cache-control", b"no-store") in headers
            answers.append((status, body))
            return True

        async def unused(*_: Message) -> Message:
            raise AssertionError("the answer is written in one piece, and the request has no body")

        reply = Reply({WRITE_WHOLE: write_whole}, unused)
        await handler({}, unused, reply, Caller("anyone", frozenset()))
        ((status, body),) = answers
        return status, json.loads(body)


class NoModels:
    """A pool without backends."""

    def backends(self) -> list[dict[str, Any]]:
        return []


@pytest.fixture
async def world() -> AsyncIterator[World]:
    log = FaultyLog()
    async with running_bus(log) as bus:
        streams = Streams(10, 30.0, SystemClock(), lambda: 0.0)
        extra: dict[str, Any] = {"workspaces": {}, "troubles": [], "warnings": []}
        store = {"kind": "memory"}
        health = Health(
            bus, streams, NoModels(), started=0.0, store=lambda: store, extra=lambda: extra, families=list
        )
        yield World(health, streams, extra, log)
        log.fails = lambda: False


async def fail(world: World) -> None:
    world.log.fails = lambda: True
    with pytest.raises(LogUnavailable):
        await world.health._bus.publisher.publish([Draft("a")], "s")


async def test_all_is_well(world: World) -> None:
    status, report = await world.ask(world.health.healthz)
    assert (status, report["status"], report["reasons"], report["warnings"]) == (200, "ok", [], [])
    assert (report["workspaces"], report["store"]) == ({}, {"kind": "memory"})
    assert "troubles" not in report
    assert await world.ask(world.health.readyz) == (200, {"status": "ok"})


async def test_a_warning_is_told_and_degrades_nothing(world: World) -> None:
    world.extra["warnings"] = ["auth.open: everyone may come in"]
    status, report = await world.ask(world.health.healthz)
    assert (status, report["status"], report["reasons"]) == (200, "ok", [])
    assert report["warnings"] == ["auth.open: everyone may come in"]
    assert await world.ask(world.health.readyz) == (200, {"status": "ok"})


async def test_a_trouble_degrades(world: World) -> None:
    world.extra["troubles"] = ["workspace w: its folder is gone"]
    status, report = await world.ask(world.health.healthz)
    assert (status, report["status"]) == (200, "degraded")
    assert (report["reasons"], report["warnings"]) == (["workspace w: its folder is gone"], [])
    assert await world.ask(world.health.readyz) == (200, {"status": "ok"})


async def test_a_log_that_cannot_be_written_fails_and_comes_before_other_reasons(world: World) -> None:
    world.extra["troubles"] = ["workspace w: its folder is gone"]
    await fail(world)
    status, report = await world.ask(world.health.healthz)
    assert (status, report["status"]) == (503, "failing")
    assert report["reasons"] == ["the disk is full (planted)", "workspace w: its folder is gone"]
    status, report = await world.ask(world.health.readyz)
    assert (status, report["reasons"]) == (503, ["the disk is full (planted)"])
    assert await world.ask(world.health.livez) == (200, {"status": "ok"})


async def test_during_a_stop_nobody_new_is_welcome(world: World) -> None:
    world.streams.stopping = True
    assert await world.ask(world.health.readyz) == (503, {"status": "failing", "reasons": ["stopping"]})
    assert (await world.ask(world.health.healthz))[0] == 200
