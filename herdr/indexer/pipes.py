"""Frames over an asyncio pipe."""

import asyncio

from herdr.context.graph.frames import FRAME_MAX, LENGTH_BYTES


class PipeEnded(Exception):
    """The other side closed its end, or sent what is no frame."""


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Return the next frame's content; raises PipeEnded."""
    try:
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        if length > FRAME_MAX:
            raise PipeEnded(f"a frame of {length} bytes")
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise PipeEnded("the pipe has ended") from error
