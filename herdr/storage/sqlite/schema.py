"""The tables of events.db and how older files become current ones."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from herdr.errors import StartupError

APPLICATION_ID = 0x48524452  # "HRDR"; https://www.sqlite.org/pragma.html#pragma_application_id

# Position in this tuple + 1 = the `user_version` that a step leads to. Released steps never change.
MIGRATIONS: tuple[str, ...] = (
    f"""
    PRAGMA application_id = {APPLICATION_ID};
    CREATE TABLE events (
        seq         INTEGER PRIMARY KEY,
        lane        INTEGER NOT NULL,
        accepted_us INTEGER NOT NULL,
        crc         INTEGER NOT NULL,
        extra       BLOB,
        body        BLOB NOT NULL
    ) STRICT;
    CREATE INDEX events_p0 ON events (lane) WHERE lane = 0;
    CREATE TABLE state (
        kind  TEXT NOT NULL,
        key   TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE ids (
        hash        INTEGER PRIMARY KEY,
        seq         INTEGER NOT NULL,
        accepted_us INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE meta (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO meta VALUES ('first', '1');
    """,
)


def version_of(db: sqlite3.Connection) -> int:
    """Return the schema version that the file says it has; 0 for a new one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


class Owner(NamedTuple):
    """Whose file it is, and what to do about one that is not or is newer."""

    application_id: int
    mend_foreign: str
    mend_newer: str


LOG = Owner(
    APPLICATION_ID,
    "set bus.persist_path to a file of Herdr's own",
    "start the newer Herdr again, or restore a backup that the older one made",
)


def migrate(
    db: sqlite3.Connection, path: Path, migrations: Sequence[str] = MIGRATIONS, owner: Owner = LOG
) -> None:
    """Bring the file to the newest schema, one transaction a step: a kill leaves the old or the new one.

    Raises StartupError for a file that is not ours or is newer than this program, sqlite3.Error when a step
    fails.
    """
    version = version_of(db)
    if version > len(migrations):
        raise StartupError(
            f"{path} has schema {version}, and this version of Herdr knows schemas up to {len(migrations)}: "
            f"{owner.mend_newer}"
        )
    application = int(db.execute("PRAGMA application_id").fetchone()[0])
    tables = int(db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
    if application != owner.application_id and (version or tables):
        raise StartupError(f"{path} is a database of another program: {owner.mend_foreign}")
    for target, script in enumerate(migrations[version:], start=version + 1):
        _step(db, script, target)


def _step(db: sqlite3.Connection, script: str, target: int) -> None:
    try:
        db.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {target}; COMMIT;")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def epoch_of(db: sqlite3.Connection, new_epoch: Callable[[], str]) -> str:
    """Return the log's epoch, giving it one when it is new."""
    db.execute("INSERT OR IGNORE INTO meta VALUES ('epoch', ?)", (new_epoch(),))
    return str(db.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()[0])


def extent_of(db: sqlite3.Connection) -> tuple[int, int]:
    """Return the oldest retained `seq` and the newest one ever written (see `Log.first` and `Log.head`)."""
    low, high = db.execute("SELECT (SELECT min(seq) FROM events), (SELECT max(seq) FROM events)").fetchone()
    if low is not None:
        return int(low), int(high)
    first = int(db.execute("SELECT value FROM meta WHERE name = 'first'").fetchone()[0])
    return first, first - 1
