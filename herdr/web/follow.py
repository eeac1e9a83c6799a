"""`GET /v1/events`: Server-Sent Events for those who stay, a JSON page for those who ask."""

import asyncio

import msgspec

from herdr.bus.beside import Beside
from herdr.bus.bus import Bus
from herdr.bus.cursor import format_cursor
from herdr.bus.follow import Follower, Gap
from herdr.bus.page import Page
from herdr.bus.subscriptions import Subscriptions
from herdr.errors import HerdrError
from herdr.web.asgi import ABORT, JSON, Receive, Reply, Scope, header, respond, until_gone
from herdr.web.auth import Caller
from herdr.web.query import Query, parse_query, parse_seq
from herdr.web.sse import (
    SSE_HEADERS,
    event_json,
    gap_block,
    gap_data,
    keep_alive,
    page_block,
    start_block,
    synthetic_block,
)
from herdr.web.streams import Streams

_encode = msgspec.json.Encoder().encode


class FollowEvents:
    """The handler of `GET /v1/events`."""

    def __init__(
        self, subscriptions: Subscriptions, streams: Streams, epoch: str, beside: Beside | None = None
    ) -> None:
        self._subscriptions = subscriptions
        self._streams = streams
        self._epoch = epoch
        self._beside = beside or Beside()

    async def __call__(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer one follower."""
        query = parse_query(scope["query_string"])
        after = header(scope, b"last-event-id") or query.after
        if not _wants_stream(scope):
            await self._send_page(send, query, after)
            return
        if scope["method"] == "HEAD":
            await send.whole(200, b"", SSE_HEADERS)
            return
        stream = EventStream(self._streams, send, scope, self._beside)
        if not self._streams.enter(stream):
            await self._turn_away(send)
            return
        self._streams.sse += 1
        try:
            follower = await self._subscriptions.open(query.selection, after)
            await stream.run(follower, self._subscriptions, self._epoch, receive)
        finally:
            self._streams.sse -= 1
            self._streams.leave(stream)

    async def _send_page(self, send: Reply, query: Query, after: str | None) -> None:
        follower = await self._subscriptions.open(query.selection, after)
        gap, page = await follower.read(query.limit)
        if page.wants_context:
            with self._beside.looking(page) as looking:
                page = await looking.beside(page)
        events = b",".join([event_json(i.event, self._epoch, i.form, i.context) for i in page.items])
        cursor = format_cursor(self._epoch, page.end)
        said = b"" if gap is None else b'"gap":%s,' % _encode(gap_data(gap))
        head = self._subscriptions.head
        body = b'{%s"events":[%s],"cursor":"%s","head":%d}' % (said, events, cursor.encode(), head)
        await respond(send, 200, body)
        self._subscriptions.wrote(page, query.selection.target)

    async def _turn_away(self, send: Reply) -> None:
        """Answer 200: a browser's EventSource never comes back after a 503."""
        retry_ms = self._streams.busy_retry_ms()
        reason = "the gateway is stopping" if self._streams.stopping else "max_connections streams are open"
        block = b"retry: %d\n\n%s" % (
            retry_ms,
            synthetic_block("herdr.busy", {"detail": reason, "retry_ms": retry_ms}),
        )
        await send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})
        await send({"type": "http.response.body", "body": block})


class EventStream:
    """One SSE connection. Implements `herdr.web.streams.Stream`."""

    def __init__(self, streams: Streams, send: Reply, scope: Scope, beside: Beside) -> None:
        self.written_at = streams.now()
        self.writing_since: float | None = None
        self._streams = streams
        self._send = send
        self._beside = beside
        self._abort = scope.get(ABORT)
        self._follower: Follower | None = None
        self._gone = False

    def poke(self) -> None:
        """See `Stream.poke`."""
        if self._follower is not None:
            self._follower.poke()

    def abort(self) -> None:
        """See `Stream.abort`."""
        if self._abort is not None:
            self._abort()

    async def run(
        self, follower: Follower, subscriptions: Subscriptions, epoch: str, receive: Receive
    ) -> None:
        """Write pages until the client leaves or the gateway stops."""
        self._follower = follower
        if self._streams.stopping:
            follower.poke()  # the stop began before there was a follower to wake
        await self._send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})
        await self._write(start_block(epoch, follower.positions, self._streams.retry_ms()))
        watch = asyncio.create_task(self._watch_for_leaving(receive))
        try:
            while not self._gone:
                got = await follower.next()
                if isinstance(got, Gap):
                    await self._write(gap_block(got, epoch))
                elif got.wants_context:
                    await self._write_with_context(got, follower, subscriptions, epoch)
                elif got.items:
                    await self._write_page(got, follower, subscriptions, epoch)
                elif self._is_silent() and not self._streams.stopping:
                    await self._write(keep_alive(epoch, follower.positions))
                if self._streams.stopping:
                    await self._say_goodbye()
                    return
        except HerdrError as error:
            block = synthetic_block("herdr.error", {"code": error.code, "detail": error.detail})
            await self._send({"type": "http.response.body", "body": block})
        finally:
            watch.cancel()

    async def _write_page(
        self, page: Page, follower: Follower, subscriptions: Subscriptions, epoch: str
    ) -> None:
        await self._write(page_block(page, epoch))
        subscriptions.wrote(page, follower.selection.target)

    async def _write_with_context(
        self, page: Page, follower: Follower, subscriptions: Subscriptions, epoch: str
    ) -> None:
        with self._beside.looking(page) as looking:
            for piece in page.pieces():
                ready = await looking.beside(piece, follower)
                await self._write_page(ready, follower, subscriptions, epoch)

    def _is_silent(self) -> bool:
        return self._streams.now() - self.written_at >= 1.0

    async def _write(self, block: bytes) -> None:
        self.writing_since = self._streams.now()
        await self._send({"type": "http.response.body", "body": block, "more_body": True})
        self.writing_since = None
        self.written_at = self._streams.now()

    async def _say_goodbye(self) -> None:
        retry_ms = self._streams.retry_ms()
        block = b"retry: %d\n\n%s" % (retry_ms, synthetic_block("herdr.bye", {"retry_ms": retry_ms}))
        await self._send({"type": "http.response.body", "body": block})

    async def _watch_for_leaving(self, receive: Receive) -> None:
        await until_gone(receive)
        self._gone = True
        self.poke()


class GetEvent:
    """The handler of `GET /v1/events/{seq}`."""

    def __init__(self, bus: Bus, epoch: str) -> None:
        self._bus = bus
        self._epoch = epoch

    async def __call__(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with one whole event."""
        event = await self._bus.event(parse_seq(scope["path_params"]["seq"]))
        await respond(send, 200, event_json(event, self._epoch), JSON)


def _wants_stream(scope: Scope) -> bool:
    return "text/event-stream" in (header(scope, b"accept") or "").lower()
