"""The composition root: what it opens is closed again, however it ends."""

import asyncio
from pathlib import Path

import pytest

from herdr import app
from herdr.app import gateway
from herdr.clock import SystemClock
from herdr.config import BusSection, Config, Workspace


class Planted(Exception):
    pass


def config(tmp_path: Path) -> Config:
    (tmp_path / "shop").mkdir()
    return Config(
        bus=BusSection(persist_path=str(tmp_path / "data" / "events.db")),
        workspaces=(Workspace(str(tmp_path / "shop"), "shop"),),
    )


def others() -> set[str]:
    return {
        task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()} if not task.cancelling()
    }


async def test_a_failure_while_running_closes_everything(tmp_path: Path) -> None:
    with pytest.raises(Planted):
        async with gateway(config(tmp_path), SystemClock()) as parts:
            await parts.watching._running["shop"].watcher.ready()
            assert {"heartbeat", "watch shop"} <= others()
            raise Planted
    assert others() == set()


async def test_a_failure_while_opening_closes_what_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise Planted

    monkeypatch.setattr(app, "build_front", fail)
    with pytest.raises(Planted):
        async with gateway(config(tmp_path), SystemClock()):
            raise AssertionError("it cannot have opened")
    assert others() == set()
    monkeypatch.undo()
    # The log is free again too
    async with gateway(
        Config(bus=BusSection(persist_path=str(tmp_path / "data" / "events.db"))), SystemClock()
    ):
        pass
