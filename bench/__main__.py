"""`python -m bench`: measures Herdr and its peers, and prints JSON and a Markdown table."""

import argparse
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench import follow, hooks, publish, urgent
from bench.context import beside, index, saved, snapshot, task, windows
from bench.locks import decisions, turns
from bench.models import agents, overhead, urgency
from bench.plan import Plan
from bench.report import Line, as_json, machine, table

RESULTS = Path(__file__).with_name("results")

MEASURES: dict[str, Callable[[Plan], list[Line]]] = {
    "pipelined": publish.pipelined,
    "batched": publish.batched,
    "single": publish.single,
    "one-at-a-time": publish.one_at_a_time,
    "deliveries": follow.deliveries,
    "latency": follow.latency,
    "urgent": urgent.urgent,
    "idle": follow.idle,
    "lock-decisions": decisions.decisions,
    "lock-turns": turns.turns,
    "hooks": hooks.hooks,
    "first-token": overhead.first_token,
    "streams": overhead.streams,
    "urgency": urgency.urgency,
    "session-windows": windows.windows,
}
ON_REQUEST: dict[str, Callable[[Plan], list[Line]]] = {
    "agents": agents.agents,
    "graph-index": index.index,
    "graph-saved": saved.saved,
    "graph-snapshot": snapshot.snapshot,
    "graph-beside": beside.beside,
    "task-tokens": task.task,
}
"""Takes minutes and a real model, or source trees and peers that pip fetches first: only with `--only`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what was asked for; targets that are missed do not change the exit code."""
    given = _arguments().parse_args(argv)
    _raise_file_limit()
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RESULTS, prefix="run-") as folder:
        plan = Plan(Path(folder), 2 if given.quick else given.repeats, 0.15 if given.quick else 1.0)
        about = machine(plan.folder)
        lines = [line for name in given.only or MEASURES for line in _measure(name, plan)]
    about["load_average_after"] = os.getloadavg()[0]
    result = as_json(lines, about)
    kept = RESULTS / f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
    kept.write_bytes(result)
    print(result.decode())
    print(f"\n{table(lines, about)}\n")
    return 0


def _measure(name: str, plan: Plan) -> list[Line]:
    """Measure one thing; a defect in it must not cost the rest of a long run."""
    began = time.monotonic()
    try:
        lines = (MEASURES | ON_REQUEST)[name](plan)
    except Exception as error:  # noqa: BLE001 - shown in the table
        traceback.print_exception(error)
        lines = [Line(name, "", [], notes=[f"failed: {type(error).__name__}: {error}"[:500]])]
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return lines


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run of about a minute")
    parser.add_argument(
        "--only", action="append", choices=[*MEASURES, *ON_REQUEST], help="measure this; repeatable"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="interleaved repeats, of which the median counts"
    )
    return parser


def _raise_file_limit() -> None:
    """A thousand followers need as many sockets."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
