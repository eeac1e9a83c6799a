"""How fast, how soon and at what cost events reach their followers over SSE."""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator

from bench.gateway import Gateway, gateway
from bench.jetstream import delivery_ms, jetstream
from bench.limits import Watch
from bench.payload import batch_json, draft
from bench.plan import Plan
from bench.post import BATCH, Load
from bench.process import Child, cpu_s, rss_bytes
from bench.readers import Result, readers, result_of
from bench.report import Line
from bench.timing import paced
from herdr_sdk import Hub

PROCESSES = 2  # of readers; more than that only take turns on a small machine
OFFERED = 600_000  # deliveries a second that publishing is paced for: four times the target
PER_S = 1000
FOLLOWERS = 10
IDLE_FOLLOWERS = 1000


def deliveries(plan: Plan) -> list[Line]:
    """Batches published while 10 and 100 followers read all of them; what arrived until publishing ended."""
    lines = {
        n: Line(f"deliveries while publishing in batches, {n} followers", "/s", [], at_least=150_000)
        for n in (10, 100)
    }
    for line in lines.values():
        line.beside = {"published/s": [], "delivered/s until all had all": []}
    with gateway(plan.folder) as herdr:
        asyncio.run(Load(herdr.port, batch_json(BATCH), 4).run(events=5000))  # warm up
        for _ in range(plan.repeats):
            for followers, line in lines.items():
                _deliver(herdr, followers, plan.sized(3_000_000) // followers // BATCH * BATCH, line)
    return list(lines.values())


def latency(plan: Plan) -> list[Line]:
    """From before the publish to ten followers, at a steady rate that is far from any limit."""
    ours: list[dict[str, float]] = []
    streams: list[dict[str, float]] = []
    seconds = plan.sized(10)
    with gateway(plan.folder) as herdr, jetstream(plan.folder) as nats:
        for _ in range(plan.repeats):
            ours.append(_followed_ms(herdr, seconds))
            streams.append(asyncio.run(delivery_ms(nats, PER_S, seconds)))
    name = f"end to end at {PER_S:,} events/s, {FOLLOWERS} followers"
    p50, p99 = ([run[key] for run in ours] for key in ("p50", "p99"))
    theirs = [run["p99"] for run in streams]
    return [
        Line(f"{name}, p50", "ms", p50, at_most=4),
        Line(f"{name}, p99", "ms", p99, at_most=15),
        Line(f"{name}, p99", "ms", p99, "JetStream with 1 follower", theirs, at_most=1),
    ]


def idle(plan: Plan) -> list[Line]:
    """What a thousand followers cost that only get their keep-alives."""
    memory = Line(f"{IDLE_FOLLOWERS:,} idle followers, memory of one", "KiB", [])
    cpu = Line(f"{IDLE_FOLLOWERS:,} idle followers, CPU of one", "% of a core", [])
    seconds = plan.sized(30)  # two keep-alives each
    with gateway(plan.folder, SERVER__MAX_CONNECTIONS=str(2 * IDLE_FOLLOWERS)) as herdr:
        with readers(herdr.port, 1, 0):
            time.sleep(2)  # for what is loaded with the first request
        alone = _cpu_percent(herdr.pid, seconds / 2)
        before = rss_bytes(herdr.pid)
        with readers(herdr.port, IDLE_FOLLOWERS, 0):
            time.sleep(1)
            memory.seen.append((rss_bytes(herdr.pid) - before) / 1024 / IDLE_FOLLOWERS)
            together = _cpu_percent(herdr.pid, seconds)
    cpu.seen.append((together - alone) / IDLE_FOLLOWERS)
    cpu.notes.append(f"the gateway used {together:.2f}% of a core with them and {alone:.2f}% without")
    return [memory, cpu]


def _delivery_line(followers: int) -> Line:
    name = f"deliveries while publishing in batches, {followers} followers"
    beside: dict[str, list[float]] = {"published/s": [], "delivered/s until all had all": []}
    return Line(name, "/s", [], at_least=150_000, beside=beside)


def _deliver(herdr: Gateway, followers: int, events: int, line: Line) -> None:
    load = Load(herdr.port, batch_json(BATCH), 8)
    with _reading(herdr, followers, events) as children:
        watch = Watch(
            herdr.pid, publisher=os.getpid(), **{f"readers{n}": c.pid for n, c in enumerate(children)}
        )
        began = time.monotonic_ns()
        published_per_s = asyncio.run(load.run(events=events, per_s=OFFERED / followers))
        ended = time.monotonic_ns()
        note = watch.note()
        if published_per_s * followers >= 0.95 * OFFERED:
            note += f" (publishing was held to {OFFERED / followers:,.0f}/s)"
        results = [result_of(child) for child in children]
    _check(results, load.accepted, events)
    at_end = sum(result.seen_at(ended) for result in results)
    last = max(result.ended_ns for result in results)
    line.seen.append(at_end / (ended - began) * 1e9)
    line.beside["published/s"].append(published_per_s)
    line.beside["delivered/s until all had all"].append(followers * events / (last - began) * 1e9)
    line.notes.append(note)


@contextlib.contextmanager
def _reading(herdr: Gateway, followers: int, expect: int) -> Iterator[list[Child]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(readers(herdr.port, followers // PROCESSES, expect)) for _ in range(PROCESSES)
        ]


def _check(results: list[Result], accepted: int, events: int) -> None:
    if accepted != events or not all(result.complete for result in results):
        seen = sum(result.seen for result in results)
        raise RuntimeError(f"of {events} events {accepted} were accepted; followers saw {seen} in all")


def _followed_ms(herdr: Gateway, seconds: int) -> dict[str, float]:
    with readers(herdr.port, FOLLOWERS, PER_S * seconds, times=True) as child:
        asyncio.run(_publish_steadily(herdr.url, seconds))
        result = result_of(child)
    _check([result], PER_S * seconds, PER_S * seconds)
    return result.ages_ms


async def _publish_steadily(url: str, seconds: int) -> None:
    async with Hub(url, name="bench") as hub, asyncio.TaskGroup() as publishes:
        async for number in paced(PER_S, seconds):
            event = draft(number, time.monotonic_ns())
            publishes.create_task(hub.publish(event.type, event.data))


def _cpu_percent(pid: int, seconds: float) -> float:
    before = cpu_s(pid)
    began = time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_s(pid) - before) / (time.monotonic() - began)
