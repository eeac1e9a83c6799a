"""How long the lock table takes to decide while it holds ten thousand locks, in this process."""

import itertools
import time
from collections.abc import Iterator

from bench.locks.held import HELD, MODULES, PACKAGES, SHAPES, ask, at, held, locked
from bench.plan import Plan
from bench.report import Line
from bench.timing import spread_ms
from herdr.locks.lock import Denied, Held
from herdr.locks.table import Table

ROUNDS = 300
ASKED: dict[str, tuple[type, str]] = {
    "an exact path, granted": (Held, "packages/{p}/src/{m}/main.rs"),
    "an exact path, denied": (Denied, "packages/{p}/src/{m}/cart/view.py"),
    "a folder, granted": (Held, "packages/{p}/benches/{m}/"),
    "a folder, denied": (Denied, "packages/{p}/src/{m}/"),
    "a glob, granted": (Held, "packages/{p}/src/*/**/*.rs"),
    "a glob, denied": (Denied, "packages/*/src/{m}/**/view.py"),
    "a glob over everything, denied": (Denied, "**/*.py"),
}
"""What is asked for, and the answer that must come."""


def decisions(plan: Plan) -> list[Line]:
    """Ask, and release what was granted; the 99th percentile of the processor time that both take together."""
    table, seqs = _filled()
    lines = [_line(what) for what in ASKED]
    for _ in range(plan.repeats):
        for line, (answer, pattern) in zip(lines, ASKED.values(), strict=True):
            spread = spread_ms(_times(table, seqs, plan.sized(ROUNDS), answer, pattern))
            line.seen.append(spread["p99"])
            line.beside["p50 ms"].append(spread["p50"])
    return lines


def _line(what: str) -> Line:
    globs = sum("*" in pattern for _, pattern in SHAPES)
    name = f"lock decision with {HELD:,} held, {globs} of {len(SHAPES)} globs: {what}, p99"
    return Line(name, "ms", [], at_most=1, beside={"p50 ms": []})


def _filled() -> tuple[Table, Iterator[int]]:
    table, seqs = Table(locks_max=HELD + 1), itertools.count(1)
    table.restore(locked(one, next(seqs)) for one in held())
    return table, seqs


def _times(table: Table, seqs: Iterator[int], rounds: int, kind: type, pattern: str) -> list[float]:
    times = []
    for number in range(rounds):
        wanted = ask(f"new-{next(seqs)}", "newcomer", at(pattern, number % (PACKAGES * MODULES)))
        began = time.thread_time()
        ((_, answer),) = table.ask(wanted, seq := next(seqs), 0).answers
        table.keep()
        if isinstance(answer, Held):
            table.release(answer.lock.lock, seq, next(seqs), 0)
            table.keep()
        times.append(time.thread_time() - began)
        if not isinstance(answer, kind):
            raise RuntimeError(f"{wanted.paths} was answered with {answer}")
    return times
