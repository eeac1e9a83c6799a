"""Pure: which definitions an import or a call means, and how sure that is.

`exact` follows from scopes, imports and inheritance (binding.py says by which rules); `name` means that
definitions of that name exist and nothing tells which of them is called; `external` that it is none of ours.
PyCG (https://arxiv.org/abs/2103.00587) follows assignments as well; it needs the whole program for that, where
this reads only the files that a question is about.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from herdr.context.graph.binding import Bindings
from herdr.context.graph.dialects import dialect, family
from herdr.context.graph.meaning import Meaning
from herdr.context.graph.modules import Modules
from herdr.context.graph.outline import Call, Import, Outline, Symbol, qualified_name
from herdr.context.graph.project import Place, Project
from herdr.context.graph.scopes import is_member

TARGETS_MAX = 20  # named candidates; with more of them a list of names helps nobody


class Resolution(NamedTuple):
    """What a call means."""

    kind: Literal["exact", "name", "external"]
    targets: tuple[Place, ...] = ()
    """Sorted; of an exact call all bodies of the one definition, of a name the first TARGETS_MAX candidates."""
    candidates: int = 0
    """Different definitions that may be meant; 1 for an exact call, however many bodies it has."""


EXTERNAL = Resolution("external")


class Resolver:
    """Resolves many imports and calls of one version of a project; what it has found out it keeps.

    To be thrown away when the project changes.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self.modules = Modules(project)
        self._named: dict[tuple[str, str, bool], Resolution] = {}
        self._counterparts: dict[Place, tuple[Place, ...]] = {}

    def imported(self, path: str, found: Import) -> tuple[str, ...]:
        """Return the files that an import brings in; empty when it leads out of the workspace."""
        return self.modules.files(path, found)

    def call(self, path: str, outline: Outline, call: Call) -> Resolution:
        """Return what a call in a file means."""
        parts = [*filter(None, call.receiver.split(".")), call.name]
        if "?" not in parts:
            bindings = Bindings(self._project, self.modules)
            meaning = bindings.dotted(path, call.caller, parts)
            if meaning.kind == "module":
                meaning = bindings.itself(meaning)
            if meaning.kind == "outside":
                return EXTERNAL
            if targets := self._callable(meaning):
                return Resolution("exact", self._with_counterparts(targets), 1)
        name, plain = _meant_name(outline.language, call)
        return self.named(outline.language, name, plain)

    def _with_counterparts(self, places: tuple[Place, ...]) -> tuple[Place, ...]:
        """Add where else these definitions stand: in C, the function behind a header's prototype."""
        for place in places:
            if place not in self._counterparts:
                self._counterparts[place] = tuple(self._counterparts_of(place))
        return tuple(sorted({*places, *(p for place in places for p in self._counterparts[place])}))

    def _counterparts_of(self, place: Place) -> Iterator[Place]:
        outline = self._project.outline(place.path)
        assert outline is not None, place  # it was found in there
        symbol, name = outline.symbols[place.symbol], qualified_name(outline, place.symbol)
        counterparts = self._project.language(outline.language).counterparts
        defining = self._project.defining(symbol.name) if symbol.exported else ()
        for path in counterparts(place.path, self._project, defining):
            yield from (Place(path, p) for p in _named_like(self._project.outline(path), name))

    def named(self, language: str, name: str, plain: bool) -> Resolution:
        """Return what may be meant by a name alone; a plain one is no member where members need an object."""
        members = not plain or dialect(language).implicit_self
        key = (family(language), name, members)
        if key not in self._named:
            self._named[key] = self._by_name(*key)
        return self._named[key]

    def possible(self, place: Place, language: str, call: Call) -> bool:
        """Tell whether a definition is among those that a call by name may mean."""
        outline = self._project.outline(place.path)
        if outline is None or family(outline.language) != family(language):
            return False
        symbol = outline.symbols[place.symbol]
        name, plain = _meant_name(language, call)
        return symbol.name == name and self._fits(
            outline, symbol, not plain or dialect(language).implicit_self
        )

    def _fits(self, outline: Outline, symbol: Symbol, members: bool) -> bool:
        kinds = self._project.language(outline.language).callable_kinds
        return symbol.kind in kinds and (members or not is_member(outline, symbol))

    def _by_name(self, kin: str, name: str, members: bool) -> Resolution:
        found: dict[str, Place] = {}
        for path in self._project.defining(name):
            outline = self._project.outline(path)
            if outline is None or family(outline.language) != kin:
                continue
            for place, symbol in enumerate(outline.symbols):
                if symbol.name == name and self._fits(outline, symbol, members):
                    whole = f"{path}::{qualified_name(outline, place)}"  # overloads share it, and are one
                    found.setdefault(whole, Place(path, place))
        if not found:
            return EXTERNAL
        return Resolution("name", tuple(found.values())[:TARGETS_MAX], len(found))

    def _callable(self, meaning: Meaning) -> tuple[Place, ...]:
        """Return the definitions that a call can mean; that of a constructor is a call of its class."""
        found = set()
        for place in meaning.places:
            outline = self._project.outline(place.path)
            assert outline is not None, place  # it was found in there
            symbol = outline.symbols[place.symbol]
            if symbol.kind in self._project.language(outline.language).callable_kinds:
                made = symbol.kind == "constructor" and symbol.parent >= 0
                found.add(Place(place.path, symbol.parent) if made else place)
        return tuple(sorted(found))


def _meant_name(language: str, call: Call) -> tuple[str, bool]:
    """Return the name to look for, and whether it stands by itself; `Cart.new` makes a `Cart`."""
    if call.name in dialect(language).makers and call.receiver[:1].isupper():
        return call.receiver.rpartition(".")[2], True
    return call.name, not call.receiver


def _named_like(outline: Outline | None, name: str) -> Iterator[int]:
    """Yield the symbols whose dotted name is this or its end: a source may leave its namespaces out."""
    last = name.rpartition(".")[2]
    for place, symbol in enumerate(outline.symbols if outline is not None else ()):
        if outline is not None and symbol.name == last and symbol.exported:
            its = qualified_name(outline, place)
            if f".{its}".endswith(f".{name}") or f".{name}".endswith(f".{its}"):
                yield place


def resolve_import(project: Project, path: str, found: Import) -> tuple[str, ...]:
    """Return the files that an import in the file at this path brings in."""
    return Resolver(project).imported(path, found)


def resolve_call(project: Project, path: str, outline: Outline, call: Call) -> Resolution:
    """Return what a call in the file at this path means."""
    return Resolver(project).call(path, outline, call)


def symbol_id(project: Project, place: Place) -> str:
    """Return a symbol's public name: `src/a.py::Cart.total`. Overloads share one."""
    outline = project.outline(place.path)
    return place.path if outline is None else f"{place.path}::{qualified_name(outline, place.symbol)}"
