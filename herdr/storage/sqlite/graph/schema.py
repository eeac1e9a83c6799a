"""The tables of a graph's file. What is in it can be worked out again, so another form begins it anew."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

APPLICATION_ID = 0x48524747  # "HRGG"; https://www.sqlite.org/pragma.html#pragma_application_id

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE files (
    id       INTEGER PRIMARY KEY,
    path     TEXT NOT NULL UNIQUE,
    folder   TEXT NOT NULL,
    base     TEXT NOT NULL,
    size     INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode    INTEGER NOT NULL,
    settled  INTEGER NOT NULL,
    hash     BLOB,
    skipped  TEXT,
    language TEXT,
    package  TEXT NOT NULL DEFAULT '',
    symbols  INTEGER NOT NULL DEFAULT 0,
    calls    INTEGER NOT NULL DEFAULT 0,
    imports  INTEGER NOT NULL DEFAULT 0,
    outline  BLOB
) STRICT;
CREATE INDEX files_folder ON files (folder);
CREATE INDEX files_base ON files (base);
CREATE INDEX files_package ON files (package) WHERE package != '';
CREATE INDEX files_skipped ON files (path) WHERE skipped IS NOT NULL;
CREATE TABLE symbols (
    name TEXT NOT NULL,
    file INTEGER NOT NULL,
    PRIMARY KEY (name, file)
) STRICT, WITHOUT ROWID;
CREATE TABLE calls (
    name  TEXT NOT NULL,
    file  INTEGER NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (name, file)
) STRICT, WITHOUT ROWID;
CREATE TABLE imports (
    key  TEXT NOT NULL,
    file INTEGER NOT NULL,
    PRIMARY KEY (key, file)
) STRICT, WITHOUT ROWID;
"""


def open_graph(path: Path, form: str) -> sqlite3.Connection:
    """Open a graph's file, beginning it anew when it is damaged or of another form.

    `form` names everything that decides what the rows look like: schema, outlines, grammars.
    Raises OSError and sqlite3.Error when the file can be neither used nor replaced.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        db = _connect(path)
        if _form(db) == form and _tables(db) == _own_tables():
            return db
        db.close()
    except sqlite3.DatabaseError:
        pass  # damaged, or no database: nothing in it is worth more than an index run
    remove(path)
    db = _connect(path)
    db.executescript(f"BEGIN; {SCHEMA} INSERT INTO meta VALUES ('form', '{form}'); COMMIT;")
    return db


def adopt(seed: Path, path: Path, form: str) -> bool:
    """Put a graph from a snapshot in the place of the workspace's own; False when it is not to be trusted.

    It was written by this program's like, or says so: nothing of it is used unless it is whole, has exactly our
    tables, and was made by the same parsers.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(seed))}?mode=ro", uri=True)) as db:
            db.execute("PRAGMA trusted_schema = OFF")
            whole = db.execute("PRAGMA quick_check").fetchall() == [("ok",)]
            if not whole or _form(db) != form or _tables(db) != _own_tables():
                return False
    except sqlite3.DatabaseError:
        return False
    remove(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.replace(seed, path)
    return True


def _own_tables() -> list[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return _tables(db)


def _tables(db: sqlite3.Connection) -> list[tuple[str, str]]:
    return db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


def remove(path: Path) -> None:
    """Delete a graph's file and what SQLite keeps beside it; nobody has it open."""
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")  # a power cut may take the last changes; the next start sees it
    db.execute("PRAGMA cache_size = -32000")
    db.execute("PRAGMA temp_store = MEMORY")
    return db


def _form(db: sqlite3.Connection) -> str | None:
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").fetchone():
        return None
    row = db.execute("SELECT value FROM meta WHERE name = 'form'").fetchone()
    return None if row is None else str(row[0])
