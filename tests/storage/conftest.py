"""A clock moved by hand, whole events, and SQLite logs that are closed after the test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from herdr.event import Envelope, Event, restore_event
from herdr.storage.retention import Retention
from herdr.storage.sqlite.log import SqliteLog

Opener = Callable[..., Awaitable[SqliteLog]]


class FakeClock:
    """Both clocks, moved by hand."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000_000_000
        self.passed = 0.0

    def wall_us(self) -> int:
        return self.wall

    def monotonic(self) -> float:
        return self.passed

    def advance(self, seconds: float) -> None:
        self.passed += seconds
        self.wall += round(seconds * 1_000_000)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def whole_event(seq: int, accepted_us: int, lane: int = 1, data: bytes = b"null") -> Event:
    envelope = Envelope(
        f"id-{seq}", "file.changed", "editor", "default", "tool", f"P{lane}", ("a",), msgspec.Raw(data)
    )
    return restore_event(seq, lane, accepted_us, None, msgspec.json.encode(envelope))


@pytest.fixture(scope="session")
def event_at() -> Callable[..., Event]:
    """Make an event: `event_at(seq, accepted_us, lane=1, data=b"null")`."""
    return whole_event


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "events.db"


@pytest.fixture
async def open_log(path: Path, clock: FakeClock) -> AsyncIterator[Opener]:
    """Open the log at `path` (or another); `durability`, `retention` and the epoch have defaults."""
    opened: list[SqliteLog] = []

    async def open_(at: Path = path, epoch: str = "0a0b0c0d", **options: Any) -> SqliteLog:
        options = {"durability": "os", "retention": Retention(), "clock": clock} | options
        log = await SqliteLog.open(at, new_epoch=lambda: epoch, **options)
        opened.append(log)
        return log

    yield open_
    for log in opened:
        await log.close()
