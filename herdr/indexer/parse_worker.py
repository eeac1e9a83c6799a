"""Reads and parses files, one chunk at a time: a parser that crashes or hangs takes only this process along."""

import errno
import gc
import signal
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import BinaryIO

import msgspec

from herdr.context.graph.files import Numbers, Parsed, with_outline
from herdr.context.graph.frames import LENGTH_BYTES, encode_frame
from herdr.context.graph.language import Language
from herdr.context.graph.languages.registry import language_of
from herdr.context.graph.parse import Reader
from herdr.context.graph.reading import SOURCE_BYTES_MAX, Skip, source_text
from herdr.indexer.disk import read_bytes

ALARM_S = 120  # so long on one chunk, and nobody is left who would have ended this process
GC_OBJECTS = 200_000
"""New objects before the garbage collector looks for cycles: parsing makes many objects and no cycle."""

_NO_NUMBERS = Numbers(0, 0, 0, settled=False)


class Chunk(msgspec.Struct):
    """Files to read."""

    root: str
    paths: list[str]
    known: Mapping[str, bytes] = {}
    """SHA-256 of what is known of some of them: the same bytes are not parsed again."""


class Readers:
    """One parser for each language that came up."""

    def __init__(self) -> None:
        self._readers: dict[str, Reader] = {}

    def of(self, language: Language) -> Reader:
        """Return the language's parser."""
        reader = self._readers.get(language.name)
        if reader is None:
            reader = self._readers[language.name] = Reader(language)
        return reader


def read_file(chunk: Chunk, path: str, readers: Readers) -> Parsed:
    """Return what a file holds now."""
    try:
        data, numbers = read_bytes(f"{chunk.root}/{path}", SOURCE_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return Parsed(path, _NO_NUMBERS, None, gone=True)
    except OSError as error:
        gone = error.errno in (errno.ELOOP, errno.ENXIO)  # a link or a socket in its place
        return Parsed(path, _NO_NUMBERS, None, None if gone else "unreadable", gone=gone)
    if data is None:
        return Parsed(path, numbers, None, "too_large")
    digest = sha256(data).digest()
    if chunk.known.get(path) == digest:
        return Parsed(path, numbers, digest, same=True)
    return _parse(path, data, digest, numbers, readers)


def _parse(path: str, data: bytes, digest: bytes, numbers: Numbers, readers: Readers) -> Parsed:
    source = source_text(path, data)
    if isinstance(source, Skip):
        return Parsed(path, numbers, digest, source.reason)
    language = language_of(path)
    if language is None:
        return Parsed(path, numbers, digest)
    return with_outline(path, numbers, digest, readers.of(language).read(source))


def chunks(pipe: BinaryIO) -> Iterator[Chunk]:
    """Yield what is asked for until the pipe ends."""
    decode = msgspec.msgpack.Decoder(Chunk).decode
    while len(head := pipe.read(LENGTH_BYTES)) == LENGTH_BYTES:
        yield decode(pipe.read(int.from_bytes(head, "big")))


def main() -> None:
    """Serve chunks from the standard input until it ends."""
    gc.set_threshold(GC_OBJECTS)
    readers = Readers()
    answers = sys.stdout.buffer
    for chunk in chunks(sys.stdin.buffer):
        signal.alarm(ALARM_S)  # ends the process also in the middle of a parser's own loop
        answers.write(encode_frame([read_file(chunk, path, readers) for path in chunk.paths]))
        answers.flush()
        signal.alarm(0)


if __name__ == "__main__":
    main()
