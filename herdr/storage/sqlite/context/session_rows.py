"""The rows of sessions and messages, read."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from herdr.context.histories import Message, Session, SessionList
from herdr.storage.sqlite.connection import snapshot
from herdr.storage.sqlite.context.packing import Packed, unpack

_SESSION = "session, workspace, messages, full_tokens, size, first_us, updated_us, sources"
_MESSAGE = """
SELECT m.size, s.session, s.workspace, m.seq, m.id, m.role, m.source, m.time_us, m.about, m.tokens, m.body,
       m.blob, b.sha, b.size, b.encoding, b.body
FROM sessions s JOIN messages m ON m.sid = s.sid LEFT JOIN blobs b ON b.id = m.blob
WHERE s.session = ?
"""

_decode_sources = msgspec.json.Decoder(list[str]).decode


def numbers(db: sqlite3.Connection) -> tuple[int, int]:
    """Return up to which `seq` the log is folded, and the offset."""
    found = dict(db.execute("SELECT name, value FROM meta WHERE name IN ('folded', 'offset')"))
    return found["folded"], found["offset"]


def epoch(db: sqlite3.Connection) -> str | None:
    """Return the epoch of the log that was folded last; None before the first."""
    row = db.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
    return None if row is None else str(row[0])


def set_meta(db: sqlite3.Connection, values: Mapping[str, str | int]) -> None:
    """Set named values."""
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


def sid_of(db: sqlite3.Connection, session: str) -> int | None:
    """Return the number of a session; None when it is unknown."""
    row = db.execute("SELECT sid FROM sessions WHERE session = ?", (session,)).fetchone()
    return None if row is None else int(row[0])


def _session_of(values: tuple[Any, ...], state: bytes = b"") -> Session:
    *fields, sources = values
    names = _SESSION.split(", ")
    return Session(**dict(zip(names, fields, strict=False)), sources=_decode_sources(sources), state=state)


def state(db: sqlite3.Connection, session: str) -> Session | None:
    """See `Histories.state`."""
    row = db.execute(f"SELECT state, {_SESSION} FROM sessions WHERE session = ?", (session,)).fetchone()
    return None if row is None else _session_of(row[1:], row[0])


def list_some(db: sqlite3.Connection, workspace: str | None, limit: int) -> SessionList:
    """See `Histories.sessions`."""
    where, wanted = ("", ()) if workspace is None else ("WHERE workspace = ?", (workspace,))
    with snapshot(db):
        (count,) = db.execute(f"SELECT count(*) FROM sessions {where}", wanted).fetchone()
        found = db.execute(
            f"SELECT {_SESSION} FROM sessions {where} ORDER BY updated_us DESC, sid DESC LIMIT ?",
            (*wanted, limit),
        ).fetchall()
    return SessionList(list(map(_session_of, found)), count - len(found))


def page(db: sqlite3.Connection, session: str, after: int, limit: int, bytes_max: int) -> list[Message]:
    """See `Histories.page`."""
    rows = db.execute(f"{_MESSAGE} AND m.seq > ? ORDER BY m.seq LIMIT ?", (session, after, limit))
    return _within(rows, bytes_max)


def newest(db: sqlite3.Connection, session: str, count: int, bytes_max: int) -> list[Message]:
    """See `Histories.newest`."""
    rows = db.execute(f"{_MESSAGE} ORDER BY m.seq DESC LIMIT ?", (session, count))
    return _within(rows, bytes_max)[::-1]


def _within(rows: Iterable[tuple[Any, ...]], bytes_max: int) -> list[Message]:
    taken: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        size += row[0]
        if taken and size > bytes_max:
            break
        taken.append(row)
    return list(map(_message_of, taken))


def _message_of(row: tuple[Any, ...]) -> Message:
    _, session, workspace, seq, id_, role, source, time_us, about, tokens, body, blob, *stored = row
    content: bytes | None = body
    if blob is not None:
        content = None if stored[0] is None else unpack(Packed(*stored))
    return Message(
        session=session,
        workspace=workspace,
        seq=seq,
        id=id_,
        role=role,
        source=source,
        time_us=time_us,
        body=content or b"",
        about=about,
        tokens=tokens,
        ref=stored[0].hex() if stored[0] is not None else None,
        damaged=content is None,
    )
