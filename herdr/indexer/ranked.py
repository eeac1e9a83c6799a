"""The ranking behind maps: worked out beside the loop, kept while the graph stays about the same."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from herdr.context.graph.rank import Ranking, ranks
from herdr.storage.sqlite.connection import address
from herdr.storage.sqlite.graph.reader import GraphReader
from herdr.storage.sqlite.graph.store import GraphStore

CHANGES_MAX = 20  # files changed since the ranking was made; a few among thousands move no rank worth telling
CHANGES_SHARE = 0.02  # of all files, where that is more


class Ranked:
    """Keeps the newest ranking of one graph."""

    def __init__(self, file: Path, store: GraphStore) -> None:
        self._file = file
        self._store = store
        self._ranking: Ranking | None = None
        self._at = 0
        self._making: asyncio.Task[None] | None = None

    async def ranking(self) -> Ranking:
        """Return a ranking that is about right; while a new one is made, the last one. Raises sqlite3.Error."""
        if self._is_old() and self._making is None:
            self._making = asyncio.create_task(self._make(), name="rank")
            self._making.add_done_callback(self._made)
        while self._ranking is None:
            if self._making is None:
                return await self.ranking()
            await asyncio.shield(self._making)
        return self._ranking

    async def close(self) -> None:
        """Return once nothing reads the graph's file beside its store."""
        if self._making is not None:
            await asyncio.wait([self._making])

    def _is_old(self) -> bool:
        changes = self._store.changes - self._at
        return self._ranking is None or changes > max(CHANGES_MAX, CHANGES_SHARE * len(self._store))

    async def _make(self) -> None:
        at = self._store.changes
        self._ranking = await asyncio.to_thread(_rank, self._file)
        self._at = at

    def _made(self, task: "asyncio.Task[None]") -> None:
        self._making = None
        if not task.cancelled():
            task.exception()  # whoever waits raises it; a refresh that failed leaves the last ranking


def _rank(file: Path) -> Ranking:
    """Rank what the file holds, through a connection of this thread's own."""
    with closing(sqlite3.connect(address(file, "ro"), uri=True, isolation_level=None)) as db:
        db.execute("BEGIN")  # one state of the graph, whatever its store commits meanwhile
        return ranks(GraphReader(db))
