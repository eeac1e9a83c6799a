from typing import Any

import msgspec
import pytest
from pool.protocols.anthropic.answers import DONE, ENDING, OPENING, REQUEST

from herdr.pool.chunk import Chunk, End, TextDelta, ThinkingDelta, ToolDelta, ToolEnd, ToolStart, Usage
from herdr.pool.failures import ModelError
from herdr.pool.protocols import anthropic


def whole(*chunks: Chunk) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.json.decode(anthropic.whole(OPENING, REQUEST, chunks, ENDING))
    return answer


def call(arguments: str) -> list[Chunk]:
    return [ToolStart("t", "Bash"), ToolDelta(arguments), ToolEnd()]


def test_text_reasoning_and_calls_are_all_there() -> None:
    assert whole(ThinkingDelta("w"), ThinkingDelta("hy"), TextDelta("so"), *call('{"a": 1.10}'), DONE) == {
        "id": "msg_01J",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [
            {"type": "thinking", "thinking": "why", "signature": "herdr1:"},
            {"type": "text", "text": "so"},
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"a": 1.1}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 60,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 40,
            "output_tokens": 7,
        },
    }


def test_arguments_keep_the_models_own_text() -> None:
    body = anthropic.whole(OPENING, REQUEST, [*call('{"z": 1.10,\n"a": 1}'), DONE], ENDING)
    assert b'"input":{"z": 1.10,\n"a": 1}' in body


@pytest.mark.parametrize("reason", ["max_tokens", "context_full"])
def test_a_call_that_was_cut_off_is_left_out(reason: Any) -> None:
    answer = whole(TextDelta("a"), *call('{"command": "rm -rf /tm'), End(reason, Usage(1, 0, 9)))
    assert [block["type"] for block in answer["content"]] == ["text"]
    assert answer["stop_reason"] in ("max_tokens", "model_context_window_exceeded")


@pytest.mark.parametrize("arguments", ["{", "[]", "x", "{}{}", '{"a":' * 100_000])
def test_arguments_that_are_no_object_fail_the_call(arguments: str) -> None:
    with pytest.raises(ModelError, match="'Bash' with arguments that are no JSON"):
        whole(*call(arguments), DONE)


@pytest.mark.parametrize("chunks", [[], [TextDelta("a")]])
def test_an_answer_without_an_end_is_a_failure(chunks: list[Chunk]) -> None:
    with pytest.raises(ModelError) as raised:
        whole(*chunks)
    assert raised.value.status == 502


def test_an_empty_answer() -> None:
    assert whole(DONE)["content"] == []


def test_counting() -> None:
    assert anthropic.count_body(42) == b'{"input_tokens":42}'
