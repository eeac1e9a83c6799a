from collections.abc import AsyncIterator
from typing import Any

import pytest
from buses import FaultyLog, running_bus
from handlers import ask, scope_of
from msgspec import Raw

from herdr.bus.bus import Bus
from herdr.event import Draft
from herdr.web.clients import CLIENTS_MAX, ROWS_MAX, Clients


class World:
    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.targets: list[tuple[str, int | None]] = []
        self.joined: dict[str, set[str]] = {"hooks": set(), "mcp": set()}
        self.clients = Clients(bus, lambda: self.targets, lambda: self.joined)

    async def publish(self, *sources: str, **fields: Any) -> None:
        drafts = [Draft("tool.result", source=source, data=Raw(b"1"), **fields) for source in sources]
        await self.bus.publisher.publish(drafts, "nobody")

    async def rows(self) -> list[dict[str, Any]]:
        answer = await ask(self.clients.list, scope_of())
        return list(answer.json()["clients"])


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running_bus(FaultyLog()) as bus:
        yield World(bus)


async def test_whoever_was_seen_last_comes_first(world: World) -> None:
    await world.publish("a", "b", workspace="w", session="s")
    await world.publish("a", workspace="v")
    a, b = await world.rows()
    assert (a["name"], a["events"], a["workspace"], a["session"]) == ("a", 2, "v", "s")
    assert (b["name"], b["events"], b["workspace"], b["session"]) == ("b", 1, "w", "s")
    assert a["first_seen"] <= a["last_seen"] and a["behind"] is None and a["kinds"] == ["publisher"]


async def test_one_name_is_one_row_whatever_it_is(world: World) -> None:
    await world.publish("both")
    world.targets = [("both", 7), ("listener", None)]
    world.joined["hooks"] = {"both", "quiet"}
    world.joined["mcp"] = {"quiet"}
    rows = {row["name"]: row for row in await world.rows()}
    assert len(rows) == 3
    assert (rows["both"]["kinds"], rows["both"]["behind"]) == (["publisher", "target", "hooks"], 7)
    assert (rows["listener"]["kinds"], rows["listener"]["behind"]) == (["target"], None)
    assert (rows["quiet"]["kinds"], rows["quiet"]["first_seen"]) == (["hooks", "mcp"], None)


async def test_invented_names_push_out_the_oldest_only(world: World) -> None:
    await world.publish("old", "kept")
    names = [f"n{n}" for n in range(CLIENTS_MAX)]
    await world.publish(*names[: CLIENTS_MAX // 2])
    await world.publish("kept")
    await world.publish(*names[CLIENTS_MAX // 2 :])
    rows = [row["name"] for row in await world.rows()]
    assert len(rows) == CLIENTS_MAX and "old" not in rows and "n0" not in rows
    assert (rows[0], "kept" in rows) == (names[-1], True)
    world.targets = [(f"t{n}", 0) for n in range(ROWS_MAX)]
    assert len(await world.rows()) == ROWS_MAX
