"""Pure: what a name can stand for."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from herdr.context.graph.dialects import dialect
from herdr.context.graph.outline import Outline
from herdr.context.graph.project import Place

_VALUES = frozenset({"variable", "constant", "field", "heading"})


class Meaning(NamedTuple):
    """Definitions, a module, something outside of the workspace, or what cannot be told."""

    kind: Literal["symbols", "module", "outside", "unknown"]
    places: tuple[Place, ...] = ()
    """Several for one definition with several bodies: overloads, branches, parts of one class."""
    files: tuple[str, ...] = ()
    """Of a module; none for a folder that is only a part of longer names."""
    module: str = ""
    at: str = ""
    """The file in which the module's name counts."""


UNKNOWN = Meaning("unknown")
OUTSIDE = Meaning("outside")


def settled(path: str, outline: Outline, places: Sequence[int]) -> Meaning:
    """Return what one scope's definitions of one name mean; what a variable holds is not known."""
    symbols = outline.symbols
    if dialect(outline.language).values_apart:
        places = [place for place in places if symbols[place].kind not in _VALUES]
    if not places or any(symbols[place].kind in _VALUES for place in places):
        return UNKNOWN
    types = [place for place in places if symbols[place].kind != "impl"]
    return Meaning("symbols", tuple(Place(path, place) for place in types or places))


def together(meanings: Iterable[Meaning]) -> Meaning:
    """Return all definitions as one: parts of one whole, of which some may have nothing to say."""
    known = dict.fromkeys(meaning for meaning in meanings if meaning.kind != "unknown")
    if any(meaning.kind != "symbols" for meaning in known):
        return agreed(known)
    places = tuple(sorted({place for meaning in known for place in meaning.places}))
    return Meaning("symbols", places) if places else UNKNOWN


def agreed(meanings: Iterable[Meaning]) -> Meaning:
    """Return what all of them say, or that it cannot be told."""
    different = set(meanings)
    return different.pop() if len(different) == 1 else UNKNOWN
