"""Pure: neutral chunks → the events of Anthropic's stream, with at most one block open at a time.

Order of events: https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

from typing import Literal

import msgspec

from herdr.pool.chunk import Chunk, End, TextDelta, ThinkingDelta, ToolDelta, ToolEnd, ToolStart, Verbatim
from herdr.pool.protocols.anthropic.answer import (
    Answer,
    TextBlock,
    ThinkingBlock,
    Tokens,
    ToolUseBlock,
    opened,
    stopped,
    tokens,
)
from herdr.pool.protocols.anthropic.errors import error_body
from herdr.pool.protocols.carried import pack
from herdr.pool.protocols.dialect import Ending, Opening
from herdr.pool.protocols.json_text import on_one_line
from herdr.pool.request import ChatRequest

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_DELTA = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":'
)
_EMPTY_INPUT = msgspec.Raw(b"{}")

Kind = Literal["", "text", "thinking", "hidden", "tool"]


class _MessageStart(msgspec.Struct, tag="message_start"):
    message: Answer


class _BlockStart(msgspec.Struct, tag="content_block_start"):
    index: int
    content_block: TextBlock | ThinkingBlock | ToolUseBlock


class _Stop(msgspec.Struct):
    stop_reason: str
    stop_sequence: str | None


class _MessageDelta(msgspec.Struct, tag="message_delta"):
    delta: _Stop
    usage: Tokens


_encode = msgspec.json.Encoder().encode


def _event(name: bytes, data: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name, on_one_line(_encode(data)))


def _string(text: str) -> bytes:
    encoded = _encode(text)
    return encoded if text.isascii() else on_one_line(encoded)


class MessagesEncoder:
    """Writes one stream.

    When the first thing that it is given is `Verbatim`, and `start` was not called, it passes an Anthropic
    backend's own events on and nothing else.
    """

    __slots__ = ("_calls", "_delta", "_hidden", "_index", "_kind", "_opening", "_thinking", "_verbatim")

    def __init__(self, opening: Opening, hide_thinking: bool) -> None:
        self._opening = opening
        self._thinking: Kind = "hidden" if hide_thinking else "thinking"
        self._verbatim: bool | None = None
        """None: the first thing that happens decides."""
        self._kind: Kind = ""
        self._index = -1
        self._delta = b""
        """How each delta of the open block begins."""
        self._hidden: list[str] = []
        self._calls = False

    def start(self) -> bytes:
        """Return `message_start`; it is left out where the backend's own is passed on."""
        self._verbatim = False
        return _event(b"message_start", _MessageStart(opened(self._opening)))

    def feed(self, chunk: Chunk) -> bytes:
        """Return what one chunk becomes."""
        if type(chunk) is Verbatim:
            return self._pass_on(chunk)
        if self._verbatim:
            return b""
        if type(chunk) is TextDelta:
            return self._add("text", chunk.text)
        if type(chunk) is ThinkingDelta:
            return self._add(self._thinking, chunk.text)
        if type(chunk) is ToolDelta:
            return self._add("tool", chunk.text)
        if type(chunk) is ToolStart:
            return self._open_tool(chunk)
        return self._close() if type(chunk) is ToolEnd else b""

    def end(self, chunk: Chunk, ending: Ending) -> bytes:
        """Return how the stream closes."""
        if type(chunk) is not End or self._verbatim:
            return self.feed(chunk)
        delta = _MessageDelta(_Stop(*stopped(chunk, self._calls)), tokens(chunk.usage))
        return self._close() + _event(b"message_delta", delta) + _STOP

    def ping(self) -> bytes:
        """Return a keep-alive; it may stand anywhere."""
        return PING

    def error(self, status: int, code: str, detail: str) -> bytes:
        """Return the event that ends a failed stream; the open block stays open, as the answer is not whole."""
        return b"event: error\ndata: %s\n\n" % on_one_line(
            error_body(status, code, detail, self._opening.call)
        )

    def _pass_on(self, chunk: Verbatim) -> bytes:
        if self._verbatim is None:
            self._verbatim = True
        if not self._verbatim:
            return b""
        return b"event: %s\ndata: %s\n\n" % (chunk.event.encode(), chunk.data)

    def _add(self, kind: Kind, text: str) -> bytes:
        if not text:
            return b""
        if self._kind == kind:
            before = b""
        elif kind == "tool":
            return b""  # no call is open that these arguments could belong to
        else:
            before = self._open(kind)
        if kind == "hidden":
            self._hidden.append(text)
            return before
        return b"%s%s%s}}\n\n" % (before, self._delta, _string(text))

    def _open(self, kind: Kind) -> bytes:
        if kind == "text":
            return self._begin(kind, TextBlock(""), b"text_delta", b"text")
        return self._begin(kind, ThinkingBlock("", ""), b"thinking_delta", b"thinking")

    def _open_tool(self, chunk: ToolStart) -> bytes:
        self._calls = True
        block = ToolUseBlock(chunk.id, chunk.name, _EMPTY_INPUT)
        return self._begin("tool", block, b"input_json_delta", b"partial_json")

    def _begin(
        self, kind: Kind, block: TextBlock | ThinkingBlock | ToolUseBlock, delta: bytes, field: bytes
    ) -> bytes:
        before = self._close()
        self._kind = kind
        self._index += 1
        self._delta = _DELTA % (self._index, delta, field)
        return before + _event(b"content_block_start", _BlockStart(self._index, block))

    def _close(self) -> bytes:
        kind, self._kind = self._kind, ""
        if not kind:
            return b""
        before = self._signature() if kind == self._thinking else b""
        return b'%sevent: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % (
            before,
            self._index,
        )

    def _signature(self) -> bytes:
        """Return the signature of the open thinking; some clients keep no thinking that has none."""
        signature = pack("".join(self._hidden))
        self._hidden.clear()
        return b"%s%s}}\n\n" % (_DELTA % (self._index, b"signature_delta", b"signature"), _encode(signature))


def encoder(opening: Opening, request: ChatRequest) -> MessagesEncoder:
    """Return the writer of one stream."""
    return MessagesEncoder(opening, request.hide_thinking)
