"""What the writer does between batches: checkpoints, retention, and the sweep of the id index.

SQLite's own checkpoint runs inside a commit and made the 99th percentile of commits 32 instead of 3 ms. A
second connection that checkpoints while the writer writes can corrupt the file before SQLite 3.51.3
(https://www.sqlite.org/wal.html, "the WAL-reset bug"); so the writer itself does it, in between.
"""

import sqlite3
from collections.abc import Sequence

import msgspec

from herdr.clock import Clock
from herdr.storage.retention import IDS_KEPT_US, Retention
from herdr.storage.sqlite.connection import BUSY_MS

CHECKPOINT_AT = 1024**2  # bytes of write-ahead log; a checkpoint of this size takes a few milliseconds
CHECKPOINT_FORCED_AT = 8 * 1024**2  # past this the log must shrink, whoever waits
CHECKPOINT_WAIT_MS = (
    20  # readers' statements are shorter; a backup's is not, and the writer must not wait for it
)
ROWS_A_SLICE = 512  # about 2 ms of deleting
IDS_A_SLICE = 2048  # about 2 ms of looking
PAUSE_S = 1.0  # between slices when nothing more is known to be due

_PAGE_SIZE = 4096
_OVERHEAD_PAGES = 4  # the table's and the index's last page, their parent, page 1
_ID_BYTES = 40  # a row of the id index in a page that is two thirds full
_LOWEST = -(2**63)
_BYTES_USED = """
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""


def pages_touched(hashes: Sequence[int], pages: int) -> int:
    """Guess how many pages of an index of `pages` pages these keys stand on: neighbours share theirs."""
    if not hashes:
        return 0
    span = (max(hashes) - min(hashes)) / 2**64
    return min(len(hashes), int(span * pages) + 2)


class WalGauge:
    """A guess at the size of the write-ahead log; SQLite tells it only at a checkpoint."""

    def __init__(self) -> None:
        self.bytes = 0
        self._next = CHECKPOINT_AT

    def add(self, payload: int, scattered: int = 0) -> None:
        """Count a transaction: bytes stored side by side, and rows that each touch a page of their own."""
        self.bytes += payload + (_OVERHEAD_PAGES + scattered) * _PAGE_SIZE

    def is_due(self, calm: bool) -> bool:
        """Tell whether a checkpoint should run now."""
        return self.bytes >= self._next and (calm or self.bytes >= CHECKPOINT_FORCED_AT)

    def checkpoint(self, db: sqlite3.Connection) -> None:
        """Move the log into the database, so that the next transaction overwrites it from its start."""
        self._next = self.bytes + CHECKPOINT_AT  # holds when the next lines fail
        _, pages, moved = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages * _PAGE_SIZE > CHECKPOINT_FORCED_AT:
            # Readers kept the log from starting over. Wait for those that still read it, but not long.
            busy, pages, moved = _waiting(db, "RESTART")
            moved = 0 if busy else moved
        self.bytes = 0 if moved == pages else pages * _PAGE_SIZE
        self._next = self.bytes + CHECKPOINT_AT

    def scrub(self, db: sqlite3.Connection) -> bool:
        """Empty the log's file; False when a reader is in the way."""
        busy, _, _ = _waiting(db, "TRUNCATE")
        if not busy:
            self.bytes, self._next = 0, CHECKPOINT_AT
        return not busy


def _waiting(db: sqlite3.Connection, mode: str) -> tuple[int, int, int]:
    db.execute(f"PRAGMA busy_timeout = {CHECKPOINT_WAIT_MS}")
    try:
        busy, pages, moved = db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    finally:
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return busy, pages, moved


class Trimmer:
    """Removes the oldest events, a slice at a time."""

    def __init__(self, clock: Clock, retention: Retention) -> None:
        self._clock = clock
        self._bounds = retention
        self._may_age = float(ROWS_A_SLICE)
        self._refilled_at = clock.monotonic()

    def slice(self, db: sqlite3.Connection, first: int, head: int, wal: WalGauge) -> tuple[int, bool]:
        """Delete up to `ROWS_A_SLICE` events; return the new `first` and whether more is due."""
        if first > head:
            return first, False
        last_of_slice = min(head, first + ROWS_A_SLICE - 1)
        aged = self._aged(db, first, last_of_slice)
        used = _bytes_used(db)
        surplus = last_of_slice if used > self._bounds.max_bytes else head - self._bounds.max_events
        last = min(last_of_slice, max(aged, surplus))
        if last < first:
            return first, False
        db.execute("DELETE FROM events WHERE seq <= ?", (last,))
        db.execute("UPDATE meta SET value = ? WHERE name = 'first'", (str(last + 1),))
        self._may_age -= max(0, aged - first + 1)
        wal.add(used * (last - first + 1) // (head - first + 1))
        return last + 1, last == last_of_slice

    def _aged(self, db: sqlite3.Connection, first: int, last: int) -> int:
        """Return the last `seq` that is too old, within the slice and the budget; else less than `first`."""
        now = self._clock.monotonic()
        earned = (now - self._refilled_at) * self._bounds.aged_per_s
        self._may_age = min(ROWS_A_SLICE, self._may_age + earned)
        self._refilled_at = now
        last = min(last, first + int(self._may_age) - 1)
        horizon = self._clock.wall_us() - self._bounds.max_age_s * 1_000_000
        (young,) = db.execute(
            "SELECT min(seq) FROM events WHERE seq BETWEEN ? AND ? AND accepted_us >= ?",
            (first, last, horizon),
        ).fetchone()
        return last if young is None else int(young) - 1


def _bytes_used(db: sqlite3.Connection) -> int:
    return int(db.execute(_BYTES_USED).fetchone()[0])


class IdSweep:
    """Walks round the id index, forgetting ids that are older than a day and whose event is gone.

    A hash's place says nothing of its age, so each slice is a fair sample: when the index is over its bound,
    the oldest part of each slice goes, whatever its age.
    """

    def __init__(self, clock: Clock, max_ids: int) -> None:
        self._clock = clock
        self._max = max_ids
        self._from = _LOWEST
        self.count = 0
        """Rows in the index; the log adds what it inserts."""

    @property
    def pages(self) -> int:
        """About how many pages the index has."""
        return self.count * _ID_BYTES // _PAGE_SIZE + 1

    def slice(self, db: sqlite3.Connection, first: int, wal: WalGauge) -> bool:
        """Look at `IDS_A_SLICE` ids and delete those that may go; True when the index is over its bound."""
        rows = db.execute(
            "SELECT seq, hash, accepted_us FROM ids WHERE hash >= ? ORDER BY hash LIMIT ?",
            (self._from, IDS_A_SLICE),
        ).fetchall()
        ends = len(rows) < IDS_A_SLICE
        self._from = _LOWEST if ends else rows[-1][1]
        horizon = self._clock.wall_us() - IDS_KEPT_US
        doomed = {known for seq, known, accepted_us in rows if seq < first and accepted_us < horizon}
        doomed.update(known for _, known, _ in sorted(rows)[: self._surplus(len(rows))])
        if doomed:
            encoded = msgspec.json.encode(sorted(doomed))
            db.execute("DELETE FROM ids WHERE hash IN (SELECT value FROM json_each(?))", (encoded.decode(),))
            self.count -= len(doomed)
            wal.add(len(rows) * _ID_BYTES)
        return self.count > self._max

    def _surplus(self, seen: int) -> int:
        """How many of a slice must go. Aiming below the bound removes faster than batches can add."""
        if self.count <= self._max:
            return 0
        return -(-seen * (self.count - self._max * 7 // 8) // self.count)
