"""The indexer as a child of the gateway: started when needed, restarted when it dies, ended with the gateway."""

import asyncio
import contextlib
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from herdr.context.graph.frames import FRAME_MAX, LENGTH_BYTES, Answer, Request, encode_frame
from herdr.errors import HerdrError, InvalidInput, NotFound

RESTART_MIN_S, RESTART_MAX_S = 0.5, 30.0
STOP_S = 5.0  # it has nothing to save but the transaction in flight
UNSENT_MAX = 64 * 1024 * 1024
"""Bytes that may wait in the pipe: the list of 500,000 files is 40 MiB. Beyond it the child is replaced."""

_ERRORS: Mapping[str, Callable[[str, str], HerdrError]] = MappingProxyType(
    {"not_found": NotFound, "invalid": InvalidInput}
)

_log = logging.getLogger("herdr.indexer")
_decode = msgspec.msgpack.Decoder(Answer).decode


class IndexerGone(HerdrError):
    """The indexer has ended before it answered; it is started anew."""

    code = "graph_unavailable"


class IndexerChild:
    """Speaks with the process. `started` is told of each new one, which knows nothing yet."""

    def __init__(self, started: Callable[[], None], heard: Callable[[Answer], None]) -> None:
        self._started = started
        self._heard = heard
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._last = 0

    @property
    def is_running(self) -> bool:
        """Tell whether there is a process to ask."""
        return self._process is not None

    def start(self) -> None:
        """Keep the process running from now on."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="indexer")

    async def stop(self) -> None:
        """End the process; what is asked meanwhile is refused."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def tell(self, op: str, workspace: str, **args: Any) -> None:
        """Send what needs no answer; without a process it is dropped, as a new one is told everything."""
        self._send(Request(op, 0, workspace, args))

    async def ask(self, op: str, workspace: str, **args: Any) -> Any:
        """Send a question and return its answer; raises IndexerGone, or what the indexer refused with."""
        if self._process is None:
            raise IndexerGone("the indexer is not running; it is started again within seconds")
        self._last += 1
        number = self._last
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        try:
            self._send(Request(op, number, workspace, args))
            return await future
        finally:
            del self._asked[number]

    def _send(self, request: Request) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        process.stdin.write(encode_frame(request))
        if process.stdin.transport.get_write_buffer_size() > UNSENT_MAX:
            _log.error("the indexer takes nothing; it is started anew")
            process.kill()

    async def _run(self) -> None:
        pause_s = RESTART_MIN_S
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._live()
            except OSError as error:
                _log.error("the indexer cannot be started: %s", error.strerror)
            finally:
                await self._bury()
            if asyncio.get_running_loop().time() - began > RESTART_MAX_S:
                pause_s = RESTART_MIN_S
            _log.error("the indexer has ended; it is started again in %.1f s", pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RESTART_MAX_S)

    async def _live(self) -> None:
        """Run one process until it ends."""
        command = (sys.executable, "-m", "herdr.indexer")
        self._process = process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, limit=1 << 20
        )
        assert process.stdout is not None
        self._started()
        while True:
            try:
                length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
                if length > FRAME_MAX:
                    return
                answer = _decode(await process.stdout.readexactly(length))
            except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
                return
            self._take(answer)

    def _take(self, answer: Answer) -> None:
        if not answer.id:
            self._heard(answer)
            return
        future = self._asked.get(answer.id)
        if future is None or future.done():
            return
        if answer.error:
            future.set_exception(_ERRORS.get(answer.error, HerdrError)(answer.detail, answer.code))
        else:
            future.set_result(answer.body)

    async def _bury(self) -> None:
        process, self._process = self._process, None
        for future in self._asked.values():
            if not future.done():
                future.set_exception(IndexerGone("the indexer has ended before it answered; ask again"))
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
