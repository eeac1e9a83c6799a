"""`/mcp` itself: requests of both eras of the protocol find their way into the SDK, with the caller known."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

from herdr.web.asgi import JSON, Message, Receive, Reply, Scope, header, read_body, respond, until_gone
from herdr.web.auth import SIGNED_IN, Caller
from herdr.web.mcp.around import stays
from herdr.web.mcp.asking import CALLER
from herdr.web.mcp.late import PATH, SUMMARIES
from herdr.web.mcp.notices import Notices
from herdr.web.mcp.sessions import HEADER, SSE, NoticeStream, Sessions
from herdr.web.problems import Refused
from herdr.web.streams import Streams
from herdr.web.surface import Endpoint

BODY_MAX = 4 * 1024 * 1024  # bytes, as the SDK has it; a model writes no more in one call
FULL = "as many streams are open as server.max_connections allows; close one, or try again in a moment"
TOO_LARGE = "save what is long as an artifact over HTTP, and name it"
INVALID_REQUEST = -32600  # JSON-RPC 2.0, section 5.1
CANCELLED = -32800  # "request cancelled", as the Language Server Protocol has it; JSON-RPC names none

_VERSION = MCP_PROTOCOL_VERSION_HEADER.encode()


class _Params(msgspec.Struct, rename="camel"):
    request_id: msgspec.Raw = msgspec.Raw(b"")


class _Peek(msgspec.Struct):
    """What of a message decides how it is answered."""

    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"")
    params: _Params | None = None


_peek = msgspec.json.Decoder(_Peek).decode
_encode = msgspec.json.Encoder().encode


class McpEndpoint:
    """Both eras. The newer one is stateless by itself; of the older one only subscriptions are remembered."""

    def __init__(
        self,
        modern: StreamableHTTPSessionManager,
        legacy: StreamableHTTPSessionManager,
        sessions: Sessions,
        notices: Notices,
        streams: Streams,
        decoding_turn: Callable[[bytes], Awaitable[None]],
        body_max: int,
    ) -> None:
        """`decoding_turn` waits for the turn to decode a body: a large one must not hold up a user's instruction.

        `body_max`: bytes of a request.
        """
        self._modern = modern
        self._legacy = legacy
        self._sessions = sessions
        self._notices = notices
        self._streams = streams
        self._decoding_turn = decoding_turn
        self._body_max = body_max
        self._under_way: dict[tuple[str | None, bytes], asyncio.Task[None]] = {}
        """Calls of the older era that their client may cancel by another request."""

    def endpoints(self) -> list[Endpoint]:
        """Return the methods of `/mcp`."""
        return [
            Endpoint(method, PATH, SIGNED_IN, handler, SUMMARIES[method])
            for method, handler in (("POST", self.post), ("GET", self.get), ("DELETE", self.delete))
        ]

    async def post(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer one message."""
        scope[CALLER] = caller
        body = await read_body(scope, receive, self._body_max, TOO_LARGE)
        await self._decoding_turn(body)
        if _is_modern(scope):
            # Spaces around a value are none of it (RFC 9110, section 5.5), but httptools leaves those at the end
            scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
            await self._modern.handle_request(scope, _then(body, receive), send)
            return
        session = header(scope, HEADER)
        if self._sessions.is_ended(session):
            await _refuse(send, 404, "this session has ended; begin a new one with initialize")
            return
        await self._answer(_peeked(body), session, scope, _then(body, stays), receive, send)

    async def _answer(
        self, peek: _Peek, session: str | None, scope: Scope, whole: Receive, receive: Receive, send: Reply
    ) -> None:
        if peek.method == "notifications/cancelled" and peek.params is not None:
            task = self._under_way.get((session, bytes(peek.params.request_id)))
            if task is not None:
                task.cancel()
        reply: Callable[[Message], Awaitable[None]] = send
        if peek.method == "initialize":
            reply = _with_header(send, (HEADER, self._sessions.begin().encode()))
        answering = asyncio.create_task(self._legacy.handle_request(scope, whole, reply))
        key = (session, bytes(peek.id))
        if session is not None and peek.id:
            self._under_way[key] = answering
        leaving = asyncio.create_task(until_gone(receive))
        is_there = False
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            is_there = not leaving.done()
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.wait((answering,))
            if self._under_way.get(key) is answering:
                del self._under_way[key]
        if not answering.cancelled():
            answering.result()
        elif is_there and not send.started:
            error = {"code": CANCELLED, "message": "Request cancelled"}
            await respond(send, 200, _encode({"jsonrpc": "2.0", "id": peek.id, "error": error}))

    async def get(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Send change notices for as long as the client stays."""
        if _is_modern(scope):
            await _refuse(send, 405, "this version of the protocol has subscriptions/listen instead")
            return
        if "text/event-stream" not in (header(scope, b"accept") or "").lower():
            await _refuse(send, 406, "a GET follows change notices: send Accept: text/event-stream")
            return
        session = header(scope, HEADER)
        if self._sessions.is_ended(session):
            await _refuse(send, 404, "this session has ended; begin a new one with initialize")
            return
        if scope["method"] == "HEAD":
            await send.whole(200, b"", [(name.encode(), value.encode()) for name, value in SSE.items()])
            return
        stream = NoticeStream(self._streams, send, scope, lambda uri: self._sessions.wants(session, uri))
        if not self._streams.enter(stream):
            raise Refused(
                "overloaded",
                FULL,
                {"retry-after": "5"},
            )
        self._streams.sse += 1
        try:
            await stream.run(self._notices.bus, receive)
        finally:
            self._streams.sse -= 1
            self._streams.leave(stream)

    async def delete(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """End a session."""
        session = header(scope, HEADER)
        if session is None or _is_modern(scope):
            await _refuse(send, 405, "there is no session to end")
            return
        self._sessions.end(session)
        await send.whole(200, b"", [])


def _is_modern(scope: Scope) -> bool:
    version = header(scope, _VERSION)
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS


def _peeked(body: bytes) -> _Peek:
    try:
        return _peek(body)
    except (msgspec.DecodeError, RecursionError):
        return _Peek()  # the SDK says what is wrong with it


def _then(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read already, and then what follows."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def whole() -> Message:
        return messages.pop() if messages else await receive()

    return whole


def _with_header(send: Reply, named: tuple[bytes, bytes]) -> Callable[[Message], Awaitable[None]]:
    async def reply(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            message = {**message, "headers": [*message["headers"], named]}
        await send(message)

    return reply


async def _refuse(send: Reply, status: int, message: str) -> None:
    error: dict[str, Any] = {"code": INVALID_REQUEST, "message": message}
    await respond(send, status, _encode({"jsonrpc": "2.0", "id": None, "error": error}), JSON)
