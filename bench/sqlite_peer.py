"""The other peer: what aiosqlite itself commits, without events, ids or answers."""

import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiosqlite

from bench.payload import event_json

GROUP = 1000
_INSERT = "INSERT INTO rows (body) VALUES (?)"


async def groups_per_s(folder: Path, count: int) -> float:
    """Rows of 360 bytes per second, one `executemany` for each group of 1,000 and commit."""
    rows = _rows()
    async with _empty_table(folder) as db:
        began = time.perf_counter()
        for _ in range(count // GROUP):
            await db.executemany(_INSERT, rows)
            await db.commit()
        return count // GROUP * GROUP / (time.perf_counter() - began)


async def rows_per_s(folder: Path, count: int) -> float:
    """The same with one awaited `execute` a row, as an application writes it that gets rows one by one."""
    rows = _rows()
    async with _empty_table(folder) as db:
        began = time.perf_counter()
        for _ in range(count // GROUP):
            for row in rows:
                await db.execute(_INSERT, row)
            await db.commit()
        return count // GROUP * GROUP / (time.perf_counter() - began)


def _rows() -> list[tuple[bytes]]:
    return [(event_json(number),) for number in range(GROUP)]


@contextlib.asynccontextmanager
async def _empty_table(folder: Path) -> AsyncIterator[aiosqlite.Connection]:
    """WAL, `synchronous=FULL`: each commit is on the disk."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="sqlite-") as data:
        async with aiosqlite.connect(Path(data) / "rows.db") as db:
            await db.execute("PRAGMA journal_mode=WAL")
            await db.execute("PRAGMA synchronous=FULL")
            await db.execute("CREATE TABLE rows (seq INTEGER PRIMARY KEY, body BLOB)")
            yield db
