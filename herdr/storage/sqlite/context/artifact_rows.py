"""The rows of artifacts: what is read of them and how they come and go, within the caller's transaction."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from herdr.context.artifacts import EXPIRED_A_CALL, Artifact, Gone
from herdr.storage.sqlite.connection import snapshot
from herdr.storage.sqlite.context.blobs import content_of, disown, packed_at

_SELECT = """
SELECT a.id, a.blob, a.workspace, a.name, a.kind, b.sha, a.bytes, a.content_type, a.created_us, a.expires_us,
       a.used_us, a.author, a.session, a.based_on, a.redacted
FROM artifacts a JOIN blobs b ON b.id = a.blob
"""
_FILTER = """
a.workspace = :workspace AND a.expires_us > :now_us
AND (:kind IS NULL OR a.kind = :kind) AND (:session IS NULL OR a.session = :session)
"""


class Row(NamedTuple):
    """An artifact and where it is stored."""

    id: int
    blob: int
    artifact: Artifact


def _row_of(values: tuple[Any, ...]) -> Row:
    row, blob, *fields = values
    fields[3] = fields[3].hex()
    return Row(row, blob, Artifact(**dict(zip(Artifact.__struct_fields__, fields, strict=True))))


def find(db: sqlite3.Connection, workspace: str, name: str) -> Row | None:
    """Return the row of a name, also when its time is over."""
    values = db.execute(f"{_SELECT} WHERE a.workspace = ? AND a.name = ?", (workspace, name)).fetchone()
    return None if values is None else _row_of(values)


def by_ids(db: sqlite3.Connection, ids: Iterable[int]) -> Iterator[Row]:
    """Return the rows of these ids in that order."""
    for row in ids:
        yield _row_of(db.execute(f"{_SELECT} WHERE a.id = ?", (row,)).fetchone())


def read(db: sqlite3.Connection, workspace: str, name: str, now_us: int) -> tuple[Row, bytes] | None:
    """See `Artifacts.get`."""
    with snapshot(db):
        row = find(db, workspace, name)
        if row is None or row.artifact.expires_us <= now_us:
            return None
        packed = packed_at(db, row.blob, row.artifact.ref)
    return row, content_of(packed)


def totals(db: sqlite3.Connection) -> tuple[int, int]:
    """Return how many there are and their bytes; reads an index only."""
    count, taken = db.execute("SELECT count(*), ifnull(sum(bytes), 0) FROM artifacts").fetchone()
    return count, taken


def list_some(
    db: sqlite3.Connection, workspace: str, kind: str | None, session: str | None, limit: int, now_us: int
) -> tuple[list[Row], int, int]:
    """See `Artifacts.shelf`: the rows, how many more there are, and the bytes of all artifacts."""
    wanted = {"workspace": workspace, "kind": kind, "session": session, "limit": limit, "now_us": now_us}
    with snapshot(db):
        (count,) = db.execute(f"SELECT count(*) FROM artifacts a WHERE {_FILTER}", wanted).fetchone()
        found = db.execute(
            f"{_SELECT} WHERE {_FILTER} ORDER BY a.created_us DESC, a.id DESC LIMIT :limit", wanted
        ).fetchall()
        return list(map(_row_of, found)), count - len(found), totals(db)[1]


def insert(db: sqlite3.Connection, one: Artifact, blob: int) -> None:
    """Add an artifact whose content is in that blob."""
    db.execute(
        "INSERT INTO artifacts (workspace, name, kind, blob, bytes, content_type, created_us, expires_us,"
        " used_us, author, session, based_on, redacted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (one.workspace, one.name, one.kind, blob, one.bytes, one.content_type, one.created_us, one.expires_us,
         one.used_us, one.by, one.session, one.based_on, one.redacted),
    )  # fmt: skip


def remove(db: sqlite3.Connection, row: Row) -> None:
    """Delete an artifact, and its content when nothing else has it."""
    db.execute("DELETE FROM artifacts WHERE id = ?", (row.id,))
    disown(db, row.blob)


def see_off(db: sqlite3.Connection, row: Row, now_us: int) -> Gone:
    """Delete an artifact and say why."""
    remove(db, row)
    return Gone(row.artifact, "ttl" if row.artifact.expires_us <= now_us else "size")


def remove_expired(db: sqlite3.Connection, now_us: int) -> list[Gone]:
    """See `Artifacts.expire`."""
    found = db.execute(
        f"{_SELECT} WHERE a.expires_us <= ? ORDER BY a.expires_us, a.id LIMIT ?", (now_us, EXPIRED_A_CALL)
    ).fetchall()
    return [see_off(db, _row_of(values), now_us) for values in found]


def next_expiry(db: sqlite3.Connection) -> int | None:
    """See `Artifacts.next_expiry`."""
    ends_us: int | None = db.execute("SELECT min(expires_us) FROM artifacts").fetchone()[0]
    return ends_us
