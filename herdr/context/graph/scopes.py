"""Pure: what can be seen from a place within one file."""

import re
from collections.abc import Iterator, Sequence

from herdr.context.graph.outline import Outline, Symbol
from herdr.context.graph.parse import CLASS_LIKE, SCOPES

SPACES = frozenset({"namespace", "module"})
"""Kinds that only give the names in them a longer name."""


def around(outline: Outline, place: int) -> Iterator[int]:
    """Yield a place and those of the definitions around it, from the inside out; the last one is -1."""
    while place >= 0:
        yield place
        place = outline.symbols[place].parent
    yield -1


def is_member(outline: Outline, symbol: Symbol) -> bool:
    """Tell whether a symbol belongs to a type and is named through it."""
    return bool(symbol.owner) or (symbol.parent >= 0 and outline.symbols[symbol.parent].kind in CLASS_LIKE)


def tops(outline: Outline, named: Sequence[int]) -> list[int]:
    """Return which definitions of one name are the file's own, or if none is, which are in its namespaces."""
    found = [place for place in named if not outline.symbols[place].owner]
    outermost = [place for place in found if outline.symbols[place].parent < 0]
    return outermost or [
        place
        for place in found
        if all(
            p < 0 or outline.symbols[p].kind in SPACES for p in around(outline, outline.symbols[place].parent)
        )
    ]


def scope_at(outline: Outline, line: int) -> int:
    """Return the innermost function or class around a line; -1 for none."""
    found = -1
    for place, symbol in enumerate(outline.symbols):
        if symbol.line > line:
            break
        if line <= symbol.end_line and symbol.kind in SCOPES:
            found = place
    return found


def takes(symbol: Symbol, name: str, type_first: bool) -> bool:
    """Tell whether a function has a parameter of this name, as far as its signature shows.

    It errs on the side of yes: a name in a default may be taken for a parameter.
    """
    parameters = _parameters(symbol)
    if name not in parameters:
        return False
    if type_first:
        return re.search(rf"[\s*&.]{re.escape(name)}\s*[,)=\[]", parameters) is not None
    words = r"(?:(?:mut|ref|private|public|protected|readonly)\s+)*"
    pattern = rf"(?:^|[(,{{\[])\s*(?:\.\.\.|\*+|&)?{words}{re.escape(name)}\s*(?=[:=,)}}\]?\s]|$)"
    return re.search(pattern, parameters) is not None


def _parameters(symbol: Symbol) -> str:
    """Return what stands in the parentheses behind a function's name, with them; Ruby needs none."""
    text = symbol.signature.partition(symbol.name)[2]
    start = text.find("(")
    depth = 0
    for end, letter in enumerate(text[start:] if start >= 0 else "", start):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[start : end + 1]
    return text
