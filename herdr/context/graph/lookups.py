"""Pure: the questions that tools put to the graph. Each reads a bounded number of files and says what is left.

A function that calls the one it overrides through `self` is a caller of the one above only; who may run an
override in its place is not worked out.
"""

from collections.abc import Iterable, Iterator, Sequence

from herdr.context.graph.answers import (
    CalleeAnswer,
    CalleesAnswer,
    CallerAnswer,
    CallersAnswer,
    DependentAnswer,
    DependentsAnswer,
    FileAnswer,
    ImportAnswer,
    SymbolAnswer,
    SymbolsAnswer,
    symbol_answer,
)
from herdr.context.graph.dialects import dialect
from herdr.context.graph.outline import Call, Import, Outline, qualified_name
from herdr.context.graph.project import Place, Project
from herdr.context.graph.resolve import Resolution, Resolver, symbol_id
from herdr.context.graph.scopes import around
from herdr.glob import compile_glob, is_glob

LOOKS_MAX = 2_000  # outlines that one question reads: about 0.3 s
DEFINITIONS_MAX = 100  # of one name that callers or callees are asked of
ALIASES_MAX = 10  # other names under which one definition is imported
TARGETS_MAX = 5  # candidates of one callee that are described
SYMBOLS_MAX = 5_000  # of one file; beyond it nobody reads on
LISTED_MAX = 1_000  # imports or importers of one file
TOLD_CANDIDATES_MAX = 5  # a call that may mean more definitions is no news to its file

_ORDER = {"exact": 0, "name": 1}


class Looks:
    """Reads outlines up to a number, and counts the files that it did not read."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._seen: set[str] = set()
        self._left: set[str] = set()

    def outlines(self, paths: Iterable[str]) -> Iterator[tuple[str, Outline]]:
        """Yield the files that have an outline, and may still be read."""
        for path in paths:
            if path not in self._seen and len(self._seen) >= LOOKS_MAX:
                self._left.add(path)
                continue
            self._seen.add(path)
            outline = self._project.outline(path)
            if outline is not None:
                yield path, outline

    @property
    def left(self) -> int:
        """How many files were not read."""
        return len(self._left)


def find_symbols(
    project: Project, name: str = "", kind: str = "", path: str = "", limit: int = 100
) -> SymbolsAnswer:
    """Return definitions by name (`total`, `Cart.total`, `*_total`), kind, and a glob of paths.

    Raises InvalidInput for a glob that is none.
    """
    fits = compile_glob(path) if path else None
    looks = Looks(project)
    paths = _with_name(project, name) if name else project.paths()
    found: list[SymbolAnswer] = []
    more = 0
    for each, outline in looks.outlines(p for p in paths if fits is None or fits(p)):
        for place in _named(each, outline, name):
            if not kind or outline.symbols[place].kind == kind:
                if len(found) < limit:
                    found.append(symbol_answer(each, outline, place))
                else:
                    more += 1
    return SymbolsAnswer(tuple(found), more + looks.left)


def _with_name(project: Project, name: str) -> Iterable[str]:
    """Return the files that may define a name, sorted."""
    file, mark, _qualified = name.partition("::")
    if mark:
        return (file,) if project.outline(file) is not None else ()
    last = file.rpartition(".")[2]
    if not is_glob(file):
        return sorted({*project.defining(last), *project.defining(file)})
    matches, whole = compile_glob(last or "*"), compile_glob(file)
    names = (each for each in project.names() if matches(each) or whole(each))
    return sorted({path for each in names for path in project.defining(each)})


def _named(path: str, outline: Outline, name: str) -> Iterator[int]:
    """Yield the symbols of a file that a name means: the end of a qualified name, or a glob of that end."""
    name = name.removeprefix(f"{path}::")
    matches = compile_glob(name) if name else None
    parts, last = name.count(".") + 1, name.rpartition(".")[2]
    for place, symbol in enumerate(outline.symbols):
        if matches is None or matches(symbol.name):
            yield place
        elif parts > 1 and (symbol.name == last or is_glob(last)):
            qualified = qualified_name(outline, place)
            if matches(".".join(qualified.split(".")[-parts:])):
                yield place


def definitions(project: Project, symbol: str) -> list[Place]:
    """Return what a symbol's id, name or dotted name means: the first DEFINITIONS_MAX of them."""
    path, mark, qualified = symbol.partition("::")
    if mark:
        outline = project.outline(path)
        places = range(len(outline.symbols)) if outline is not None else range(0)
        found = [Place(path, p) for p in places if outline and qualified_name(outline, p) == qualified]
        return found[:DEFINITIONS_MAX]
    found = []
    for each, outline in Looks(project).outlines(_with_name(project, symbol) if not is_glob(symbol) else ()):
        found.extend(Place(each, place) for place in _named(each, outline, symbol))
        if len(found) >= DEFINITIONS_MAX:
            break
    return found[:DEFINITIONS_MAX]


