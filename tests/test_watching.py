"""Workspaces on the bus: added, removed and stopped, also while the log fails."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from buses import FaultyLog, running_bus, until

from herdr.bus.bus import Bus
from herdr.clock import SystemClock
from herdr.config import WORKSPACES_MAX, Workspace
from herdr.context.watch.report import WorkspaceEvent
from herdr.errors import InvalidInput, LogUnavailable
from herdr.watching import Watching


class World:
    """A bus whose log may fail, and what watches for it."""

    def __init__(self, bus: Bus, log: FaultyLog, data: Path) -> None:
        self.bus = bus
        self.log = log
        own = [data / "events.db", data / "herdr.lock"]
        self.watching = Watching(bus.publisher, SystemClock(), data, own, bus.remember)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    log = FaultyLog()
    async with running_bus(log, settings={"debounce_ms": 0}) as bus:
        world = World(bus, log, tmp_path / "data")
        yield world
        await world.watching.stop()
        log.fails = lambda: False


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


async def test_stopping_gives_up_what_a_failing_log_does_not_take(world: World, tmp_path: Path) -> None:
    workspace = folder(tmp_path / "shop")
    world.watching.start([Workspace(str(workspace), "shop")], {})
    watched = world.watching._running["shop"]
    await watched.watcher.ready()
    world.log.fails = lambda: True
    (workspace / "a.py").write_text("1")
    await until(lambda: world.bus.failure is not None)  # it has tried to publish
    async with asyncio.timeout(10):
        await world.watching.stop()
    assert watched.watcher.state().undelivered == 1


async def test_what_is_seen_while_the_log_fails_is_published_later(world: World) -> None:
    world.log.fails = lambda: len(world.log.batches) == 0 and world.bus.failure is None
    event = WorkspaceEvent("file.changed", "a.py", {})
    await world.watching._publish("shop", [event], asyncio.Event())
    assert world.bus.failure is None


async def test_a_file_that_is_looked_at_is_known_by_its_content(world: World, tmp_path: Path) -> None:
    """So that a touch of it is told from a change, though nobody has changed it before."""
    workspace = folder(tmp_path / "shop")
    (workspace / "a.py").write_text("1")
    os.utime(workspace / "a.py", (1_000_000_000, 1_000_000_000))  # old, so that nothing asks for its content
    world.watching.start([Workspace(str(workspace), "shop")], {})
    watcher = world.watching._running["shop"].watcher
    await watcher.ready()
    assert watcher.table["a.py"].hash is None
    world.watching.look_at("shop", ["a.py", "missing.py"])
    world.watching.look_at("elsewhere", ["a.py"])
    await until(lambda: watcher.table["a.py"].hash)


async def test_an_added_one_survives_the_end_of_its_namesake(world: World, tmp_path: Path) -> None:
    one, two = folder(tmp_path / "1"), folder(tmp_path / "2")
    await world.watching.add("shop", str(one))
    removing = asyncio.create_task(world.watching.remove("shop"))
    while True:
        try:
            await world.watching.add("shop", str(two))
            break
        except InvalidInput:  # the name is taken until it is forgotten
            await asyncio.sleep(0)
    await removing
    assert await world.log.load("workspace") == {"shop": str(two).encode()}
    assert world.watching.paths() == {"shop": str(two)}


async def test_a_folder_that_cannot_be_forgotten_is_watched_on(world: World, tmp_path: Path) -> None:
    await world.watching.add("shop", str(folder(tmp_path / "1")))
    world.log.fails = lambda: True
    with pytest.raises(LogUnavailable):
        await world.watching.remove("shop")
    assert list(world.watching.paths()) == ["shop"]


async def test_a_start_watches_no_more_than_there_may_be(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configured = [Workspace(str(tmp_path / "missing"), f"c{n}") for n in range(WORKSPACES_MAX - 1)]
    world.watching.start(configured, {name: b"/nowhere" for name in ("c0", "kept", "one too many")})
    assert len(world.watching.paths()) == WORKSPACES_MAX
    assert "kept" in world.watching.paths() and "one too many" in caplog.text


@pytest.mark.parametrize("error", [PermissionError(13, "no"), OSError(36, "File name too long")], ids=str)
async def test_what_cannot_be_looked_at_is_no_folder(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(InvalidInput) as caught:
        await world.watching.add(None, str(tmp_path))
    assert caught.value.code == "bad_workspace"


@pytest.mark.parametrize(
    ("workspace", "left_out"),
    [
        (".", ["data"]),
        ("data", ["data/events.db", "data/herdr.lock"]),
        ("data/inner", ["data/events.db", "data/herdr.lock"]),
        ("link", ["data/events.db", "data/herdr.lock"]),
        ("database", ["data"]),
    ],
)
async def test_only_the_log_is_left_out_where_the_workspace_is_the_data_folder(
    world: World, tmp_path: Path, workspace: str, left_out: list[str]
) -> None:
    folder(tmp_path / "data")
    (tmp_path / "link").symlink_to("data")
    found = world.watching._excluded(tmp_path / workspace)
    assert list(found) == [os.path.realpath(tmp_path / path) for path in left_out]
