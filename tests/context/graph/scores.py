"""How much of what a reader sees in a fixture's files the graph sees, and how much of what it says is right.

`expected.json` beside a fixture's files, written by hand from the sources:
`symbols` {path: [[qualified name, kind, line, signature?]]}, `imports` {path: [[module, name, alias, [files]]]},
`calls` [{path, caller, call, resolution, targets, candidates, means?}]. `means` says what a call by name is a call
of, where a reader can tell from more than the rules of resolution use: a variable's type, say.
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from context.graph.memory_project import MemoryProject

from herdr.context.graph.outline import Outline, qualified_name
from herdr.context.graph.resolve import Resolver, symbol_id

FIXTURES = Path(__file__).parent / "fixtures"


class Score(NamedTuple):
    """Counts of what is there, what was found, and what is in both; the differences in words."""

    expected: int
    found: int
    right: int
    differences: tuple[str, ...] = ()

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.expected if self.expected else 1.0

    def __str__(self) -> str:
        return f"{self.precision:.3f}/{self.recall:.3f} of {self.expected}"


class Scores(NamedTuple):
    symbols: Score
    imports: Score
    calls: Score
    exact: Score
    """Edges said to be exact, against all that a reader can tell."""


def fixtures() -> list[str]:
    """Return the languages that have a fixture."""
    return sorted(path.parent.name for path in FIXTURES.glob("*/expected.json"))


def project(language: str) -> MemoryProject:
    """Return a fixture as a project."""
    root = FIXTURES / language
    paths = (p for p in sorted(root.rglob("*")) if p.is_file() and p.name != "expected.json")
    return MemoryProject({p.relative_to(root).as_posix(): p.read_bytes() for p in paths})


def scores(language: str) -> Scores:
    """Compare a fixture with what is expected of it."""
    expected = json.loads((FIXTURES / language / "expected.json").read_text())
    graph = project(language)
    assert sorted(expected["symbols"]) == sorted(expected["imports"]), "each file needs both"
    outlines = {path: graph.outline(path) for path in expected["symbols"]}
    known = {path: outline for path, outline in outlines.items() if outline is not None}
    assert len(known) == len(outlines), f"no outline: {set(outlines) - set(known)}"
    calls = list(_calls(graph, known))
    wanted = [_call(**call) for call in expected["calls"]]
    told = [call for call in calls if call[3] == "exact"]
    tellable = [_call(**call) for call in expected["calls"] if call["resolution"] == "exact"]
    tellable += [
        _call(**{**call, "resolution": "exact", "targets": call["means"], "candidates": 1})
        for call in expected["calls"]
        if call.get("means")
    ]
    return Scores(
        _compared(_symbols(known, expected["symbols"]), _expected_symbols(expected["symbols"])),
        _compared(_imports(graph, known), _expected_imports(expected["imports"])),
        _compared(calls, wanted),
        _compared(told, tellable),
    )


def _compared(found: Iterable[Hashable], expected: Iterable[Hashable]) -> Score:
    have, want = Counter(found), Counter(expected)
    differences = [f"missing {each}" for each in (want - have).elements()]
    differences += [f"too much {each}" for each in (have - want).elements()]
    both = sum((have & want).values())
    return Score(sum(want.values()), sum(have.values()), both, tuple(sorted(differences, key=_place)))


def _place(difference: str) -> str:
    return difference.partition("(")[2]


def _symbols(outlines: dict[str, Outline], expected: dict[str, list[list[Any]]]) -> Iterator[Hashable]:
    """Yield what was found, with the signature only where one is expected."""
    for path, outline in outlines.items():
        signed = {(s[0], s[2]) for s in expected[path] if len(s) > 3}
        for place, symbol in enumerate(outline.symbols):
            name = qualified_name(outline, place)
            signature = symbol.signature if (name, symbol.line) in signed else ""
            yield path, name, symbol.kind, symbol.line, signature


def _expected_symbols(expected: dict[str, list[list[Any]]]) -> Iterator[Hashable]:
    for path, symbols in expected.items():
        for name, kind, line, *signature in symbols:
            yield path, name, kind, line, signature[0] if signature else ""


def _imports(graph: MemoryProject, outlines: dict[str, Outline]) -> Iterator[Hashable]:
    resolver = Resolver(graph)
    for path, outline in outlines.items():
        for found in outline.imports:
            files = resolver.imported(path, found)
            yield path, found.module, found.name, found.alias, tuple(sorted(files))


def _expected_imports(expected: dict[str, list[list[Any]]]) -> Iterator[Hashable]:
    for path, imports in expected.items():
        for module, name, alias, files in imports:
            yield path, module, name, alias, tuple(sorted(files))


def _calls(graph: MemoryProject, outlines: dict[str, Outline]) -> Iterator[tuple[Any, ...]]:
    resolver = Resolver(graph)
    for path, outline in outlines.items():
        for call in outline.calls:
            resolution = resolver.call(path, outline, call)
            yield _call(
                path,
                qualified_name(outline, call.caller) if call.caller >= 0 else None,
                f"{call.receiver}.{call.name}" if call.receiver else call.name,
                resolution.kind,
                sorted({symbol_id(graph, target) for target in resolution.targets}),
                resolution.candidates,
            )


def _call(
    path: str,
    caller: str | None,
    call: str,
    resolution: str,
    targets: list[str],
    candidates: int,
    means: object = None,
) -> tuple[Any, ...]:
    return path, caller or "", call, resolution, tuple(sorted(targets)), candidates
