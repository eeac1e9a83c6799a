"""A small keep-alive HTTP client: what it costs must not show in the gateway's figures."""

import asyncio
import time
from types import TracebackType
from typing import Self

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
    """Batches from many connections at once, each connection waiting for its answer."""

    def __init__(self, port: int, batch: bytes, connections: int) -> None:
        self.accepted = 0
        self.answered = 0
        self._batch = batch
        self._port = port
        self._connections = connections

    async def run(self, *, events: int = 0, seconds: float = float("inf")) -> float:
        """Publish until `events` are accepted or time is up; returns accepted events per second."""
        began = time.perf_counter()
        goal = events or float("inf")
        await asyncio.gather(*(self._go_on(goal, began + seconds) for _ in range(self._connections)))
        return self.accepted / (time.perf_counter() - began)

    async def _go_on(self, goal: float, until: float) -> None:
        async with Poster(self._port) as poster:
            while self.accepted < goal and time.perf_counter() < until:
                answer = await poster.post(self._batch)
                self.accepted += answer.count(ACCEPTED)
                self.answered += answer.count(b'"status":')
