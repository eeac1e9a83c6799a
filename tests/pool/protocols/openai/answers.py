"""Answers of models for the tests of both OpenAI protocols: strategies, and what an answer amounts to."""

import json
from itertools import chain

from hypothesis import strategies as st

from herdr.pool.chunk import (
    Chunk,
    End,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolDelta,
    ToolEnd,
    ToolStart,
    Usage,
)
from herdr.pool.protocols.dialect import Ending, Opening
from herdr.pool.request import Part, Text, Thinking, ToolUse

OPENING = Opening("01CALL", 'mo"del', "agent", 0, 1, 1_700_000_000)
ENDING = Ending(1, 2, 3)
STOP_REASONS = ("end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "context_full")

pieces = st.lists(
    st.sampled_from(["a", " word", "\n\n", "data: x\n\n", '"', "\\", "渐", "😀", "%s", "\u2028", "\x00"]),
    min_size=1,
    max_size=4,
)
arguments = st.dictionaries(st.text(max_size=3), st.text(max_size=4), max_size=2).map(json.dumps)


@st.composite
def calls(draw: st.DrawFn, name: st.SearchStrategy[str]) -> list[Chunk]:
    text = draw(st.one_of(st.just(""), arguments))
    size = draw(st.integers(1, 5))
    deltas = [ToolDelta(text[i : i + size]) for i in range(0, len(text), size)]
    return [ToolStart(f"call_{draw(st.integers(0, 10**9))}", draw(name)), *deltas, ToolEnd()]


def runs(name: st.SearchStrategy[str]) -> st.SearchStrategy[list[Chunk]]:
    return st.one_of(
        pieces.map(lambda texts: [TextDelta(text) for text in texts]),
        pieces.map(lambda texts: [ThinkingDelta(text) for text in texts]),
        calls(name),
        st.just([Progress(9, 1, 3)]),
    )


def answers(
    name: st.SearchStrategy[str] = st.sampled_from(["shell", "read_file"]),  # noqa: B008
    stop_reasons: tuple[str, ...] = STOP_REASONS,
) -> st.SearchStrategy[list[Chunk]]:
    ends = st.sampled_from(stop_reasons).map(lambda reason: End(reason, Usage(10, 4, 7, 2)))  # type: ignore[arg-type]
    return st.tuples(st.lists(runs(name), max_size=5), ends).map(lambda x: [*chain(*x[0]), x[1]])


def parts_of(chunks: list[Chunk]) -> list[Part]:
    """What a model said, in order: pieces of one kind in a row are one part."""
    found: list[Part] = []
    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            before = found.pop().text if found and isinstance(found[-1], Text) else ""
            found.append(Text(before + chunk.text))
        elif isinstance(chunk, ThinkingDelta):
            before = found.pop().text if found and isinstance(found[-1], Thinking) else ""
            found.append(Thinking(before + chunk.text))
        elif isinstance(chunk, ToolStart):
            found.append(ToolUse(chunk.id, chunk.name, ""))
        elif isinstance(chunk, ToolDelta):
            call = found.pop()
            assert isinstance(call, ToolUse)
            found.append(ToolUse(call.id, call.name, call.arguments + chunk.text))
        elif isinstance(chunk, ToolEnd):
            call = found.pop()
            assert isinstance(call, ToolUse)
            found.append(ToolUse(call.id, call.name, call.arguments or "{}"))
    return found
