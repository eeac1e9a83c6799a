"""Pure: how the gateway, the indexer and its parse workers speak over pipes: length, then MessagePack."""

from typing import Any

import msgspec

LENGTH_BYTES = 4
FRAME_MAX = 64 * 1024 * 1024
"""Bytes; a table slice or an answer has some hundred KiB. Beyond it the other side is not ours."""

_encode = msgspec.msgpack.Encoder().encode


def encode_frame(content: Any) -> bytes:
    """Return one frame."""
    body = _encode(content)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class Request(msgspec.Struct, omit_defaults=True):
    """What the gateway asks the indexer; frames are served in their order."""

    op: str
    id: int = 0
    """0: no answer is wanted."""
    workspace: str = ""
    args: dict[str, Any] = {}


class Answer(msgspec.Struct, omit_defaults=True):
    """The answer to a request, or (id 0) a note that nobody asked for."""

    id: int = 0
    note: str = ""
    """`changed`, `indexed`."""
    workspace: str = ""
    body: Any = None
    error: str = ""
    """Set when the request failed: `not_found`, `invalid`, or `failed`."""
    code: str = ""
    detail: str = ""
