"""A small keep-alive HTTP client: what it costs must not show in the gateway's figures."""

import asyncio
import itertools
import time
from types import TracebackType
from typing import Self

from bench.payload import batch_json

BATCH = 100
ACCEPTED = b'"status":"accepted"'


class Poster:
    """One connection that POSTs to `/v1/events`, one request after the other."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def post(self, body: bytes) -> bytes:
        """Return the answer's body, whatever its status."""
        head = (
            f"POST /v1/events HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        return await self._reader.readexactly(length)


class Load:
    """Batches of `BATCH` events from many connections at once, each connection waiting for its answer."""

    def __init__(self, port: int, batch: bytes, connections: int) -> None:
        self.accepted = 0
        self._batch = batch
        self._port = port
        self._connections = connections

    async def run(
        self, *, events: int | None = None, seconds: float = float("inf"), per_s: float = float("inf")
    ) -> float:
        """Publish `events`, or as many as fit into the time, at most `per_s`; returns accepted per second."""
        began = time.perf_counter()
        numbers = iter(range(events // BATCH)) if events is not None else itertools.count()

        async def go_on() -> None:
            async with Poster(self._port) as poster:
                for number in numbers:
                    await asyncio.sleep(began + number * BATCH / per_s - time.perf_counter())
                    if time.perf_counter() > began + seconds:
                        return
                    answer = await poster.post(self._batch)
                    self.accepted += answer.count(ACCEPTED)  # after the await: others count meanwhile

        await asyncio.gather(*(go_on() for _ in range(self._connections)))
        return self.accepted / (time.perf_counter() - began)


async def fill(port: int, events: int) -> None:
    """Bring a log to its steady state, where old ids move to their index."""
    await Load(port, batch_json(BATCH), 16).run(events=events)
