"""A snapshot taken over in a fresh checkout, beside indexing the checkout."""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.context.fetched import Sdist
from bench.context.index import repeats, trees_for
from bench.context.indexed import Indexed, indexed
from bench.context.trees import checked_out, tree_of
from bench.plan import Plan
from bench.report import Line

TIMES_FASTER = 5


def snapshot(plan: Plan) -> list[Line]:
    """Export from one checkout; import in another, where every inode and time differs."""
    return [line for wanted in trees_for(plan) for line in _snapshot(plan, wanted)]


def _snapshot(plan: Plan, wanted: Sdist) -> list[Line]:
    tree = tree_of(plan.folder, wanted)
    started, imported = _lines(wanted.name)
    with tempfile.TemporaryDirectory(dir=plan.folder, prefix="herdr-") as place:
        file = Path(place, "project.snapshot")
        note = _export(Path(place, "data"), tree, file)
        for repeat in range(repeats(plan)):
            with tempfile.TemporaryDirectory(dir=plan.folder, prefix="herdr-") as beside:
                copy = Path(beside, tree.name)
                checked_out(tree, copy)
                _start(Path(beside), copy, file, started)
                said = _import(Path(beside, f"data-{repeat}"), copy, file, imported)
    imported.notes = [note, f"of {said['files']:,} files {said['parsed']:,} were parsed anew"]
    return [started, imported]


def _lines(tree: str) -> list[Line]:
    return [
        Line(
            f"snapshot of {tree}, from the start with --snapshot to the first answer",
            "s",
            [],
            "the same without",
            [],
            at_most=1 / TIMES_FASTER,
        ),
        Line(
            f"snapshot of {tree}, the import alone",
            "s",
            [],
            "a fresh index, in the same gateway",
            [],
            at_most=1 / TIMES_FASTER,
        ),
    ]


def _export(data: Path, tree: Path, file: Path) -> str:
    with indexed(data, tree) as herdr:
        herdr.wait()
        seconds, content = _timed(lambda: herdr.good("GET", f"/v1/snapshots/{herdr.workspace}"))
    file.write_bytes(content)
    return f"exported in {seconds:.2f} s, {len(content) / 1024**2:.1f} MiB"


def _start(place: Path, tree: Path, file: Path, line: Line) -> None:
    with indexed(place / "without", tree) as herdr:
        line.peer_seen.append(herdr.ready_s())
    with indexed(place / "with", tree, "--snapshot", str(file)) as herdr:
        line.seen.append(herdr.ready_s())


def _import(data: Path, tree: Path, file: Path, line: Line) -> dict[str, Any]:
    said: dict[str, Any]
    with indexed(data, tree) as herdr:
        herdr.wait()
        line.peer_seen.append(_timed(lambda: _fresh(herdr))[0])
        content = file.read_bytes()
        seconds, said = _timed(lambda: _received(herdr, content))
        line.seen.append(seconds)
    return said


def _fresh(herdr: Indexed) -> None:
    herdr.post(f"/v1/context/{herdr.workspace}/index", {"fresh": True})
    herdr.wait()


def _received(herdr: Indexed, content: bytes) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(herdr.good("POST", f"/v1/snapshots/{herdr.workspace}", content))
    return said


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found
