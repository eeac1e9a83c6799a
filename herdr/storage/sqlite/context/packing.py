"""Content as it is stored: hashed, and compressed where that pays."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import zstandard

RAW, ZSTD = 0, 1

_LEVEL = 3  # zstandard's own default; higher ones cost several times the time for a few percent of space
_WORTH_TRYING = 128  # bytes; a frame's own overhead is about 12
_PAYS = 0.95  # a photo or an archive that shrinks less than this is read faster as it is
_INLINE = 64 * 1024  # bytes that compress in about 0.3 ms, what a trip to a thread costs too


class Packed(NamedTuple):
    """One content, ready to be stored. `size` is that before compression."""

    sha: bytes
    size: int
    encoding: int
    body: bytes


def pack(content: bytes) -> Packed:
    """Hash and compress a content."""
    sha = hashlib.sha256(content).digest()
    if len(content) >= _WORTH_TRYING:
        body = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
        if len(body) < _PAYS * len(content):
            return Packed(sha, len(content), ZSTD, body)
    return Packed(sha, len(content), RAW, content)


def unpack(packed: Packed) -> bytes | None:
    """Return the content; None when it is not the one that was packed."""
    content = _decompress(packed) if packed.encoding == ZSTD else packed.body
    if content is None or hashlib.sha256(content).digest() != packed.sha:
        return None
    return content


def _decompress(packed: Packed) -> bytes | None:
    try:
        # A damaged header may announce terabytes, which would be set aside before anything is checked.
        if zstandard.frame_content_size(packed.body) != packed.size:
            return None
        return zstandard.ZstdDecompressor().decompress(packed.body)
    except zstandard.ZstdError:
        return None


async def pack_all(contents: Sequence[bytes]) -> list[Packed]:
    """Pack contents, on another thread where that takes longer than going there."""
    if sum(map(len, contents)) <= _INLINE:
        return list(map(pack, contents))
    return await asyncio.to_thread(lambda: list(map(pack, contents)))
