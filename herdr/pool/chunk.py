"""Pure: what comes out of a model, whichever backend it runs on, piece by piece.

The order of one answer: `Progress`*, then deltas, then exactly one `End`. A tool call is `ToolStart`,
`ToolDelta`*, `ToolEnd`, and nothing of another kind comes in between, so that every encoder has at most one
block open. A failure is an exception (`herdr.pool.failures.ModelError`), never a chunk.
"""

from typing import Literal

import msgspec

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "context_full"]
ToolCalls = Literal["buffer", "stream"]
"""Whether tool calls are held until they are whole and valid, or passed on in fragments."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call. `prompt` is the whole prompt; `cached` of it came out of the KV cache."""

    prompt: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    """Of `output`, where the backend says so."""


class Progress(msgspec.Struct, frozen=True):
    """The prompt is being evaluated: `processed` of `total` tokens, `cached` of them for nothing."""

    total: int
    cached: int
    processed: int


class TextDelta(msgspec.Struct, frozen=True):
    """More of the answer's text; never empty."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True):
    """More of the reasoning; never empty."""

    text: str


class ToolStart(msgspec.Struct, frozen=True):
    """A tool call begins."""

    id: str
    name: str


class ToolDelta(msgspec.Struct, frozen=True):
    """More of the open call's arguments, as JSON text that may be split anywhere; never empty."""

    text: str


class ToolEnd(msgspec.Struct, frozen=True):
    """The open call is whole; its arguments together are one JSON object (no delta at all means `{}`)."""


class Verbatim(msgspec.Struct, frozen=True):
    """One event of an Anthropic backend as it came, on one line, for clients that speak Anthropic themselves.

    It comes beside the chunks that were read out of it; an encoder uses either these or those.
    """

    event: str
    data: bytes


class Timings(msgspec.Struct, frozen=True):
    """What a backend says of its own work, milliseconds; 0 where it says nothing."""

    prompt_ms: float = 0
    output_ms: float = 0


class End(msgspec.Struct, frozen=True):
    """The answer is complete."""

    stop_reason: StopReason
    usage: Usage
    stop_sequence: str | None = None
    timings: Timings = Timings()


Chunk = Progress | TextDelta | ThinkingDelta | ToolStart | ToolDelta | ToolEnd | Verbatim | End
