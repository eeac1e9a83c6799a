"""Pure: which files and definitions matter most, by who calls whom.

PageRank (Brin and Page, 1998, http://infolab.stanford.edu/~backrub/google.html) over files, where a call is a
link to the files that define the name. The idea and the weights of names are those of aider's repository map
(https://github.com/Aider-AI/aider/blob/main/aider/repomap.py, `get_ranked_tags`): the root of the number of
calls, ten times for a long compound name or one that is asked for, a tenth for a private one, and fifty times
for what the files in focus call. Other than there
- links between two files are merged before ranking, which takes seconds and megabytes where a link for each
  call takes minutes and gigabytes;
- a name's weight is shared by its definers, those that the caller imports get more of it, and a part is left
  for what is none of them: a library's function, a local variable, a method of a list;
- the factor of fifty is applied to definitions, after ranking: as a factor on all links of one file it is lost
  when that file's weights are made to add up to one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from math import sqrt
from typing import NamedTuple

from herdr.context.graph.dialects import everyday, family
from herdr.context.graph.languages.registry import language_of
from herdr.context.graph.project import Project
from herdr.context.graph.resolve import Resolver

DEFINERS_MAX = 20  # files that define one name; `get` or `run` in more of them links everything to everything
DAMPING = 0.85  # as in the paper
ITERATIONS_MAX = 50
TOLERANCE = 1e-4  # sum of all changes in one iteration; ranks differ by far more than that
IMPORTED = 8.0  # how much likelier a definer is meant if the caller imports something called like its file
ELSEWHERE = 4.0  # how likely it is none of them, so that one that is not imported has a fifth at most
OWN = 8.0  # how likely it is the caller's own, if the caller defines the name as well
COMPOUND, COMPOUND_LENGTH, PRIVATE, EVERYDAY = 10.0, 8, 0.1, 0.1
NAMED, FROM_FOCUS = 10.0, 50.0
FOCUS_FILES_MAX = 20  # files in focus whose calls are resolved: 10 ms each
FOCUS = 0.75  # share of the readers who start at the files in focus; the others start anywhere

_COMPOUND = re.compile(r"[A-Za-z0-9][_-][A-Za-z0-9]|[a-z][A-Z]")


Certain = Mapping[tuple[str, str], Set[str]]
"""By calling file and name: the only files in which that name can be defined."""


class Reference(NamedTuple):
    """One name that a file calls, towards one file that defines it."""

    target: int
    name: str
    share: float
    """Of all that the file calls; what is missing to 1 are calls of what is not known."""


class References(NamedTuple):
    """Who calls what. Good for one version of the graph."""

    paths: Sequence[str]
    calls: Sequence[Sequence[Reference]]
    """By the place of the calling file in `paths`."""
    links: Sequence[Sequence[tuple[int, float]]]
    """The same, merged by the called file."""


class Ranking(NamedTuple):
    """How much each file and definition matters."""

    references: References
    files: Mapping[str, float]
    """Adds up to 1."""
    symbols: Mapping[tuple[str, str], float]
    """By path and name; of definitions that another file calls."""


def ranks(project: Project) -> Ranking:
    """Rank a project without a focus. It depends on the graph alone, so it can be kept for one version of it."""
    return _rank(references(project), frozenset(), frozenset(), {})


def focused(ranking: Ranking, project: Project, paths: Iterable[str], names: Iterable[str] = ()) -> Ranking:
    """Rank once more, as seen from these files and from where these names are defined."""
    names = frozenset(names)
    mine = frozenset(paths) & ranking.files.keys()
    asked = [
        (path, name) for name in sorted(names) for path in project.defining(name) if path in ranking.files
    ]
    starts = mine | {path for path, _name in asked}
    if not starts:
        return ranking
    certain = _called_from(project, sorted(mine)[:FOCUS_FILES_MAX])
    found = _rank(ranking.references, starts, names, certain)
    direct = {key: found.symbols.get(key, 0.0) + found.files[key[0]] for key in asked}
    return found._replace(symbols={**found.symbols, **direct})


def _called_from(project: Project, paths: Iterable[str]) -> Certain:
    """Return in which files the names that these files call are certainly defined."""
    resolver = Resolver(project)
    found: dict[tuple[str, str], set[str]] = {}
    unsure: set[tuple[str, str]] = set()
    for path in paths:
        outline = project.outline(path)
        for call in outline.calls if outline is not None else ():
            assert outline is not None
            resolution = resolver.call(path, outline, call)
            found.setdefault((path, call.name), set()).update(place.path for place in resolution.targets)
            if resolution.kind == "name":
                unsure.add((path, call.name))
    return {key: frozenset(targets) for key, targets in found.items() if key not in unsure}


def references(project: Project) -> References:
    """Read who calls what, in an order that does not depend on how the graph came to be."""
    paths = sorted(project.paths())
    place = {path: i for i, path in enumerate(paths)}
    kin = [family(language.name) if (language := language_of(path)) else "" for path in paths]
    called: dict[tuple[int, str], tuple[int, list[int]]] = {}
    for source, target, name, calls in project.pairs(DEFINERS_MAX):
        at, to = place.get(source, -1), place.get(target, -1)
        if at >= 0 and to >= 0 and at != to and kin[at] == kin[to]:
            called.setdefault((at, name), (calls, []))[1].append(to)
    defined = {(to, name) for (_at, name), (_calls, targets) in called.items() for to in targets}
    importers = _Importers(project, paths)
    found: list[list[Reference]] = [[] for _ in paths]
    totals = [0.0] * len(paths)
    for (at, name), (calls, targets) in sorted(called.items()):
        worth = weight_of(name, kin[at]) * sqrt(calls)
        totals[at] += worth
        likely = [IMPORTED if importers.has(to, paths[at]) else 1.0 for to in sorted(targets)]
        whole = sum(likely) + ELSEWHERE + (OWN if (at, name) in defined else 0.0)
        for to, share in zip(sorted(targets), likely, strict=True):
            found[at].append(Reference(to, name, worth * share / whole))
    calls_of = [_shares(row, total) for row, total in zip(found, totals, strict=True)]
    return References(paths, calls_of, [_merged(row) for row in calls_of])


def weight_of(name: str, kin: str = "") -> float:
    """Return how much a name tells: `calculate_total` more than `run`, and that more than `_run`."""
    if name in everyday(kin):
        return EVERYDAY
    telling = len(name) >= COMPOUND_LENGTH and _COMPOUND.search(name) is not None
    return (COMPOUND if telling else 1.0) * (PRIVATE if name.startswith("_") else 1.0)


class _Importers:
    """Tells who imports something called like a file: quick, and right most of the time."""

    def __init__(self, project: Project, paths: Sequence[str]) -> None:
        self._project = project
        self._by_key: dict[str, frozenset[str]] = {}
        self._of = [[self._importing(key) for key in _keys(path)] for path in paths]

    def _importing(self, key: str) -> frozenset[str]:
        if key not in self._by_key:  # one set for all files of one name
            self._by_key[key] = frozenset(self._project.importing(key))
        return self._by_key[key]

    def has(self, target: int, source: str) -> bool:
        """Tell whether the file at `source` imports something called like the one at this place."""
        return any(source in importers for importers in self._of[target])


def _keys(path: str) -> Iterable[str]:
    language = language_of(path)
    return language.keys(path) if language is not None else ()


def _shares(row: Sequence[Reference], total: float) -> list[Reference]:
    return [Reference(to, name, share / total) for to, name, share in row]


def _merged(row: Sequence[Reference]) -> list[tuple[int, float]]:
    merged: dict[int, float] = {}
    for to, _name, share in row:
        merged[to] = merged.get(to, 0.0) + share
    return sorted(merged.items())


def _rank(known: References, focus: Set[str], names: Set[str], certain: Certain) -> Ranking:
    size = len(known.paths)
    start = [(1.0 - FOCUS if focus else 1.0) / max(size, 1)] * size
    for i, path in enumerate(known.paths):
        if path in focus:
            start[i] += FOCUS / len(focus)
    files = page_rank(known.links, start)
    symbols: dict[tuple[str, str], float] = {}
    for source, worth, row in zip(known.paths, files, known.calls, strict=True):
        for to, name, share in row:
            key = (known.paths[to], name)
            factor = (NAMED if name in names else 1.0) * (FROM_FOCUS if source in focus else 1.0)
            sure = certain.get((source, name))
            if sure is None or key[0] in sure:
                symbols[key] = symbols.get(key, 0.0) + worth * share * factor
    return Ranking(known, dict(zip(known.paths, files, strict=True)), symbols)


def page_rank(links: Sequence[Sequence[tuple[int, float]]], start: Sequence[float]) -> list[float]:
    """Return each node's rank; a node's links add up to 1 at most, and `start`, where readers begin, to 1.

    A reader who follows no link begins anew. The order of the sums is fixed, so that equal graphs have equal
    ranks to the last bit.
    """
    left = [1.0 - sum(share for _to, share in row) for row in links]
    rank = list(start)
    for _ in range(ITERATIONS_MAX):
        new = [0.0] * len(rank)
        for row, worth in zip(links, rank, strict=True):
            for to, share in row:
                new[to] += worth * share
        lost = sum(worth * rest for worth, rest in zip(rank, left, strict=True))
        restart = 1.0 - DAMPING + DAMPING * lost
        new = [DAMPING * here + restart * first for here, first in zip(new, start, strict=True)]
        change = sum(abs(a - b) for a, b in zip(new, rank, strict=True))
        rank = new
        if change < TOLERANCE:
            break
    return rank
