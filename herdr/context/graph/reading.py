"""Pure: which files are read at all, and their text as UTF-8.

Stub by the lead so that the indexer runs; the owner (languages A) replaces the rules and keeps the three names.
"""

from typing import NamedTuple

SOURCE_BYTES_MAX = 2 * 1024 * 1024


class Skip(NamedTuple):
    """Why a file is not parsed."""

    reason: str


def source_text(path: str, data: bytes) -> bytes | Skip:
    """Return a file's text as UTF-8, or why there is none to parse."""
    if b"\0" in data[:8192]:
        return Skip("binary")
    return data
