"""Pure: one file's bytes into its outline."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import tree_sitter
from tree_sitter import Node, Parser, Query, QueryCursor

from herdr.context.graph.language import Language, text_of
from herdr.context.graph.outline import LINES_MAX, Call, Import, Kind, Outline, Symbol

CLASS_LIKE = frozenset({"class", "interface", "struct", "union", "enum", "trait", "impl"})
SCOPES = CLASS_LIKE | {"function", "method", "constructor", "property", "macro", "namespace", "module"}
"""What can stand around other definitions; a constant's lambda is not a place that anybody looks for."""

_PREFIX = "definition."


class _Definition(NamedTuple):
    start: int
    end: int
    node: Node
    name: str
    kind: Kind
    line: int


class _Called(NamedTuple):
    at: int
    pattern: int
    """Of the patterns that find one name to be called, the last says how."""
    name: str
    receiver: str
    line: int


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
        root = self._parser.parse(self._language.prepare(source)).root_node
        definitions: dict[tuple[int, int, str], _Definition] = {}
        calls: dict[int, _Called] = {}
        imports: list[Import] = []
        package = ""
        for pattern, captures in QueryCursor(self._query).matches(root):
            if "call" in captures:
                for called in self._called(pattern, captures):
                    calls[called.at] = max(called, calls.get(called.at, called))
            elif "import" in captures:
                imports.extend(self._language.read_imports(captures["import"][0]))
            elif "package" in captures:
                package = package or text_of(captures["package"][0])
            else:
                for found in self._defined(captures):
                    definitions.setdefault((found.start, found.end, found.name), found)
        ordered = sorted(definitions.values(), key=lambda d: (d.start, -d.end))
        parents = list(_parents([(d.start, d.end, d.kind in SCOPES) for d in ordered]))
        symbols = tuple(self._symbols(ordered, parents))
        return Outline(
            self._language.name,
            source.count(b"\n") + (not source.endswith(b"\n") and bool(source)),
            symbols,
            tuple(imports),
            tuple(_merged(sorted(calls.values()), ordered, self._language.self_name)),
            package,
            root.has_error,
        )

    def _defined(self, captures: dict[str, list[Node]]) -> Iterator[_Definition]:
        name = self._language.spelling(captures["name"][0]).strip() if "name" in captures else ""
        for capture, nodes in captures.items():
            if name and capture.startswith(_PREFIX):
                node = nodes[0]
                kind = self._language.refine(capture.removeprefix(_PREFIX), node)  # type: ignore[arg-type]
                if kind is not None:
                    at = captures["name"][0] if self._language.annotated else node
                    line = at.start_point.row + 1
                    yield _Definition(node.start_byte, node.end_byte, node, name, kind, line)

    def _called(self, pattern: int, captures: dict[str, list[Node]]) -> Iterator[_Called]:
        node = captures["name"][0]
        receiver = captures.get("receiver")
        if name := self._language.spelling(node):
            before = self._language.receiver(receiver[0]) if receiver else ""
            yield _Called(node.start_byte, pattern, name, before, node.start_point.row + 1)

    def _symbols(self, definitions: Sequence[_Definition], parents: Sequence[int]) -> Iterator[Symbol]:
        language = self._language
        for found, parent in zip(definitions, parents, strict=True):
            kind = found.kind
            if kind == "function" and parent >= 0 and definitions[parent].kind in CLASS_LIKE:
                kind = "method"
            node = found.node
            yield Symbol(
                found.name,
                kind,
                found.line,
                node.end_point.row + (node.end_point.column > 0),  # some end behind their line's end
                language.signature(node),
                parent,
                language.exported(found.name, node),
                language.bases(node),
                language.owner(node),
            )


def _parents(ranges: Sequence[tuple[int, int, bool]]) -> Iterator[int]:
    """Yield for each range the place of the innermost scope around it. Sorted by start, longest first."""
    around: list[int] = []
    for place, (start, _end, is_scope) in enumerate(ranges):
        while around and ranges[around[-1]][1] <= start:
            around.pop()
        yield around[-1] if around else -1
        if is_scope:
            around.append(place)


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
