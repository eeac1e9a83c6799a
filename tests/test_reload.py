"""The configuration's file while the gateway runs: what is told of it, and a folder that cannot be watched."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from buses import FaultyLog, running_bus, until
from watchfiles import awatch

from herdr import reload
from herdr.bus.bus import Bus
from herdr.config import ConfigError, Problem, RouteRule
from herdr.errors import HerdrError, InvalidInput
from herdr.reload import RoutesFile


@pytest.fixture
async def bus() -> AsyncIterator[Bus]:
    async with running_bus(FaultyLog()) as bus:
        yield bus


def failing(error: HerdrError) -> Any:
    def read() -> Sequence[RouteRule]:
        raise error

    return read


@pytest.mark.parametrize(
    ("error", "count"),
    [
        (ConfigError([Problem("/home/ann/h.yaml:1:1", "x", "secret"), Problem("y", "z", "secret")]), 2),
        (InvalidInput("/home/ann: secret", "bad_rule"), 1),
    ],
)
async def test_what_is_wrong_is_for_the_log_alone(
    bus: Bus, caplog: pytest.LogCaptureFixture, error: HerdrError, count: int
) -> None:
    RoutesFile(None, failing(error), bus).reload()
    await until(lambda: bus.head == 1)
    event = await bus.event(1)
    assert b'"problems":%d' % count in event.body
    assert b"secret" not in event.body and b"/home" not in event.body
    assert "secret" in caplog.text


async def test_a_watch_that_fails_is_tried_again(
    bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [OSError(28, "no watches left"), ExceptionGroup("of a task group", [RuntimeError("x")])]

    def failing_at_first(*args: Any, **kwargs: Any) -> Any:
        if failures:
            raise failures.pop()
        return awatch(*args, **kwargs)

    monkeypatch.setattr(reload, "RETRY_MIN_S", 0.01)
    monkeypatch.setattr(reload, "awatch", failing_at_first)
    file = tmp_path / "later" / "herdr.yaml"
    rules = [RouteRule("a", "t", "one")]
    routes = RoutesFile(file, lambda: rules, bus)

    def names() -> list[str]:
        return [listed.rule.name for listed in bus.rulebook.listed()]

    async with asyncio.timeout(20), routes.watched():
        await until(lambda: "the folder is missing" in caplog.text)
        file.parent.mkdir()
        file.write_text("1")
        await until(lambda: names() == ["one"])
        await until(lambda: not failures)
        rules[:] = [RouteRule("a", "t", "two")]
        while names() != ["two"]:  # the first may come before the watch is in place
            file.write_text("22")
            await asyncio.sleep(0.01)
    assert caplog.text.count("is not watched for") >= 3


async def test_the_pause_between_attempts_grows_to_a_bound(
    bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 10:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await RoutesFile(tmp_path / "missing" / "file", list, bus)._watch()
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


async def test_a_change_between_the_start_and_the_first_look_is_seen(bus: Bus, tmp_path: Path) -> None:
    file = tmp_path / "herdr.yaml"
    file.write_text("1")
    routes = RoutesFile(file, lambda: [RouteRule("a", "t", "one")], bus)
    file.write_text("22")
    async with routes.watched():
        await until(lambda: [listed.rule.name for listed in bus.rulebook.listed()] == ["one"])
