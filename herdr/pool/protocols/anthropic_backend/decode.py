"""Pure: the stream of a backend that speaks Anthropic's Messages API, as neutral chunks."""

from herdr.pool.chunk import (
    Chunk,
    End,
    Progress,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCalls,
    Usage,
    Verbatim,
)
from herdr.pool.failures import ModelError
from herdr.pool.protocols.anthropic_backend import events
from herdr.pool.protocols.anthropic_backend.calls import Calls
from herdr.pool.protocols.json_text import on_one_line
from herdr.pool.protocols.refusal import stream_failure
from herdr.pool.protocols.stream_reader import StreamReader

_REASONS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_use",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_full",
    "pause_turn": "end_turn",  # only with tools that the API itself runs, which other protocols lack
}
_CUT = ("max_tokens", "context_full", "refusal")
"""Reasons with which the last call's arguments may well be cut off."""


class MessagesDecoder(StreamReader):
    """Reads one answer. With `verbatim`, each event also comes as it is, directly before what it means.

    Pings never do, since the gateway makes its own. The model's name stays the backend's.
    """

    def __init__(self, *, verbatim: bool, tool_calls: ToolCalls = "buffer") -> None:
        super().__init__()
        self._verbatim = verbatim
        self._calls = Calls(tool_calls)
        self._counts: dict[str, int] = {}
        self._reason: str | None = None
        self._sequence: str | None = None

    def _event(self, event: str, data: bytes, out: list[Chunk]) -> None:
        out += self._take(event, data)

    def _take(self, name: str, data: bytes) -> list[Chunk]:
        if name == "error":
            raise stream_failure(data)
        event = events.read_event(data)
        kind = event.type or name
        if kind == "error" or (not event.type and event.error):
            raise stream_failure(data)
        if kind == "ping":
            return []
        self.heard += 1
        read = self._read(kind, event)
        return [_as_it_came(name or kind, data), *read] if self._verbatim else read

    def _read(self, kind: str, event: events.Event) -> list[Chunk]:
        if kind == "message_start":
            return self._start(event)
        if kind not in _KNOWN:
            return []
        if not self._begun:
            raise ModelError("backend_failed", f"the backend sent {kind} before message_start")
        if kind == "content_block_delta":
            return self._gain(event.index, event.delta)
        if kind == "content_block_start":
            return self._open(event.index, event.content_block)
        if kind == "content_block_stop":
            return self._calls.stop(event.index)
        if kind == "message_delta":
            return self._total(event)
        return self._end()

    def _start(self, event: events.Event) -> list[Chunk]:
        self._begun = True
        if event.message is not None:
            self._count(event.message.usage)
        usage = self._usage()
        return [Progress(usage.prompt, usage.cached, usage.prompt)] if usage.prompt else []

    def _open(self, index: int, block: events.Block | None) -> list[Chunk]:
        if block is None:
            return []
        if block.type == "tool_use":
            return self._calls.start(index, block.id, block.name, _filled(block))
        ended = self._calls.interrupt()
        if block.type == "text" and block.text:
            return [*ended, TextDelta(block.text)]
        if block.type == "thinking" and block.thinking:
            return [*ended, ThinkingDelta(block.thinking)]
        return ended

    def _gain(self, index: int, delta: events.Delta | None) -> list[Chunk]:
        if delta is None:
            return []
        if delta.type == "text_delta" and delta.text:
            return [*self._calls.interrupt(), TextDelta(delta.text)]
        if delta.type == "thinking_delta" and delta.thinking:
            return [*self._calls.interrupt(), ThinkingDelta(delta.thinking)]
        if delta.type == "input_json_delta":
            return self._calls.add(index, delta.partial_json)
        return []

    def _total(self, event: events.Event) -> list[Chunk]:
        self._count(event.usage)
        if event.delta is not None:
            self._reason = event.delta.stop_reason or self._reason
            self._sequence = event.delta.stop_sequence or self._sequence
        return []

    def _end(self) -> list[Chunk]:
        left = self._calls.stop_all()
        reason = _REASONS.get(self._reason or "end_turn", "end_turn")
        broken = self._calls.broken
        if broken is not None and reason not in _CUT and not self._verbatim:
            raise ModelError(
                "backend_failed", f"the model called {broken!r:.80} with arguments that are no JSON object"
            )
        if reason == "end_turn" and self._calls.seen:
            reason = "tool_use"
        self.ended = True
        return [*left, End(reason, self._usage(), self._sequence)]

    def _count(self, usage: events.Usage | None) -> None:
        """Take counts as far as they say something: later ones are cumulative, but may be null or 0."""
        if usage is None:
            return
        details = usage.output_tokens_details
        counts = {
            "input": usage.input_tokens,
            "read": usage.cache_read_input_tokens,
            "created": usage.cache_creation_input_tokens,
        }
        if any(counts.values()):
            self._counts |= {name: count for name, count in counts.items() if count is not None}
        if usage.output_tokens is not None:
            self._counts["output"] = usage.output_tokens
        if details is not None and details.thinking_tokens is not None:
            self._counts["reasoning"] = details.thinking_tokens

    def _usage(self) -> Usage:
        """Return the neutral counts; the API's three of the prompt are parts of it that do not overlap."""
        get = self._counts.get
        cached = get("read", 0)
        prompt = get("input", 0) + cached + get("created", 0)
        return Usage(prompt, cached, get("output", 0), get("reasoning", 0))


_KNOWN = events.MESSAGES | {"content_block_start", "content_block_delta"}


def _filled(block: events.Block) -> str:
    text = bytes(block.input).decode()
    return "" if text in ("{}", "null") else text


def _as_it_came(event: str, data: bytes) -> Verbatim:
    """Return an event as it came, checked to be UTF-8, on one line."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise ModelError("backend_failed", f"the backend sent text that is not UTF-8: {error}") from None
    return Verbatim(event, on_one_line(data))
