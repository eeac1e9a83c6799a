"""Pure: the form of a snapshot: one file with a project's graph, its artifacts, and what was decided about it.

MAGIC, then one zstandard frame over records: length (4 bytes), SHA-256 of the body (32), body (MessagePack of
`Record`). The first is a `head`; the last, `end`, counts the others and carries the hash of their hashes, so a
file that was cut off or rearranged is told from a whole one. There is no signature: who may write the file may
write another one.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import IO, Any, Literal

import msgspec
import zstandard

from herdr.errors import InvalidInput

MAGIC = b"HERDR-SNAPSHOT-1\n"
LEVEL = 9  # 4.6 MiB instead of 5.3 for the graph of 500,000 lines, in 0.5 s instead of 0.1
RECORD_MAX = 40 * 1024 * 1024
"""Bytes of one record: the largest artifact, and some more."""

PART = 1024 * 1024
"""Bytes of the graph in one record."""

UNPACKED_MAX = 4 * 1024**3
"""Bytes of all records: a graph of ten million lines. What unpacks to more was made to fill a disk."""

Kind = Literal["head", "graph", "decisions", "artifact", "session", "message", "end"]


class Record(msgspec.Struct, array_like=True, frozen=True):
    """One entry."""

    kind: Kind
    body: Any


class Head(msgspec.Struct, frozen=True):
    """What the snapshot is of."""

    workspace: str
    created: str
    """RFC 3339."""
    herdr: str
    """The version that wrote it."""
    form: str
    """What the graph's rows depend on; with another one files are parsed anew."""
    graph_bytes: int
    branch: str | None
    commit: str | None
    sessions: bool
    """Whether whole sessions are in it."""


class SnapshotDamaged(InvalidInput):
    """The file is cut off, was changed, or is no snapshot."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the snapshot is damaged: {what}; export it again", "snapshot_damaged")


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def write_records(sink: IO[bytes], records: Iterable[tuple[Kind, Any]]) -> None:
    """Write a whole snapshot."""
    sink.write(MAGIC)
    compressor = zstandard.ZstdCompressor(level=LEVEL).compressobj()
    count, digests = 0, sha256()
    for kind, body in records:
        raw, digest = _packed(kind, body)
        count += 1
        digests.update(digest)
        sink.write(compressor.compress(raw))
    raw, _ = _packed("end", {"count": count, "digest": digests.digest()})
    sink.write(compressor.compress(raw) + compressor.flush())


def _packed(kind: Kind, body: Any) -> tuple[bytes, bytes]:
    raw = _encode(Record(kind, body))
    digest = sha256(raw).digest()
    return len(raw).to_bytes(4, "big") + digest + raw, digest


def read_records(source: IO[bytes]) -> Iterator[Record]:
    """Yield the records, each checked against its hash; raises InvalidInput where the file is not whole.

    What was yielded before that is as it was written, but whether the file is whole shows only at its end.
    """
    if source.read(len(MAGIC)) != MAGIC:
        raise InvalidInput(
            "this is no snapshot that this version of Herdr can read; write one with `herdr snapshot export`",
            "snapshot_version",
        )
    count, digests = 0, sha256()
    unpacked = _Unpacked(source)
    while True:
        length = int.from_bytes(unpacked.exactly(4), "big")
        if length > RECORD_MAX:
            raise SnapshotDamaged("a record is longer than any can be")
        digest, raw = unpacked.exactly(32), unpacked.exactly(length)
        if sha256(raw).digest() != digest:
            raise SnapshotDamaged("a record does not have its hash")
        record = _record(raw)
        if record.kind == "end":
            _check_end(record.body, count, digests.digest())
            return
        count += 1
        digests.update(digest)
        yield record


def _record(raw: bytes) -> Record:
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise SnapshotDamaged("a record cannot be decoded") from None


def _check_end(body: Any, count: int, digest: bytes) -> None:
    if not isinstance(body, dict) or body.get("count") != count or body.get("digest") != digest:
        raise SnapshotDamaged("records are missing or in another order")


def read_head(records: Iterator[Record]) -> Head:
    """Return the first record's content; raises InvalidInput."""
    record = next(records, None)
    if record is None or record.kind != "head":
        raise SnapshotDamaged("it does not begin with its head")
    try:
        return msgspec.convert(record.body, Head)
    except msgspec.ValidationError as error:
        raise SnapshotDamaged(f"its head is not one ({error})") from None


class _Unpacked:
    """Reads exact numbers of bytes out of the compressed part."""

    def __init__(self, source: IO[bytes]) -> None:
        self._reader = zstandard.ZstdDecompressor().stream_reader(source)
        self._left = UNPACKED_MAX

    def exactly(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise SnapshotDamaged("it unpacks to more than any snapshot has")
        parts: list[bytes] = []
        while size:
            try:
                part = self._reader.read(size)
            except zstandard.ZstdError:
                raise SnapshotDamaged("it cannot be unpacked") from None
            if not part:
                raise SnapshotDamaged("it is cut off")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
