"""Pure: an answer as one chat completion, for clients that do not stream."""

from collections.abc import Sequence

import msgspec

from herdr.pool.chunk import Chunk, End, TextDelta, ThinkingDelta, ToolDelta, ToolStart
from herdr.pool.protocols.dialect import Ending, Opening
from herdr.pool.protocols.openai.encode import TokenUsage, finish_reason, token_usage
from herdr.pool.request import ChatRequest

_encode = msgspec.json.Encoder().encode


class FunctionCall(msgspec.Struct):
    """What is called, with its arguments as JSON text."""

    name: str
    arguments: str


class ToolCall(msgspec.Struct):
    """One tool call."""

    id: str
    function: FunctionCall
    type: str = "function"


class Reply(msgspec.Struct):
    """The assistant's message."""

    content: str | None
    role: str = "assistant"
    refusal: None = None
    reasoning_content: str | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[ToolCall] | msgspec.UnsetType = msgspec.UNSET


class Choice(msgspec.Struct):
    """The only choice."""

    message: Reply
    finish_reason: str
    index: int = 0
    logprobs: None = None


class Completion(msgspec.Struct):
    """The whole answer."""

    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: TokenUsage
    object: str = "chat.completion"


def whole(opening: Opening, request: ChatRequest, chunks: Sequence[Chunk], ending: Ending) -> bytes:
    """Return the whole answer as one JSON object; `chunks` ends with the answer's `End`."""
    end = next(chunk for chunk in reversed(chunks) if isinstance(chunk, End))
    calls = _calls(chunks)
    text = "".join([chunk.text for chunk in chunks if isinstance(chunk, TextDelta)])
    thinking = "".join([chunk.text for chunk in chunks if isinstance(chunk, ThinkingDelta)])
    reply = Reply(
        content=None if calls and not text else text,
        reasoning_content=thinking or msgspec.UNSET,
        tool_calls=calls or msgspec.UNSET,
    )
    choice = Choice(reply, finish_reason(end.stop_reason, bool(calls)))
    return _encode(
        Completion(
            f"chatcmpl-{opening.call}", opening.created, opening.model, [choice], token_usage(end.usage)
        )
    )


def _calls(chunks: Sequence[Chunk]) -> list[ToolCall]:
    calls: list[ToolCall] = []
    written: list[list[str]] = []
    for chunk in chunks:
        if isinstance(chunk, ToolStart):
            calls.append(ToolCall(chunk.id, FunctionCall(chunk.name, "{}")))
            written.append([])
        elif isinstance(chunk, ToolDelta):
            written[-1].append(chunk.text)
    for call, pieces in zip(calls, written, strict=True):
        if pieces:
            call.function.arguments = "".join(pieces)
    return calls
