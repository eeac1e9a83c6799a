"""The other peer: what aiosqlite itself commits, without events, ids or answers."""

import tempfile
import time
from pathlib import Path

import aiosqlite

from bench.payload import event_json

GROUP = 1000


async def groups_per_s(folder: Path, count: int) -> float:
    """Rows of 360 bytes per second in groups of 1,000 a commit; WAL, `synchronous=FULL`."""
    rows = [(event_json(number),) for number in range(GROUP)]
    with tempfile.TemporaryDirectory(dir=folder, prefix="sqlite-") as data:
        async with aiosqlite.connect(Path(data) / "rows.db") as db:
            await db.execute("PRAGMA journal_mode=WAL")
            await db.execute("PRAGMA synchronous=FULL")
            await db.execute("CREATE TABLE rows (seq INTEGER PRIMARY KEY, body BLOB)")
            began = time.perf_counter()
            for _ in range(count // GROUP):
                await db.executemany("INSERT INTO rows (body) VALUES (?)", rows)
                await db.commit()
            return count / (time.perf_counter() - began)
