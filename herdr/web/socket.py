"""The sending side of one WebSocket, shared by its channels."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from herdr.errors import HerdrError
from herdr.web.asgi import Send
from herdr.web.frames import Ref, to_msgpack
from herdr.web.problems import problem_of, retry_after_s_of

SERVICE_RESTART = 1012  # https://www.iana.org/assignments/websocket: "come back later"

_encode = msgspec.json.Encoder().encode


class Socket:
    """Writes frames, in JSON or MessagePack, and notes how writing goes for the registry of streams."""

    def __init__(
        self, send: Send, now: Callable[[], float], binary: bool, abort: Callable[[], None] | None
    ) -> None:
        self.writing_since: float | None = None
        """When the frame that is being written began; those of other channels wait behind it."""
        self.cut = False
        """Whether the gateway has cut the connection, because the client takes nothing."""
        self._turn = asyncio.Lock()
        self._closed = False
        self._send = send
        self._now = now
        self._binary = binary
        self._abort = abort

    async def write(self, frame: bytes) -> None:
        """Send one frame, given as JSON; waits while the client takes nothing. Raises OSError after a goodbye."""
        async with self._turn:
            if self._closed:
                raise ConnectionResetError("the goodbye has been said")
            self.writing_since = self._now()
            try:
                if self._binary:
                    await self._send({"type": "websocket.send", "bytes": to_msgpack(frame)})
                else:
                    await self._send({"type": "websocket.send", "text": frame.decode()})
            finally:
                self.writing_since = None

    async def answer(self, frame: dict[str, Any]) -> None:
        """Send one small frame."""
        await self.write(_encode(frame))

    async def answer_error(self, error: HerdrError, ref: Ref | None) -> None:
        """Send the frame that an error stands for."""
        problem = problem_of(error)
        more = {"errors": problem.errors or UNSET, "conflicts": problem.conflicts, "cycle": problem.cycle}
        said: dict[str, Any] = {"op": "error", "ref": ref, "code": problem.code, "detail": problem.detail}
        said |= {name: value for name, value in more.items() if value is not UNSET}
        if (seconds := retry_after_s_of(error)) is not None:
            said["retry_after_s"] = seconds
        await self.answer(said)

    async def say_goodbye(self, retry_ms: int) -> None:
        """Tell the client when to come back, and close."""
        await self.answer({"op": "bye", "retry_ms": retry_ms})
        self._closed = True
        await self._send({"type": "websocket.close", "code": SERVICE_RESTART, "reason": "the gateway stops"})

    def abort(self) -> None:
        """Cut the connection."""
        self.cut = True
        if self._abort is not None:
            self._abort()
