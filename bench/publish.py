"""How fast events become durable: from one SDK client, in batches, one a request, and one at a time."""

import asyncio
import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from bench.gateway import Gateway, gateway
from bench.jetstream import jetstream, pipelined_per_s, round_trips_s
from bench.payload import batch_json, draft
from bench.plan import Plan
from bench.post import BATCH, Load, fill
from bench.report import Line
from bench.sqlite_peer import groups_per_s, rows_per_s
from herdr_sdk import Draft, Hub

JETSTREAM = "JetStream, fsync always"
GROUPS = "aiosqlite, executemany of 1,000 a commit"
ROWS = "aiosqlite, awaited execute a row, 1,000 a commit"
WRK_SCRIPT = Path(__file__).with_name("post.lua")


def pipelined(plan: Plan) -> list[Line]:
    """One SDK client publishes as fast as receipts come, against JetStream from Python and plain SQLite."""
    ours: list[float] = []
    streams: list[float] = []
    tables = _Tables(plan)
    with gateway(plan.folder) as herdr, jetstream(plan.folder) as nats:
        asyncio.run(fill(herdr.port, plan.fill))
        asyncio.run(_sdk_per_s(herdr.url, 2000))  # warm up
        for _ in range(plan.repeats):
            ours.append(asyncio.run(_sdk_per_s(herdr.url, plan.sized(50_000))))
            streams.append(asyncio.run(pipelined_per_s(nats, plan.sized(4000))))
            tables.measure()
    name = "durable publishes, one SDK client, pipelined"
    return [
        Line(name, "/s", ours, f"{JETSTREAM}, 256 in flight", streams, at_least=12),
        *tables.lines(name, ours),
    ]


def batched(plan: Plan) -> list[Line]:
    """`POST`ed arrays of 100 events over 16 connections, against plain SQLite."""
    ours: list[float] = []
    tables = _Tables(plan)
    with gateway(plan.folder) as herdr:
        asyncio.run(fill(herdr.port, plan.fill))
        for _ in range(plan.repeats):
            ours.append(asyncio.run(Load(herdr.port, batch_json(BATCH), 16).run(events=plan.sized(60_000))))
            tables.measure()
    return tables.lines(f"durable publishes, POSTed batches of {BATCH}, 16 connections", ours)


def single(plan: Plan) -> list[Line]:
    """One `POST` an event over 64 connections that wrk keeps busy."""
    line = Line("durable publishes, one POST an event, 64 connections", "/s", [], at_least=6000)
    line.beside = {"p50 ms": [], "p99 ms": []}
    if shutil.which("wrk") is None:
        line.notes.append("wrk is missing; apt-get install -y wrk")
        return [line]
    with gateway(plan.folder) as herdr:
        asyncio.run(fill(herdr.port, plan.fill))
        _wrk(herdr, 1)  # warm up
        for _ in range(plan.repeats):
            said = _wrk(herdr, max(2, plan.sized(6)))
            line.seen.append((said["requests"] - said["refused"]) / said["seconds"])
            for name, values in line.beside.items():
                values.append(said[name.replace(" ", "_")])
            if said["refused"] or said["failed"]:
                line.notes.append(f"{said['refused']} requests refused, {said['failed']} failed")
    return [line]


def one_at_a_time(plan: Plan) -> list[Line]:
    """How long one publish takes when nothing else happens, SDK against nats-py; medians."""
    ours: list[float] = []
    streams: list[float] = []
    with gateway(plan.folder) as herdr, jetstream(plan.folder) as nats:
        asyncio.run(_sdk_round_trips(herdr.url, 100))  # warm up
        for _ in range(plan.repeats):
            ours.append(_median_ms(asyncio.run(_sdk_round_trips(herdr.url, plan.sized(1500)))))
            streams.append(_median_ms(asyncio.run(round_trips_s(nats, plan.sized(1500)))))
    return [Line("one publish at a time, round trip", "ms", ours, JETSTREAM, streams, at_most=1.5)]


class _Tables:
    """aiosqlite in two ways, measured in turn with the gateway."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._groups: list[float] = []
        self._rows: list[float] = []

    def measure(self) -> None:
        plan = self._plan
        self._groups.append(asyncio.run(groups_per_s(plan.folder, max(20_000, plan.sized(200_000)))))
        self._rows.append(asyncio.run(rows_per_s(plan.folder, max(5000, plan.sized(20_000)))))

    def lines(self, name: str, ours: list[float]) -> list[Line]:
        """The target is set against groups, the strict reading; rows one by one are stated."""
        return [
            Line(name, "/s", ours, GROUPS, self._groups, at_least=0.4),
            Line(name, "/s", ours, ROWS, self._rows),
        ]


async def _sdk_per_s(url: str, count: int) -> float:
    def drafts() -> Iterable[Draft]:
        for number in range(count):
            yield draft(number)

    async with Hub(url, name="bench") as hub:
        began = time.perf_counter()
        receipts = await hub.publish_many(drafts())
        elapsed = time.perf_counter() - began
    accepted = sum(receipt.status == "accepted" for receipt in receipts)
    assert accepted == count, f"{count - accepted} events were not accepted"
    return count / elapsed


async def _sdk_round_trips(url: str, count: int) -> list[float]:
    times = []
    async with Hub(url, name="bench") as hub:
        for number in range(count):
            event = draft(number)
            began = time.perf_counter()
            await hub.publish(event.type, event.data)
            times.append(time.perf_counter() - began)
    return times


def _wrk(herdr: Gateway, seconds: int) -> dict[str, float]:
    command = ["wrk", "-t1", "-c64", f"-d{seconds}", "-s", str(WRK_SCRIPT), f"{herdr.url}/v1/events"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said


def _median_ms(seconds: list[float]) -> float:
    return 1e3 * statistics.median(seconds)
