"""Sessions of the protocol's older era: nothing but which resources a client has subscribed to.

A session that is not known, since the gateway was started anew, is as good as any: nothing hangs on it but notices,
and it gets all of them. Only one that its client has ended is refused.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp.types import SubscribeRequestParams, UnsubscribeRequestParams

from herdr.web.asgi import ABORT, Receive, Reply, Scope, until_gone
from herdr.web.mcp.asking import Context
from herdr.web.streams import Streams

HEADER = b"mcp-session-id"
SESSIONS_MAX = 1000  # with subscriptions; the one that was used longest ago hears of everything from then on
URIS_MAX = 100  # that one session subscribes to; past that it hears of everything
ENDED_MAX = 1000  # sessions that are remembered as ended
NOTICES_MAX = 1000  # that wait for one slow client, whose stream ends then: it reads everything anew

SSE: Mapping[str, str] = MappingProxyType(
    {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
    }
)
KEEP_ALIVE = b": keep-alive\n\n"

_encode = msgspec.json.Encoder().encode


class Sessions:
    """All of them that are known."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._wanted: OrderedDict[str, set[str]] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()

    def begin(self) -> str:
        """Return the id of a new session."""
        session = self._new_id()
        self._wanted[session] = set()
        if len(self._wanted) > SESSIONS_MAX:
            self._wanted.popitem(last=False)
        return session

    def end(self, session: str) -> None:
        """Forget a session, at its client's wish."""
        self._wanted.pop(session, None)
        self._ended[session] = None
        if len(self._ended) > ENDED_MAX:
            self._ended.popitem(last=False)

    def is_ended(self, session: str | None) -> bool:
        """Tell whether a client has ended this session."""
        return session in self._ended

    def wants(self, session: str | None, uri: str) -> bool:
        """Tell whether a session is to hear of a resource."""
        wanted = None if session is None else self._wanted.get(session)
        return wanted is None or uri in wanted or len(wanted) >= URIS_MAX

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> dict[str, Any]:
        """Answer `resources/subscribe`."""
        wanted = self._of(ctx)
        if wanted is not None and len(wanted) < URIS_MAX:
            wanted.add(str(params.uri))
        return {}

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> dict[str, Any]:
        """Answer `resources/unsubscribe`."""
        wanted = self._of(ctx)
        if wanted is not None:
            wanted.discard(str(params.uri))
        return {}

    def _of(self, ctx: Context) -> set[str] | None:
        assert ctx.request is not None  # over HTTP there always is one
        session = ctx.request.headers.get(HEADER.decode())
        if session is None or session not in self._wanted:
            return None
        self._wanted.move_to_end(session)
        return self._wanted[session]


class NoticeStream:
    """The stream that a client of the older era opens for notices. Implements `herdr.web.streams.Stream`."""

    def __init__(self, streams: Streams, send: Reply, scope: Scope, wants: Callable[[str], bool]) -> None:
        self.written_at = streams.now()
        self.writing_since: float | None = None
        self._streams = streams
        self._send = send
        self._wants = wants
        self._abort = scope.get(ABORT)
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(NOTICES_MAX)
        """Blocks to write; None ends the stream."""

    def poke(self) -> None:
        """See `Stream.poke`."""
        self._put(None if self._streams.stopping else KEEP_ALIVE)

    def abort(self) -> None:
        """See `Stream.abort`."""
        if self._abort is not None:
            self._abort()

    async def run(self, bus: InMemorySubscriptionBus, receive: Receive) -> None:
        """Write notices until the client leaves, cannot follow, or the gateway stops."""
        unsubscribe = bus.subscribe(self._heard)
        watch = asyncio.create_task(self._watch_for_leaving(receive))
        try:
            headers = [(name.encode(), value.encode()) for name, value in SSE.items()]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._write(KEEP_ALIVE)  # proxies pass on the head with the first byte
            while (block := await self._queue.get()) is not None:
                await self._write(block)
            await self._send({"type": "http.response.body", "body": b""})
        finally:
            watch.cancel()
            unsubscribe()

    def _heard(self, event: ServerEvent) -> None:
        if isinstance(event, ResourceUpdated) and self._wants(event.uri):
            self._put(_block("notifications/resources/updated", {"uri": event.uri}))
        elif isinstance(event, ResourcesListChanged):
            self._put(_block("notifications/resources/list_changed", {}))

    def _put(self, block: bytes | None) -> None:
        if self._queue.full():
            self._queue.get_nowait()
            block = None
        self._queue.put_nowait(block)

    async def _write(self, block: bytes) -> None:
        self.writing_since = self._streams.now()
        await self._send({"type": "http.response.body", "body": block, "more_body": True})
        self.writing_since = None
        self.written_at = self._streams.now()

    async def _watch_for_leaving(self, receive: Receive) -> None:
        await until_gone(receive)
        self._put(None)


def _block(method: str, params: Mapping[str, Any]) -> bytes:
    said = _encode({"jsonrpc": "2.0", "method": method, "params": params})
    return b"event: message\ndata: %s\n\n" % said
