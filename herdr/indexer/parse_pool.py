"""The parse workers: chunks of files out, what they hold back; a worker that dies or hangs is replaced."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence

import msgspec

from herdr.context.graph.files import Numbers, Parsed
from herdr.context.graph.frames import encode_frame
from herdr.indexer.parse_worker import Chunk
from herdr.indexer.pipes import PipeEnded, read_frame

CHUNK_S = 30.0
"""Seconds after which a worker counts as hanging; a chunk of ordinary files takes 0.1 s, a start 0.3 s."""

IDLE_S = 60.0
"""Seconds after which a worker without work ends: 40 MiB of memory each."""

_decode = msgspec.msgpack.Decoder(list[Parsed]).decode


class ParsePool:
    """At most `size` workers, started when there is work for them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._idle: list[Process] = []
        self._free = asyncio.Semaphore(size)
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def size(self) -> int:
        """How many chunks can be worked on at once."""
        return self._size

    async def parse(self, root: str, paths: Sequence[str], known: Mapping[str, bytes]) -> list[Parsed]:
        """Return what these files hold; a file on which its worker dies or hangs is skipped, with the reason.

        `known`: hashes of bytes that need not be parsed again.
        """
        async with self._free:
            found, why = await self._attempt(Chunk(root, list(paths), known))
            if found is not None:
                return found
            if len(paths) == 1:
                return [Parsed(paths[0], Numbers(0, 0, 0, False), None, why)]
            found = []
            for path in paths:
                alone, why = await self._attempt(Chunk(root, [path], known))
                found += alone or [Parsed(path, Numbers(0, 0, 0, False), None, why)]
            return found

    async def _attempt(self, chunk: Chunk) -> tuple[list[Parsed] | None, str]:
        """Return what a worker said, or None and what became of the worker."""
        worker = self._idle.pop() if self._idle else await _start()
        why = "parser_crashed"
        try:
            async with asyncio.timeout(CHUNK_S):
                assert worker.stdin is not None and worker.stdout is not None
                worker.stdin.write(encode_frame(chunk))
                found = _decode(await read_frame(worker.stdout))
        except TimeoutError:
            why = "parser_timeout"
        except (PipeEnded, ConnectionError, msgspec.DecodeError):
            pass
        except BaseException:
            await _end(worker)
            raise
        else:
            self._idle.append(worker)
            self._expire_later()
            return found, ""
        await _end(worker)
        return None, why

    def _expire_later(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(IDLE_S, self._expire)

    def _expire(self) -> None:
        """Keep one worker warm, so that a saved file is not held up by a start."""
        while len(self._idle) > 1:
            worker = self._idle.pop()
            if worker.stdin is not None:
                worker.stdin.close()

    async def close(self) -> None:
        """End all workers."""
        if self._expiry is not None:
            self._expiry.cancel()
        while self._idle:
            await _end(self._idle.pop())


async def _start() -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "herdr.indexer.parse_worker", stdin=PIPE, stdout=PIPE, limit=1 << 20
    )


async def _end(worker: Process) -> None:
    if worker.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)  # `worker.kill` would take the exit code away from asyncio
    await worker.wait()
