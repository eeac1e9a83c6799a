"""The connections of context.db: one that writes, and that starts afresh after any failure; some that read."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, Literal, ParamSpec, TypeVar

from herdr.context.blobs import ContextUnavailable
from herdr.errors import HerdrError, StartupError
from herdr.storage.sqlite.connection import CAUSES, cause_of, explain
from herdr.storage.sqlite.context.schema import MIGRATIONS, OWNER
from herdr.storage.sqlite.folder import unusable
from herdr.storage.sqlite.readers import Readers
from herdr.storage.sqlite.schema import migrate
from herdr.storage.sqlite.upkeep import WalGauge
from herdr.storage.sqlite.writer import Writer

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_DAMAGED = (
    "the file is damaged; stop the gateway and move it out of the data folder: sessions are read from the "
    "event log again as far as that reaches back, artifacts are lost"
)
_CAUSES = {
    **CAUSES,
    "SQLITE_FULL": "the disk is full; free some space, storing then goes on by itself",
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_NOTADB": _DAMAGED,
}


def _fault(error: sqlite3.Error | None) -> HerdrError:
    return ContextUnavailable("the context is closed" if error is None else cause_of(error, _CAUSES))


class Database:
    """Runs work on the file's connections; it knows nothing of what the tables mean."""

    def __init__(
        self, path: Path, durability: Literal["full", "os"], on_connect: Callable[[sqlite3.Connection], None]
    ) -> None:
        """`on_connect` runs on the writer's thread each time that a connection is made, to read state."""
        self._path = path
        self._on_connect = on_connect
        self._durability = durability
        self._writer = Writer(path, durability, _fault)
        self._readers = Readers(path, _fault)
        self._wal = WalGauge()
        self._gate = asyncio.Lock()
        self._is_open = False
        self._failed = False

    async def open(self) -> None:
        """Connect; raises StartupError, and nothing is left open then."""
        try:
            await self._writer.open()
            await self._writer.run(self._on_thread_start)
            await self._readers.open()
            self._is_open = True
        except sqlite3.Error as error:
            raise StartupError(_cannot_open(self._path, error)) from error
        except ContextUnavailable as error:
            raise StartupError(f"{self._path}: {error.detail}") from error
        finally:
            if not self._is_open:
                await self.close()

    def _on_thread_start(self, db: sqlite3.Connection) -> None:
        migrate(db, self._path, MIGRATIONS, OWNER)
        self._on_connect(db)
        self._wal.checkpoint(db)

    async def read(
        self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` on a reading connection; raises ContextUnavailable."""
        return await self._readers.run(work, *args, **kwargs)

    async def write(self, size: int, work: Work[T]) -> T:
        """Run `work`, which commits by itself, on the writing connection; raises ContextUnavailable.

        `size` is about how many bytes it stores. What has begun is done although the caller is cancelled.
        """
        async with self._gate:
            await self._connect_again()
            return await self._writer.run(self._on_thread_write, size, work)

    async def write_unsynced(self, size: int, work: Work[T]) -> T:
        """The same without waiting for the disk: a power cut may take it, and nothing that came before."""

        def unsynced(db: sqlite3.Connection) -> T:
            # https://www.sqlite.org/pragma.html#pragma_synchronous: in WAL mode, NORMAL leaves out the sync
            # of the commit only; the next synced commit covers it.
            db.execute("PRAGMA synchronous = NORMAL")
            try:
                return work(db)
            finally:
                db.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'full' else 'NORMAL'}")

        return await self.write(size, unsynced)

    async def _connect_again(self) -> None:
        if not self._is_open:
            raise _fault(None)
        if self._failed:
            await self._writer.close()
        if self._writer.is_open:
            return
        try:
            await self._writer.open()
        except sqlite3.Error as error:
            raise _fault(error) from error
        self._failed = False
        await self._writer.run(self._on_connect)

    def _on_thread_write(self, db: sqlite3.Connection, size: int, work: Work[T]) -> T:
        """The flag covers work whose caller was cancelled: nobody saw it fail and closed the connection."""
        if self._failed:
            raise sqlite3.OperationalError("an earlier write failed; try again")
        changes = db.total_changes
        try:
            result = work(db)
        except sqlite3.Error:
            self._failed = True
            raise
        self._wal.add(size, db.total_changes - changes)
        if self._wal.is_due(calm=True):
            self._checkpoint(db)
        return result

    def _checkpoint(self, db: sqlite3.Connection) -> None:
        try:
            self._wal.checkpoint(db)
        except sqlite3.Error:
            # What was committed stays so, and its caller must hear that; the next write connects anew.
            self._failed = True

    async def close(self) -> None:
        """Release the file; safe to call twice. SQLite empties the write-ahead log with the last connection."""
        async with self._gate:
            self._is_open = False
            await self._readers.close()
            await self._writer.close()


def _cannot_open(path: Path, error: sqlite3.Error) -> str:
    if path.is_dir():
        return f"{path} is a folder, where Herdr keeps a file: move it out of the data folder"
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
        return unusable(path, _reason_of(path, error))
    return explain(path, error, _CAUSES)


def _reason_of(path: Path, error: sqlite3.Error) -> OSError:
    """Ask the system why it will not be opened: SQLite does not tell a read-only disk from a missing right."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as reason:
        return reason
    return PermissionError(13, str(error))
