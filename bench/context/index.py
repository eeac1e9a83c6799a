"""Cold index, warm start and maps of whole source trees, beside aider's repository map and universal-ctags."""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlencode

from bench.context import peers
from bench.context.family import family_cpu_s, indexer_peak_mib
from bench.context.fetched import DJANGO, HOME_ASSISTANT, Sdist
from bench.context.indexed import Indexed, indexed, new_data
from bench.context.trees import sources, tree_of
from bench.plan import Plan
from bench.report import Line

CORES = 2
TOKENS = 1024
_START = "from the start of the process to the first answer"
_PASS = "the pass over all files alone"
MENTIONED = {DJANGO: "get_queryset", HOME_ASSISTANT: "async_setup_entry"}
"""A name that the last map is asked for, as if the user had just written of it."""


def index(plan: Plan) -> list[Line]:
    """Both trees; a quick run only does the smaller one, and once."""
    with on_cores(CORES):
        return [line for wanted in trees_for(plan) for line in _index(plan, wanted)]


def trees_for(plan: Plan) -> Sequence[Sdist]:
    """Return the trees to measure on, the larger one last."""
    return (DJANGO,) if plan.share < 1 else (DJANGO, HOME_ASSISTANT)


def repeats(plan: Plan) -> int:
    """Return how often to measure what takes a minute."""
    return 1 if plan.share < 1 else plan.repeats


@contextlib.contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Keep this process, and all that it starts, on the first cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class _Seen:
    """What one tree showed, by repeat."""

    def __init__(self) -> None:
        self.cold: list[float] = []
        self.cold_pass: list[float] = []
        self.cold_cpu: list[float] = []
        self.warm: list[float] = []
        self.warm_pass: list[float] = []
        self.index_mib: list[float] = []
        self.map_mib: list[float] = []
        self.map: list[float] = []
        self.map_again: list[float] = []
        self.map_other: list[float] = []
        self.ctags: list[peers.Ctags] = []
        self.aider: list[peers.Aider] = []
        self.notes: list[str] = []


def _index(plan: Plan, wanted: Sdist) -> list[Line]:
    tree, seen = tree_of(plan.folder, wanted), _Seen()
    paths = sources(tree)
    _read(tree, paths)
    for _ in range(repeats(plan)):
        _ours(plan.folder, tree, MENTIONED[wanted], seen)
        if peers.has_ctags():
            seen.ctags.append(peers.ctags(plan.folder, tree, paths))
        if wanted is DJANGO or not seen.aider:
            seen.aider.append(peers.aider(plan.folder, tree, paths, MENTIONED[wanted]))
    return [*_cold(wanted.name, seen), *_warm(wanted.name, seen), *_maps(wanted.name, seen)]


def _read(tree: Path, paths: Sequence[str]) -> None:
    """Have the kernel hold all files in memory, so that nobody is the first to wait for the disk."""
    for path in paths:
        (tree / path).read_bytes()


def _ours(folder: Path, tree: Path, mentioned: str, seen: _Seen) -> None:
    with new_data(folder) as data:
        with indexed(data, tree) as herdr:
            seen.cold.append(herdr.ready_s())
            seen.cold_pass.append(herdr.pass_s())
            seen.cold_cpu.append(family_cpu_s(herdr.pid))
            seen.index_mib.append(indexer_peak_mib(herdr.pid))
            for times, query in ((seen.map, {}), (seen.map_again, {}), (seen.map_other, {"name": mentioned})):
                times.append(_map_s(herdr, query))
            seen.map_mib.append(indexer_peak_mib(herdr.pid))
            seen.notes[:] = [_note(herdr)]
        with indexed(data, tree) as herdr:
            seen.warm.append(herdr.ready_s())
            seen.warm_pass.append(herdr.pass_s())


def _map_s(herdr: Indexed, query: dict[str, str]) -> float:
    path = f"/v1/context/{herdr.workspace}/graph/map?{urlencode({'tokens': TOKENS, **query})}"
    began = time.perf_counter()
    herdr.good("GET", path)
    return time.perf_counter() - began


def _note(herdr: Indexed) -> str:
    state = herdr.state()
    return (
        f"Herdr {state['files']:,} files, of which {state['parsed']:,} parsed: {state['symbols']:,} symbols,"
        f" {state['calls']:,} calls, {state['imports']:,} imports"
    )


def _cold(tree: str, seen: _Seen) -> list[Line]:
    """Return the whole way, of which starting a process is a part, and the pass over all files alone."""
    whole, alone = f"cold index of {tree}, {_START}", f"cold index of {tree}, {_PASS}"
    count = len(seen.aider)
    tags, ready = [run.tags_s for run in seen.aider], [run.ready_s for run in seen.aider]
    notes = [*seen.notes, f"aider's tags: {seen.aider[0].definitions:,} definitions, and references"]
    cpu = {"processor s": seen.cold_cpu[:count]}
    lines = [
        Line(
            whole, "s", seen.cold[:count], "aider, to its tags", ready, at_most=0.25, beside=cpu, notes=notes
        ),
        Line(alone, "s", seen.cold_pass[:count], "aider, tags alone", tags, at_most=0.25),
    ]
    if not seen.ctags:
        return [*lines, Line(alone, "s", seen.cold_pass, "universal-ctags", notes=[peers.NO_CTAGS])]
    of_ctags = [run.seconds for run in seen.ctags]
    notes = [f"ctags: {seen.ctags[0].tags:,} tags; it writes definitions, no calls and no imports"]
    return [
        *lines,
        Line(alone, "s", seen.cold_pass, "universal-ctags, whole process", of_ctags, at_most=4, notes=notes),
        Line(whole, "s", seen.cold, "universal-ctags, whole process", of_ctags),
    ]


def _warm(tree: str, seen: _Seen) -> list[Line]:
    name, peer = f"warm start on {tree}, nothing changed", "cold"
    return [
        Line(f"{name}, {_START}", "s", seen.warm, peer, seen.cold, at_most=0.05),
        Line(f"{name}, {_PASS}", "s", seen.warm_pass, peer, seen.cold_pass, at_most=0.05),
    ]


def _maps(tree: str, seen: _Seen) -> list[Line]:
    count = len(seen.aider)
    name = f"map of {TOKENS:,} tokens of {tree}"
    notes = ["aider's is a map taken from its cache unless another name was mentioned since"]
    memory = [run.map_mib for run in seen.aider]
    beside = {
        "until indexed MiB": seen.index_mib[:count],
        "aider until its tags were read MiB": [run.tags_mib for run in seen.aider],
    }
    peak = f"peak memory for index and map of {tree}, indexer and parse workers"
    ranked = (
        ("the first", seen.map, [run.rank_s for run in seen.aider]),
        ("another name mentioned", seen.map_other, [run.rank_other_s for run in seen.aider]),
    )
    return [
        *(
            Line(f"{name}, {which}", "s", ours[:count], "aider, ranking alone", theirs, at_most=0.2)
            for which, ours, theirs in ranked
        ),
        Line(
            f"{name}, the same again",
            "s",
            seen.map_again[:count],
            "aider",
            [run.map_again_s for run in seen.aider],
            notes=notes,
        ),
        Line(peak, "MiB", seen.map_mib[:count], "aider", memory, beside=beside),
    ]
