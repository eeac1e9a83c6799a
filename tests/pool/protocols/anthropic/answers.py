"""Answers of a model, made up: single ones and strategies for hypothesis."""

import json
from collections.abc import Iterable
from itertools import chain, pairwise

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
    Verbatim,
)
from herdr.pool.protocols import anthropic
from herdr.pool.protocols.dialect import Ending, Opening
from herdr.pool.request import ChatRequest, Part, Text, Thinking, ToolUse

OPENING = Opening("01J", "claude-opus-5-5", "main", 0, 3, 1_700_000_000, Usage(100, 40))
ENDING = Ending(3, 20, 50)
REQUEST = ChatRequest("claude-opus-5-5", ())
HIDDEN = ChatRequest("claude-opus-5-5", (), hide_thinking=True)
DONE = End("end_turn", Usage(100, 40, 7))

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def stream_of(chunks: Iterable[Chunk], request: ChatRequest = REQUEST) -> bytes:
    """Return the whole stream of an answer; the last chunk is its end."""
    *deltas, end = chunks
    encoder = anthropic.encoder(OPENING, request)
    return encoder.start() + b"".join(map(encoder.feed, deltas)) + encoder.end(end, ENDING)


def _call(name: str, arguments: str, cuts: list[int]) -> list[Chunk]:
    edges = sorted({0, len(arguments), *(cut % (len(arguments) + 1) for cut in cuts)})
    pieces = [arguments[a:b] for a, b in pairwise(edges)]
    return [ToolStart(f"toolu_{name}", name), *(ToolDelta(piece) for piece in pieces), ToolEnd()]


objects = st.dictionaries(texts, texts | st.integers() | st.lists(texts), max_size=3).map(json.dumps)
calls = st.builds(
    _call, st.sampled_from(["Bash", "Read"]), st.just("") | objects, st.lists(st.integers(0, 99), max_size=5)
)
deltas = st.builds(TextDelta, texts) | st.builds(ThinkingDelta, texts) | st.just(Progress(10, 0, 5))
runs = st.lists(deltas, max_size=4) | calls
ends = st.builds(
    End,
    st.sampled_from(["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "context_full"]),
    st.builds(Usage, *[st.integers(0, 2**40)] * 3),
)
answers = st.builds(lambda parts, end: [*chain.from_iterable(parts), end], st.lists(runs, max_size=6), ends)
"""Answers as decoders give them."""

chaos = st.lists(
    deltas
    | st.builds(ToolStart, texts, texts)
    | st.builds(TextDelta, st.just(""))
    | st.just(ToolDelta("{}"))
    | st.just(ToolEnd())
    | st.just(Verbatim("ping", b"{}")),
    max_size=20,
)
"""Chunks in any order, which decoders must not give."""


def parts_in(chunks: Iterable[Chunk]) -> tuple[Part, ...]:
    """Return the parts that an answer's chunks make up, told simply."""
    parts: list[Part] = []
    for chunk in chunks:
        last = parts[-1] if parts else None
        match chunk, last:
            case TextDelta(text), Text(before):
                parts[-1] = Text(before + text)
            case TextDelta(text), _:
                parts.append(Text(text))
            case ThinkingDelta(text), Thinking(before):
                parts[-1] = Thinking(before + text)
            case ThinkingDelta(text), _:
                parts.append(Thinking(text))
            case ToolStart(id, name), _:
                parts.append(ToolUse(id, name, ""))
            case ToolDelta(text), ToolUse(id, name, before):
                parts[-1] = ToolUse(id, name, before + text)
    return tuple(parts)
