"""`python -m bench.models.load`: streams from many connections at once, in a process of its own.

Each connection asks again as soon as its answer has ended. Says one line of JSON at the end.
"""

import argparse
import asyncio
import random
import sys
import time
from typing import cast

import msgspec
import uvloop

from bench.models.ask import END_MARKS, HERDR, MARK, request
from bench.process import Child
from bench.timing import spread_ms

END = b"\r\n0\r\n\r\n"  # of an answer in chunked encoding
PATIENCE_S = 60.0


class Result(msgspec.Struct):
    """What one load saw."""

    streams: int
    seconds: float
    first_ms: dict[str, float]
    """From sending a request to the first word of its answer."""

    @property
    def per_s(self) -> float:
        """Answers a second."""
        return self.streams / self.seconds


class Asker(asyncio.Protocol):
    """One connection, which sends a request and reads its answer with as little work as may be."""

    def __init__(self, path: str, words: int) -> None:
        self.first: float | None = None
        """When the first word came."""
        self._path = path
        self._words = words
        self._received: list[bytes] = []
        self._over: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio."""
        if self._over is not None and not self._over.done():
            self._over.set_exception(ConnectionError(f"the connection broke: {self._answer()[:500]!r}"))

    def data_received(self, data: bytes) -> None:
        """Note when the first word comes, and what comes last."""
        self._received.append(data)
        if self.first is None and MARK in data:
            self.first = time.perf_counter()
        if data.endswith(END) or (self.first is None and not self._is_stream()):
            assert self._over is not None
            if not self._over.done():
                self._over.set_result(None)

    async def ask(self, data: bytes) -> float:
        """Send one request, wait for the end of its answer, and return the time of its first word."""
        assert self._transport is not None
        self._over = asyncio.get_running_loop().create_future()
        self._received.clear()
        self.first = None
        self._transport.write(data)
        async with asyncio.timeout(PATIENCE_S):
            await self._over
        answer = self._answer()
        if answer.count(MARK) != self._words or END_MARKS[self._path] not in answer[-1500:]:
            raise RuntimeError(f"not a whole answer: {answer[:800]!r} … {answer[-800:]!r}")
        assert self.first is not None
        return self.first

    def close(self) -> None:
        """Leave."""
        assert self._transport is not None
        self._transport.close()

    def _is_stream(self) -> bool:
        return self._received[0].startswith(b"HTTP/1.1 200")

    def _answer(self) -> bytes:
        return b"".join(self._received)


async def connect(port: int, path: str, words: int) -> Asker:
    """Open one connection."""
    loop = asyncio.get_running_loop()
    _, asker = await loop.create_connection(lambda: Asker(path, words), "127.0.0.1", port)
    return asker


async def load(port: int, path: str, streams: int, seconds: float, words: int, pause_s: float) -> Result:
    """Keep `streams` answers running; before each comes a pause of up to `pause_s`, so that they do not march."""
    firsts: list[float] = []
    began = time.perf_counter()

    async def go_on(agent: int) -> None:
        asker = await connect(port, path, words)
        pauses, number = random.Random(agent), 0
        while time.perf_counter() < began + seconds:
            if pause_s:
                await asyncio.sleep(pauses.uniform(0, pause_s))
            data = request(path, port, agent, number)
            sent = time.perf_counter()
            firsts.append(await asker.ask(data) - sent)
            number += 1
        asker.close()

    async with asyncio.TaskGroup() as group:
        for agent in range(streams):
            group.create_task(go_on(agent))
    return Result(len(firsts), time.perf_counter() - began, spread_ms(firsts))


def run_load(port: int, path: str, streams: int, seconds: float, words: int, pause_s: float = 0.0) -> Result:
    """Run a load in a process of its own."""
    numbers = {
        "--port": port,
        "--streams": streams,
        "--seconds": seconds,
        "--words": words,
        "--pause": pause_s,
    }
    options = [text for name, number in numbers.items() for text in (name, str(number))]
    command = [sys.executable, "-m", "bench.models.load", "--path", path, *options]
    with Child(command, lambda line: line == "ready") as child:
        return msgspec.json.decode(child.wait(seconds + PATIENCE_S), type=Result)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", default=HERDR)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--words", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--pause", type=float, default=0.0)
    given = parser.parse_args()
    print("ready", flush=True)
    result = uvloop.run(load(given.port, given.path, given.streams, given.seconds, given.words, given.pause))
    print(msgspec.json.encode(result).decode(), flush=True)


if __name__ == "__main__":
    main()