def callers(project: Project, symbol: str, limit: int = 100) -> CallersAnswer | None:
    """Return who calls a symbol (an id, or all definitions of a name); None when there is no such symbol."""
    wanted = definitions(project, symbol)
    if not wanted:
        return None
    looks = Looks(project)
    found = sorted(
        _callers(project, wanted, looks),
        key=lambda c: (_ORDER[c.resolution], c.path, c.lines, c.call),
    )
    more = max(len(found) - limit, 0) + looks.left
    return CallersAnswer(_described(project, wanted), tuple(found[:limit]), more)


def calling_files(project: Project, path: str, qualified: str) -> list[str]:
    """Return the files that call a function, those that certainly do first.

    Files in which it is one of several candidates are in it while these are few: better told in vain than not.
    """
    found = _callers(project, definitions(project, f"{path}::{qualified}"), Looks(project))
    ranked = [(_ORDER[c.resolution], c.path) for c in found if c.candidates <= TOLD_CANDIDATES_MAX]
    return list(dict.fromkeys(path for _order, path in sorted(ranked)))


def _callers(project: Project, wanted: Sequence[Place], looks: Looks) -> Iterator[CallerAnswer]:
    resolver = Resolver(project)
    targets = frozenset(wanted) | frozenset(_made_by(project, wanted))
    names = _names_of(project, targets, looks)
    for path, outline in looks.outlines(sorted({p for name in names for p in project.calling(name)})):
        makers = dialect(outline.language).makers
        for call in outline.calls:
            if call.name not in names or (call.name in makers and _last(call.receiver) not in names):
                continue
            resolution = resolver.call(path, outline, call)
            if met := _met(resolver, outline, call, resolution, targets):
                yield _caller(project, path, outline, call, resolution, met)


def _met(
    resolver: Resolver, outline: Outline, call: Call, resolution: Resolution, wanted: frozenset[Place]
) -> Place | None:
    """Return which of the wanted definitions a call means, or may mean."""
    if resolution.kind == "exact":
        return min(wanted.intersection(resolution.targets), default=None)
    if resolution.kind == "external":
        return None
    return next((p for p in sorted(wanted) if resolver.possible(p, outline.language, call)), None)


def _caller(
    project: Project, path: str, outline: Outline, call: Call, resolution: Resolution, target: Place
) -> CallerAnswer:
    exact = resolution.kind == "exact"
    return CallerAnswer(
        f"{path}::{qualified_name(outline, call.caller)}" if call.caller >= 0 else None,
        path,
        call.lines,
        _written(call),
        "exact" if exact else "name",
        resolution.candidates,
        symbol_id(project, target) if exact else None,
        outline.symbols[call.caller].signature if call.caller >= 0 else "",
    )


def _made_by(project: Project, places: Sequence[Place]) -> Iterator[Place]:
    """Yield the classes whose constructors are among these: who makes an object calls it."""
    for path, place in places:
        outline = project.outline(path)
        if outline is None or outline.symbols[place].parent < 0:
            continue
        symbol = outline.symbols[place]
        if symbol.kind == "constructor" or symbol.name in dialect(outline.language).initialisers:
            yield Place(path, symbol.parent)


def _names_of(project: Project, places: Iterable[Place], looks: Looks) -> frozenset[str]:
    """Return the names by which these are called: their own, and those under which they are imported."""
    names: list[str] = []
    makers: set[str] = set()
    for path, place in sorted(places):
        outline = project.outline(path)
        if outline is not None:
            names.append(outline.symbols[place].name)
            makers |= dialect(outline.language).makers
    waiting = list(dict.fromkeys(names))
    known = set(waiting)
    while waiting and len(known) < len(names) + ALIASES_MAX:
        name = waiting.pop()
        for _path, outline in looks.outlines(project.importing(name)):
            new = {i.alias for i in outline.imports if i.name == name and i.alias} - known
            known |= new
            waiting.extend(sorted(new))
    return frozenset(known | makers)


