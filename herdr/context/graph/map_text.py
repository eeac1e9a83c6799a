"""Pure: the map as text, from the definitions that were chosen for it.

Apart from the choosing, so that the gateway itself, which only fits maps into budgets, loads no grammars.
"""

from collections.abc import Iterable

import msgspec

PIECES_MAX = 4_000  # a map of 100,000 tokens holds about so many


class Piece(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One definition for the map."""

    path: str
    symbol: str
    """Its id: `src/a.py::Cart.total`."""
    lines: tuple[tuple[int, str], ...]
    """Its place in the outline and its text, behind those of the definitions around it."""
    rank: float


def render(chosen: Iterable[Piece]) -> str:
    """Return the map's text: the chosen pieces by path and place, each line once."""
    files: dict[str, dict[int, str]] = {}
    for piece in chosen:
        files.setdefault(piece.path, {}).update(piece.lines)
    return "".join(
        f"{path}:\n{''.join(text for _place, text in sorted(lines.items()))}"
        for path, lines in sorted(files.items())
    )
