"""Errands: decided in the log's order, committed with their batch, undone with it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping

import pytest
from buses import FaultyLog, until

from herdr.app.bus import build_bus
from herdr.bus.bus import Bus
from herdr.bus.errand import Ruled, attempt
from herdr.bus.log import Put
from herdr.clock import SystemClock
from herdr.config import BusSection
from herdr.errors import HerdrError, LogUnavailable, NotFound
from herdr.event import Draft, Lane, Receipt
from herdr.journal import Journal


class Counter:
    """State that errands change: a number, and what it was when last kept."""

    kind = "lock"

    def __init__(self) -> None:
        self.now = self.kept = 0
        self.reloads: list[Mapping[str, bytes]] = []

    def keep(self) -> None:
        self.kept = self.now

    def undo(self) -> None:
        self.now = self.kept

    def reload(self, stored: Mapping[str, bytes]) -> None:
        self.reloads.append(stored)
        self.now = self.kept = int(stored.get("n", b"0"))


class World:
    def __init__(self, bus: Bus, log: FaultyLog, counter: Counter) -> None:
        self.bus, self.log, self.counter = bus, log, counter
        self.seen: list[tuple[int, int]] = []

    def count(self, seq: int, _now_us: int) -> Ruled:
        """Count one up, and say so in an event and a stored value."""
        self.counter.now += 1
        self.seen.append((seq, self.counter.now))
        event = self.bus.publisher.own_event("lock.granted", {"n": self.counter.now})
        return Ruled([event], [Put("lock", "n", b"%d" % self.counter.now)], self.counter.now)

    async def hold_up(self) -> asyncio.Task[list[Receipt]]:
        """Have one event's commit wait until `go_on`, so that what comes now shares a batch."""
        self.log.held = asyncio.Event()
        task = asyncio.create_task(self.bus.publisher.publish([Draft("tool.result")], "a"))
        await until(lambda: self.log.holds)
        return task

    def go_on(self) -> None:
        assert self.log.held is not None
        self.log.held.set()

    def refuse(self, _seq: int, _now_us: int) -> Ruled:
        raise NotFound(f"nothing at {self.counter.now}", "unknown_lock")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    log, counter = FaultyLog(), Counter()
    bus = await build_bus(log, BusSection(p2_per_s=0, buffer_size=16), (), SystemClock(), counter)
    await bus.start()
    yield World(bus, log, counter)
    log.fails = lambda: False
    await bus.stop()


async def test_errands_and_events_of_one_batch_share_one_order(world: World) -> None:
    first = await world.hold_up()
    tasks = [asyncio.create_task(world.bus.publisher.decide(world.count, Lane.P1)) for _ in range(3)]
    await until(lambda: sum(world.bus.publisher.depths) == 3)
    last = asyncio.create_task(world.bus.publisher.publish([Draft("tool.result")], "a"))
    await until(lambda: sum(world.bus.publisher.depths) == 4)
    world.go_on()
    assert await asyncio.gather(*tasks) == [1, 2, 3]
    assert world.seen == [(2, 1), (3, 2), (4, 3)]
    assert [(await task)[0].seq for task in (first, last)] == [1, 5]
    assert world.log.batches[-1] == 4  # one transaction for all of them
    assert await world.log.load("lock") == {"n": b"3"}


async def test_a_commit_that_fails_undoes_what_its_errands_changed(world: World) -> None:
    assert await world.bus.publisher.decide(world.count, Lane.P1) == 1
    world.log.fails = lambda: True
    with pytest.raises(LogUnavailable):
        await world.bus.publisher.decide(world.count, Lane.P1)
    assert world.counter.now == 1
    world.log.fails = lambda: False
    await until(lambda: world.bus.failure is None)
    assert await world.bus.publisher.decide(world.count, Lane.P1) == 2


