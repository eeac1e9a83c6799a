"""Connections to SQLite that run a whole piece of work on their thread, and its errors in plain words."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

import aiosqlite

from herdr.errors import HerdrError, LogUnavailable

P = ParamSpec("P")
T = TypeVar("T")

Fault = Callable[[sqlite3.Error | None], HerdrError]
"""Makes the error that a caller sees of what SQLite raised; None stands for a file that is closed."""

BUSY_MS = 2000
"""How long a write waits for another program (a shell on the file, say) before it fails."""

WAL_FILE_MAX = 16 * 1024**2
"""Bytes to which SQLite cuts the write-ahead log's file when that starts over: twice what forces it to."""


class Connection(aiosqlite.Connection):
    """An aiosqlite connection that also runs a function on its thread.

    aiosqlite goes to the thread and back for each call (50 to 100 us), and a task cancelled between two
    calls leaves its transaction open. One function for the whole transaction has neither problem.
    """

    async def run(
        self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `work(connection, ...)` on the connection's thread; it is not interrupted by cancellation."""
        result: T = await self._execute(work, self._conn, *args, **kwargs)  # type: ignore[no-untyped-call]
        return result


def address(path: Path, mode: str) -> str:
    """Return SQLite's URI of a file; the mode is `ro`, `rw` or `rwc`."""
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


async def connect(path: Path, mode: str) -> Connection:
    """Open a connection in autocommit mode; raises sqlite3.Error.

    The caller must close it: its thread would otherwise keep the interpreter from exiting.
    """

    def connector() -> sqlite3.Connection:
        # isolation_level None: no implicit BEGIN, which would be a deferred one.
        return sqlite3.connect(address(path, mode), uri=True, isolation_level=None, timeout=BUSY_MS / 1000)

    connection = Connection(connector, iter_chunk_size=1)
    try:
        await connection
    except BaseException:
        # aiosqlite has told its thread to end but does not wait for it; it would speak to a closed loop.
        connection._thread.join()
        raise
    return connection


def prepare_writer(db: sqlite3.Connection, durability: str) -> None:
    """Set the writer's pragmas; raises sqlite3.Error, also when write-ahead logging cannot be had."""
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise sqlite3.OperationalError(f"write-ahead logging is not possible here (journal mode {mode})")
    # FULL syncs the log at each commit. NORMAL lost acknowledged commits in 39 of 40 simulated power cuts.
    db.execute(f"PRAGMA synchronous = {'NORMAL' if durability == 'os' else 'FULL'}")
    db.execute("PRAGMA wal_autocheckpoint = 0")  # never within a commit: see upkeep
    db.execute(f"PRAGMA journal_size_limit = {WAL_FILE_MAX}")
    db.execute("PRAGMA secure_delete = ON")  # a redacted body must not survive in freed space
    db.execute("PRAGMA cache_size = -16000")  # 16 MB: the id index is written at random places
    db.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not reach the disk there


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit the block as one transaction, or roll it back whole."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # A full disk or an I/O error may have rolled it back already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """Let the statements of the block see the same state; keep it short, as no checkpoint gets past it."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


CAUSES: Mapping[str, str] = {
    "SQLITE_FULL": "the disk is full; free some space, publishing then goes on by itself",
    "SQLITE_READONLY": "the file or its file system is read-only; remount it or mend its permissions",
    "SQLITE_IOERR": "the disk answered with an I/O error; look at the kernel log and the disk's health",
    "SQLITE_CORRUPT": "the file is damaged; stop the gateway, run `herdr restore` with the newest backup",
    "SQLITE_NOTADB": "the file is not a database; restore a backup with `herdr restore`",
    "SQLITE_BUSY": "another program holds a lock on the file; end it (a SQLite shell, a backup tool)",
    "SQLITE_CANTOPEN": "the file cannot be opened; check that its folder exists and belongs to this user",
}


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether a part of the file is not what SQLite wrote."""
    return getattr(error, "sqlite_errorname", "").startswith("SQLITE_CORRUPT")


def log_fault(error: sqlite3.Error | None) -> HerdrError:
    """Return the event log's error."""
    return LogUnavailable("the log is closed" if error is None else cause_of(error))


def explain(path: Path, error: sqlite3.Error, causes: Mapping[str, str] = CAUSES) -> str:
    """Say in one line what failed, where, why, and what to do; for whoever runs the gateway."""
    return f"{path}: {cause_of(error, causes)}"


def cause_of(error: sqlite3.Error, causes: Mapping[str, str] = CAUSES) -> str:
    """The same without the path: clients hear this, and paths of the server are none of their business."""
    name = getattr(error, "sqlite_errorname", "") or ""
    cause = next((text for prefix, text in causes.items() if name.startswith(prefix)), None)
    return f"{cause or 'SQLite failed'} ({error}{', ' + name if name else ''})"
