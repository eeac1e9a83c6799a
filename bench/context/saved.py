"""How long after a save the graph answers with what the file now defines."""

import random
import time
from collections.abc import Callable
from pathlib import Path

from bench.context.index import trees_for
from bench.context.indexed import Indexed, indexed, new_data
from bench.context.trees import restore, sources, tree_of
from bench.plan import Plan
from bench.report import Line
from bench.timing import spread_ms

SAVES = 100
APART_S = (0.1, 0.2)  # between two saves, at random: the watcher looks at fixed intervals
POLL_S = 0.002
LATE_S = 20.0
P50_MS = 100.0


def saved(plan: Plan) -> list[Line]:
    """On the larger tree: found by the watcher alone, and reported by whoever saved."""
    wanted = trees_for(plan)[-1]
    tree = tree_of(plan.folder, wanted)
    paths = [path for path in sources(tree) if path.endswith(".py") and (tree / path).stat().st_size > 2_000]
    saves = plan.sized(SAVES)
    step = max(len(paths) // (2 * saves * plan.repeats), 1)
    chosen = iter(paths[::step])
    pauses = random.Random(saves)
    lines = [_line(wanted.name, "found by the watcher alone"), _line(wanted.name, "reported by the tool")]
    try:
        with new_data(plan.folder) as data, indexed(data, tree) as herdr:
            herdr.wait()
            for _ in range(plan.repeats):
                for line, ask in zip(lines, (_poll, _report), strict=True):
                    _add(line, [_once(herdr, tree, next(chosen), ask, pauses) for _ in range(saves)])
    finally:
        restore(tree)
    return lines


def _line(tree: str, how: str) -> Line:
    name = f"save of one file of {tree} until the graph answers with its new symbol, {how}, p50"
    return Line(name, "ms", [], at_most=P50_MS, beside={"p99 ms": []})


def _add(line: Line, seconds: list[float]) -> None:
    spread = spread_ms(seconds)
    line.seen.append(spread["p50"])
    line.beside["p99 ms"].append(spread["p99"])


def _once(
    herdr: Indexed, tree: Path, path: str, ask: Callable[[Indexed, str, str], None], pauses: random.Random
) -> float:
    """Add a function to a file, as an editor saves it, and time the answer that knows it."""
    symbol = f"bench_{time.monotonic_ns()}"
    file = tree / path
    text = f"{file.read_text()}\n\ndef {symbol}(given):\n    return given\n"
    time.sleep(pauses.uniform(*APART_S))
    file.write_text(text)
    began = time.perf_counter()
    ask(herdr, path, symbol)
    return time.perf_counter() - began


def _poll(herdr: Indexed, path: str, symbol: str) -> None:
    """Ask again and again, as nobody says when to."""
    until = time.perf_counter() + LATE_S
    while not _knows(herdr, path, symbol):
        if time.perf_counter() > until:
            raise RuntimeError(f"{path} was saved {LATE_S:g} s ago and the graph does not know")
        time.sleep(POLL_S)


def _report(herdr: Indexed, path: str, symbol: str) -> None:
    """Say what was saved, then ask once: the answer has to know it."""
    herdr.post(
        "/v1/events",
        {"type": "file.changed", "source": "bench", "workspace": herdr.workspace, "subject": path},
    )
    if not _knows(herdr, path, symbol):
        raise RuntimeError(f"{path} was reported, and the answer does not know it")


def _knows(herdr: Indexed, path: str, symbol: str) -> bool:
    found = herdr.get(herdr.graph("symbols", name=symbol))["symbols"]
    return any(one["path"] == path for one in found)
