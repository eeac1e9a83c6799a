"""Pure: the members of a type, its own and those that it inherits."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from herdr.context.graph.dialects import dialect
from herdr.context.graph.meaning import OUTSIDE, UNKNOWN, Meaning, agreed, settled, together
from herdr.context.graph.modules import Modules
from herdr.context.graph.outline import Outline, Symbol
from herdr.context.graph.parse import CLASS_LIKE
from herdr.context.graph.project import Place, Project

TYPES = CLASS_LIKE | {"type"}
DEPTH_MAX = 32  # classes above one another, also in a circle; the deepest of Home Assistant has 9

Ancestor = Place | Meaning
"""A type of the workspace, or what is known of one that is not: that it is outside, or nothing."""

Bases = Callable[[Place], Iterable[Ancestor]]
LookUp = Callable[[str, int, Sequence[str]], Meaning]
"""What a chain of names means in a scope of a file."""


class Types:
    """Looks members up in types and in what they inherit from."""

    def __init__(self, project: Project, modules: Modules, look_up: LookUp) -> None:
        self._project = project
        self._modules = modules
        self._look_up = look_up

    def member(self, place: Place, name: str) -> Meaning | None:
        """Return a type's own or inherited member; None when it certainly has none of this name."""
        found = self._inherited(lineage(place, self.bases), name)
        if found is not None and found.kind == "symbols":
            return found
        makes = name in dialect(self._outline(place.path).language).makers
        return Meaning("symbols", (place,)) if makes else found

    def above(self, meaning: Meaning, name: str) -> Meaning:
        """Return what `super` finds under a name in the type that it stands in."""
        if meaning.kind != "symbols":
            return meaning
        found = (self._inherited(self._above(place), name) for place in meaning.places)
        return agreed(each or UNKNOWN for each in found)

    def _above(self, place: Place) -> Sequence[Ancestor]:
        """Return what a type inherits from, without the traits that it takes in as its own."""
        return lineage(place, lambda at: self._bases_but_traits(at) if at == place else self.bases(at))[1:]

    def _bases_but_traits(self, place: Place) -> Iterator[Ancestor]:
        for base in self.bases(place):
            if isinstance(base, Meaning) or self._outline(base.path).symbols[base.symbol].kind != "trait":
                yield base

    def first_base(self, meaning: Meaning) -> Meaning:
        """Return the first base of a type."""
        if meaning.kind != "symbols":
            return meaning
        first = next(self._bases_but_traits(meaning.places[0]), UNKNOWN)
        return first if isinstance(first, Meaning) else Meaning("symbols", (first,))

    def bases(self, place: Place) -> Iterator[Ancestor]:
        """Yield the bases of all parts of a type that stand in its file."""
        outline = self._outline(place.path)
        rules = dialect(outline.language)
        for part in sorted(self._parts(place, outline)):
            symbol = outline.symbols[part]
            for base in symbol.bases:
                meaning = self._look_up(place.path, symbol.parent, base.split("."))
                if meaning.kind == "symbols":
                    yield meaning.places[0] if len(meaning.places) == 1 else UNKNOWN
                elif meaning.kind != "outside":
                    yield UNKNOWN
                elif base.rpartition(".")[2] not in rules.bare_bases:
                    yield OUTSIDE

    def _inherited(self, ancestors: Iterable[Ancestor], name: str) -> Meaning | None:
        """Return the first of the types' own members; behind a type from outside it could be that one's."""
        outside = False
        for at in ancestors:
            if not isinstance(at, Meaning):
                found = self._own(at, name)
                if found is not None:
                    return UNKNOWN if outside else found
            elif at.kind == "unknown":
                return UNKNOWN
            else:
                outside = True
        return OUTSIDE if outside else None

    def _own(self, place: Place, name: str) -> Meaning | None:
        """Return a type's own member, None when it has none of this name."""
        outline = self._outline(place.path)
        found = [(place.path, outline, self._members(place, outline, name))]
        if dialect(outline.language).spread:
            found += self._elsewhere(place, outline, name)
        found = [each for each in found if each[2]]
        return together(settled(*each) for each in found) if found else None

    def _elsewhere(
        self, place: Place, outline: Outline, name: str
    ) -> Iterator[tuple[str, Outline, list[int]]]:
        """Yield members in other files: those of the same package, or any if there is one such type only."""
        type_name = outline.symbols[place.symbol].name
        neighbours = self._modules.neighbours(place.path)
        known = bool(neighbours) or self._only_type(outline.language, type_name)
        for path, its in self._modules.definers(outline.language, name) if known else ():
            if path in neighbours or (path != place.path and not neighbours):
                yield path, its, self._members_of(path, its, type_name, name)

    def _parts(self, place: Place, outline: Outline) -> frozenset[int]:
        named = self._modules.named(place.path, outline, outline.symbols[place.symbol].name)
        return parts_of(outline, place.symbol, named)

    def _members(self, place: Place, outline: Outline, name: str) -> list[int]:
        """Return a type's members of a name that stand in its own file."""
        named = self._modules.named(place.path, outline, name)
        parts = self._parts(place, outline) if named else ()
        of_type = outline.symbols[place.symbol].name
        found = ((p, outline.symbols[p]) for p in named)
        return [
            p for p, s in found if (s.parent in parts or _last(s.owner) == of_type) and _is_named(s, of_type)
        ]

    def _members_of(self, path: str, outline: Outline, of_type: str, name: str) -> list[int]:
        """Return the members of a name that another file adds to a type."""
        found = ((p, outline.symbols[p]) for p in self._modules.named(path, outline, name))
        return [
            p
            for p, s in found
            if of_type in (_last(s.owner), _type_around(outline, s.parent)) and _is_named(s, of_type)
        ]

    def _only_type(self, language: str, name: str) -> bool:
        """Tell whether one definition alone can be meant by a type's name."""
        kinds = [
            outline.symbols[place].kind
            for path, outline in self._modules.definers(language, name)
            for place in self._modules.named(path, outline, name)
        ]
        return sum(kind in TYPES and kind != "impl" for kind in kinds) == 1

    def _outline(self, path: str) -> Outline:
        outline = self._project.outline(path)
        assert outline is not None, path  # a place was found in it
        return outline


