"""A question that takes little is not behind large ones that nobody waits for any more."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from virtual_time import VirtualClock

from herdr.context.watch.watcher import Watcher
from herdr.sharing.child import IndexerChild
from herdr.sharing.graphs import HEAVY, HEAVY_AT_ONCE, Graphs


class FakeChild:
    """An indexer that answers maps only when it is told to."""

    is_running = False

    def __init__(self) -> None:
        self.maps = 0
        self.go = asyncio.Event()
        self.asked = asyncio.Event()

    def start(self) -> None:
        """Nothing to start."""

    async def ask(self, op: str, workspace: str, **args: Any) -> Any:
        if op == HEAVY:
            self.maps += 1
            if self.maps >= HEAVY_AT_ONCE:
                self.asked.set()
            await self.go.wait()
        return op


async def test_few_maps_are_asked_for_at_once(tmp_path: Path) -> None:
    graphs = Graphs(tmp_path, 60.0, VirtualClock(), lambda *_: None, "watcher")
    child = FakeChild()
    graphs.child = cast(IndexerChild, child)
    watcher = SimpleNamespace(root=str(tmp_path), verified_at=1e9, state=lambda: SimpleNamespace(status="ok"))
    graphs.followed("w", cast(Watcher, watcher))
    graphs.find("w").listed.set()
    maps = [asyncio.create_task(graphs.ask("w", HEAVY)) for _ in range(50)]
    assert await graphs.ask("w", "symbols") == "symbols"
    await child.asked.wait()
    assert await graphs.ask("w", "symbols") == "symbols"
    assert child.maps == HEAVY_AT_ONCE
    for one in maps[:25]:
        one.cancel()
    child.go.set()
    found = await asyncio.gather(*maps, return_exceptions=True)
    assert found[25:] == [HEAVY] * 25
    assert child.maps <= 25 + HEAVY_AT_ONCE
