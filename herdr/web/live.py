"""`GET /v1/live`: one stream a browser with everything that a dashboard shows: samples, and a tail of the events.

What is written is made once for all streams. A browser that is slow to take it loses some, and is told how much.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from herdr import __version__
from herdr.bus.bus import Bus
from herdr.errors import HerdrError
from herdr.event import Event
from herdr.web.asgi import ABORT, Receive, Reply, Scope, until_gone
from herdr.web.auth import Caller
from herdr.web.live_tail import LiveTail
from herdr.web.samples import Samples
from herdr.web.sse import SSE_HEADERS, synthetic_block
from herdr.web.streams import Streams

BEAT_S = 0.25  # between two writes; a person takes it for at once
BEATS_A_SAMPLE = 4
WAITING_MAX = 1024 * 1024  # bytes for one slow browser; it is cut off when it takes none for send_timeout_s

_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("herdr.web")


class Block(NamedTuple):
    """A piece of the streams, and how many events it tells of, whether it shows them or not."""

    text: bytes
    events: int = 0


class Live:
    """Gathers what happens between two beats, and writes it to all streams."""

    def __init__(self, bus: Bus, samples: Samples, streams: Streams) -> None:
        self._bus = bus
        self._samples = samples
        self._streams = streams
        self._tail = LiveTail(bus.epoch)
        self._open: set[LiveStream] = set()
        self._task: asyncio.Task[None] | None = None
        bus.tell_commits(self._committed)

    def start(self) -> None:
        """Begin to beat."""
        self._task = asyncio.create_task(self._beat(), name="live")

    def stop(self) -> None:
        """Stop beating."""
        if self._task is not None:
            self._task.cancel()

    async def follow(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer one browser."""
        if scope["method"] == "HEAD":
            await send.whole(200, b"", SSE_HEADERS)
            return
        stream = LiveStream(self._streams, send, scope)
        if not self._streams.enter(stream):
            raise HerdrError(
                "max_connections streams are open; close another dashboard, or wait", "overloaded"
            )
        self._streams.sse += 1
        self._write(self._events())  # to the others, as it will stand in the new one's beginning
        hello = self._hello()
        self._open.add(stream)
        try:
            await stream.run(hello, receive)
        finally:
            self._open.discard(stream)
            self._streams.sse -= 1
            self._streams.leave(stream)

    def _committed(self, events: Sequence[Event]) -> None:
        self._tail.add(events)

    async def _beat(self) -> None:
        beats = 0
        while True:
            await asyncio.sleep(BEAT_S)  # a clock, as the heartbeat of the streams is
            beats += 1
            try:
                self._write(self._events())
                if beats % BEATS_A_SAMPLE == 0:
                    self._write(Block(synthetic_block("sample", self._samples.take())))
            except Exception:  # noqa: BLE001 - what cannot be shown must not end all that comes after it
                _log.exception("the dashboards' stream made a mistake")

    def _write(self, block: Block) -> None:
        for stream in self._open:
            stream.put(block)

    def _events(self) -> Block:
        """Return what came since the last beat, and begin anew."""
        if not self._open:
            self._tail.drop()
            return Block(b"")
        told, events = self._tail.take()
        return Block(_events_block(told) if events else b"", events)

    def _hello(self) -> bytes:
        about: dict[str, Any] = {
            "version": __version__,
            "epoch": self._bus.epoch,
            "head": self._bus.head,
            "samples": list(self._samples.kept),
        }
        return b'event: hello\ndata: %s,"recent":%s}\n\n' % (_encode(about)[:-1], self._tail.recent())


class LiveStream:
    """One browser's stream. Implements `herdr.web.streams.Stream`."""

    def __init__(self, streams: Streams, send: Reply, scope: Scope) -> None:
        self.written_at = streams.now()
        self.writing_since: float | None = None
        self._streams = streams
        self._send = send
        self._abort = scope.get(ABORT)
        self._blocks: deque[Block] = deque()
        self._waiting = 0
        self._lost = 0
        self._wake = asyncio.Event()
        self._gone = False

    def put(self, block: Block) -> None:
        """Have a block written; the oldest of those that wait gives way, and its events count as skipped."""
        if not block.text:
            return
        self._blocks.append(block)
        self._waiting += len(block.text)
        while self._waiting > WAITING_MAX and len(self._blocks) > 1:
            lost = self._blocks.popleft()
            self._waiting -= len(lost.text)
            self._lost += lost.events
        self._wake.set()

    def poke(self) -> None:
        """See `Stream.poke`."""
        self._wake.set()

    def abort(self) -> None:
        """See `Stream.abort`."""
        if self._abort is not None:
            self._abort()

    async def run(self, hello: bytes, receive: Receive) -> None:
        """Write until the browser leaves or the gateway stops."""
        await self._send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})
        await self._write(b"retry: %d\n\n%s" % (self._streams.retry_ms(), hello))
        watch = asyncio.create_task(self._watch_for_leaving(receive))
        try:
            while not self._gone:
                await self._wake.wait()
                self._wake.clear()
                blocks = self._taken()
                if self._streams.stopping:
                    bye = synthetic_block("herdr.bye", {"retry_ms": self._streams.retry_ms()})
                    await self._send({"type": "http.response.body", "body": blocks + bye})
                    return
                if not self._gone:
                    await self._write(blocks or b": keep-alive\n\n")
        finally:
            watch.cancel()

    def _taken(self) -> bytes:
        lost = _events_block(b'{"events":[],"skipped":%d}' % self._lost) if self._lost else b""
        blocks = lost + b"".join([block.text for block in self._blocks])
        self._blocks.clear()
        self._waiting = self._lost = 0
        return blocks

    async def _write(self, block: bytes) -> None:
        self.writing_since = self._streams.now()
        await self._send({"type": "http.response.body", "body": block, "more_body": True})
        self.writing_since = None
        self.written_at = self._streams.now()

    async def _watch_for_leaving(self, receive: Receive) -> None:
        await until_gone(receive)
        self._gone = True
        self._wake.set()


def _events_block(told: bytes) -> bytes:
    return b"event: events\ndata: %s\n\n" % told
