"""Streams of chat completion chunks, read back by a small client of our own."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool.protocols.openai.answers import ENDING, OPENING, answers, parts_of

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
from herdr.pool.protocols import openai
from herdr.pool.protocols.dialect import Dialect
from herdr.pool.request import ChatRequest, Message, Text, Thinking, ToolUse

PLAIN = ChatRequest("m", (Message("user", (Text("x"),)),))
WITH_USAGE = ChatRequest("m", PLAIN.messages, include_usage=True)


class Client:
    """Reads a stream as clients do, and complains about whatever it does not know."""

    def __init__(self, include_usage: bool = False) -> None:
        self.message: dict[str, Any] = {}
        self.calls: list[dict[str, Any]] = []
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.is_done = False
        self._include_usage = include_usage

    def read(self, stream: bytes) -> "Client":
        assert stream.endswith(b"\n\n")
        for block in stream.decode().removesuffix("\n\n").split("\n\n"):
            if block.startswith(":"):
                continue
            assert block.startswith("data: ") and "\n" not in block
            assert not self.is_done and self.error is None, "nothing comes after the end"
            data = block.removeprefix("data: ")
            if data == "[DONE]":
                self.is_done = True
            else:
                self._take(json.loads(data))
        return self

    def _take(self, chunk: dict[str, Any]) -> None:
        if "error" in chunk:
            self.error = chunk["error"]
            return
        assert chunk["id"] == "chatcmpl-01CALL" and chunk["object"] == "chat.completion.chunk"
        assert chunk["created"] == OPENING.created and chunk["model"] == OPENING.model
        assert ("usage" in chunk) == self._include_usage
        if not chunk["choices"]:
            assert self.finish_reason is not None
            self.usage = chunk["usage"]
            return
        assert chunk.get("usage") is None and self.usage is None
        (choice,) = chunk["choices"]
        assert choice["index"] == 0 and self.finish_reason is None
        self.finish_reason = choice["finish_reason"]
        self._merge(choice["delta"])

    def _merge(self, delta: dict[str, Any]) -> None:
        if not self.message:
            assert delta == {"role": "assistant", "content": ""}
            self.message = dict(delta)
            return
        assert len(delta) == (0 if self.finish_reason else 1)
        for fragment in delta.pop("tool_calls", []):
            self._merge_call(fragment)
        for key, text in delta.items():
            assert key in ("content", "reasoning_content") and text
            self.message[key] = self.message.get(key, "") + text

    def _merge_call(self, fragment: dict[str, Any]) -> None:
        if fragment["index"] == len(self.calls):
            assert fragment["id"] and fragment["type"] == "function" and fragment["function"]["name"]
            self.calls.append(fragment)
        else:
            assert fragment["index"] == len(self.calls) - 1 and set(fragment) == {"index", "function"}
            self.calls[-1]["function"]["arguments"] += fragment["function"]["arguments"]

    def history(self) -> dict[str, Any]:
        calls = [{k: v for k, v in call.items() if k != "index"} for call in self.calls]
        return self.message | ({"tool_calls": calls} if calls else {})


def stream(chunks: list[Chunk], request: ChatRequest = PLAIN, ping_after: set[int] = frozenset()) -> bytes:  # type: ignore[assignment]
    encoder = openai.encoder(OPENING, request)
    written = encoder.start()
    for i, chunk in enumerate(chunks[:-1]):
        written += encoder.feed(chunk) + (encoder.ping() if i in ping_after else b"")
    return written + encoder.end(chunks[-1], ENDING)


def in_order_of_messages(chunks: list[Chunk]) -> tuple[Any, ...]:
    """What a chat message can say of an answer: all thinking, all text, all calls."""
    parts = parts_of(chunks)
    thinking = "".join(part.text for part in parts if isinstance(part, Thinking))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    calls = [part for part in parts if isinstance(part, ToolUse)]
    return (*([Thinking(thinking)] if thinking else []), *([Text(text)] if text else []), *calls)


def parsed(message: dict[str, Any]) -> tuple[Any, ...]:
    return openai.parse(json.dumps({"model": "m", "messages": [message]}).encode()).messages[0].parts


@given(answers(), st.sets(st.integers(0, 9)), st.booleans())
def test_any_answer_comes_back_as_it_went(
    chunks: list[Chunk], ping_after: set[int], include_usage: bool
) -> None:
    client = Client(include_usage).read(stream(chunks, WITH_USAGE if include_usage else PLAIN, ping_after))
    assert client.is_done
    assert (client.usage is not None) == include_usage
    assert parsed(client.history()) == in_order_of_messages(chunks)


@given(answers())
def test_a_whole_answer_says_what_the_stream_says(chunks: list[Chunk]) -> None:
    whole = json.loads(openai.whole(OPENING, PLAIN, chunks, ENDING))
    client = Client(include_usage=True).read(stream(chunks, WITH_USAGE))
    (choice,) = whole.pop("choices")
    assert whole == {
        "id": "chatcmpl-01CALL",
        "object": "chat.completion",
        "created": OPENING.created,
        "model": OPENING.model,
        "usage": client.usage,
    }
    assert choice["finish_reason"] == client.finish_reason
    assert choice["message"]["role"] == "assistant" and choice["index"] == 0
    assert parsed(choice["message"]) == parsed(client.history())


@pytest.mark.parametrize(
    ("reason", "has_call", "expected"),
    [
        ("end_turn", False, "stop"),
        ("stop_sequence", False, "stop"),
        ("max_tokens", False, "length"),
        ("context_full", False, "length"),
        ("refusal", False, "content_filter"),
        ("tool_use", True, "tool_calls"),
        ("end_turn", True, "tool_calls"),
        ("stop_sequence", True, "tool_calls"),
        ("max_tokens", True, "length"),
    ],
)
def test_finish_reason(reason: Any, has_call: bool, expected: str) -> None:
    call: list[Chunk] = (
        [TextDelta("I call."), ToolStart("c", "f"), ToolEnd()] if has_call else [TextDelta("x")]
    )
    chunks = [*call, End(reason, Usage())]
    assert Client().read(stream(chunks)).finish_reason == expected
    assert json.loads(openai.whole(OPENING, PLAIN, chunks, ENDING))["choices"][0]["finish_reason"] == expected


def test_parallel_calls_have_their_own_index_and_name_themselves_once() -> None:
    chunks: list[Chunk] = [
        ToolStart("c1", "f"),
        ToolDelta('{"a":'),
        ToolDelta("1}"),
        ToolEnd(),
        ToolStart("c2", "g"),
        ToolEnd(),
        End("tool_use", Usage()),
    ]
    client = Client().read(stream(chunks))
    assert client.calls == [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
        {"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]


def test_arguments_may_be_split_at_every_character() -> None:
    text = json.dumps({"command": "grep \"a|b\" | sed 's/\\n//' 渐 😀 \u0007"}, ensure_ascii=False)
    chunks = [ToolStart("c", "f"), *map(ToolDelta, text), ToolEnd(), End("tool_use", Usage())]
    assert Client().read(stream(chunks)).calls[0]["function"]["arguments"] == text


def test_usage_partitions_the_tokens() -> None:
    chunks = [TextDelta("x"), End("end_turn", Usage(prompt=100, cached=90, output=7, reasoning=3))]
    assert Client(include_usage=True).read(stream(chunks, WITH_USAGE)).usage == {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 90},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }


def test_a_whole_answer_keeps_content_beside_reasoning() -> None:
    chunks: list[Chunk] = [ThinkingDelta("hm"), TextDelta("yes"), End("end_turn", Usage())]
    message = json.loads(openai.whole(OPENING, PLAIN, chunks, ENDING))["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "yes", "reasoning_content": "hm", "refusal": None}


@pytest.mark.parametrize(
    ("chunks", "content"),
    [([ToolStart("c", "f"), ToolEnd()], None), ([], ""), ([ThinkingDelta("hm")], "")],
)
def test_content_is_null_only_beside_calls(chunks: list[Chunk], content: str | None) -> None:
    whole = json.loads(openai.whole(OPENING, PLAIN, [*chunks, End("end_turn", Usage())], ENDING))
    assert whole["choices"][0]["message"]["content"] == content


def test_what_only_others_understand_is_left_out() -> None:
    encoder = openai.encoder(OPENING, PLAIN)
    assert encoder.feed(Progress(1, 2, 3)) == encoder.feed(Verbatim("ping", b"{}")) == b""
    assert encoder.end(Verbatim("message_stop", b"{}"), ENDING) == b""


def test_a_failure_is_no_clean_end() -> None:
    encoder = openai.encoder(OPENING, PLAIN)
    written = (
        encoder.start() + encoder.feed(TextDelta("ha")) + encoder.error(502, "backend_failed", 'It "broke".')
    )
    client = Client().read(written)
    assert client.error == {
        "message": 'It "broke".',
        "type": "server_error",
        "param": None,
        "code": "backend_failed",
    }
    assert not client.is_done and client.finish_reason is None


def test_the_keep_alive_is_a_comment() -> None:
    assert openai.encoder(OPENING, PLAIN).ping() == b": keep-alive\n\n"


def test_the_module_is_a_dialect() -> None:
    dialect: Dialect = openai
    assert {"parse", "encoder", "whole", "error_body"} <= set(dir(dialect))
