"""The few lines of raw ASGI that the routes share: read a bounded body, send an answer."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import msgspec

from herdr.errors import HerdrError
from herdr.web.problems import Refused, headers_of, problem_of, status_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
WriteWhole = Callable[[int, bytes, Headers], bool]
"""Writes a whole answer; False when it has to go through ASGI after all."""

WRITE_WHOLE = "herdr.write_whole"
ABORT = "herdr.abort"
"""Names under which the server puts its own abilities into the scope."""

NO_CONTENT = 204
JSON: Headers = [(b"content-type", b"application/json")]

_encode = msgspec.json.Encoder().encode


NO_PONG = 1011  # RFC 6455's "internal error", by which servers close when a ping was not answered in time


class ClientGone(Exception):
    """The client left before its request was whole; there is nobody to answer."""


def header(scope: Scope, name: bytes) -> str | None:
    """Return a request header's value as text, or None; `name` in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("utf-8", "surrogateescape")
    return None


async def until_gone(receive: Receive) -> None:
    """Return once the client has left; to be asked when its body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


TOO_LARGE_ADVICE = "send fewer events a request, or raise server.body_max_bytes"


async def read_body(scope: Scope, receive: Receive, limit: int, advice: str = TOO_LARGE_ADVICE) -> bytes:
    """Return the request body; raises Refused beyond `limit` bytes, ClientGone if it breaks off.

    `advice` is what the refusal tells people to do.
    """
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise _too_large(limit, advice)
    message = await receive()
    body = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body", False):
        if len(body) > limit:
            raise _too_large(limit, advice)
        return bytes(body)
    parts, size = [body], len(body)
    while message["type"] != "http.disconnect":
        if size > limit:
            raise _too_large(limit, advice)
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    raise ClientGone


def _too_large(limit: int, advice: str) -> Refused:
    return Refused(
        "too_large",
        f"the body is larger than {limit} bytes; {advice}",
        {"connection": "close"},
    )


class Reply:
    """An ASGI `send` that knows whether the answer has begun, and writes a whole one at once where it can.

    Head and body of a small answer cost two system calls through ASGI; `write_whole`, which the server puts
    into the scope, needs one (measured: 1.4 times the single publishes a second).
    """

    __slots__ = ("_send", "_write_whole", "started")

    def __init__(self, scope: Scope, send: Send) -> None:
        self.started = False
        self._send = send
        self._write_whole: WriteWhole | None = scope.get(WRITE_WHOLE)

    async def __call__(self, message: Message) -> None:
        """Pass on one ASGI message."""
        self.started = True
        await self._send(message)

    async def whole(self, status: int, body: bytes, headers: Headers) -> None:
        """Send a whole answer."""
        self.started = True
        if self._write_whole is not None and self._write_whole(status, body, headers):
            return
        if status != NO_CONTENT:
            headers = [*headers, (b"content-length", str(len(body)).encode())]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


async def respond(send: Reply, status: int, body: bytes, headers: Headers = JSON) -> None:
    """Send a whole answer, with a line break at its end: in a terminal it would stick to the prompt."""
    if body and not body.endswith(b"\n"):
        body += b"\n"
    await send.whole(status, body, headers)


async def respond_json(
    send: Reply, status: int, value: Any, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Encode a value as JSON and send it."""
    await respond(send, status, _encode(value), [*JSON, *headers])


async def respond_problem(send: Reply, error: HerdrError) -> None:
    """Send the problem that an error stands for."""
    await respond(send, status_of(error), _encode(problem_of(error)), headers_of(error))


async def refuse_handshake(send: Send, error: HerdrError) -> None:
    """Turn a WebSocket handshake down with the problem that says why."""
    status = status_of(error)
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers_of(error)})
    await send({"type": "websocket.http.response.body", "body": _encode(problem_of(error))})
