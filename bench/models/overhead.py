"""What the gateway costs: time to the first token, and streams a second, beside the stub called directly."""

import statistics

from bench.limits import Watch
from bench.models.ask import DIRECT, HERDR
from bench.models.load import Result, run_load
from bench.models.pool import pool, stub
from bench.plan import Plan
from bench.report import Line

WORDS = 32
PACE_MS = 5.0
PAUSE_S = 0.02  # at most, before each paced request
TARGETS = {4: {"p50": 3.0, "p99": 15.0}}
"""Streams at once to the most milliseconds that the gateway may add; other numbers of streams are stated."""


def first_token(plan: Plan) -> list[Line]:
    """Time to the first token that the gateway adds, at 4 and at 50 streams at once."""
    return [line for streams in (4, 50) for line in _first_token(plan, streams)]


def _first_token(plan: Plan, streams: int) -> list[Line]:
    direct: list[Result] = []
    ours: list[Result] = []
    seconds = plan.sized(20)
    with stub(streams, WORDS, PACE_MS) as model, pool(plan.folder, model.url) as herdr:
        run_load(herdr.port, HERDR, streams, 1, WORDS)  # warm up
        for _ in range(plan.repeats):
            direct.append(run_load(model.port, DIRECT, streams, seconds, WORDS, PAUSE_S))
            ours.append(run_load(herdr.port, HERDR, streams, seconds, WORDS, PAUSE_S))
        model.check()
    return [_added(streams, which, direct, ours) for which in ("p50", "p99")]


def _added(streams: int, which: str, direct: list[Result], ours: list[Result]) -> Line:
    name = f"time to first token added, {streams} streams at {PACE_MS:g} ms a token, {which}"
    with_, without = ([run.first_ms[which] for run in runs] for runs in (ours, direct))
    added = [one - other for one, other in zip(with_, without, strict=True)]
    beside = {"through the gateway ms": with_, "direct ms": without}
    return Line(name, "ms", added, at_most=TARGETS.get(streams, {}).get(which), beside=beside)


def streams(plan: Plan) -> list[Line]:
    """Streams a second through `/v1/messages`, unpaced, 4 at once."""
    direct: list[Result] = []
    ours: list[Result] = []
    notes: list[str] = []
    with stub(4, WORDS) as model, pool(plan.folder, model.url) as herdr:
        run_load(herdr.port, HERDR, 4, 1, WORDS)  # warm up
        for _ in range(plan.repeats):
            direct.append(run_load(model.port, DIRECT, 4, plan.sized(8), WORDS))
            watch = Watch(herdr.pid, stub=model.pid)
            ours.append(run_load(herdr.port, HERDR, 4, plan.sized(8), WORDS))
            notes.append(watch.note())
        model.check()
    name = f"streams through /v1/messages, {WORDS} chunks unpaced, 4 at once"
    seen, peer = ([run.per_s for run in runs] for runs in (ours, direct))
    beside = {"first token p50 ms": [run.first_ms["p50"] for run in ours]}
    notes.append(
        f"the stub's first token p50 {statistics.median(run.first_ms['p50'] for run in direct):.3g} ms"
    )
    return [
        Line(name, "/s", seen, "the stub, called directly", peer, at_least=0.5, beside=beside, notes=notes)
    ]
