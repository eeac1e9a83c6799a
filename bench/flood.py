"""`python -m bench.flood`: P2 events in batches at a fixed rate, whether they are answered or not.

A process of its own, so that the flood delays nothing that is measured. It ends by SIGTERM, with one line of JSON.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Iterator

import msgspec
import uvloop

from bench.payload import P2, batch_json
from bench.post import ACCEPTED, BATCH, Poster
from bench.process import Child

CONNECTIONS = 128  # 12,800 events that wait for their answers: more than `bus.buffer_size`
DROPPED = b'"status":"dropped"'


class Flood(msgspec.Struct):
    """What came of a flood, in events per second."""

    connections: int = CONNECTIONS
    offered_per_s: float = 0
    accepted_per_s: float = 0
    dropped_per_s: float = 0
    held_back_per_s: float = 0
    """Not sent, because every connection waited for an answer."""


@contextlib.contextmanager
def flooding(port: int, per_s: int) -> Iterator[Flood]:
    """Flood the gateway inside the `with`; the figures are there after it."""
    flood = Flood()
    child = Child([sys.executable, "-m", "bench.flood", str(port), str(per_s)], lambda line: line == "ready")
    with child:
        yield flood
    said = msgspec.json.decode(child.said[-1], type=Flood)
    for name in flood.__struct_fields__:
        setattr(flood, name, getattr(said, name))


async def run(port: int, per_s: int) -> Flood:
    """Send until SIGTERM."""
    body = batch_json(BATCH, P2)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    answers = {ACCEPTED: 0, DROPPED: 0}
    offered = held_back = 0
    free: list[Poster] = []
    under_way: set[asyncio.Task[None]] = set()

    async def send(poster: Poster) -> None:
        answer = await poster.post(body)
        for status in answers:
            answers[status] += answer.count(status)
        free.append(poster)

    async with contextlib.AsyncExitStack() as stack:
        for _ in range(CONNECTIONS):
            free.append(await stack.enter_async_context(Poster(port)))
        began = time.perf_counter()
        print("ready", flush=True)
        while not stopped.is_set():
            due = (time.perf_counter() - began) * per_s
            while offered + BATCH <= due:
                offered += BATCH
                if free:
                    task = asyncio.create_task(send(free.pop()))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
                else:
                    held_back += BATCH
            await asyncio.sleep(0.001)
        elapsed = time.perf_counter() - began
        for task in under_way:
            task.cancel()
    figures = (offered, answers[ACCEPTED], answers[DROPPED], held_back)
    return Flood(CONNECTIONS, *(figure / elapsed for figure in figures))


if __name__ == "__main__":
    print(msgspec.json.encode(uvloop.run(run(int(sys.argv[1]), int(sys.argv[2])))).decode(), flush=True)
