"""One suite for every log: the fixtures that open a fresh one, and the events to put in."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from herdr.bus.log import Log
from herdr.event import Delivery, Envelope, Event, restore_event
from herdr.storage.memory import MemoryLog
from herdr.storage.retention import Retention
from herdr.storage.sqlite.log import SqliteLog

DAY_US = 24 * 3600 * 1_000_000


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


EventMaker = Callable[..., Event]
Opener = Callable[..., Awaitable[Log]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def make_event(clock: FakeClock) -> EventMaker:
    """Make a whole event: `make_event(seq, lane=1, size=0, targets=())`."""

    def make(seq: int, lane: int = 1, size: int = 0, targets: tuple[str, ...] = ()) -> Event:
        envelope = Envelope(
            id=f"id-{seq}",
            type="file.changed",
            source="editor",
            workspace="default",
            class_="tool",
            priority=f"P{lane}",
            tags=("a",),
            data=msgspec.Raw(b'"' + b"x" * size + b'"'),
            subject=f"src/{seq}.py",
        )
        event = restore_event(seq, lane, clock.wall_us(), None, msgspec.json.encode(envelope))
        event.deliveries = tuple(
            Delivery(target, 1000, "ref", (("activity", ("edit*",)),)) for target in targets
        )
        event.replaced_ids = tuple(f"old-{target}" for target in targets)
        return event

    return make


@pytest.fixture(params=["memory", "sqlite"])
async def open_log(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Opener]:
    """Open a fresh log; whatever was opened is closed after the test."""
    opened: list[Log] = []

    async def open_(retention: Retention | None = None) -> Log:
        log: Log
        if request.param == "memory":
            log = MemoryLog("0a0b0c0d", retention, clock)
        else:
            log = await SqliteLog.open(
                tmp_path / "data" / "events.db",
                clock=clock,
                durability="os",
                retention=retention or Retention(),
                new_epoch=lambda: "0a0b0c0d",
            )
        opened.append(log)
        return log

    yield open_
    for log in opened:
        await log.close()
