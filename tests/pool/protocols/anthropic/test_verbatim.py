import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from pool.protocols.anthropic.answers import DONE, ENDING, OPENING, REQUEST, answers, stream_of
from pool.protocols.anthropic.strict_reader import read_whole, split_events

from herdr.pool.chunk import Chunk, TextDelta, Verbatim
from herdr.pool.failures import ModelError
from herdr.pool.protocols import anthropic


def whole(*events: dict[str, Any], beside: tuple[Chunk, ...] = (DONE,)) -> dict[str, Any]:
    chunks = [Verbatim(event["type"], json.dumps(event).encode()) for event in events]
    answer: dict[str, Any] = msgspec.json.decode(
        anthropic.whole(OPENING, REQUEST, [*chunks, *beside], ENDING)
    )
    return answer


START: dict[str, Any] = {
    "type": "message_start",
    "message": {"id": "msg_up", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}},
}
DELTA: dict[str, Any] = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"output_tokens": 5, "input_tokens": None},
}


def block(start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


def test_what_only_the_backend_knows_is_kept() -> None:
    citation = {"type": "char_location", "cited_text": "x"}
    answer = whole(
        START,
        {"type": "ping"},
        *block(
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "w"},
            {"type": "thinking_delta", "thinking": "hy"},
            {"type": "signature_delta", "signature": "EqQB"},
        ),
        *block({"type": "redacted_thinking", "data": "Emw"}),
        *block(
            {"type": "text", "text": ""},
            {"type": "citations_delta", "citation": citation},
            {"type": "text_delta", "text": "so"},
            {"type": "future_delta", "x": 1},
        ),
        *block(
            {"type": "tool_use", "id": "t", "name": "N", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"a"'},
            {"type": "input_json_delta", "partial_json": ": 1}"},
        ),
        *block({"type": "tool_use", "id": "u", "name": "N", "input": {}}),
        DELTA,
        {"type": "message_stop"},
        beside=(TextDelta("not twice"), DONE),
    )
    assert answer == {
        "id": "msg_up",
        "content": [
            {"type": "thinking", "thinking": "why", "signature": "EqQB"},
            {"type": "redacted_thinking", "data": "Emw"},
            {"type": "text", "text": "so", "citations": [citation]},
            {"type": "tool_use", "id": "t", "name": "N", "input": {"a": 1}},
            {"type": "tool_use", "id": "u", "name": "N", "input": {}},
        ],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 5},
    }


@pytest.mark.parametrize("reason", ["max_tokens", "tool_use"])
def test_a_call_that_was_cut_off_is_not_run(reason: str) -> None:
    events = [
        START,
        *block(
            {"type": "tool_use", "id": "t", "name": "N", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"a'},
        ),
        {**DELTA, "delta": {"stop_reason": reason}},
    ]
    if reason == "max_tokens":
        assert whole(*events)["content"] == []
    else:
        with pytest.raises(ModelError, match="not whole"):
            whole(*events)


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "ping"}],
        [{"type": "message_start", "message": 7}],
        [START, *block({"type": "text", "text": ""}, {"type": "text_delta", "text": 7})],
        [START, *block({"type": "text", "text": 7}, {"type": "text_delta", "text": "a"})],
    ],
)
def test_events_that_make_no_message_fail_the_call(events: list[dict[str, Any]]) -> None:
    with pytest.raises(ModelError) as raised:
        whole(*events)
    assert raised.value.status == 502


@given(answers)
def test_a_stream_of_ours_comes_out_as_it_went_in(chunks: list[Chunk]) -> None:
    stream = stream_of(chunks)
    events = [data for _, data in split_events(stream)]
    assert whole(*events) == read_whole(stream)
