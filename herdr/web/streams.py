"""The open streams: how many there may be, their shared heartbeat, and their goodbye."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from herdr.clock import Clock

KEEP_ALIVE_S = 14.0  # and a beat: at most 15 s, and proxies drop silent connections after 30 to 60 s
RETRY_MIN_MS, RETRY_SPREAD_MS = 2000, 1000  # spread, so that a restart does not bring everyone back at once
GOODBYE_S = 1.5  # for last receipts (`connect.RECEIPTS_S`) and last words; a stop may last 5 s in all
BUSY_RETRY_MIN_MS, BUSY_RETRY_SPREAD_MS = 5000, 10_000

_log = logging.getLogger("herdr.web")


class Stream(Protocol):
    """One open stream, as far as the registry is concerned."""

    @property
    def written_at(self) -> float:
        """Monotonic seconds of the last finished write; of several channels, of the one that is silent longest."""
        ...

    @property
    def writing_since(self) -> float | None:
        """When the write that is under way began; None when none is."""
        ...

    def poke(self) -> None:
        """Have it look around: write a keep-alive if it was silent, say goodbye if the gateway stops."""
        ...

    def abort(self) -> None:
        """Cut the connection: its reader has stalled."""
        ...


class Talker(Protocol):
    """One open WebSocket, whether it follows or not."""

    async def say_goodbye(self) -> None:
        """Answer what is under way, say the last word and close."""
        ...


class Streams:
    """Registry of the streams that count towards `max_connections`, and of all WebSockets."""

    def __init__(self, limit: int, stall_s: float, clock: Clock, random: Callable[[], float]) -> None:
        self.stopping = False
        self.goodbye = asyncio.Event()
        """Set when the gateway begins to stop, for those who wait for something else than a stream."""
        self.sse = 0
        self._limit = limit
        self._stall_s = stall_s
        self._clock = clock
        self._random = random
        self._open: set[Stream] = set()
        self._talkers: set[Talker] = set()
        self._all_left = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    @property
    def websocket(self) -> int:
        """How many WebSockets are open."""
        return len(self._talkers)

    @contextlib.contextmanager
    def connected(self, talker: Talker) -> Iterator[None]:
        """Count a WebSocket in for as long as the context lasts."""
        self._talkers.add(talker)
        try:
            yield
        finally:
            self._talkers.discard(talker)

    def start(self) -> None:
        """Start the one heartbeat that serves all streams."""
        self._task = asyncio.create_task(self._beat(), name="heartbeat")

    async def say_goodbye(self) -> None:
        """Have every stream end with a last word, and wait a moment for that; no new one is let in."""
        self.stopping = True
        self.goodbye.set()
        for stream in tuple(self._open):
            stream.poke()
        leaving = [talker.say_goodbye() for talker in self._talkers]
        if self._open:
            leaving.append(self._left())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*leaving, return_exceptions=True), GOODBYE_S)

    async def _left(self) -> None:
        await self._all_left.wait()

    def stop(self) -> None:
        """End the heartbeat."""
        if self._task is not None:
            self._task.cancel()

    def enter(self, stream: Stream) -> bool:
        """Count a stream in; False when there is no room for it."""
        if len(self._open) >= self._limit or self.stopping:
            return False
        self._open.add(stream)
        return True

    def leave(self, stream: Stream) -> None:
        """Count a stream out; harmless when it is not in."""
        self._open.discard(stream)
        if self.stopping and not self._open:
            self._all_left.set()

    def retry_ms(self) -> int:
        """Return a jittered time after which a client should come back."""
        return RETRY_MIN_MS + int(RETRY_SPREAD_MS * self._random())

    def busy_retry_ms(self) -> int:
        """The same for a client that was turned away."""
        return BUSY_RETRY_MIN_MS + int(BUSY_RETRY_SPREAD_MS * self._random())

    def now(self) -> float:
        """Return monotonic seconds."""
        return self._clock.monotonic()

    def look_round(self) -> None:
        """Cut those who have stalled, and wake those who have been silent."""
        now = self.now()
        for stream in tuple(self._open):
            if stream.writing_since is not None:
                if now - stream.writing_since > self._stall_s:
                    _log.info("a stream has taken nothing for %g s and is cut", self._stall_s)
                    stream.abort()
            elif now - stream.written_at >= KEEP_ALIVE_S:
                stream.poke()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(1)  # a heartbeat is a clock: this is the one place that polls
            self.look_round()
