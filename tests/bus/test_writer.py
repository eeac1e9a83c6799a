"""The writer and what stands around it: batches, failures of the log, the order of lanes, a clean stop."""

import asyncio
from typing import Any

import msgspec
import pytest
from buses import FaultyLog, running_bus, until
from msgspec import UNSET, UnsetType

from herdr.app.bus import build_bus
from herdr.bus.decide import Decision, Judge
from herdr.bus.log import Batch
from herdr.clock import SystemClock
from herdr.config import BusSection
from herdr.errors import LogUnavailable
from herdr.event import Draft, Lane


def draft(number: int, type_: str = "tool.result", **fields: object) -> Draft:
    return Draft(type_, id=f"n{number}", data=msgspec.Raw(b"%d" % number), **fields)


def ids(log: FaultyLog) -> list[str]:
    return [log._events[seq].id for seq in range(1, log.head + 1)]


async def test_a_receipt_comes_after_its_commit() -> None:
    log = FaultyLog()
    log.held = asyncio.Event()
    async with running_bus(log) as bus:
        waiting = asyncio.create_task(bus.publisher.publish([draft(1)], "a"))
        await until(lambda: bus.publisher.depths == (0, 0, 0) and not log.head)
        assert not waiting.done()
        log.held.set()
        (receipt,) = await waiting
    assert (receipt.status, receipt.seq, log.head) == ("accepted", 1, 1)


async def test_a_failed_commit_acknowledges_nothing_and_the_same_id_can_be_sent_again() -> None:
    failures = iter([True, False])
    log = FaultyLog(lambda: next(failures, False))
    async with running_bus(log) as bus:
        with pytest.raises(LogUnavailable):
            await bus.publisher.publish([draft(1), draft(2)], "a")
        assert bus.failure == "the disk is full (planted)"
        receipts = await bus.publisher.publish([draft(1), draft(2)], "a")
        assert [r.status for r in receipts] == ["accepted", "accepted"]
        assert bus.failure is None
    assert ids(log) == ["n1", "n2"]


async def test_a_defect_while_deciding_ends_one_batch_and_not_the_writer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    decide, left = Judge.decide, [ZeroDivisionError("planted")]

    def decide_badly_once(*args: Any) -> Decision:
        if left:
            raise left.pop()
        return decide(*args)

    monkeypatch.setattr(Judge, "decide", decide_badly_once)
    log = FaultyLog()
    async with running_bus(log) as bus:
        both = asyncio.gather(
            bus.publisher.publish([draft(1), draft(2)], "a"),
            bus.remember("target", "t", b"[1,1,1]"),
            return_exceptions=True,
        )
        assert [type(got) for got in await both] == [LogUnavailable, LogUnavailable]
        assert bus.failure is None  # the log is fine
        (receipt,) = await bus.publisher.publish([draft(1)], "a")
        await bus.remember("target", "t", b"[2,2,2]")
    assert (receipt.status, receipt.seq, ids(log)) == ("accepted", 1, ["n1"])
    assert await log.load("target") == {"t": b"[2,2,2]"}
    assert "ZeroDivisionError: planted" in caplog.text


async def test_times_of_acceptance_never_fall_whatever_the_clock_does() -> None:
    log = FaultyLog()
    clock = JumpingClock()
    for wall_us in (5_000_000, 3_000_000, 1_000_000, 9_000_000):
        bus = await build_bus(log, BusSection(), (), clock)
        await bus.start()
        for back_us in (0, 500_000):
            clock.now_us = wall_us - back_us
            await bus.publisher.publish([draft(log.head)], "a")
        await bus.stop()
    times = [event.accepted_us for event in log._events.values()]
    assert times == [5_000_000] * 6 + [9_000_000] * 2


class JumpingClock(SystemClock):
    """A wall clock that shows what the test says."""

    now_us = 0

    def wall_us(self) -> int:
        return self.now_us


async def test_a_deferred_event_outlives_a_failing_log() -> None:
    broken = True
    log = FaultyLog(lambda: broken)
    async with running_bus(log, settings={"debounce_ms": 1, "debounce_max_ms": 5}) as bus:
        (receipt,) = await bus.publisher.publish([draft(1, "file.changed", subject="a.py")], "a")
        assert receipt.status == "deferred"
        await until(lambda: bus.failure is not None)
        broken = False
        await until(lambda: log.head)
    assert ids(log) == ["n1"]


