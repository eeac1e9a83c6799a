from typing import Any

import pytest
from buses import FaultyLog, running_bus
from msgspec import Raw

from herdr.bus.publish import Publisher
from herdr.bus.subscriptions import Subscriptions
from herdr.clock import SystemClock
from herdr.event import Draft
from herdr.web.samples import KEPT, Samples
from herdr.web.streams import Streams


class SetClock(SystemClock):
    def __init__(self) -> None:
        self.wall = 1_700_000_000_123_456

    def wall_us(self) -> int:
        return self.wall


class Locks:
    held = {"write": 2, "read": 3}  # noqa: RUF012 - as the desk counts
    waiting = 4


BACKENDS: list[dict[str, Any]] = [
    {"running": 1, "slots": 4, "waiting": 2},
    {"running": 2, "slots": None, "waiting": 0},  # one that has no slots of its own
]


async def test_a_sample_says_what_there_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subscriptions, "expired", 5)
    monkeypatch.setattr(Publisher, "dropped", {"overloaded": 6})
    clock = SetClock()
    async with running_bus(FaultyLog()) as bus:
        streams = Streams(9, 30.0, clock, lambda: 0.0)
        streams.sse = 7
        await bus.publisher.publish([Draft("tool.result", data=Raw(b"1"))], "ci")
        sample = Samples(bus, streams, Locks(), lambda: BACKENDS, clock).take()
    assert sample["dropped"] == {"rate_limited": 0, "overloaded": 6, "expired": 5}
    assert (sample["t"], sample["head"], sample["depth"]) == ("2023-11-14T22:13:20.123Z", 1, [0, 0, 0])
    assert (sample["sse"], sample["websocket"], sample["locks"], sample["lock_waiters"]) == (7, 0, 5, 4)
    assert sample["model"] == {"busy": 3, "slots": 4, "queued": 2}
    assert sample["published_per_s"] == sample["delivered_per_s"] == 0  # of whole seconds


async def test_the_last_five_minutes_are_kept() -> None:
    clock = SetClock()
    async with running_bus(FaultyLog()) as bus:
        samples = Samples(bus, Streams(9, 30.0, clock, lambda: 0.0), Locks(), list, clock)
        for _ in range(KEPT + 5):
            clock.wall += 1_000_000
            newest = samples.take()
    assert len(samples.kept) == KEPT == 300 and samples.kept[-1] is newest
    assert samples.kept[0]["t"] == "2023-11-14T22:13:26.123Z"
