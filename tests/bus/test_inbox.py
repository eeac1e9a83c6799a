"""What waits for tools that cannot listen: each event once, nothing lost over a restart, bounded."""

import pytest
from buses import FaultyLog, running_bus, until

from herdr.bus import inbox as module
from herdr.bus.bus import Bus
from herdr.bus.inbox import Inbox, Waiting
from herdr.errors import LogUnavailable
from herdr.storage.memory import MemoryLog


async def told(bus: Bus, *names: str) -> None:
    """Have the gateway announce one event for each name, and wait until they are in the log."""
    for number, name in enumerate(names):
        bus.publisher.announce("herdr.note", {"n": number}, to=(name,))
    want = bus.head + len(names)
    await until(lambda: bus.head >= want)


def numbers(waiting: Waiting) -> list[int]:
    return [int(event.body.split(b'"n":')[1].split(b"}")[0]) for event in waiting.events]


async def test_each_name_gets_what_is_for_it_once_and_in_order() -> None:
    async with running_bus(FaultyLog()) as bus:
        inbox = Inbox(bus)
        assert await inbox.take("a") == Waiting()
        await inbox.take("b")
        await told(bus, "a", "b", "a", "nobody")
        assert numbers(await inbox.take("a")) == [0, 2]
        assert await inbox.take("a") == Waiting()
        assert numbers(await inbox.take("b")) == [1]


async def test_what_came_before_a_names_first_call_is_not_for_it() -> None:
    async with running_bus(FaultyLog()) as bus:
        inbox = Inbox(bus)
        await told(bus, "a")
        assert await inbox.take("a") == Waiting()
        await told(bus, "a")
        assert len((await inbox.take("a")).events) == 1


async def test_no_more_than_asked_for_and_the_rest_is_counted() -> None:
    async with running_bus(FaultyLog()) as bus:
        inbox = Inbox(bus)
        await inbox.take("a")
        await told(bus, *["a"] * 5)
        first = await inbox.take("a", 2)
        assert (numbers(first), first.more) == ([0, 1], 3)
        assert numbers(await inbox.take("a", 9)) == [2, 3, 4]


async def test_the_oldest_go_when_a_box_is_full_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 3)
    async with running_bus(FaultyLog()) as bus:
        inbox = Inbox(bus)
        await inbox.take("a")
        await told(bus, *["a"] * 5)
        waiting = await inbox.take("a")
        assert (numbers(waiting), waiting.lost) == ([2, 3, 4], 2)
        assert (await inbox.take("a")).lost == 0


async def test_what_was_not_taken_is_found_again_after_a_restart() -> None:
    log: MemoryLog = FaultyLog()
    async with running_bus(log) as bus:
        inbox = Inbox(bus)
        await inbox.take("a")
        await told(bus, *["a"] * 3)
        assert numbers(await inbox.take("a", 1)) == [0]
    async with running_bus(log) as bus:
        inbox = Inbox(bus)
        await told(bus, *["x"] * 300)
        assert numbers(await inbox.take("a")) == [1, 2]
        await told(bus, "a")
        assert len((await inbox.take("a")).events) == 1


async def test_names_beyond_the_bound_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAMES_MAX", 2)
    async with running_bus(FaultyLog()) as bus:
        inbox = Inbox(bus)
        for name in ("a", "b", "a", "c"):  # `b` was seen longest ago
            await inbox.take(name)
        await told(bus, "a", "b")
        assert len((await inbox.take("a")).events) == 1
        assert len((await inbox.take("b")).events) == 1  # found in the log, where its place is remembered


async def test_what_could_not_be_noted_as_taken_waits_on() -> None:
    log = FaultyLog()
    async with running_bus(log) as bus:
        inbox = Inbox(bus)
        await inbox.take("a")
        await told(bus, "a", "a")
        log.fails = lambda: True
        with pytest.raises(LogUnavailable):
            await inbox.take("a")
        log.fails = lambda: False
        await until(lambda: bus.failure is None)
        assert numbers(await inbox.take("a")) == [0, 1]


async def test_a_box_that_could_not_be_filled_is_begun_again() -> None:
    log = FaultyLog()
    async with running_bus(log) as bus:
        await Inbox(bus).take("a")
        await told(bus, "a")

    async def stumble() -> None:
        raise LogUnavailable("planted")

    async with running_bus(log) as bus:  # which has nothing in memory
        inbox = Inbox(bus)
        log.meanwhile = stumble
        with pytest.raises(LogUnavailable):
            await inbox.take("a")
        log.meanwhile = None
        assert numbers(await inbox.take("a")) == [0]


async def test_what_a_follower_of_the_same_name_has_handled_is_not_taken_back() -> None:
    async with running_bus(FaultyLog()) as bus:
        inbox = Inbox(bus)
        await inbox.take("a")
        await told(bus, "a", "x", "x")
        await bus.subscriptions.ack("a", str(bus.head))
        await inbox.take("a")
        assert bus.subscriptions.taken("a") == bus.head


async def test_a_listener_that_stumbles_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with running_bus(FaultyLog()) as bus:

        def stumble(_events: object) -> None:
            raise ValueError("planted")

        bus.tell_commits(stumble)
        await told(bus, "a")
        await told(bus, "a")
    assert "planted" in caplog.text
