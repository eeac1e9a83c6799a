"""Pure: neutral chunks → the whole answer as one message."""

from collections.abc import Sequence

import msgspec

from herdr.pool.chunk import Chunk, End, TextDelta, ThinkingDelta, ToolDelta, ToolStart, Verbatim
from herdr.pool.failures import ModelError
from herdr.pool.protocols.anthropic.answer import (
    Answer,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    opened,
    stopped,
    tokens,
)
from herdr.pool.protocols.anthropic.verbatim import assembled
from herdr.pool.protocols.carried import pack
from herdr.pool.protocols.dialect import Ending, Opening
from herdr.pool.protocols.json_text import object_raw
from herdr.pool.request import ChatRequest

_CUT = frozenset({"max_tokens", "context_full"})  # these may end in the middle of a call's arguments

_encode = msgspec.json.Encoder().encode


class _Count(msgspec.Struct):
    input_tokens: int


def whole(opening: Opening, request: ChatRequest, chunks: Sequence[Chunk], ending: Ending) -> bytes:
    """Return the answer that the chunks make up, for a client that does not stream.

    Raises ModelError when a call's arguments are no JSON object though the model was not cut short.
    """
    if passed_on := [chunk for chunk in chunks if isinstance(chunk, Verbatim)]:
        return assembled(passed_on)
    answer = opened(opening)
    end = _fill(answer, chunks, request.hide_thinking)
    calls = any(type(block) is ToolUseBlock for block in answer.content)
    answer.stop_reason, answer.stop_sequence = stopped(end, calls)
    answer.usage = tokens(end.usage)
    return _encode(answer)


def count_body(count: int) -> bytes:
    """Return the answer of `count_tokens`."""
    return _encode(_Count(count))


def _fill(answer: Answer, chunks: Sequence[Chunk], hide: bool) -> End:
    end = chunks[-1] if chunks else None
    if type(end) is not End:
        raise ModelError("backend_failed", "the backend's answer has no end; try again")
    for head, texts in _runs(chunks):
        text = "".join(texts)
        if isinstance(head, ToolStart):
            answer.content += _call(head, text, end.stop_reason in _CUT)
        elif head is TextDelta:
            answer.content.append(TextBlock(text))
        else:
            answer.content.append(ThinkingBlock("" if hide else text, pack(text if hide else "")))
    return end


def _runs(chunks: Sequence[Chunk]) -> list[tuple[ToolStart | type[Chunk], list[str]]]:
    """Return each block's head, a call or the kind of its deltas, and its pieces."""
    runs: list[tuple[ToolStart | type[Chunk], list[str]]] = []
    for chunk in chunks:
        if isinstance(chunk, ToolStart):
            runs.append((chunk, []))
        elif isinstance(chunk, TextDelta | ThinkingDelta) and chunk.text:
            if not runs or runs[-1][0] is not type(chunk):
                runs.append((type(chunk), []))
            runs[-1][1].append(chunk.text)
        elif isinstance(chunk, ToolDelta) and runs and isinstance(runs[-1][0], ToolStart):
            runs[-1][1].append(chunk.text)
    return runs


def _call(head: ToolStart, arguments: str, cut: bool) -> list[ToolUseBlock]:
    """Return the call, or nothing for one whose arguments were cut off: half of them must not be run."""
    written = object_raw(arguments)
    if written is not None:
        return [ToolUseBlock(head.id, head.name, written)]
    if cut:
        return []
    raise ModelError(
        "backend_failed", f"the model called {head.name!r:.80} with arguments that are no JSON; try again"
    )
