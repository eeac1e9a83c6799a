"""Pure: an answer of `/v1/chat` as one JSON object, for `"stream": false`."""

from collections.abc import Iterator, Sequence

import msgspec

from herdr.pool.chunk import Chunk, End, TextDelta, ThinkingDelta, ToolDelta, ToolEnd, ToolStart
from herdr.pool.inset import Report
from herdr.pool.protocols.dialect import Ending, Opening
from herdr.pool.protocols.herdr.encode import Tokens, ToolCall, context_of, tokens, tool_call
from herdr.pool.request import ChatRequest

_encode = msgspec.json.Encoder().encode


class Whole(msgspec.Struct):
    """The whole answer; clients may send its `content`, `thinking` and `tool_calls` back as a message."""

    call: str
    model: str
    agent: str
    slot: int | None
    content: str
    thinking: str | msgspec.UnsetType
    tool_calls: list[ToolCall]
    stop_reason: str
    stop_sequence: str | msgspec.UnsetType
    usage: Tokens
    timings: Ending
    context: Report | msgspec.UnsetType


def whole(opening: Opening, request: ChatRequest, chunks: Sequence[Chunk], ending: Ending) -> bytes:
    """Return the whole answer."""
    end = next(chunk for chunk in chunks if isinstance(chunk, End))
    thinking = "".join([chunk.text for chunk in chunks if isinstance(chunk, ThinkingDelta)])
    answer = Whole(
        call=opening.call,
        model=opening.model,
        agent=opening.agent,
        slot=opening.slot,
        content="".join([chunk.text for chunk in chunks if isinstance(chunk, TextDelta)]),
        thinking=thinking or msgspec.UNSET,
        tool_calls=list(_calls(chunks)),
        stop_reason=end.stop_reason,
        stop_sequence=msgspec.UNSET if end.stop_sequence is None else end.stop_sequence,
        usage=tokens(end.usage),
        timings=ending,
        context=context_of(opening),
    )
    return _encode(answer)


def _calls(chunks: Sequence[Chunk]) -> Iterator[ToolCall]:
    start: ToolStart | None = None
    arguments: list[str] = []
    for chunk in chunks:
        if isinstance(chunk, ToolStart):
            start, arguments = chunk, []
        elif isinstance(chunk, ToolDelta):
            arguments.append(chunk.text)
        elif isinstance(chunk, ToolEnd) and start is not None:
            call = tool_call(start, "".join(arguments))
            if call is not None:
                yield call
