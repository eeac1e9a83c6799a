"""How sessions grow, and how they go: at once for who asks, their messages a slice at a time."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from herdr.context.histories import SOURCES_MAX, Batch, Deletion, Message, Session, size_of
from herdr.storage.sqlite.context.blobs import disown, own
from herdr.storage.sqlite.context.packing import Packed

SLICE_ROWS = 512
SLICE_BYTES = 4 * 1024**2  # clearing a page writes it; this is a few milliseconds

_LONG_BODY = "application/json"
_ADD_BYTES = "UPDATE meta SET value = value + ? WHERE name = 'message_bytes'"


class Growth(msgspec.Struct):
    """What a batch adds to one session."""

    sid: int
    sources: list[str]
    messages: int = 0
    tokens: int = 0
    size: int = 0
    updated_us: int = 0


def fold(
    db: sqlite3.Connection, batch: Batch, packs: Mapping[bytes, Packed], folded: int, offset: int
) -> None:
    """Add the entries after `folded`, then set the states."""
    grown: dict[str, Growth] = {}
    for entry in batch.entries:
        if entry.seq <= folded:
            continue
        if isinstance(entry, Deletion):
            grown.pop(entry.session, None)
            doom(db, entry.session)
            continue
        growth = grown.get(entry.session)
        if growth is None:
            growth = grown[entry.session] = _begin(db, entry)
        _insert(db, growth.sid, entry.seq + offset, entry, packs)
        _grow(growth, entry)
    _write_down(db, grown.values())
    db.executemany(
        "UPDATE sessions SET state = ? WHERE session = ?",
        [(state, session) for session, state in batch.states.items()],
    )


def _begin(db: sqlite3.Connection, first: Message) -> Growth:
    row = db.execute("SELECT sid, sources FROM sessions WHERE session = ?", (first.session,)).fetchone()
    if row is not None:
        return Growth(row[0], msgspec.json.decode(row[1], type=list[str]))
    cursor = db.execute(
        "INSERT INTO sessions (session, workspace, messages, full_tokens, size, first_us, updated_us,"
        " sources, state) VALUES (?, ?, 0, 0, 0, ?, ?, '[]', x'')",
        (first.session, first.workspace, first.time_us, first.time_us),
    )
    assert cursor.lastrowid is not None
    return Growth(cursor.lastrowid, [])


def _insert(db: sqlite3.Connection, sid: int, seq: int, one: Message, packs: Mapping[bytes, Packed]) -> None:
    packed = packs.get(one.body)
    blob = None if packed is None else own(db, packed, _LONG_BODY, one.time_us)
    db.execute(
        "INSERT INTO messages (seq, sid, time_us, size, tokens, blob, id, role, source, about, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (seq, sid, one.time_us, size_of(one), one.tokens, blob, one.id, one.role, one.source, one.about,
         one.body if blob is None else b""),
    )  # fmt: skip


def _grow(growth: Growth, one: Message) -> None:
    growth.messages += 1
    growth.tokens += one.tokens
    growth.size += size_of(one)
    growth.updated_us = max(growth.updated_us, one.time_us)
    if one.source not in growth.sources and len(growth.sources) < SOURCES_MAX:
        growth.sources.append(one.source)


def _write_down(db: sqlite3.Connection, grown: Iterable[Growth]) -> None:
    for one in grown:
        db.execute(
            "UPDATE sessions SET messages = messages + ?, full_tokens = full_tokens + ?, size = size + ?,"
            " updated_us = max(updated_us, ?), sources = ? WHERE sid = ?",
            (one.messages, one.tokens, one.size, one.updated_us, _json(one.sources), one.sid),
        )
        db.execute(_ADD_BYTES, (one.size,))


def _json(names: Sequence[str]) -> str:
    return msgspec.json.encode(names).decode()


def restore(
    db: sqlite3.Connection,
    session: Session,
    messages: Sequence[Message],
    packs: Mapping[bytes, Packed],
    after: int,
) -> None:
    """Put in a whole session; its messages get the `seq`s that follow on `after`."""
    size = sum(map(size_of, messages))
    cursor = db.execute(
        "INSERT INTO sessions (session, workspace, messages, full_tokens, size, first_us, updated_us,"
        " sources, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session.session, session.workspace, len(messages), session.full_tokens, size, session.first_us,
         session.updated_us, _json(session.sources[:SOURCES_MAX]), session.state),
    )  # fmt: skip
    assert cursor.lastrowid is not None
    for seq, one in enumerate(messages, after + 1):
        _insert(db, cursor.lastrowid, seq, one, packs)
    db.execute(_ADD_BYTES, (size,))


def doom(db: sqlite3.Connection, session: str) -> bool:
    """Make a session unknown; `sweep` clears its messages. False when it was unknown already."""
    row = db.execute("DELETE FROM sessions WHERE session = ? RETURNING sid, size", (session,)).fetchone()
    if row is None:
        return False
    db.execute("INSERT INTO doomed VALUES (?)", row[:1])
    db.execute(_ADD_BYTES, (-row[1],))
    return True


def sweep(db: sqlite3.Connection) -> bool:
    """Clear a slice of the messages of sessions that are gone; True when there are more."""
    row = db.execute("SELECT sid FROM doomed LIMIT 1").fetchone()
    if row is None:
        return False
    rows, _ = _delete_oldest(db, row[0], SLICE_BYTES)
    if rows == 0:
        db.execute("DELETE FROM doomed WHERE sid = ?", row)
    return True


def is_sweep_due(db: sqlite3.Connection) -> bool:
    """Tell whether sessions that are gone left messages."""
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM doomed)").fetchone()[0])


def _delete_oldest(db: sqlite3.Connection, sid: int, size: int, keep: int = 0) -> tuple[int, int]:
    """Delete messages until `size` bytes or a slice of rows are gone; return how many and their bytes.

    At least `keep` messages stay.
    """
    oldest_first = "SELECT seq, blob, size FROM messages WHERE sid = ? ORDER BY seq LIMIT ?"
    going: list[tuple[Any, ...]] = []
    freed = 0
    rows = db.execute(oldest_first, (sid, SLICE_ROWS + keep)).fetchall()
    for row in rows[: len(rows) - keep]:
        if freed >= size:
            break
        going.append(row)
        freed += row[2]
    db.executemany("DELETE FROM messages WHERE seq = ?", [row[:1] for row in going])
    for _, blob, _ in going:
        if blob is not None:
            disown(db, blob)
    return len(going), freed


def make_room(db: sqlite3.Connection, sessions_max: int, bytes_max: int) -> list[str]:
    """Let the sessions go that were updated longest ago until the bounds hold, and return their names.

    The last one stays and loses its oldest messages.
    """
    (count,) = db.execute("SELECT count(*) FROM sessions").fetchone()
    (taken,) = db.execute("SELECT value FROM meta WHERE name = 'message_bytes'").fetchone()
    going: list[tuple[str, int]] = []
    for session, size in db.execute("SELECT session, size FROM sessions ORDER BY updated_us, sid"):
        if count <= 1 or (count <= sessions_max and taken <= bytes_max):
            break
        going.append((session, size))
        count, taken = count - 1, taken - size
    for session, _ in going:
        doom(db, session)
    while taken > bytes_max and (freed := _shorten(db, taken - bytes_max)):
        taken -= freed
    return [session for session, _ in going]


def _shorten(db: sqlite3.Connection, surplus: int) -> int:
    """Delete the oldest messages of the only session, never its newest; return how many bytes went."""
    (sid,) = db.execute("SELECT sid FROM sessions").fetchone()
    rows, freed = _delete_oldest(db, sid, surplus, keep=1)
    db.execute(
        "UPDATE sessions SET messages = messages - ?, size = size - ? WHERE sid = ?", (rows, freed, sid)
    )
    db.execute(_ADD_BYTES, (-freed,))
    return freed
