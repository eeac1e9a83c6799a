"""When rows were last used, kept in memory until a write is worth it: reading must not cost a commit."""

import sqlite3

from herdr.clock import Clock
from herdr.storage.sqlite.connection import transaction
from herdr.storage.sqlite.context.database import Database

Notes = list[tuple[int, int]]
"""When, in microseconds since the epoch, which row was used."""

FLUSH_AFTER_S = 60.0
_MOST = 10_000  # rows; beyond it the earliest note is dropped, and that row only looks a little older


class Touches:
    """Notes of one table. All methods but `flush` belong to the event loop's thread."""

    def __init__(self, table: str, clock: Clock) -> None:
        self._sql = f"UPDATE {table} SET used_us = max(used_us, ?) WHERE id = ?"
        self._clock = clock
        self._noted: dict[int, int] = {}
        self._since = clock.monotonic()

    def note(self, row: int) -> None:
        """Row `row` is being used now."""
        if not self._noted:
            self._since = self._clock.monotonic()
        elif len(self._noted) >= _MOST and row not in self._noted:
            del self._noted[next(iter(self._noted))]
        self._noted[row] = self._clock.wall_us()

    def used_us(self, row: int, stored_us: int) -> int:
        """Return when a row was last used, the stored time being an older answer."""
        return max(stored_us, self._noted.get(row, 0))

    @property
    def is_due(self) -> bool:
        """Whether notes have waited for `FLUSH_AFTER_S`."""
        return bool(self._noted) and self._clock.monotonic() - self._since >= FLUSH_AFTER_S

    def take(self) -> Notes:
        """Return all notes for `flush` and forget them; if that fails, a few rows look a little older."""
        taken, self._noted = [(used_us, row) for row, used_us in self._noted.items()], {}
        return taken

    def flush(self, db: sqlite3.Connection, notes: Notes) -> None:
        """Write taken notes, within the caller's transaction."""
        db.executemany(self._sql, notes)

    async def write(self, database: Database) -> None:
        """Write down all notes; raises ContextUnavailable."""
        if self._noted:
            notes = self.take()
            await database.write_unsynced(0, lambda db: self._on_thread_write(db, notes))

    def _on_thread_write(self, db: sqlite3.Connection, notes: Notes) -> None:
        with transaction(db):
            self.flush(db, notes)
