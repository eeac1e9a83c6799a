"""Event rows: their checksum, the statements that write and read whole pages of them, and back to events.

CPython's sqlite3 gives up the interpreter lock at every statement and at every row that it steps over, and
with a busy event loop gets it back up to 5 ms later (`sys.getswitchinterval`). So a batch is written by one
statement, and a page is read as one row. Measured on 2 cores beside a loop that never sleeps: 33,900 instead
of 1,500 rows a second written, 6.7 instead of 513 ms for a page of 1,000 rows.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

import msgspec

from herdr.event import Event, Positions, corrupt_event, encode_extra, restore_event

ROWS_PER_STATEMENT = 256  # the writer's batch bound; 6 parameters each stay far below SQLite's 32,766
_CHECKED = struct.Struct("<qqqq")
_LANE_OF_UNREADABLE = 2


class _Head(NamedTuple):
    seq: int
    lane: int
    accepted_us: int
    crc: int
    extra_size: int
    body_size: int


_decode_heads = msgspec.json.Decoder(list[_Head]).decode


def row_crc(seq: int, lane: int, accepted_us: int, extra: bytes | None, body: bytes) -> int:
    """Return the CRC-32 (zlib's) over everything that a row holds.

    SQLite has no checksums on its pages: of 300 single bit flips `integrity_check` saw 19, a checksum per
    row 268.
    """
    crc = crc32(_CHECKED.pack(seq, lane, accepted_us, -1 if extra is None else len(extra)))
    return crc32(body, crc32(extra or b"", crc))


Value = int | str | bytes | None


class Statements:
    """Writes many rows by few statements: one for each power of two up to `ROWS_PER_STATEMENT`.

    What a smaller batch leaves over is bound to NULL and skipped, so nine prepared statements serve every
    size.
    """

    def __init__(self, before: str, columns: int, after: str = "") -> None:
        row = "(" + ",".join("?" * columns) + ")"
        self._columns = columns
        self._texts = tuple(
            f"{before} SELECT * FROM (VALUES {','.join([row] * (1 << power))}) WHERE column1 IS NOT NULL"
            + after
            for power in range(ROWS_PER_STATEMENT.bit_length())
        )

    def split(self, rows: Sequence[Sequence[Value]]) -> Iterator[tuple[str, list[Value]]]:
        """Yield statements with their parameters; the first column of a row is never None."""
        for start in range(0, len(rows), ROWS_PER_STATEMENT):
            part = rows[start : start + ROWS_PER_STATEMENT]
            power = (len(part) - 1).bit_length()
            values = [value for row in part for value in row]
            values += [None] * (self._columns * ((1 << power) - len(part)))
            yield self._texts[power], values


INSERT_EVENTS = Statements("INSERT INTO events (seq, lane, accepted_us, crc, extra, body)", 6)
INSERT_STATE = Statements("INSERT OR REPLACE INTO state (kind, key, value)", 3)
INSERT_IDS = Statements("INSERT OR REPLACE INTO ids (hash, seq, accepted_us)", 3)
DELETE_STATE = Statements("DELETE FROM state WHERE (kind, key) IN (", 2, ")")


def row_of(event: Event) -> tuple[int, int, int, int, bytes | None, bytes]:
    """Return the columns that `INSERT_EVENTS` takes."""
    extra = encode_extra(event)
    crc = row_crc(event.seq, event.lane, event.accepted_us, extra, event.body)
    return event.seq, event.lane, event.accepted_us, crc, extra, event.body


# `format('%d')` and the casts make a page readable whatever a flipped bit has turned a column's type into.
_PAGE = """
SELECT '[' || group_concat(format('[%d,%d,%d,%d,%d,%d]', e.seq, e.lane, e.accepted_us, e.crc,
           ifnull(length(CAST(e.extra AS BLOB)), -1), ifnull(length(CAST(e.body AS BLOB)), 0))) || ']',
       CAST(group_concat(ifnull(e.extra, '') || ifnull(e.body, ''), '') AS BLOB)
FROM ({seqs}) AS picked CROSS JOIN events AS e ON e.seq = picked.seq
"""

# Positions differ by lane: P0 may be millions of rows behind the others, and those few are found through
# their partial index. `total = size` lets the first event pass whatever its size.
READ = _PAGE.format(
    seqs="""
    SELECT seq FROM (
        SELECT seq, size, sum(size) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS total FROM (
            SELECT * FROM (
                SELECT seq, ifnull(length(body), 0) AS size FROM events INDEXED BY events_p0
                WHERE lane = 0 AND seq > :p0 AND seq <= :others ORDER BY seq LIMIT :limit)
            UNION ALL
            SELECT * FROM (
                SELECT seq, ifnull(length(body), 0) AS size FROM events
                WHERE seq > :others AND seq > CASE lane WHEN 0 THEN :p0 WHEN 1 THEN :p1 ELSE :p2 END
                ORDER BY seq LIMIT :limit)
            ORDER BY seq LIMIT :limit))
    WHERE total <= :bytes_max OR total = size ORDER BY seq"""
)

GET = _PAGE.format(seqs="SELECT :seq AS seq")


def read_parameters(after: Positions, limit: int, bytes_max: int) -> dict[str, int]:
    """Return the parameters of `READ`."""
    p0, p1, p2 = after
    return {"p0": p0, "p1": p1, "p2": p2, "others": min(p1, p2), "limit": limit, "bytes_max": bytes_max}


def restore_page(heads: str | None, payload: bytes | None) -> list[Event]:
    """Turn one answer of `READ` or `GET` into events; a row that is damaged becomes a corrupt event."""
    events: list[Event] = []
    start = 0
    for head in _decode_heads(heads or "[]"):
        body_at = start + max(head.extra_size, 0)
        end = body_at + head.body_size
        extra = None if head.extra_size < 0 else (payload or b"")[start:body_at]
        events.append(_restore(head, extra, (payload or b"")[body_at:end]))
        start = end
    return events


def unreadable(seq: int) -> Event:
    """Stand in for a row on a damaged page: not even its lane is known, so it counts as P2."""
    return corrupt_event(seq, _LANE_OF_UNREADABLE, 0)


def _restore(head: _Head, extra: bytes | None, body: bytes) -> Event:
    lane = head.lane if head.lane in (0, 1, 2) else _LANE_OF_UNREADABLE
    if head.crc != row_crc(head.seq, head.lane, head.accepted_us, extra, body):
        return corrupt_event(head.seq, lane, head.accepted_us)
    try:
        return restore_event(head.seq, lane, head.accepted_us, extra, body)
    except msgspec.DecodeError:
        return corrupt_event(head.seq, lane, head.accepted_us)
