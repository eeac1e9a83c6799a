"""Pure: an answer as a stream of chat completion chunks."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from herdr.pool.chunk import (
    Chunk,
    End,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolDelta,
    ToolEnd,
    ToolStart,
    Usage,
)
from herdr.pool.protocols.dialect import Ending, Opening
from herdr.pool.protocols.openai.failures import error_body
from herdr.pool.request import ChatRequest

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"

_FINISH_REASONS: Mapping[StopReason, str] = MappingProxyType(
    {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "context_full": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    }
)
_CLOSE = b"}\n\n"
_encode = msgspec.json.Encoder().encode


class PromptDetails(msgspec.Struct):
    """How much of the prompt was in the cache."""

    cached_tokens: int


class CompletionDetails(msgspec.Struct):
    """How much of the answer was reasoning."""

    reasoning_tokens: int


class TokenUsage(msgspec.Struct):
    """Tokens of one call; the details are parts of the numbers before them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


def token_usage(usage: Usage) -> TokenUsage:
    """Return a call's tokens in OpenAI's names."""
    return TokenUsage(
        usage.prompt,
        usage.output,
        usage.prompt + usage.output,
        PromptDetails(usage.cached),
        CompletionDetails(usage.reasoning),
    )


def finish_reason(stop_reason: StopReason, has_calls: bool) -> str:
    """Return why the answer ended; a call that is to be answered outweighs that the model simply stopped."""
    if has_calls and stop_reason in ("end_turn", "stop_sequence"):
        return "tool_calls"
    return _FINISH_REASONS[stop_reason]


def encoder(opening: Opening, request: ChatRequest) -> "ChatEncoder":
    """Return the writer of one stream."""
    return ChatEncoder(opening, request.include_usage)


class ChatEncoder:
    """Writes chunks. Everything that is the same in all of them is encoded once."""

    def __init__(self, opening: Opening, include_usage: bool) -> None:
        head = b'data: {"id":%s,"object":"chat.completion.chunk","created":%d,"model":%s,"choices":[' % (
            _encode(f"chatcmpl-{opening.call}"),
            opening.created,
            _encode(opening.model),
        )
        self._head = head
        self._include_usage = include_usage
        self._delta = head + b'{"index":0,"delta":{'
        self._text = self._delta + b'"content":'
        self._thinking = self._delta + b'"reasoning_content":'
        self._after = b',"usage":null}\n\n' if include_usage else _CLOSE
        self._end = b'},"finish_reason":null}]' + self._after
        self._calls = 0
        self._has_arguments = True

    def start(self) -> bytes:
        """Return the chunk that names the role."""
        return self._delta + b'"role":"assistant","content":""' + self._end

    def feed(self, chunk: Chunk) -> bytes:
        """Return the chunk that one piece becomes, or nothing."""
        if isinstance(chunk, TextDelta):
            return self._text + _encode(chunk.text) + self._end
        if isinstance(chunk, ToolDelta):
            self._has_arguments = True
            return self._arguments(chunk.text)
        if isinstance(chunk, ThinkingDelta):
            return self._thinking + _encode(chunk.text) + self._end
        if isinstance(chunk, ToolStart):
            return self._start_call(chunk)
        if isinstance(chunk, ToolEnd) and not self._has_arguments:
            return self._arguments("{}")
        return b""

    def end(self, chunk: Chunk, ending: Ending) -> bytes:
        """Return why the answer ended, its tokens if the client wants them, and the mark of a clean end."""
        if not isinstance(chunk, End):
            return b""
        reason = finish_reason(chunk.stop_reason, self._calls > 0)
        last = self._delta + b'},"finish_reason":%s}]' % _encode(reason) + self._after
        if self._include_usage:
            last += self._head + b'],"usage":' + _encode(token_usage(chunk.usage)) + _CLOSE
        return last + DONE

    def ping(self) -> bytes:
        """Return a comment, which clients skip."""
        return KEEP_ALIVE

    def error(self, status: int, code: str, detail: str) -> bytes:
        """Return the error, and no `[DONE]`: clients must not take what came before for the whole answer."""
        return b"data: " + error_body(status, code, detail, "") + b"\n\n"

    def _start_call(self, chunk: ToolStart) -> bytes:
        index = self._calls
        self._calls += 1
        self._has_arguments = False
        call = b'"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]'
        return self._delta + call % (index, _encode(chunk.id), _encode(chunk.name)) + self._end

    def _arguments(self, text: str) -> bytes:
        call = b'"tool_calls":[{"index":%d,"function":{"arguments":%s}}]'
        return self._delta + call % (self._calls - 1, _encode(text)) + self._end