async def test_a_refusal_is_told_after_the_commit_that_it_rests_on(world: World) -> None:
    first = await world.hold_up()
    counted = asyncio.create_task(world.bus.publisher.decide(world.count, Lane.P1))
    refused = asyncio.create_task(world.bus.publisher.decide(world.refuse, Lane.P1))
    await until(lambda: sum(world.bus.publisher.depths) == 2)
    world.log.fails = lambda: world.log.batches == [1]
    world.go_on()
    await first
    for task in (counted, refused):
        with pytest.raises(LogUnavailable):
            await task
    world.log.fails = lambda: False
    await until(lambda: world.bus.failure is None)
    with pytest.raises(NotFound, match="nothing at 0"):
        await world.bus.publisher.decide(world.refuse, Lane.P1)


async def test_nothing_is_written_for_an_errand_that_changes_nothing(world: World) -> None:
    world.log.fails = lambda: True
    assert await world.bus.publisher.decide(lambda _seq, _now: Ruled(answer="no"), Lane.P0) == "no"
    assert world.log.batches == []


async def test_an_errand_that_nobody_waits_for_any_more_does_not_rule(world: World) -> None:
    first = await world.hold_up()
    counting = asyncio.create_task(world.bus.publisher.decide(world.count, Lane.P1))
    await until(lambda: sum(world.bus.publisher.depths) == 1)
    counting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await counting
    world.go_on()
    await first
    assert await world.bus.publisher.decide(world.count, Lane.P1) == 1


async def test_full_lanes_refuse_errands_of_p1_and_let_those_of_p0_wait(world: World) -> None:
    await world.hold_up()
    filling = [asyncio.create_task(world.bus.publisher.decide(world.count, Lane.P1)) for _ in range(64)]
    await until(lambda: any(task.done() for task in filling))
    with pytest.raises(HerdrError) as refused:
        await world.bus.publisher.decide(world.count, Lane.P1)
    assert refused.value.code == "overloaded"
    urgent = [asyncio.create_task(world.bus.publisher.decide(world.count, Lane.P0)) for _ in range(40)]
    await until(lambda: world.bus.publisher.depths[0] == 16)  # the lane is full, the others wait for room
    world.go_on()
    assert len(await asyncio.gather(*urgent)) == 40
    await asyncio.gather(*filling, return_exceptions=True)


async def test_a_commit_that_had_happened_after_all_is_taken_from_the_log(world: World) -> None:
    append, failed = FaultyLog.append, False

    async def append_and_report_an_error(batch: object) -> None:
        nonlocal failed
        await append(world.log, batch)  # type: ignore[arg-type]
        if not failed:
            failed = True
            raise LogUnavailable("the fsync failed (planted)")

    world.log.append = append_and_report_an_error  # type: ignore[method-assign]
    with pytest.raises(LogUnavailable):
        await world.bus.publisher.decide(world.count, Lane.P1)
    await until(lambda: world.counter.reloads)
    assert world.counter.reloads == [{"n": b"1"}]
    assert await world.bus.publisher.decide(world.count, Lane.P1) == 2


class Book:
    """A table of a journal: what is written can be taken back."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._journal = Journal()

    def write(self, line: str, *, then: Exception | None = None) -> int:
        self.lines.append(line)
        self._journal.note(self.lines.pop)
        if then is not None:
            raise then
        return len(self.lines)

    def mark(self) -> int:
        return self._journal.mark()

    def undo(self, to: int = 0) -> None:
        self._journal.undo(to)


def test_what_a_table_refuses_leaves_it_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    book, log = Book(), logging.getLogger("herdr.test")
    assert attempt(book, lambda: book.write("one"), log) == 1
    with pytest.raises(NotFound, match="not here"):
        attempt(book, lambda: book.write("two", then=NotFound("not here")), log)
    assert book.lines == ["one"] and not caplog.records


def test_a_mistake_of_a_table_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    book, log = Book(), logging.getLogger("herdr.test")
    attempt(book, lambda: book.write("one"), log)
    with pytest.raises(HerdrError, match="made a mistake") as error:
        attempt(book, lambda: book.write("two", then=ZeroDivisionError("secret")), log)
    assert "secret" not in error.value.detail and "secret" in caplog.text
    assert book.lines == ["one"]
