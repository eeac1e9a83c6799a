"""`GET /v1/live`: one stream a browser with everything that a dashboard shows: samples, and a tail of the events.

What is written is made once for all streams. The tail is bounded: in a storm it holds the users' own events and the
newest of the others, and says how many it has left out.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from herdr import __version__
from herdr.bus.bus import Bus
from herdr.errors import HerdrError
from herdr.event import Event, Lane
from herdr.web.asgi import ABORT, Receive, Reply, Scope, until_gone
from herdr.web.auth import Caller
from herdr.web.samples import Samples
from herdr.web.sse import SSE_HEADERS, event_json, synthetic_block
from herdr.web.streams import Streams

BEAT_S = 0.25  # between two writes; a person takes it for at once
BEATS_A_SAMPLE = 4
EVENTS_A_BEAT = 25  # 100 a second: more than anybody reads, and a browser draws them without effort
RECENT = 100  # events that a new stream begins with
DATA_SHOWN_MAX = 8192  # bytes of an event's payload; a larger one is fetched when somebody opens it
BLOCKS_MAX = 64  # that wait for one browser: 16 s; it is cut off when it takes none for send_timeout_s

_encode = msgspec.json.Encoder().encode


class Live:
    """Gathers what happens between two beats, and writes it to all streams."""

    def __init__(self, bus: Bus, samples: Samples, streams: Streams) -> None:
        self._bus = bus
        self._samples = samples
        self._streams = streams
        self._recent: deque[Event] = deque(maxlen=RECENT)
        self._urgent: list[Event] = []
        self._others: deque[Event] = deque(maxlen=EVENTS_A_BEAT)
        self._came = 0
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
        self._came += len(events)
        self._recent.extend(events[-RECENT:])
        for event in events:
            if event.lane == Lane.P0 and len(self._urgent) < EVENTS_A_BEAT:
                self._urgent.append(event)
            else:
                self._others.append(event)

    async def _beat(self) -> None:
        beats = 0
        while True:
            await asyncio.sleep(BEAT_S)  # a clock, as the heartbeat of the streams is
            beats += 1
            blocks = [self._events()]
            if beats % BEATS_A_SAMPLE == 0:
                blocks.append(synthetic_block("sample", self._samples.take()))
            self._write(b"".join(blocks))

    def _write(self, block: bytes) -> None:
        for stream in self._open:
            stream.put(block)

    def _events(self) -> bytes:
        """Return what came since the last beat, and begin anew."""
        came, self._came = self._came, 0
        if not came:
            return b""
        room = EVENTS_A_BEAT - len(self._urgent)
        newest = (
            list(self._others)[len(self._others) - room :] if len(self._others) > room else list(self._others)
        )
        chosen = sorted([*self._urgent, *newest], key=lambda event: event.seq)
        self._urgent.clear()
        self._others.clear()
        if not self._open:
            return b""
        return _events_block(chosen, self._bus.epoch, came - len(chosen))

    def _hello(self) -> bytes:
        about: dict[str, Any] = {
            "version": __version__,
            "epoch": self._bus.epoch,
            "head": self._bus.head,
            "samples": list(self._samples.kept),
        }
        recent = b",".join(_shown(event, self._bus.epoch) for event in self._recent)
        return b'event: hello\ndata: %s,"recent":[%s]}\n\n' % (_encode(about)[:-1], recent)


class LiveStream:
    """One browser's stream. Implements `herdr.web.streams.Stream`."""

    def __init__(self, streams: Streams, send: Reply, scope: Scope) -> None:
        self.written_at = streams.now()
        self.writing_since: float | None = None
        self._streams = streams
        self._send = send
        self._abort = scope.get(ABORT)
        self._blocks: deque[bytes] = deque(maxlen=BLOCKS_MAX)
        self._wake = asyncio.Event()
        self._gone = False

    def put(self, block: bytes) -> None:
        """Have a block written; the oldest of those that wait gives way."""
        if block:
            self._blocks.append(block)
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
                blocks = b"".join(self._blocks)
                self._blocks.clear()
                if self._streams.stopping:
                    bye = synthetic_block("herdr.bye", {"retry_ms": self._streams.retry_ms()})
                    await self._send({"type": "http.response.body", "body": blocks + bye})
                    return
                if not self._gone:
                    await self._write(blocks or b": keep-alive\n\n")
        finally:
            watch.cancel()

    async def _write(self, block: bytes) -> None:
        self.writing_since = self._streams.now()
        await self._send({"type": "http.response.body", "body": block, "more_body": True})
        self.writing_since = None
        self.written_at = self._streams.now()

    async def _watch_for_leaving(self, receive: Receive) -> None:
        await until_gone(receive)
        self._gone = True
        self._wake.set()


def _events_block(events: Sequence[Event], epoch: str, skipped: int) -> bytes:
    listed = b",".join(_shown(event, epoch) for event in events)
    return b'event: events\ndata: {"events":[%s],"skipped":%d}\n\n' % (listed, skipped)


def _shown(event: Event, epoch: str) -> bytes:
    """Return an event as followers see it, without a payload that is large."""
    return event_json(event, epoch, "full" if len(event.body) <= DATA_SHOWN_MAX else "summary")
