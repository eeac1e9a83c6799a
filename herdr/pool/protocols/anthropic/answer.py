"""Pure: what a streamed and a whole answer have in common: the message's frame, its usage, why it stopped."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from herdr.pool.chunk import End, StopReason, Usage
from herdr.pool.protocols.dialect import Opening

_STOP_REASONS: Mapping[StopReason, str] = MappingProxyType(
    {
        "end_turn": "end_turn",
        "max_tokens": "max_tokens",
        "stop_sequence": "stop_sequence",
        "tool_use": "tool_use",
        "refusal": "refusal",
        "context_full": "model_context_window_exceeded",
    }
)
_WHOLE_TURNS = ("end_turn", "stop_sequence", "tool_use")


class Tokens(msgspec.Struct):
    """Usage as clients add it up: the prompt is the sum of the first three. Always all four integers."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    output_tokens: int


class TextBlock(msgspec.Struct, tag="text"):
    """A block of text."""

    text: str


class ThinkingBlock(msgspec.Struct, tag="thinking"):
    """A block of reasoning; `signature` is what the client must send back with it."""

    thinking: str
    signature: str


class ToolUseBlock(msgspec.Struct, tag="tool_use"):
    """A call."""

    id: str
    name: str
    input: msgspec.Raw


class Answer(msgspec.Struct, tag="message"):
    """The message, empty at the start of a stream."""

    id: str
    role: str
    model: str
    content: list[TextBlock | ThinkingBlock | ToolUseBlock]
    stop_reason: str | None
    stop_sequence: str | None
    usage: Tokens


def tokens(usage: Usage) -> Tokens:
    """Return the usage in Anthropic's terms, where cached tokens do not count as input."""
    return Tokens(max(0, usage.prompt - usage.cached), 0, usage.cached, usage.output)


def opened(opening: Opening) -> Answer:
    """Return the message as it stands before its first token."""
    return Answer(f"msg_{opening.call}", "assistant", opening.model, [], None, None, tokens(opening.usage))


def stopped(end: End, calls: bool) -> tuple[str, str | None]:
    """Return why the answer stopped, and at which stop sequence; `calls`: tools were called.

    Clients run tools only at `tool_use`, so it wins over whatever else ends a whole turn.
    """
    if end.stop_reason in _WHOLE_TURNS and calls:
        return "tool_use", None
    if end.stop_reason == "tool_use":
        return "end_turn", None
    return _STOP_REASONS[end.stop_reason], end.stop_sequence
