"""Blobs on SQLite: stored once, counted by owners, and a cache where there are none."""

import sqlite3
from typing import Any

from herdr.clock import Clock
from herdr.context.blobs import CACHED_BLOB_MAX, CACHED_BYTES_MAX, Blob, BlobDamaged, BlobTooLarge, is_ref
from herdr.storage.sqlite.connection import is_damage, transaction
from herdr.storage.sqlite.context.database import Database
from herdr.storage.sqlite.context.packing import Packed, pack_all, unpack
from herdr.storage.sqlite.context.touches import Notes, Touches

_ADD_CACHED = "UPDATE meta SET value = value + ? WHERE name = 'cached_bytes'"


class SqliteBlobs:
    """Implements `herdr.context.blobs.Blobs`."""

    def __init__(self, database: Database, clock: Clock, bytes_max: int = CACHED_BYTES_MAX) -> None:
        self._database = database
        self._clock = clock
        self._bytes_max = bytes_max
        self.touches = Touches("blobs", clock)

    async def put(self, content: bytes, content_type: str) -> str:
        """See `Blobs.put`."""
        if len(content) > CACHED_BLOB_MAX:
            raise BlobTooLarge(len(content), CACHED_BLOB_MAX)
        (packed,) = await pack_all([content])
        notes = self.touches.take()
        await self._database.write_unsynced(
            len(packed.body), lambda db: self._on_thread_put(db, packed, content_type, notes)
        )
        return packed.sha.hex()

    def _on_thread_put(self, db: sqlite3.Connection, packed: Packed, content_type: str, notes: Notes) -> None:
        now_us = self._clock.wall_us()
        with transaction(db):
            self.touches.flush(db, notes)
            row = _find(db, packed)
            if row is not None:
                db.execute("UPDATE blobs SET used_us = ? WHERE id = ?", (now_us, row))
                return
            _insert(db, packed, content_type, 0, now_us)
            db.execute(_ADD_CACHED, (packed.size,))
            _evict(db, self._bytes_max)

    async def get(self, ref: str) -> Blob | None:
        """See `Blobs.get`."""
        if not is_ref(ref):
            return None
        found = await self._database.read(_read, bytes.fromhex(ref))
        if found is None:
            return None
        row, content_type, content = found
        self.touches.note(row)
        return Blob(ref, content, content_type)


def _read(db: sqlite3.Connection, sha: bytes) -> tuple[int, str, bytes] | None:
    sql = "SELECT id, content_type, sha, size, encoding, body FROM blobs WHERE sha = ?"
    found = _fetch(db, sql, sha, sha.hex())
    return None if found is None else (found[0], found[1], content_of(Packed(*found[2:])))


def packed_at(db: sqlite3.Connection, row: int, ref: str) -> Packed:
    """Return what is stored in a row of which something refers to; raises BlobDamaged."""
    found = _fetch(db, "SELECT sha, size, encoding, body FROM blobs WHERE id = ?", row, ref)
    if found is None:
        raise BlobDamaged(ref)
    return Packed(*found)


def content_of(packed: Packed) -> bytes:
    """Unpack a content; raises BlobDamaged."""
    content = unpack(packed)
    if content is None:
        raise BlobDamaged(packed.sha.hex())
    return content


def _fetch(db: sqlite3.Connection, sql: str, key: bytes | int, ref: str) -> tuple[Any, ...] | None:
    try:
        found: tuple[Any, ...] | None = db.execute(sql, (key,)).fetchone()
    except sqlite3.DatabaseError as error:
        # Text that is no UTF-8 is an error of Python's own, which has no SQLite code.
        if is_damage(error) or not hasattr(error, "sqlite_errorname"):
            raise BlobDamaged(ref) from error
        raise
    return found


def own(db: sqlite3.Connection, packed: Packed, content_type: str, now_us: int) -> int:
    """Keep a content for one more owner, and return its row; within the caller's transaction."""
    row = _find(db, packed)
    if row is None:
        return _insert(db, packed, content_type, 1, now_us)
    (owners,) = db.execute(
        "UPDATE blobs SET owners = owners + 1 WHERE id = ? RETURNING owners", (row,)
    ).fetchone()
    if owners == 1:
        db.execute(_ADD_CACHED, (-packed.size,))
    return row


def disown(db: sqlite3.Connection, row: int) -> None:
    """An owner goes; with the last one the content does, so that what was deleted is not served by hash."""
    db.execute("DELETE FROM blobs WHERE id = ? AND owners = 1", (row,))
    db.execute("UPDATE blobs SET owners = owners - 1 WHERE id = ?", (row,))


def _find(db: sqlite3.Connection, packed: Packed) -> int | None:
    """Return the row of a content, mended where it does not hold what it should."""
    row = db.execute("SELECT id, encoding, body FROM blobs WHERE sha = ?", (packed.sha,)).fetchone()
    if row is None:
        return None
    if row[1:] != (packed.encoding, packed.body):
        db.execute(
            "UPDATE blobs SET size = ?, encoding = ?, body = ? WHERE id = ?",
            (packed.size, packed.encoding, packed.body, row[0]),
        )
    return int(row[0])


def _insert(db: sqlite3.Connection, packed: Packed, content_type: str, owners: int, now_us: int) -> int:
    cursor = db.execute(
        "INSERT INTO blobs (sha, size, owners, used_us, encoding, content_type, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (packed.sha, packed.size, owners, now_us, packed.encoding, content_type, packed.body),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _evict(db: sqlite3.Connection, bytes_max: int) -> None:
    (cached,) = db.execute("SELECT value FROM meta WHERE name = 'cached_bytes'").fetchone()
    going: list[tuple[int]] = []
    freed = 0
    # The newest is last and fits by itself, so what was just stored stays.
    for row, size in db.execute("SELECT id, size FROM blobs WHERE owners = 0 ORDER BY used_us, id"):
        if cached - freed <= bytes_max:
            break
        going.append((row,))
        freed += size
    db.executemany("DELETE FROM blobs WHERE id = ?", going)
    db.execute(_ADD_CACHED, (-freed,))
