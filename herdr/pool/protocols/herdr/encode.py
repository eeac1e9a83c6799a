"""Pure: an answer as `/v1/chat` streams it: every `data:` line is one whole JSON object, and there is no end mark.

id: <call>.<n>                  n counts from 1
event: message.start            {"call", "model", "agent", "slot", "queue_ms"}, maybe with "context"
event: message.delta            {"text"} or {"thinking"}
event: tool.call                {"id", "name", "input"}, whole
event: message.end              {"stop_reason", "usage", "timings"}
event: error                    {"code", "detail"}; nothing comes after it
"""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from herdr.pool.chunk import Chunk, End, TextDelta, ThinkingDelta, ToolDelta, ToolEnd, ToolStart, Usage
from herdr.pool.inset import Report
from herdr.pool.protocols.dialect import Ending, Opening
from herdr.pool.protocols.json_text import object_raw, on_one_line
from herdr.pool.request import ChatRequest

# No blank line follows: a client that decodes what it has at each blank line would find nothing there.
KEEP_ALIVE = b": keep-alive\n"
PROBLEM_TYPE = "urn:herdr:problem:"

_TITLES: Mapping[int, str] = {status.value: status.phrase for status in HTTPStatus}
_encode = msgspec.json.Encoder().encode


class Start(msgspec.Struct):
    """How an answer begins."""

    call: str
    model: str
    agent: str
    slot: int | None
    queue_ms: int
    context: Report | msgspec.UnsetType = msgspec.UNSET


class ToolCall(msgspec.Struct):
    """A whole call."""

    id: str
    name: str
    input: msgspec.Raw


class Tokens(msgspec.Struct):
    """Tokens of the call; the cached ones are part of the input."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int


class Finish(msgspec.Struct):
    """How an answer ended."""

    stop_reason: str
    usage: Tokens
    timings: Ending
    stop_sequence: str | msgspec.UnsetType = msgspec.UNSET


class Failure(msgspec.Struct):
    """Why an answer broke off."""

    code: str
    detail: str


class Problem(msgspec.Struct):
    """The body of an error, RFC 9457."""

    type: str
    title: str
    status: int
    code: str
    detail: str


def tokens(usage: Usage) -> Tokens:
    """Return a call's tokens in this protocol's names."""
    return Tokens(usage.prompt, usage.cached, usage.output)


def context_of(opening: Opening) -> Report | msgspec.UnsetType:
    """Return what is said about the shared context, if that was asked for."""
    return msgspec.UNSET if opening.context is None else opening.context


def tool_call(start: ToolStart, arguments: str) -> ToolCall | None:
    """Return a call on one line; None when the answer's end cut it off."""
    written = object_raw(arguments)
    return (
        None if written is None else ToolCall(start.id, start.name, msgspec.Raw(on_one_line(bytes(written))))
    )


def encoder(opening: Opening, request: ChatRequest) -> "ChatEncoder":
    """Return the writer of one stream."""
    return ChatEncoder(opening)


def error_body(status: int, code: str, detail: str, call: str) -> bytes:
    """Return a problem, as all of Herdr's own endpoints answer errors."""
    return _encode(Problem(PROBLEM_TYPE + code, _TITLES.get(status, "Error"), status, code, detail))


class ChatEncoder:
    """Writes one stream."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._id = b"id: %s.%%d\n" % opening.call.encode().replace(b"%", b"%%")
        self._text = self._id + b'event: message.delta\ndata: {"text":%s}\n\n'
        self._thinking = self._id + b'event: message.delta\ndata: {"thinking":%s}\n\n'
        self._count = 0
        self._call: ToolStart | None = None
        self._arguments: list[str] = []

    def start(self) -> bytes:
        """Return `message.start`."""
        opening = self._opening
        begun = Start(
            opening.call, opening.model, opening.agent, opening.slot, opening.queue_ms, context_of(opening)
        )
        return self._block(b"message.start", begun)

    def feed(self, chunk: Chunk) -> bytes:
        """Return what one chunk becomes; a tool call becomes one event when it is whole."""
        if isinstance(chunk, TextDelta):
            self._count += 1
            return self._text % (self._count, _encode(chunk.text))
        if isinstance(chunk, ThinkingDelta):
            self._count += 1
            return self._thinking % (self._count, _encode(chunk.text))
        if isinstance(chunk, ToolDelta):
            self._arguments.append(chunk.text)
        elif isinstance(chunk, ToolStart):
            self._call = chunk
            self._arguments.clear()
        elif isinstance(chunk, ToolEnd) and self._call is not None:
            call = tool_call(self._call, "".join(self._arguments))
            return b"" if call is None else self._block(b"tool.call", call)
        return b""

    def end(self, chunk: Chunk, ending: Ending) -> bytes:
        """Return `message.end`."""
        if not isinstance(chunk, End):
            return b""
        finish = Finish(chunk.stop_reason, tokens(chunk.usage), ending)
        if chunk.stop_sequence is not None:
            finish.stop_sequence = chunk.stop_sequence
        return self._block(b"message.end", finish)

    def ping(self) -> bytes:
        """Return a comment, which clients skip."""
        return KEEP_ALIVE

    def error(self, status: int, code: str, detail: str) -> bytes:
        """Return `error`."""
        return self._block(b"error", Failure(code, detail))

    def _block(self, event: bytes, data: msgspec.Struct) -> bytes:
        self._count += 1
        return self._id % self._count + b"event: %s\ndata: %s\n\n" % (event, _encode(data))
