"""What the writer must not let grow, and when it must let go."""

import asyncio

import msgspec
import pytest
from buses import FaultyLog, running_bus, until

from herdr.bus import intake as intake_module
from herdr.bus import versions as versions_module
from herdr.bus import writer as writer_module
from herdr.event import Draft


def draft(number: int, type_: str = "tool.result", **fields: object) -> Draft:
    return Draft(type_, id=f"n{number}", data=msgspec.Raw(b"%d" % number), **fields)


class TidyLog(FaultyLog):
    """Notes how it was asked to tidy."""

    def __init__(self) -> None:
        super().__init__()
        self.calm: list[bool] = []

    async def tidy(self, calm: bool) -> bool:
        self.calm.append(calm)
        return False


async def test_a_flood_of_p0_does_not_keep_the_log_from_being_tidied() -> None:
    """It is asked after each batch, and told that a P0 waits: what is forced by size still has to run."""
    log = TidyLog()
    async with running_bus(log) as bus:
        await asyncio.gather(*(bus.publisher.publish([draft(n, "user.message")], "a") for n in range(600)))
        asked_under_p0 = log.calm.count(False)
    assert asked_under_p0 >= 1
    assert len(log.calm) >= len(log.batches)


async def test_a_stop_with_a_failing_log_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer_module, "STOP_GRACE_S", 0.0)
    log = FaultyLog(lambda: True)
    async with running_bus(log, settings={"debounce_ms": 1}) as bus:
        bus._writer._retry_s = 0.0
        await bus.publisher.publish([draft(1, "file.changed", subject="a.py")], "a")
        await until(lambda: bus.failure is not None)
        async with asyncio.timeout(20):
            await bus.stop()
    assert "1 deferred events are lost" in caplog.text


async def test_more_than_may_be_held_goes_straight_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_module, "HELD_BYTES_MAX", 1000)
    log = FaultyLog()
    async with running_bus(log) as bus:
        changes = [draft(n, "file.changed", subject=f"{n}.py") for n in range(12)]
        statuses = [r.status for r in await bus.publisher.publish(changes, "a")]
        held = statuses.index("accepted")
        assert set(statuses[:held]) == {"deferred"}
        assert set(statuses[held:]) == {"accepted"}
        (again,) = await bus.publisher.publish([draft(99, "file.changed", subject="0.py")], "a")
        assert again.status == "deferred", "its window is open already"
    assert log.head == 12


async def test_a_forgotten_version_leaves_the_store_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions_module, "SUBJECTS_MAX", 3)
    log = FaultyLog()
    async with running_bus(log) as bus:
        for number in range(10):
            await bus.publisher.publish([draft(number, "change.applied", subject=f"{number}.py")], "a")
        await bus.publisher.publish([draft(10)], "a")
        stored = await log.load("version")
    assert sorted(stored) == [f"default\0{number}.py" for number in (7, 8, 9)]


async def test_the_oldest_values_are_committed_first() -> None:
    log = FaultyLog()
    async with running_bus(log) as bus:
        log.held = asyncio.Event()
        first = asyncio.create_task(bus.publisher.publish([draft(0)], "a"))
        await until(lambda: bus.publisher.depths != (0, 0, 0))
        waiting = [asyncio.create_task(bus.remember("note", f"{n:04}", b"1")) for n in range(600)]
        for _ in range(10):
            await asyncio.sleep(0)
        log.held.set()
        await waiting[0]
        later = sum(task.done() for task in waiting[300:])
        await asyncio.gather(first, *waiting)
    assert later == 0
