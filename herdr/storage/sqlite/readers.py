"""The read-only connections and everything that is asked of them.

Each call is one short statement: an open read transaction would keep the write-ahead log from starting over
(public reports reach 115 GB).
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

from herdr.event import Event, Positions
from herdr.storage.sqlite.connection import Connection, Fault, connect, is_damage, log_fault
from herdr.storage.sqlite.rows import GET, READ, read_parameters, restore_page, unreadable

P = ParamSpec("P")
T = TypeVar("T")

READERS = 2  # one long page must not hold up the next reader; more only contend for the interpreter lock


class Readers:
    """Hands out work to the reading connections in turn."""

    def __init__(self, path: Path, fault: Fault = log_fault) -> None:
        self._path = path
        self._fault = fault
        self._connections: list[Connection] = []
        self._turn = 0

    async def open(self) -> None:
        """Connect; raises sqlite3.Error. `close` is needed after a failure too.

        The first read takes a lock that lasts as long as the connection. Without it, a writer that closes
        after a failed commit counts as the last one, and reopening replays what was never acknowledged.
        """
        for _ in range(READERS):
            connection = await connect(self._path, "ro")
            self._connections.append(connection)
            await connection.run(lambda db: db.execute("SELECT count(*) FROM meta").fetchone())

    async def run(
        self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` on the next connection; raises the fault."""
        if not self._connections:
            raise self._fault(None)
        self._turn = (self._turn + 1) % len(self._connections)
        try:
            return await self._connections[self._turn].run(work, *args, **kwargs)
        except sqlite3.Error as error:
            raise self._fault(error) from error

    async def close(self) -> None:
        """Close every connection."""
        while self._connections:
            await self._connections.pop().close()


def read_page(
    db: sqlite3.Connection, after: Positions, limit: int, bytes_max: int, retained: range
) -> list[Event]:
    """See `Log.read`. On a damaged page of the file, goes on row by row and marks what cannot be read."""
    try:
        return restore_page(*db.execute(READ, read_parameters(after, limit, bytes_max)).fetchone())
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    return _read_damaged(db, after, limit, bytes_max, retained)


def _read_damaged(
    db: sqlite3.Connection, after: Positions, limit: int, bytes_max: int, retained: range
) -> list[Event]:
    page: list[Event] = []
    size = 0
    for seq in range(max(retained.start, min(after) + 1), retained.stop):
        event = read_one(db, seq) or unreadable(seq)
        if seq <= after[event.lane]:
            continue
        size += len(event.body)
        if len(page) == limit or (page and size > bytes_max):
            break
        page.append(event)
    return page


def read_one(db: sqlite3.Connection, seq: int) -> Event | None:
    """See `Log.get`."""
    try:
        page = restore_page(*db.execute(GET, {"seq": seq}).fetchone())
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return unreadable(seq)
    return page[0] if page else None


# A binary search over the rows themselves, as one statement; accepted times never fall.
_EARLY = "ifnull((SELECT accepted_us FROM events WHERE seq = (low + high) / 2) < :accepted_us, 0)"
_SEQ_AT = f"""
WITH RECURSIVE search (low, high) AS (
    SELECT :first, :end
    UNION ALL
    SELECT iif({_EARLY}, (low + high) / 2 + 1, low), iif({_EARLY}, high, (low + high) / 2)
    FROM search WHERE low < high)
SELECT low FROM search WHERE low >= high
"""


def find_seq(db: sqlite3.Connection, accepted_us: int, retained: range) -> int:
    """See `Log.seq_at`."""
    places = {"first": retained.start, "end": retained.stop, "accepted_us": accepted_us}
    return int(db.execute(_SEQ_AT, places).fetchone()[0])


def load_state(db: sqlite3.Connection, kind: str) -> Mapping[str, bytes]:
    """See `Log.load`."""
    return dict(db.execute("SELECT key, value FROM state WHERE kind = ?", (kind,)).fetchall())


def find_ids(db: sqlite3.Connection, hashes: Sequence[int]) -> Mapping[int, int]:
    """See `Log.find_ids`."""
    wanted = msgspec.json.encode(list(hashes)).decode()
    rows = db.execute("SELECT hash, seq FROM ids WHERE hash IN (SELECT value FROM json_each(?))", (wanted,))
    return dict(rows.fetchall())


def hashes_after(db: sqlite3.Connection, after: int | None, count: int) -> list[int]:
    """Return the next hashes of the id index, in ascending order."""
    sql = "SELECT hash FROM ids WHERE hash > ? OR ? IS NULL ORDER BY hash LIMIT ?"
    return [known for (known,) in db.execute(sql, (after, after, count)).fetchall()]
