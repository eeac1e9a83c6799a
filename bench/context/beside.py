"""What publishers wait while the gateway indexes a large tree for the first time."""

import asyncio
import contextlib
import time

from bench.context.index import repeats, trees_for
from bench.context.indexed import PATIENCE_S, Indexed, indexed, new_data
from bench.context.trees import tree_of
from bench.payload import event_json
from bench.plan import Plan
from bench.post import ACCEPTED, Poster
from bench.report import Line
from bench.timing import paced, spread_ms

PER_S = 200
CONNECTIONS = 16  # so that one late answer does not hold back the next event
TIMES = 3.0


def beside(plan: Plan) -> list[Line]:
    """Publish at a steady rate from the start until the graph is ready, then as long again when all is quiet.

    Once more while everything is parsed anew: without the gateway's own start, and its first look at the folder.
    """
    wanted = trees_for(plan)[-1]
    tree = tree_of(plan.folder, wanted)
    idle: list[dict[str, float]] = []
    first, again = _Loaded(), _Loaded()
    for _ in range(repeats(plan)):
        with new_data(plan.folder) as data, indexed(data, tree) as herdr:
            first.add(*asyncio.run(_while_indexing(herdr)))
            idle.append(spread_ms(asyncio.run(_publish(herdr.port, first.took_s[-1], asyncio.Event()))))
            herdr.post(f"/v1/context/{herdr.workspace}/index", {"fresh": True})
            again.add(*asyncio.run(_while_indexing(herdr)))
    name = f"publishing one event at {PER_S}/s while {wanted.name} is indexed"
    return [
        first.line(f"{name} for the first time, from the gateway's start, p99", idle),
        again.line(f"{name} anew, p99", idle),
    ]


class _Loaded:
    """What publishers saw during some indexes."""

    def __init__(self) -> None:
        self.took_s: list[float] = []
        self._times: list[dict[str, float]] = []

    def add(self, times: list[float], seconds: float) -> None:
        """Take in one index."""
        self._times.append(spread_ms(times))
        self.took_s.append(seconds)

    def line(self, name: str, idle: list[dict[str, float]]) -> Line:
        """Return the row."""
        p99, p50 = ([run[which] for run in self._times] for which in ("p99", "p50"))
        quiet = [run["p99"] for run in idle]
        beside = {"p50 ms": p50, "idle p50 ms": [run["p50"] for run in idle], "index s": self.took_s}
        return Line(name, "ms", p99, "idle", quiet, at_most=TIMES, beside=beside)


async def _while_indexing(herdr: Indexed) -> tuple[list[float], float]:
    """Return the times of the events that were published while the graph was built, and how long that took."""
    ready = asyncio.Event()
    began = time.perf_counter()
    publishing = asyncio.create_task(_publish(herdr.port, PATIENCE_S, ready))
    await asyncio.to_thread(herdr.wait)
    ready.set()
    return await publishing, time.perf_counter() - began


async def _publish(port: int, seconds: float, until: asyncio.Event) -> list[float]:
    """Publish at a steady rate for some seconds, or until something happens; returns how long each event took."""
    times: list[float] = []
    free: asyncio.LifoQueue[Poster] = asyncio.LifoQueue()

    async def one(number: int) -> None:
        began = time.perf_counter()
        poster = await free.get()
        answer = await poster.post(event_json(number))
        times.append(time.perf_counter() - began)
        free.put_nowait(poster)
        assert ACCEPTED in answer, answer

    async with contextlib.AsyncExitStack() as stack:
        for _ in range(CONNECTIONS):
            free.put_nowait(await stack.enter_async_context(Poster(port)))
        async with asyncio.TaskGroup() as events:
            async for number in paced(PER_S, seconds):
                if until.is_set():
                    break
                events.create_task(one(number))
    return times
