"""Pure: an answer as a stream of response events, or as the response that they add up to."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from herdr.pool.chunk import Chunk, End, TextDelta, ThinkingDelta, ToolDelta, ToolEnd, ToolStart
from herdr.pool.protocols.dialect import Ending, Opening
from herdr.pool.protocols.openai.failures import error_code
from herdr.pool.protocols.responses.items import (
    CallItem,
    CustomCallItem,
    Item,
    MessageItem,
    Numbering,
    ReasoningItem,
)
from herdr.pool.protocols.responses.snapshot import fixed_fields, usage_bytes
from herdr.pool.protocols.responses.tools import MappedTool
from herdr.pool.request import ChatRequest

_INCOMPLETE: Mapping[str, bytes] = MappingProxyType(
    {
        "max_tokens": b'{"reason":"max_output_tokens"}',
        "context_full": b'{"reason":"max_output_tokens"}',
        "refusal": b'{"reason":"content_filter"}',
    }
)
_encode = msgspec.json.Encoder().encode


class Failure(msgspec.Struct):
    """Why a response failed."""

    code: str
    message: str


def encoder(opening: Opening, request: ChatRequest) -> "ResponseEncoder":
    """Return the writer of one stream."""
    return ResponseEncoder(opening, request)


def whole(opening: Opening, request: ChatRequest, chunks: Sequence[Chunk], ending: Ending) -> bytes:
    """Return the whole answer as one response; `chunks` ends with the answer's `End`."""
    writer = ResponseEncoder(opening, request)
    for chunk in chunks:
        if isinstance(chunk, End):
            writer.end(chunk, ending)
        else:
            writer.feed(chunk)
    return writer.response


class ResponseEncoder:
    """Writes events; at most one item is open, and what follows it closes it."""

    def __init__(self, opening: Opening, request: ChatRequest) -> None:
        self.response = b""
        """The whole response as JSON, once the answer has ended."""
        self._call = opening.call
        self._fixed = fixed_fields(opening, request)
        self._hidden = request.hide_thinking
        self._mapped = {tool.name: tool for tool in request.tools if isinstance(tool, MappedTool)}
        self._numbering = Numbering()
        self._open: Item | None = None
        self._done: list[bytes] = []

    def start(self) -> bytes:
        """Return the events that the response was created and is under way."""
        return self._lifecycle(b"response.created", self._snapshot(b"in_progress")) + self.ping()

    def feed(self, chunk: Chunk) -> bytes:
        """Return the events that one piece becomes, or nothing."""
        if isinstance(chunk, TextDelta):
            if isinstance(self._open, MessageItem):
                return self._open.feed(chunk.text)
            return self._begin(MessageItem(self._numbering, self._call, self._next_index()), chunk.text)
        if isinstance(chunk, ToolDelta):
            return self._open.feed(chunk.text) if self._open is not None else b""
        if isinstance(chunk, ThinkingDelta):
            if isinstance(self._open, ReasoningItem):
                return self._open.feed(chunk.text)
            item = ReasoningItem(self._numbering, self._call, self._next_index(), self._hidden)
            return self._begin(item, chunk.text)
        if isinstance(chunk, ToolStart):
            return self._begin(self._call_item(chunk))
        if isinstance(chunk, ToolEnd):
            return self._close()
        return b""

    def end(self, chunk: Chunk, ending: Ending) -> bytes:
        """Return how the response ends: completed, or incomplete with the reason."""
        if not isinstance(chunk, End):
            return b""
        reason = _INCOMPLETE.get(chunk.stop_reason)
        status = b"completed" if reason is None else b"incomplete"
        closed = self._close(status)
        self.response = self._snapshot(
            status, incomplete_details=reason or b"null", usage=usage_bytes(chunk.usage)
        )
        return closed + self._lifecycle(b"response." + status, self.response)

    def ping(self) -> bytes:
        """Return that the response is still under way: Codex's idle time-out takes no notice of comments."""
        return self._lifecycle(b"response.in_progress", self._snapshot(b"in_progress"))

    def error(self, status: int, code: str, detail: str) -> bytes:
        """Return that the response failed; an open item stays open, as it is not whole."""
        failure = _encode(Failure(error_code(code), detail))
        return self._lifecycle(b"response.failed", self._snapshot(b"failed", error=failure))

    def _begin(self, item: Item, text: str = "") -> bytes:
        begun = self._close() + item.open()
        self._open = item
        return begun + item.feed(text) if text else begun

    def _close(self, status: bytes = b"completed") -> bytes:
        item = self._open
        if item is None:
            return b""
        self._open = None
        closed = item.close(status)
        self._done.append(item.done)
        return closed

    def _next_index(self) -> int:
        return len(self._done) + (self._open is not None)

    def _call_item(self, chunk: ToolStart) -> Item:
        index = self._next_index()
        tool = self._mapped.get(chunk.name)
        if tool is not None and tool.custom:
            return CustomCallItem(self._numbering, self._call, index, chunk, tool)
        return CallItem(self._numbering, self._call, index, chunk, tool)

    def _lifecycle(self, name: bytes, response: bytes) -> bytes:
        return self._numbering.event(name, b'"response":' + response)

    def _snapshot(
        self,
        status: bytes,
        error: bytes = b"null",
        incomplete_details: bytes = b"null",
        usage: bytes = b"null",
    ) -> bytes:
        return b'%s,"status":"%s","error":%s,"incomplete_details":%s,"output":[%s],"usage":%s}' % (
            self._fixed,
            status,
            error,
            incomplete_details,
            b",".join(self._done),
            usage,
        )
