"""The tokenizer o200k_base, with the extra `tokens` (bpe-openai, which works offline)."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from herdr.context.tokens import Counter

_PIECE = 64 * 1024
"""Characters counted in one go: 2 ms in which nothing else runs. The package itself refuses a million."""


class O200k:
    """Counts with o200k_base. A text over `_PIECE` is counted in pieces: exact but for a token at each cut."""

    name = "o200k_base"

    def __init__(self, encode: Callable[[str], Sequence[int]]) -> None:
        """Use `o200k`."""
        self._encode = encode

    async def count(self, texts: Sequence[str]) -> Sequence[int]:
        """See `Counter.count`."""
        counts, since = [], 0
        for text in texts:
            counts.append(await self._count(text))
            since += len(text)
            if since > _PIECE:
                since = 0
                await asyncio.sleep(0)
        return counts

    async def _count(self, text: str) -> int:
        if len(text) <= _PIECE:
            return len(self._encode(text))
        total = 0
        for piece in _pieces(text):
            total += len(self._encode(piece))
            await asyncio.sleep(0)
        return total


def _pieces(text: str) -> Iterator[str]:
    """Cut at the ends of lines, where no token spans the cut but a run of them."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


def o200k() -> Counter | None:
    """Return the counter; None where the extra is not installed. Takes a second and 140 MB when it is."""
    try:
        package = import_module("bpe_openai")  # the optional extra `tokens`
    except ImportError:
        return None
    return O200k(package.get_encoding("o200k_base").encode_ordinary)
