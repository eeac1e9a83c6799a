"""Pure: an Anthropic backend's own events → the whole message, with all that only they carry (signatures)."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from herdr.pool.chunk import Verbatim
from herdr.pool.failures import ModelError
from herdr.pool.protocols.json_text import object_raw

_GROWS: Mapping[str, str] = MappingProxyType(
    {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
)
"""Kind of delta → its field. All but the JSON are fields of the block too."""


class _Event(msgspec.Struct):
    type: str
    message: dict[str, Any] | None = None
    content_block: dict[str, Any] | None = None
    delta: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Event).decode
_encode = msgspec.json.Encoder().encode


class _Message:
    """One message under construction."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._content: list[dict[str, Any]] = []
        self._pieces: list[str] = []
        self._field = ""
        self._cut = False

    def add(self, event: _Event) -> None:
        """Take the next event."""
        if event.type == "message_start" and event.message is not None:
            self._message = event.message
        elif event.type == "content_block_start" and event.content_block is not None:
            self._content.append(event.content_block)
        elif event.type == "content_block_delta" and event.delta is not None and self._content:
            self._grow(event.delta, self._content[-1])
        elif event.type == "content_block_stop" and self._pieces:
            self._finish(self._content[-1])
        elif event.type == "message_delta":
            self._message.update(event.delta or {})
            known = {name: value for name, value in (event.usage or {}).items() if value is not None}
            self._message["usage"] = {**(self._message.get("usage") or {}), **known}

    def bytes(self) -> bytes:
        """Return the message; raises ModelError when there is none."""
        reason = self._message.get("stop_reason")
        if "id" not in self._message or (self._cut and reason == "tool_use"):
            raise ModelError("backend_failed", "the backend's answer is not whole; try again")
        return _encode({**self._message, "content": self._content})

    def _grow(self, delta: dict[str, Any], block: dict[str, Any]) -> None:
        kind = delta.get("type", "")
        if kind in _GROWS:
            self._field = _GROWS[kind]
            self._pieces.append(delta.get(self._field, ""))
        elif kind == "signature_delta":
            block["signature"] = delta.get("signature", "")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]

    def _finish(self, block: dict[str, Any]) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if self._field != "partial_json":
            block[self._field] = block.get(self._field, "") + text
        elif text:
            self._arguments(block, text)

    def _arguments(self, block: dict[str, Any], text: str) -> None:
        written = object_raw(text)
        if written is not None:
            block["input"] = written
        else:
            self._content.remove(block)  # cut off by max_tokens: half a call must not be run
            self._cut = True


def assembled(events: Iterable[Verbatim]) -> bytes:
    """Return the message that a backend streamed; raises ModelError when the events make none up."""
    message = _Message()
    try:
        for event in events:
            message.add(_decode(event.data))
    except (msgspec.DecodeError, RecursionError, TypeError):
        raise ModelError(
            "backend_failed", "the backend's answer is no Anthropic message; try again"
        ) from None
    return message.bytes()