class LosingAnswers(FaultyLog):
    """Commits, and then may say that it could not."""

    loses = False

    async def append(self, batch: Batch) -> None:
        await super().append(batch)
        if self.loses:
            raise LogUnavailable("the answer was lost (planted)")


@pytest.mark.parametrize("id_", [UNSET, "given"])
async def test_a_deferred_event_whose_commit_only_seemed_to_fail_is_stored_once(id_: str | UnsetType) -> None:
    log = LosingAnswers()
    log.loses = True
    async with running_bus(log, settings={"debounce_ms": 1, "debounce_max_ms": 5}) as bus:
        bus._writer._retry_s = 0.0
        (receipt,) = await bus.publisher.publish([Draft("file.changed", id=id_, subject="a.py")], "a")
        assert receipt.status == "deferred"
        await until(lambda: bus.failure is not None)
        log.loses = False
        await until(lambda: bus.failure is None)
        (again,) = await bus.publisher.publish([Draft("file.changed", id=receipt.id, subject="a.py")], "a")
    assert (again.status, again.seq) == ("duplicate", 1)
    assert ids(log) == [receipt.id]


async def test_the_log_is_found_to_be_back_without_any_traffic() -> None:
    broken = True
    log = FaultyLog(lambda: broken)
    async with running_bus(log) as bus:
        with pytest.raises(LogUnavailable):
            await bus.publisher.publish([draft(1)], "a")
        broken = False
        await until(lambda: bus.failure is None)
    assert log.head == 0


async def test_a_p0_waits_only_for_the_transaction_in_flight() -> None:
    log = FaultyLog()
    async with running_bus(log) as bus:
        log.held = asyncio.Event()
        flood = [asyncio.create_task(bus.publisher.publish([draft(n)], "a")) for n in range(1000)]
        await until(lambda: sum(bus.publisher.depths) >= 700)
        urgent = asyncio.create_task(bus.publisher.publish([draft(5000, "user.message")], "a"))
        await until(lambda: bus.publisher.depths[Lane.P0])
        in_flight = 1000 - bus.publisher.depths[Lane.P1]
        log.held.set()
        await asyncio.gather(urgent, *flood)
    assert ids(log)[in_flight] == "n5000"
    batch_of_urgent = next(size for before, size in _running(log.batches) if before + size > in_flight)
    assert batch_of_urgent <= 32


def _running(sizes: list[int]) -> list[tuple[int, int]]:
    return [(sum(sizes[:place]), size) for place, size in enumerate(sizes)]


async def test_a_clean_stop_commits_what_is_held() -> None:
    log = FaultyLog()
    async with running_bus(log) as bus:
        receipts = await bus.publisher.publish([draft(1, "file.changed", subject="a.py")], "a")
        assert [r.status for r in receipts] == ["deferred"]
        assert log.head == 0
    assert ids(log) == ["n1"]


async def test_overload_refuses_p2_first_then_p1_and_never_p0() -> None:
    log = FaultyLog()
    async with running_bus(log, settings={"buffer_size": 10}) as bus:
        log.held = asyncio.Event()
        first = asyncio.create_task(bus.publisher.publish([draft(0)], "first"))
        await until(lambda: bus.publisher.depths != (0, 0, 0))
        await until(lambda: bus.publisher.depths == (0, 0, 0))  # it is in the batch under way
        p1 = [asyncio.create_task(bus.publisher.publish([draft(n)], "a")) for n in range(1, 25)]
        p2 = asyncio.create_task(bus.publisher.publish([draft(100, "index.updated")], "a"))
        p0 = [
            asyncio.create_task(bus.publisher.publish([draft(n, "user.message")], "a"))
            for n in range(200, 230)
        ]
        await until(lambda: p2.done() and sum(task.done() for task in p1) >= 4)
        log.held.set()
        answers = [(await task)[0] for task in [first, *p1, p2, *p0]]
    refused = [r.id for r in answers if r.status == "dropped"]
    assert "n100" in refused
    assert 0 < len([name for name in refused if int(name[1:]) < 100]) <= 5
    assert not [name for name in refused if int(name[1:]) >= 200]
    assert all(r.reason == "overloaded" for r in answers if r.status == "dropped")
    assert bus.publisher.dropped["overloaded"] == len(refused)
