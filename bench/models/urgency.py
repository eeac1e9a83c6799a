"""How many generations an urgent request waits for while background ones queue."""

import asyncio
import time

import msgspec

from bench.models.ask import HERDR, request
from bench.models.load import connect
from bench.models.pool import pool, stub
from bench.plan import Plan
from bench.report import Line

WORDS = 64
PACE_MS = 5.0
APART_S = 0.05  # so that generations of 320 ms end one after the other, not all at once
QUEUED = 8
BACKGROUND, URGENT = 9, 0


class Seen(msgspec.Struct):
    """When one request was sent, had its first word, and ended."""

    sent: float
    first: float
    ended: float


def urgency(plan: Plan) -> list[Line]:
    """Generations that end before the urgent one begins, with 1 slot and with 4."""
    return [_urgency(plan, slots) for slots in (1, 4)]


def _urgency(plan: Plan, slots: int) -> Line:
    waited: list[float] = []
    overtaken: list[float] = []
    first_ms: list[float] = []
    with stub(slots, WORDS, PACE_MS) as model, pool(plan.folder, model.url) as herdr:
        for repeat in range(plan.repeats * plan.sized(5)):
            urgent, others = asyncio.run(_one(herdr.port, slots, repeat))
            if sum(other.first < urgent.sent < other.ended for other in others) != slots:
                raise RuntimeError("not all slots were busy when the urgent request was sent")
            waited.append(sum(urgent.sent < other.ended <= urgent.first for other in others))
            overtaken.append(sum(urgent.sent < other.first < urgent.first for other in others))
            first_ms.append(1e3 * (urgent.first - urgent.sent))
        model.check()
    where = f"{slots} slot" if slots == 1 else f"{slots} slots"
    name = f"generations that priority 0 waits for while {QUEUED} of priority 9 queue, {where}, worst"
    beside = {"began before it": [max(overtaken)], "its first token ms": first_ms}
    return Line(name, "", [max(waited)], at_most=1, beside=beside, notes=[f"{len(waited)} urgent requests"])


async def _one(port: int, slots: int, repeat: int) -> tuple[Seen, list[Seen]]:
    """Fill the slots, then the queue, then ask."""
    others: list[asyncio.Task[Seen]] = []
    async with asyncio.TaskGroup() as group:
        for agent in range(slots + QUEUED):
            others.append(group.create_task(_ask(port, agent, repeat, BACKGROUND)))
            if agent < slots:
                await asyncio.sleep(APART_S)
        await asyncio.sleep(APART_S)
        urgent = group.create_task(_ask(port, slots + QUEUED, repeat, URGENT))
    return urgent.result(), [other.result() for other in others]


async def _ask(port: int, agent: int, repeat: int, priority: int) -> Seen:
    asker = await connect(port, HERDR, WORDS)
    sent = time.perf_counter()
    first = await asker.ask(request(HERDR, port, agent, repeat, priority))
    asker.close()
    return Seen(sent, first, time.perf_counter())
