"""What a user's instruction waits while background events arrive faster than they can be stored."""

import asyncio
import contextlib
import time

from bench.flood import Flood, flooding
from bench.gateway import Gateway, gateway
from bench.payload import P0, P2, batch_json, event_json
from bench.plan import Plan
from bench.post import ACCEPTED, BATCH, Load, Poster, fill
from bench.readers import readers, result_of
from bench.report import Line
from bench.timing import paced, spread_ms

PER_S = 100
CONNECTIONS = 16  # so that one late answer does not hold back the next instruction
TIMES = 3  # of what the gateway can take


def urgent(plan: Plan) -> list[Line]:
    """P0 receipts and deliveries: their 99th percentile while P2 arrives at three times the limit, and idle."""
    idle: list[dict[str, float]] = []
    loaded: list[dict[str, float]] = []
    limits: list[float] = []
    notes: list[str] = []
    with gateway(plan.folder, BUS__P2_PER_S="0") as herdr:
        asyncio.run(fill(herdr.port, plan.fill))
        _latencies(herdr, 1)  # warm up
        for _ in range(plan.repeats):
            idle.append(_latencies(herdr, plan.sized(10)))
            limits.append(asyncio.run(_most_per_s(herdr, plan.sized(4))))
            with flooding(herdr.port, round(TIMES * limits[-1])) as flood:
                loaded.append(_latencies(herdr, plan.sized(10)))
            notes.append(_note(flood, limits[-1]))
    lines = [_line(what, idle, loaded) for what in ("receipt", "delivery")]
    lines[0].notes = notes
    return lines


def _line(what: str, idle: list[dict[str, float]], loaded: list[dict[str, float]]) -> Line:
    name = f"P0 {what}, p99, while P2 arrives at {TIMES} times the limit"
    late, quick = ([run[f"{what} p99"] for run in runs] for runs in (loaded, idle))
    beside = {"p50 ms": [run[f"{what} p50"] for run in loaded]}
    return Line(name, "ms", late, "the same, idle", quick, at_most=3, beside=beside)


def _note(flood: Flood, limit: float) -> str:
    return (
        f"P2 alone {limit:,.0f}/s; flood offered {flood.offered_per_s:,.0f}/s, of which accepted"
        f" {flood.accepted_per_s:,.0f}/s, dropped {flood.dropped_per_s:,.0f}/s, not sent because"
        f" {flood.connections} connections waited for answers {flood.held_back_per_s:,.0f}/s"
    )


async def _most_per_s(herdr: Gateway, seconds: int) -> float:
    return await Load(herdr.port, batch_json(BATCH, P2), CONNECTIONS).run(seconds=seconds)


def _latencies(herdr: Gateway, seconds: int) -> dict[str, float]:
    with readers(herdr.port, 1, PER_S * seconds, times=True, query="priority=P0") as child:
        receipts = spread_ms(asyncio.run(_instruct(herdr.port, seconds)))
        deliveries = result_of(child).ages_ms
    return {f"receipt {key}": value for key, value in receipts.items()} | {
        f"delivery {key}": value for key, value in deliveries.items()
    }


async def _instruct(port: int, seconds: int) -> list[float]:
    """Publish P0 events at a steady rate; returns how long each took to be acknowledged."""
    times: list[float] = []
    free: asyncio.LifoQueue[Poster] = asyncio.LifoQueue()

    async def one(number: int) -> None:
        poster = await free.get()
        stamp = time.monotonic_ns()
        answer = await poster.post(event_json(number, stamp, P0))
        times.append((time.monotonic_ns() - stamp) / 1e9)
        free.put_nowait(poster)
        assert ACCEPTED in answer, answer

    async with contextlib.AsyncExitStack() as stack:
        for _ in range(CONNECTIONS):
            free.put_nowait(await stack.enter_async_context(Poster(port)))
        async with asyncio.TaskGroup() as instructions:
            async for number in paced(PER_S, seconds):
                instructions.create_task(one(number))
    return times
