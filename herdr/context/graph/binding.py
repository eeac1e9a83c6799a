"""Pure: what a name means at a place, by the rules of scopes, imports and inheritance alone.

What these rules do not settle is unknown; nothing here goes by a name's looks. Weak spots: an outline holds no
local variables, so one that shadows an import or a definition is not seen (parameters are, by the signature);
and a method found through `self` may be another one in a subclass.
"""

from collections.abc import Sequence

from herdr.context.graph.dialects import dialect
from herdr.context.graph.exports import Exports, Steps
from herdr.context.graph.inheritance import TYPES, Types, parts_of
from herdr.context.graph.meaning import OUTSIDE, UNKNOWN, Meaning, agreed, settled, together
from herdr.context.graph.modules import Modules
from herdr.context.graph.outline import Kind, Outline
from herdr.context.graph.parse import CLASS_LIKE
from herdr.context.graph.project import Place, Project
from herdr.context.graph.scopes import SPACES, around, scope_at, takes, tops


class Bindings:
    """Answers for one question; made anew for each, because its steps are counted."""

    def __init__(self, project: Project, modules: Modules) -> None:
        self._project = project
        self._modules = modules
        self._steps = Steps()
        self._types = Types(project, modules, self.dotted)
        self._exports = Exports(project, modules, self._steps, self.name, self.member)

    def dotted(self, path: str, scope: int, parts: Sequence[str]) -> Meaning:
        """Return what a chain of names means in a scope of a file."""
        outline = self._project.outline(path)
        if outline is None or not self._steps.take():
            return UNKNOWN
        if parts[0] in dialect(outline.language).super_names:
            return self._super(path, outline, scope, parts)
        first = meaning = self._first(path, outline, scope, parts[0])
        for part in parts[1:]:
            meaning = self.member(meaning, part)
        if meaning.kind == "unknown" and len(parts) > 1 and dialect(outline.language).full_names:
            meaning = self._exports.in_full(path, outline, parts)
        unbound = meaning.kind == "unknown" and first.kind == "unknown"
        return OUTSIDE if unbound and self._is_theirs(outline.language, parts[0]) else meaning

    def _is_theirs(self, language: str, name: str) -> bool:
        """Tell whether a capital name that nothing binds must be one of the language's own or a library's."""
        return (
            dialect(language).prelude and name[:1].isupper() and not self._modules.is_defined(language, name)
        )

    def _first(self, path: str, outline: Outline, scope: int, name: str) -> Meaning:
        if name in self._project.language(outline.language).self_names:
            return self.own_type(path, outline, scope)
        return self.name(path, scope, name)

    def _super(self, path: str, outline: Outline, scope: int, parts: Sequence[str]) -> Meaning:
        own = self.own_type(path, outline, scope)
        runs = dialect(outline.language).super_call
        if len(parts) > 1:
            meaning = self._types.above(own, parts[1])
        elif runs == "method":
            meaning = self._types.above(own, outline.symbols[scope].name) if scope >= 0 else UNKNOWN
        else:
            meaning = self._types.first_base(own) if runs == "base" else OUTSIDE
        for part in parts[2:]:
            meaning = self.member(meaning, part)
        return meaning

    def own_type(self, path: str, outline: Outline, scope: int) -> Meaning:
        """Return the type whose member a scope is in."""
        for place in around(outline, scope):
            if place < 0:
                break
            symbol = outline.symbols[place]
            here = Meaning("symbols", (Place(path, place),))
            if symbol.kind == "impl":
                named = self.name(path, symbol.parent, symbol.name)
                return named if named.kind == "symbols" else here
            if symbol.kind in CLASS_LIKE:
                return here
            if symbol.owner:
                return self.dotted(path, symbol.parent, symbol.owner.split("."))
        return UNKNOWN

    def name(self, path: str, scope: int, name: str) -> Meaning:
        """Return what a plain name means in a scope of a file: the innermost binding counts."""
        outline = self._project.outline(path)
        if outline is None or not self._steps.take():
            return UNKNOWN
        hidden = False
        for place in around(outline, scope):
            found = self._bound_at(path, outline, place, name, place == scope)
            if found is not None:
                return self._unless(hidden, outline, name, found)
            inherited = self._implied(path, outline, place, name)
            if inherited is not None and inherited.kind == "symbols":
                return self._unless(hidden, outline, name, inherited)
            hidden = hidden or inherited is not None
        return self._unless(hidden, outline, name, self._unbound(path, outline, scope, name))

    def _unless(self, hidden: bool, outline: Outline, name: str, found: Meaning) -> Meaning:
        """Return what was found unless a method of a base that is not known may hide it.

        It does not hide types or namespaces, and nobody imports a name to have it hidden.
        """
        if not hidden or any(each.alias == name for each in outline.imports):
            return found
        stays = all(self._kind(place) in TYPES | SPACES for place in found.places)
        return found if found.kind != "symbols" or stays else UNKNOWN

    def _implied(self, path: str, outline: Outline, place: int, name: str) -> Meaning | None:
        """Return what a name means as a member that needs no `self`; None where it certainly is none."""
        symbol = outline.symbols[place] if place >= 0 else None
        if symbol is None or not dialect(outline.language).implicit_self:
            return None
        if symbol.kind in CLASS_LIKE:
            return self._types.member(Place(path, place), name)
        if not symbol.owner:
            return None
        owner = self.dotted(path, symbol.parent, symbol.owner.split("."))
        found = [self._types.member(each, name) for each in owner.places if self._kind(each) in TYPES]
        return None if found and not any(found) else agreed(each or UNKNOWN for each in found)

    def _bound_at(
        self, path: str, outline: Outline, place: int, name: str, innermost: bool
    ) -> Meaning | None:
        """Return what one scope itself binds a name to; None when it does not."""
        symbol = outline.symbols[place] if place >= 0 else None
        rules = dialect(outline.language)
        is_type = symbol is not None and symbol.kind in CLASS_LIKE
        if is_type and (rules.implicit_self or not innermost):
            return None  # its members were looked at, or are seen through an object only
        here = self._defined_in(path, outline, place, name)
        named = (i for i in outline.imports if i.alias == name and i.module)
        imports = [each for each in named if scope_at(outline, each.line) == place]
        if here or imports:
            return self._exports.bound(path, outline, here, imports)
        takes_it = symbol is not None and not is_type and takes(symbol, name, rules.type_first)
        return UNKNOWN if takes_it else None

    def _defined_in(self, path: str, outline: Outline, place: int, name: str) -> list[int]:
        symbols, inside = outline.symbols, frozenset({place})
        named = [
            p
            for p in self._modules.named(path, outline, name)
            if not symbols[p].owner and symbols[p].kind != "impl"
        ]
        if named and place >= 0:
            inside = parts_of(outline, place, self._modules.named(path, outline, symbols[place].name))
        return [p for p in named if symbols[p].parent in inside]

    def _unbound(self, path: str, outline: Outline, scope: int, name: str) -> Meaning:
        """Look where a file sees names that it does not bind itself."""
        packaged = self._packaged(path, outline, name)
        if packaged.kind != "unknown":
            return packaged
        starred = self._exports.starred(path, outline, scope, name)
        if starred.kind != "unknown":
            return starred
        return OUTSIDE if name in dialect(outline.language).builtins else UNKNOWN

    def _packaged(self, path: str, outline: Outline, name: str) -> Meaning:
        neighbours = self._modules.neighbours(path)
        found = []
        for other, its in self._modules.definers(outline.language, name) if neighbours else ():
            if other in neighbours:
                found.append(settled(other, its, tops(its, self._modules.named(other, its, name))))
        return together(found)

    def member(self, meaning: Meaning, name: str) -> Meaning:
        """Return what a name means behind another one and a dot."""
        if not self._steps.take():
            return UNKNOWN
        if meaning.kind == "module":
            return self._exports.member(meaning, name)
        if meaning.kind != "symbols":
            return meaning
        return together(self._member_of(place, name) for place in meaning.places)

    def itself(self, meaning: Meaning) -> Meaning:
        """Return what a module means where it is used like a function or a class."""
        return self._exports.itself(meaning)

    def _member_of(self, place: Place, name: str) -> Meaning:
        kind, outline = self._kind(place), self._project.outline(place.path)
        if outline is None or kind not in TYPES | SPACES:
            return UNKNOWN
        if kind in TYPES:
            return self._types.member(place, name) or UNKNOWN
        named = self._modules.named(place.path, outline, name)
        return settled(place.path, outline, [p for p in named if outline.symbols[p].parent == place.symbol])

    def _kind(self, place: Place) -> Kind | None:
        outline = self._project.outline(place.path)
        return outline.symbols[place.symbol].kind if outline is not None else None
