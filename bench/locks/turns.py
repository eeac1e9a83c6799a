"""How fast locks are taken and given back over the wire, beside keys that NATS creates and deletes."""

import asyncio
import contextlib

import msgspec

from bench.gateway import gateway
from bench.jetstream import jetstream
from bench.limits import Watch
from bench.locks.clients import Result, clients, make_bucket, turns_per_s
from bench.plan import Plan
from bench.report import Line
from bench.timing import spread_ms

PEER = "NATS key-value create and delete, fsync always"
CLIENTS = {1: 1, 50: 2}
"""How many clients, and the processes that share them."""
SECONDS = 1
PATIENCE_S = 60.0


def turns(plan: Plan) -> list[Line]:
    """Lock and release, durable, from one client and from fifty on disjoint paths."""
    lines = {count: Line(_name(count), "/s", [], PEER, beside=_beside()) for count in CLIENTS}
    with gateway(plan.folder) as herdr, jetstream(plan.folder) as nats:
        asyncio.run(make_bucket(nats))
        _run("herdr", herdr.url, 1, 0.5)  # warm up
        for _ in range(plan.repeats):
            for count, line in lines.items():
                watch = Watch(herdr.pid)
                _note(line, _run("herdr", herdr.url, count, _seconds(plan)), watch)
                line.peer_seen.append(turns_per_s(_run("nats", nats, count, _seconds(plan))))
    return list(lines.values())


def _name(count: int) -> str:
    return f"lock and release, SDK, {count} client{'s' if count > 1 else ''}" + " on disjoint paths" * (
        count > 1
    )


def _beside() -> dict[str, list[float]]:
    return {"both p50 ms": [], "both p99 ms": []}


def _seconds(plan: Plan) -> float:
    return max(0.5, SECONDS * plan.share)


def _note(line: Line, results: list[Result], watch: Watch) -> None:
    line.notes.append(watch.note())
    line.seen.append(turns_per_s(results))
    spread = spread_ms([took for result in results for took in result.took_s])
    for key, values in spread.items():
        line.beside[f"both {key} ms"].append(values)


def _run(kind: str, url: str, count: int, seconds: float) -> list[Result]:
    processes = CLIENTS[count]
    each = count // processes
    with contextlib.ExitStack() as stack:
        children = [
            stack.enter_context(clients(kind, url, n * each, each, seconds)) for n in range(processes)
        ]
        return [msgspec.json.decode(child.wait(seconds + PATIENCE_S), type=Result) for child in children]
