"""A server of raw bytes on loopback: each connection gets what the test says, in as many segments as it says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

SEGMENT_S = 0.02  # between segments, so that each is a read of its own; nothing waits for that


@dataclass(eq=False)
class RawServer:
    """What it says, and what it was asked."""

    url: str = ""
    segments: Sequence[bytes] = ()
    """The answer to every request; the connection is closed after it."""
    asked: list[bytes] = field(default_factory=list)
    """Heads and bodies."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """A client closed its connection before the answer was out."""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line[16:])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length: ")
                ),
                0,
            )
            self.asked.append(head + await reader.readexactly(length))
            for segment in self.segments:
                writer.write(segment)
                await writer.drain()
                await asyncio.sleep(SEGMENT_S)  # the segments must arrive one by one, and no reader says so
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@contextlib.asynccontextmanager
async def raw_server(*segments: bytes) -> AsyncIterator[RawServer]:
    """Run one on a free port."""
    state = RawServer(segments=segments)
    talks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(state.talk(reader, writer))
        talks.add(task)
        await asyncio.wait({task})

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    state.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield state
    finally:
        server.close()
        await server.wait_closed()
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


def answer(status: int, *parts: bytes, headers: str = "", length: int | None = None) -> list[bytes]:
    """The segments of an answer: its head with the first part, and then the others."""
    size = sum(map(len, parts)) if length is None else length
    head = f"HTTP/1.1 {status} X\r\ncontent-length: {size}\r\n{headers}\r\n".encode()
    return [head + parts[0], *parts[1:]]
