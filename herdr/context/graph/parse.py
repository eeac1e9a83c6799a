"""Pure: one file's bytes into its outline."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import tree_sitter
from tree_sitter import Node, Parser, Query, QueryCursor

from herdr.context.graph.language import Language, text_of
from herdr.context.graph.outline import LINES_MAX, SIGNATURE_MAX, Call, Import, Kind, Outline, Symbol

CLASS_LIKE = frozenset({"class", "interface", "struct", "union", "enum", "trait", "impl"})
FUNCTION_LIKE = frozenset({"function", "method", "constructor", "property", "macro"})
SCOPES = CLASS_LIKE | FUNCTION_LIKE | {"namespace", "module", "heading"}
"""What can stand around other definitions; a constant's lambda is not a place that anybody looks for."""

DEPTH_MAX = 1000
"""Nodes below this depth are not looked at: the time for that grows with the square of the depth (minutes for
100,000 nested calls). Nested code stays below 300; what is deeper is a long chain of operators or a table."""

NOISE_MAX = 20_000
"""Tokens in a row that the parser makes nothing of; a query takes time by their square (0.2 s for these)."""

RECEIVER_BYTES_MAX = 200  # the receivers of a chain of calls are together as long as the chain's square

_ASSIGNED = frozenset({"variable", "constant", "field"})
"""Kinds of which the first definition counts: without declarations, each assignment looks like one."""

TEXT_MAX = SIGNATURE_MAX  # characters of a name as well: in a broken file it may be the rest of that

_PREFIX = "definition."


class _Definition(NamedTuple):
    start: int
    end: int
    node: Node
    name: str
    kind: Kind
    line: int
    end_line: int
    named_to: int
    """What `class A::B` opens with one text is nested in the order of its names."""


class _Called(NamedTuple):
    at: int
    pattern: int
    """Of the patterns that find one name to be called, the last says how."""
    name: str
    receiver: str
    line: int


class _Found(NamedTuple):
    definitions: dict[tuple[int, int, str], _Definition]
    calls: dict[int, _Called]
    imports: list[Import]
    exports: set[str]
    packages: list[str]


class Reader:
    """Reads files of one language. Not shared between threads."""

    def __init__(self, language: Language) -> None:
        self._language = language
        grammar = tree_sitter.Language(language.grammar())
        self._parser = Parser(grammar)
        self._query = Query(grammar, language.query)
        self._instead = language.instead and (language.instead[0], Reader(language.instead[1]))

    def read(self, source: bytes) -> Outline:
        """Return the outline of a file whose text is UTF-8."""
        if self._instead and self._instead[0](source):
            return self._instead[1].read(source)
        if self._language.read is not None:
            return self._language.read(source)
        language = self._language
        root = self._parser.parse(language.prepare(source)).root_node
        lines = source.count(b"\n") + (not source.endswith(b"\n") and bool(source))
        if root.has_error and _is_noise(root):
            return Outline(language.name, lines, broken=True)
        found = self._found(root)
        definitions = sorted(found.definitions.values(), key=lambda d: (d.start, -d.end, d.named_to))
        if language.level is not None:
            definitions = list(_reaching(definitions, language.level, len(source), lines))
        definitions = list(_first_ones(definitions))
        return Outline(
            language.name,
            lines,
            tuple(self._symbols(definitions, found)),
            tuple(found.imports),
            tuple(_merged(sorted(found.calls.values()), definitions, language.self_name)),
            "".join(found.packages[:1]),
            root.has_error,
        )

    def _found(self, root: Node) -> _Found:
        found = _Found({}, {}, [], set(), [])
        cursor = QueryCursor(self._query)
        cursor.set_max_start_depth(DEPTH_MAX)
        for pattern, captures in cursor.matches(root):
            if "call" in captures:
                for called in self._called(pattern, captures):
                    found.calls[called.at] = max(called, found.calls.get(called.at, called))
            elif "import" in captures:
                found.imports.extend(self._language.read_imports(captures["import"][0]))
            elif "export" in captures:
                found.exports.add(text_of(captures["export"][0]))
            elif "package" in captures:
                found.packages.append(text_of(captures["package"][0]))
            else:
                for definition in self._defined(captures):
                    key = (definition.start, definition.end, definition.name)
                    found.definitions.setdefault(key, definition)
        return found

    def _defined(self, captures: dict[str, list[Node]]) -> Iterator[_Definition]:
        name = _one_line(self._language.spelling(captures["name"][0])) if "name" in captures else ""
        for capture, nodes in captures.items():
            if name and capture.startswith(_PREFIX):
                node = nodes[0]
                kind = self._language.refine(capture.removeprefix(_PREFIX), node)  # type: ignore[arg-type]
                if kind is not None:
                    at = captures["name"][0] if self._language.annotated else node
                    line = at.start_point.row + 1
                    end = node.end_point.row + (node.end_point.column > 0)  # some reach into the next line
                    named_to = captures["name"][0].end_byte
                    yield _Definition(
                        node.start_byte, node.end_byte, node, name, kind, line, max(line, end), named_to
                    )

    def _called(self, pattern: int, captures: dict[str, list[Node]]) -> Iterator[_Called]:
        node = captures["name"][0]
        receiver = captures.get("receiver")
        if name := self._language.spelling(node):
            before = self._receiver(receiver[0]) if receiver else ""
            yield _Called(node.start_byte, pattern, name, before, node.start_point.row + 1)

    def _receiver(self, node: Node) -> str:
        return self._language.receiver(node) if node.end_byte - node.start_byte <= RECEIVER_BYTES_MAX else "?"

    def _symbols(self, definitions: Sequence[_Definition], found: _Found) -> Iterator[Symbol]:
        language = self._language
        shares_all = language.scripts and not found.imports and not found.exports
        parents = _parents(definitions)
        for definition, parent in zip(definitions, parents, strict=True):
            kind, node = definition.kind, definition.node
            around = definitions[parent].kind if parent >= 0 else None
            if kind == "function" and around in CLASS_LIKE:
                kind = "method"
            if (
                kind in ("field", "method")
                and around in FUNCTION_LIKE
                and _in_class(parent, parents, definitions)
            ):
                parent = parents[
                    parent
                ]  # a constructor's parameter that is a field, or what it assigns to one
                around = definitions[parent].kind
            exported = around not in FUNCTION_LIKE and language.exported(definition.name, node)
            yield Symbol(
                definition.name,
                kind,
                definition.line,
                definition.end_line,
                _one_line(language.signature(node)),
                parent,
                exported or (parent < 0 and (shares_all or definition.name in found.exports)),
                language.bases(node),
                language.owner(node),
            )


