"""Pure: one file of the graph as it is stored, and the version of all of them together."""

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from herdr.context.graph.import_keys import import_keys
from herdr.context.graph.outline import Outline

VERSION_BYTES = 16
_LARGEST = 2**63 - 1


class Numbers(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What tells whether a file must be read again."""

    size: int
    mtime_ns: int
    inode: int
    settled: bool = True
    """False when it may have changed after the look without changing the numbers."""


def numbers_of(size: int, mtime_ns: int, inode: int, settled: bool = True) -> Numbers:
    """Return a file's numbers as the store can hold them: some file systems have inodes and years beyond 63 bits."""
    return Numbers(size, max(-_LARGEST, min(mtime_ns, _LARGEST)), inode & _LARGEST, settled)


class Parsed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What reading one file gave. Comes from a parse worker or a snapshot."""

    path: str
    numbers: Numbers
    hash: bytes | None
    """SHA-256 of the bytes; None when it could not be read."""
    skipped: str | None = None
    """Why there is no outline though the file's kind is known."""
    language: str | None = None
    outline: bytes | None = None
    """The encoded Outline."""
    package: str = ""
    symbols: tuple[str, ...] = ()
    """Names, each once."""
    calls: Mapping[str, int] = {}
    """Called names, and how often."""
    imports: tuple[str, ...] = ()
    """See `import_keys`."""
    counts: tuple[int, int, int] = (0, 0, 0)
    """Symbols, calls, imports."""
    gone: bool = False
    """There is no such regular file any more."""
    same: bool = False
    """The bytes have the known hash, so they were not parsed; only path, numbers and hash are given."""


def file_version(path: str, hash_: bytes | None, skipped: str | None) -> int:
    """Return a number for one file's content; those of all files, xored, are the graph's version.

    Equal graphs have equal versions, whatever the order in which they came to be.
    """
    text = b"\0".join((path.encode(errors="surrogateescape"), hash_ or b"", (skipped or "").encode()))
    return int.from_bytes(blake2b(text, digest_size=VERSION_BYTES).digest(), "big")


def symbol_names(outline: Outline) -> tuple[str, ...]:
    """Return the names that a file defines, each once."""
    return tuple(dict.fromkeys(symbol.name for symbol in outline.symbols))


def call_counts(outline: Outline) -> dict[str, int]:
    """Return the names that a file calls, and how often."""
    counts: dict[str, int] = {}
    for call in outline.calls:
        counts[call.name] = counts.get(call.name, 0) + len(call.lines)
    return counts


def with_outline(path: str, numbers: Numbers, hash_: bytes, outline: Outline) -> Parsed:
    """Return the row of a file that was parsed."""
    return Parsed(
        path,
        numbers,
        hash_,
        language=outline.language,
        outline=msgspec.msgpack.encode(outline),
        package=outline.package,
        symbols=symbol_names(outline),
        calls=call_counts(outline),
        imports=tuple(import_keys(outline)),
        counts=(len(outline.symbols), len(outline.calls), len(outline.imports)),
    )
