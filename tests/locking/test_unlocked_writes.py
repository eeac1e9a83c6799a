"""Writes under others' locks over a real bus and a log in memory, in virtual time: what is told, and to whom."""

import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import msgspec
import pytest
from buses import FaultyLog
from virtual_time import VirtualClock, pass_time, run

from herdr.app.bus import build_bus
from herdr.bus.bus import Bus
from herdr.config import BusSection
from herdr.context.watch.changes import Change, FileState
from herdr.event import Draft, Event
from herdr.locking.unlocked_writes import GATHER_S, UnlockedWrites
from herdr.locks.lock import FOLDER, Lock, Mode, Name

WINDOW_S = 5.0


class World:
    """Locks are a plain list, which `find` returns as it is: what covers a path is decided by the caller."""

    def __init__(self, bus: Bus, log: FaultyLog, clock: VirtualClock) -> None:
        self.bus, self.log = bus, log
        self.locks: list[Lock] = []
        self.broken = False
        self.unlocked = UnlockedWrites(self.find, name, bus.publisher, clock, "watcher")
        bus.publisher.tell_changes(self.unlocked.reported)

    def find(self, names: tuple[Name, ...]) -> Iterable[Lock]:
        if self.broken:
            raise RuntimeError("planted")
        return self.locks

    def saw(self, *changes: Change) -> None:
        self.unlocked.saw("shop", changes)

    async def report(self, path: str, source: str, **data: Any) -> str:
        draft = Draft(
            "file.changed", subject=path, workspace="shop", data=msgspec.Raw(msgspec.json.encode(data))
        )
        return (await self.bus.publisher.publish([draft], source))[0].status

    def events(self) -> list[Event]:
        return [event for event in self.log._events.values() if event.type == "conflict.detected"]

    async def told(self) -> list[dict[str, Any]]:
        """The conflicts once the window is over."""
        await pass_time(WINDOW_S + 2 * GATHER_S)
        return [msgspec.json.decode(event.body) for event in self.events()]


def name(workspace: str, path: str) -> Name:
    return Name(workspace, tuple(path.split("/")), (), path)


def lock(owner: str, shown: str = "src/", mode: Mode = "write", **more: Any) -> Lock:
    names = (Name("shop", tuple(shown.rstrip("/").split("/")), FOLDER if shown.endswith("/") else (), shown),)
    return Lock(f"lock-{owner}", 7, owner, mode, "shop", (shown,), names, 60.0, 0, 7, "refactor", **more)


def changed(path: str, hash_: str = "h1") -> Change:
    return Change("modified", path, FileState(1, 1, 1, "h0"), FileState(2, 2, 1, hash_))


