"""An index whose workers cannot be started tries again, and one that is closed tells whoever waits."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from herdr.clock import SystemClock
from herdr.context.graph.files import Numbers, Parsed
from herdr.errors import HerdrError
from herdr.indexer import index as module
from herdr.indexer.index import Index
from herdr.indexer.parse_pool import ParsePool
from herdr.indexer.ranked import Ranked
from herdr.storage.sqlite.graph.store import GraphStore


class FailingPool:
    """A pool that cannot start a worker the first time."""

    size = 1

    def __init__(self) -> None:
        self.asked = 0

    async def parse(self, root: str, paths: Sequence[str], known: Mapping[str, bytes]) -> list[Parsed]:
        self.asked += 1
        if self.asked == 1:
            raise OSError(11, "Resource temporarily unavailable")
        return [Parsed(path, Numbers(1, 1, 1), b"h" * 32) for path in paths]


def make(tmp_path: Path, done: asyncio.Event) -> tuple[Index, FailingPool, GraphStore]:
    store = GraphStore(tmp_path / "graph.db", "1")
    pool = FailingPool()

    def tell(note: str, body: Any) -> None:
        done.set()

    index = Index(str(tmp_path), store, cast(Ranked, None), cast(ParsePool, pool), tell, SystemClock())
    return index, pool, store


async def test_workers_that_cannot_be_started_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    done = asyncio.Event()
    index, pool, store = make(tmp_path, done)
    task = asyncio.create_task(index.run())
    index.table([("a.py", Numbers(1, 1, 1))], first=True, last=True)
    with pytest.raises(HerdrError, match="Resource temporarily unavailable"):
        await index.caught_up()
    await done.wait()
    assert (pool.asked, store.has("a.py"), index.state) == (2, True, "ready")
    task.cancel()
    await asyncio.wait([task])
    store.close()


async def test_whoever_waits_for_an_index_that_is_closed_hears_it(tmp_path: Path) -> None:
    index, _, store = make(tmp_path, asyncio.Event())
    waiting = asyncio.create_task(index.caught_up())
    await asyncio.sleep(0)
    index.fail("it was closed; ask again")
    with pytest.raises(HerdrError, match="it was closed"):
        await waiting
    store.close()
