"""Whole events, a clock moved by hand, and SQLite logs for tests."""

from pathlib import Path
from typing import Any

import msgspec

from herdr.event import Delivery, Envelope, Event, restore_event
from herdr.storage.retention import Retention
from herdr.storage.sqlite.log import SqliteLog

EPOCH = "0a0b0c0d"
NOW_US = 1_800_000_000_000_000


class FakeClock:
    """Both clocks, moved by hand."""

    def __init__(self) -> None:
        self.wall = NOW_US
        self.passed = 0.0

    def wall_us(self) -> int:
        return self.wall

    def monotonic(self) -> float:
        return self.passed

    def advance(self, seconds: float) -> None:
        self.passed += seconds
        self.wall += round(seconds * 1_000_000)


def make_event(
    seq: int,
    lane: int = 1,
    data: bytes = b"null",
    accepted_us: int = NOW_US,
    targets: tuple[str, ...] = (),
) -> Event:
    """Build an event as the bus does: the fields, and the encoded envelope that holds them."""
    envelope = Envelope(
        f"id-{seq}", "file.changed", "editor", "default", "tool", f"P{lane}", ("a",), msgspec.Raw(data),
        subject=f"src/{seq}.py",
    )  # fmt: skip
    event = restore_event(seq, lane, accepted_us, None, msgspec.json.encode(envelope))
    event.deliveries = tuple(Delivery(target, 1000, "ref") for target in targets)
    event.replaced_ids = tuple(f"old-{target}" for target in targets)
    return event


def text(size: int, letter: bytes = b"x") -> bytes:
    """A JSON string of that many letters."""
    return b'"' + letter * size + b'"'


async def open_sqlite(path: Path, clock: Any, epoch: str = EPOCH, **options: Any) -> SqliteLog:
    """Open a log; `durability` (os) and `retention` have defaults."""
    options = {"durability": "os", "retention": Retention()} | options
    return await SqliteLog.open(path, clock=clock, new_epoch=lambda: epoch, **options)