def callees(project: Project, symbol: str, limit: int = 100) -> CalleesAnswer | None:
    """Return what a symbol and the definitions in it call; None when there is no such symbol."""
    wanted = definitions(project, symbol)
    if not wanted:
        return None
    resolver = Resolver(project)
    found: list[CalleeAnswer] = []
    more = 0
    for path in sorted({place.path for place in wanted}):
        outline = project.outline(path)
        inside = {place.symbol for place in wanted if place.path == path}
        for call in outline.calls if outline is not None else ():
            if outline is None or not inside.intersection(around(outline, call.caller)):
                continue
            if len(found) < limit:
                found.append(_callee(project, path, call, resolver.call(path, outline, call)))
            else:
                more += 1
    return CalleesAnswer(_described(project, wanted), tuple(found), more)


def _callee(project: Project, path: str, call: Call, resolution: Resolution) -> CalleeAnswer:
    return CalleeAnswer(
        call.name,
        _written(call),
        path,
        call.lines,
        resolution.kind,
        resolution.candidates,
        _described(project, resolution.targets[:TARGETS_MAX]),
    )


def _written(call: Call) -> str:
    return f"{call.receiver}.{call.name}" if call.receiver else call.name


def _described(project: Project, places: Iterable[Place]) -> tuple[SymbolAnswer, ...]:
    outlines = ((place, project.outline(place.path)) for place in places)
    return tuple(symbol_answer(p.path, outline, p.symbol) for p, outline in outlines if outline is not None)


def dependents(project: Project, path: str, depth: int = 1, limit: int = 100) -> DependentsAnswer | None:
    """Return the files that import a file, and those that import them, breadth first.

    None when the path has no outline. Files of one package that see each other without an import are not in it.
    """
    if project.outline(path) is None:
        return None
    resolver, looks = Resolver(project), Looks(project)
    found: dict[str, DependentAnswer] = {}
    level = [path]
    for distance in range(1, depth + 1):
        following: list[str] = []
        for target in level:
            for importer in _importers(project, resolver, looks, target):
                if importer != path and importer not in found:
                    found[importer] = DependentAnswer(importer, distance, target)
                    following.append(importer)
        level = sorted(following)
    ordered = sorted(found.values(), key=lambda d: (d.distance, d.path))
    return DependentsAnswer(path, tuple(ordered[:limit]), max(len(ordered) - limit, 0) + looks.left)


def _importers(project: Project, resolver: Resolver, looks: Looks, path: str) -> Iterator[str]:
    """Yield the files that import a file, sorted."""
    outline = project.outline(path)
    if outline is None:
        return
    language = project.language(outline.language)
    keys = {*language.keys(path), *language.known_keys(path, project)}
    paths = sorted({p for key in keys for p in project.importing(key)} - {path})
    for importer, _its in looks.outlines(paths):
        if path in resolver.modules.imported(importer):
            yield importer


def file_outline(project: Project, path: str) -> FileAnswer | None:
    """Return what a file defines and imports, and who imports it; None when it has no outline."""
    outline = project.outline(path)
    if outline is None:
        return None
    resolver, looks = Resolver(project), Looks(project)
    importers = list(_importers(project, resolver, looks, path))
    more = sum(
        max(count - most, 0)
        for count, most in (
            (len(outline.symbols), SYMBOLS_MAX),
            (len(outline.imports), LISTED_MAX),
            (len(importers), LISTED_MAX),
        )
    )
    return FileAnswer(
        path,
        outline.language,
        outline.lines,
        tuple(symbol_answer(path, outline, p) for p in range(min(len(outline.symbols), SYMBOLS_MAX))),
        tuple(_import_answer(resolver, path, found) for found in outline.imports[:LISTED_MAX]),
        tuple(importers[:LISTED_MAX]),
        outline.broken,
        more + looks.left,
    )


def _import_answer(resolver: Resolver, path: str, found: Import) -> ImportAnswer:
    paths = resolver.imported(path, found)
    return ImportAnswer(
        found.module,
        found.name,
        found.alias,
        found.line,
        "exact" if paths else "external",
        paths[:TARGETS_MAX],
    )


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]