def lineage(place: Place, bases: Bases) -> Sequence[Ancestor]:
    """Return a type and what it inherits from, nearest first, in the order in which members are looked up.

    A base that is reached in several ways stands where it is reached last, behind all that extend it: the same
    as Python's order (https://docs.python.org/3/howto/mro.html) wherever that order is not a matter of taste.
    Whoever looks up the bases counts the steps: a lattice of them has more ways to its top than anybody can go.
    """
    order: list[Ancestor] = []

    def visit(at: Place, depth: int) -> None:
        order.append(at)
        for base in bases(at):
            if isinstance(base, Meaning):
                order.append(base)
            elif depth == DEPTH_MAX:
                order.append(UNKNOWN)
            else:
                visit(base, depth + 1)

    visit(place, 0)
    last = {at: i for i, at in enumerate(order)}
    return [at for i, at in enumerate(order) if isinstance(at, Meaning) or last[at] == i]


def parts_of(outline: Outline, place: int, named: Sequence[int]) -> frozenset[int]:
    """Return all parts of a type or namespace in its file: `impl` blocks, reopened and partial ones.

    `named` are the symbols of the file with its name.
    """
    symbol = outline.symbols[place]
    kinds = TYPES if symbol.kind in TYPES else {symbol.kind}
    return frozenset(
        each
        for each in named
        if outline.symbols[each].parent == symbol.parent and outline.symbols[each].kind in kinds
    )


def _is_named(symbol: Symbol, type_name: str) -> bool:
    """Tell that this is no constructor with its type's name: that name means the type."""
    return symbol.kind != "constructor" or symbol.name != type_name


def _type_around(outline: Outline, place: int) -> str:
    return outline.symbols[place].name if place >= 0 and outline.symbols[place].kind in TYPES else ""


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]
