"""`python -m bench.locks.clients`: clients that take a lock and give it back, again and again, on disjoint paths.

A process of its own with some of the clients, each with its own connection. Says `ready` once all are connected,
and at the end one line of JSON.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import msgspec
import nats
from nats.js.api import StorageType

from bench.process import Child
from herdr_sdk import Hub

BUCKET = "locks"
Turn = Callable[[str], Awaitable[None]]
"""Takes the lock on a path, and gives it back."""


class Result(msgspec.Struct):
    """What the clients of one process did."""

    began_ns: int
    ended_ns: int
    ends_ns: list[int]
    """When each turn was over, by the monotonic clock."""
    took_s: list[float]


def clients(kind: str, url: str, first: int, count: int, seconds: float) -> Child:
    """Return a process with `count` clients of the peer `kind`, whose numbers begin with `first`."""
    numbers = [str(number) for number in (first, count, seconds)]
    command = [sys.executable, "-m", "bench.locks.clients", kind, url, *numbers]
    return Child(command, lambda line: line == "ready")


def turns_per_s(results: Sequence[Result]) -> float:
    """Turns a second while the clients of all processes were at work."""
    began, ended = max(result.began_ns for result in results), min(result.ended_ns for result in results)
    inside = sum(began <= end <= ended for result in results for end in result.ends_ns)
    return inside / (ended - began) * 1e9


@contextlib.asynccontextmanager
async def herdr(url: str, number: int) -> AsyncIterator[Turn]:
    """A client of the gateway: the SDK's `async with hub.lock(path)`."""
    async with Hub(url, name=f"agent-{number}") as hub:

        async def turn(path: str) -> None:
            async with hub.lock(path):
                pass

        yield turn


@contextlib.asynccontextmanager
async def key_value(url: str, number: int) -> AsyncIterator[Turn]:
    """A client of NATS: `create`, which fails when the key is there, and `delete` of the revision that it made."""
    client = await nats.connect(url)
    try:
        store = await client.jetstream().key_value(BUCKET)
        holder = msgspec.json.encode({"owner": f"agent-{number}", "purpose": "bench"})

        async def turn(path: str) -> None:
            revision = await store.create(path, holder)
            await store.delete(path, revision)

        yield turn
    finally:
        await client.close()


async def make_bucket(url: str) -> None:
    """Make an empty bucket on files, which are synced as the server is configured."""
    client = await nats.connect(url)
    await client.jetstream().create_key_value(bucket=BUCKET, storage=StorageType.FILE)
    await client.close()


async def run(kind: str, url: str, first: int, count: int, seconds: float) -> Result:
    """Let all clients take turns for some seconds, each as soon as its last one is over."""
    connect = {"herdr": herdr, "nats": key_value}[kind]
    result = Result(0, 0, [], [])

    async def go_on(number: int, turn: Turn, until_ns: int) -> None:
        for file in range(sys.maxsize):
            began_ns = time.monotonic_ns()
            if began_ns >= until_ns:
                return
            await turn(f"src/agent{number}/file{file}.py")
            result.ends_ns.append(time.monotonic_ns())
            result.took_s.append((result.ends_ns[-1] - began_ns) / 1e9)

    async with contextlib.AsyncExitStack() as stack:
        turns = [await stack.enter_async_context(connect(url, first + n)) for n in range(count)]
        print("ready", flush=True)
        result.began_ns = time.monotonic_ns()
        result.ended_ns = result.began_ns + round(seconds * 1e9)
        async with asyncio.TaskGroup() as group:
            for number, turn in enumerate(turns, first):
                group.create_task(go_on(number, turn, result.ended_ns))
    return result


def main() -> None:
    """See the module."""
    kind, url, first, count, seconds = sys.argv[1:]
    result = asyncio.run(run(kind, url, int(first), int(count), float(seconds)))
    print(msgspec.json.encode(result).decode(), flush=True)


if __name__ == "__main__":
    main()
