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

JSON: Headers = [(b"content-type", b"application/json")]

_encode = msgspec.json.Encoder().encode


class ClientGone(Exception):
    """The client left before its request was whole; there is nobody to answer."""


def header(scope: Scope, name: bytes) -> str | None:
    """Return a request header's value as text, or None; `name` in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("utf-8", "surrogateescape")
    return None


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the request body; raises Refused beyond `limit` bytes, ClientGone if it breaks off."""
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    message = await receive()
    body = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body", False):
        if len(body) > limit:
            raise _too_large(limit)
        return bytes(body)
    parts, size = [body], len(body)
    while message["type"] != "http.disconnect":
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    raise ClientGone


def _too_large(limit: int) -> Refused:
    return Refused(
        "too_large",
        f"the body is larger than {limit} bytes; send fewer events a request, or raise server.body_max_bytes",
        {"connection": "close"},
    )


async def respond(send: Send, status: int, body: bytes, headers: Headers = JSON) -> None:
    """Send a whole answer."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def respond_json(
    send: Send, status: int, value: Any, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Encode a value as JSON and send it."""
    await respond(send, status, _encode(value), [*JSON, *headers])


async def respond_problem(send: Send, error: HerdrError) -> None:
    """Send the problem that an error stands for."""
    await respond(send, status_of(error), _encode(problem_of(error)), headers_of(error))
