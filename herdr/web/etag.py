"""Conditional answers: what a client has already is not sent again (RFC 9110, sections 8.8.3 and 13.1.2)."""

from hashlib import sha256
from typing import Any

import msgspec

from herdr.web.asgi import JSON, Headers, Reply, Scope, header

_encode = msgspec.json.Encoder().encode


def is_known(scope: Scope, tag: str) -> bool:
    """Tell whether the client says that it has the answer with this tag."""
    asked = header(scope, b"if-none-match")
    if asked is None:
        return False
    tags = [text.strip().removeprefix("W/").strip('"') for text in asked.split(",")]
    return tag in tags or "*" in tags


async def respond_tagged(
    scope: Scope, send: Reply, tag: str, body: bytes, headers: Headers, cache: bytes = b"no-cache"
) -> None:
    """Send an answer with its tag, or 304 when the client has it."""
    tagged = [(b"etag", f'"{tag}"'.encode()), (b"cache-control", cache)]
    if is_known(scope, tag):
        await send.whole(304, b"", tagged)
    else:
        await send.whole(200, body, [*headers, *tagged])  # to the byte: it has a hash


async def respond_json_tagged(scope: Scope, send: Reply, value: dict[str, Any]) -> None:
    """Send JSON whose tag is its hash."""
    body = _encode(value) + b"\n"
    await respond_tagged(scope, send, sha256(body).hexdigest(), body, JSON)