def _one_line(text: str) -> str:
    return " ".join(text[:TEXT_MAX].split())


def _in_class(place: int, parents: Sequence[int], definitions: Sequence[_Definition]) -> bool:
    return parents[place] >= 0 and definitions[parents[place]].kind in CLASS_LIKE


def _is_noise(root: Node) -> bool:
    """Tell whether there are so many stray tokens that a query would take minutes."""
    stray, waiting = 0, [root]
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR":
            stray += (node.child_count - node.named_child_count) ** 2
            if stray > NOISE_MAX**2:
                return True
        waiting.extend(child for child in node.children if child.has_error)
    return False


def _reaching(
    headings: Sequence[_Definition], level: Callable[[Node], int], end: int, last_line: int
) -> Iterator[_Definition]:
    """Let each heading reach to the next one of its level or above. Sorted by start."""
    ends: list[tuple[int, int]] = []
    open_ones: list[tuple[int, int]] = []  # levels, and what comes next at each
    for heading in reversed(headings):
        own = level(heading.node)
        while open_ones and open_ones[-1][0] > own:
            open_ones.pop()
        following = open_ones[-1][1] if open_ones else -1
        place = len(headings) - 1 - len(ends)
        upcoming = headings[following] if following >= 0 else None
        ends.append((end, last_line) if upcoming is None else (upcoming.start, upcoming.line - 1))
        open_ones.append((own, place))
    for heading, (stop, line) in zip(headings, reversed(ends), strict=True):
        yield heading._replace(end=stop, end_line=max(line, heading.line))


def _first_ones(definitions: Sequence[_Definition]) -> Iterator[_Definition]:
    """Leave out where a variable or field gets another value."""
    seen: set[tuple[str, Kind, int]] = set()
    for definition, parent in zip(definitions, _parents(definitions), strict=True):
        key = (definition.name, definition.kind, parent)
        if definition.kind not in _ASSIGNED or key not in seen:
            yield definition
        seen.add(key)


def _parents(definitions: Sequence[_Definition]) -> list[int]:
    """Return for each the place of the innermost scope around it; -1 for none. Sorted, longest first."""
    around: list[int] = []
    parents: list[int] = []
    for place, definition in enumerate(definitions):
        while around and definitions[around[-1]].end <= definition.start:
            around.pop()
        parents.append(around[-1] if around else -1)
        if definition.kind in SCOPES:
            around.append(place)
    return parents


def _merged(
    calls: Sequence[_Called], definitions: Sequence[_Definition], self_name: Callable[[Node], str]
) -> Iterator[Call]:
    """Join calls of one name by one function through one receiver, in the order of the text."""
    lines: dict[tuple[str, str, int], list[int]] = {}
    own = ["" if d.kind not in SCOPES else self_name(d.node) for d in definitions]
    callers = _callers([call.at for call in calls], definitions)
    for call, caller in zip(calls, callers, strict=True):
        receiver = _through_self(call.receiver, own[caller] if caller >= 0 else "")
        found = lines.setdefault((call.name, receiver, caller), [])
        if len(found) < LINES_MAX and call.line not in found[-1:]:
            found.append(call.line)
    for (name, receiver, caller), found in lines.items():
        yield Call(name, receiver, caller, tuple(found))


def _through_self(receiver: str, own: str) -> str:
    first, dot, rest = receiver.partition(".")
    return f"self{dot}{rest}" if own and first == own else receiver


def _callers(places: Sequence[int], definitions: Sequence[_Definition]) -> Iterator[int]:
    """Yield the innermost scope around each place; both ascend, so one pass is enough."""
    around: list[int] = []
    following = iter([*enumerate(definitions), (-1, None)])
    place, upcoming = next(following)
    for at in places:
        while upcoming is not None and upcoming.start <= at:
            if upcoming.kind in SCOPES:
                around.append(place)
            place, upcoming = next(following)
        while around and definitions[around[-1]].end <= at:
            around.pop()
        yield around[-1] if around else -1