def play(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        log = FaultyLog()
        bus = await build_bus(log, BusSection(p2_per_s=0, debounce_ms=0), (), clock)
        await bus.start()
        world = World(bus, log, clock)
        world.unlocked.start()
        try:
            await story(world)
        finally:
            await world.unlocked.stop()
            await bus.stop()

    run(main(), clock)


def test_one_write_is_one_event_that_says_which_and_whose() -> None:
    async def story(world: World) -> None:
        world.locks = [lock("ann")]
        world.saw(changed("src/a.py"))
        [found] = await world.told()
        assert (found["subject"], found["workspace"], found["priority"]) == ("src/a.py", "shop", "P0")
        assert found["data"] == {
            "workspace": "shop",
            "subject": "src/a.py",
            "paths": ["src/a.py"],
            "status": "unlocked",
            "by": "unknown",
            "hash": "h1",
            "holder": {"owner": "ann", "lock": "lock-ann", "purpose": "refactor"},
        }
        assert targets(world) == [{"ann"}]

    play(story)


def test_many_writes_of_one_author_are_one_event_of_up_to_a_thousand_paths() -> None:
    async def story(world: World) -> None:
        world.locks = [lock("ann")]
        await world.report("src/mine.py", "bob", hash="h1")
        world.saw(*(changed(f"src/{number:04}.py") for number in range(2500)))
        found = [event["data"] for event in await world.told()]
        assert [(event["by"], len(event["paths"])) for event in found] == [
            ("unknown", 1000), ("unknown", 1000), ("unknown", 500), ("bob", 1)
        ]  # fmt: skip
        assert {(event["subject"], event["hash"]) for event in found[:-1]} == {(None, None)}
        paths = [path for event in found[:-1] for path in event["paths"]]
        assert paths == [f"src/{number:04}.py" for number in range(2500)]

    play(story)


def test_a_storm_of_reports_is_told_in_few_events() -> None:
    async def story(world: World) -> None:
        world.locks = [lock("ann")]
        for number in range(500):
            await world.report(f"src/{number}.py", "bob", hash="h1")
            await pass_time(0.001)
        found = [event["data"] for event in await world.told()]
        assert sum(len(event["paths"]) for event in found) == 500 and len(found) < 10

    play(story)


def test_who_reported_it_is_named_and_told_as_well() -> None:
    async def story(world: World) -> None:
        world.locks = [lock("ann")]
        world.saw(changed("src/a.py"))
        await world.report("src/a.py", "bob", hash="h1")
        await world.report("src/a.py", "watcher", hash="h1")
        assert [event["data"]["by"] for event in await world.told()] == ["bob"]
        await world.report("src/b.py", "cyd")  # nothing to wait for
        await pass_time(2 * GATHER_S)
        assert targets(world) == [{"ann", "bob"}, {"ann", "cyd"}]

    play(story)


def test_a_rename_has_two_ends_for_who_sees_it_and_for_who_reports_it() -> None:
    async def story(world: World) -> None:
        world.locks = [lock("ann")]
        state = FileState(2, 2, 1, "h1")
        world.saw(Change("renamed", "src/new.py", state, state, "src/old.py"))
        world.saw(Change("renamed", "src/new2.py", state, state, "src/old2.py"))
        await world.report("src/new.py", "ann", hash="h1", change="renamed", **{"from": "src/old.py"})
        [found] = await world.told()
        assert found["data"]["paths"] == ["src/old2.py", "src/new2.py"]

    play(story)


def test_a_holder_that_reports_nothing_is_taken_for_who_wrote() -> None:
    """Unless somebody else says that it was them."""

    async def story(world: World) -> None:
        world.locks = [msgspec.structs.replace(lock("ann"), reports=False)]
        world.saw(changed("src/a.py"))
        assert await world.told() == []
        await world.report("src/a.py", "bob", hash="another")
        assert [event["data"]["by"] for event in await world.told()] == ["bob"]

    play(story)


def test_a_file_that_comes_and_goes_is_nothing() -> None:
    async def story(world: World) -> None:
        world.locks = [lock("ann")]
        state = FileState(2, 2, 1, "h1")
        world.saw(Change("created", "src/.a.swp", None, state))
        await pass_time(2)
        world.saw(Change("deleted", "src/.a.swp", state, None))
        world.saw(changed("src/a.py"))
        assert [event["data"]["paths"] for event in await world.told()] == [["src/a.py"]]

    play(story)


def test_locks_that_say_nothing_about_a_write_are_left_out() -> None:
    async def story(world: World) -> None:
        silent = [
            msgspec.structs.replace(lock("head"), names=(Name("shop", (), FOLDER, "git:HEAD"),)),
            lock("plan", mode="intent"),
            lock("late", expired=True),
            lock("mute", reports=False),
        ]
        for other in silent:
            world.locks = [other]
            world.saw(changed(f"src/{other.owner}.py"))
        world.locks = [*silent[:3], lock("ann")]
        world.saw(changed("src/a.py"))
        assert [event["data"]["holder"]["owner"] for event in await world.told()] == ["ann"]

    play(story)


def test_an_error_in_it_fails_nobodys_publish_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        world.locks = [lock("ann")]
        world.broken = True
        assert [await world.report("src/a.py", "bob", hash=f"h{n}") for n in range(3)] == ["accepted"] * 3
        world.broken = False
        await world.report("src/b.py", "bob", hash="h1")
        assert [event["data"]["paths"] for event in await world.told()] == [["src/b.py"]]

    with caplog.at_level(logging.ERROR, "herdr.locks"):
        play(story)
    [record] = caplog.records
    assert record.exc_info is not None and "planted" in str(record.exc_info[1])


def test_what_a_report_says_beside_its_hash_may_be_anything() -> None:
    async def story(world: World) -> None:
        world.locks = [lock("ann")]
        assert await world.report("src/a.py", "bob", change=7, **{"from": ["x"]}) == "accepted"
        assert [event["data"]["by"] for event in await world.told()] == ["bob"]

    play(story)


def targets(world: World) -> list[set[str]]:
    return [{delivery.target for delivery in event.deliveries} for event in world.events()]
