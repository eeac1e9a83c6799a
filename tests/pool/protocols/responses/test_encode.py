"""Streams of response events, read back by a state machine of our own that knows what may follow what."""

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
from herdr.pool.protocols import responses
from herdr.pool.protocols.dialect import Dialect
from herdr.pool.request import ChatRequest, ToolUse

TOOLS = [
    {"type": "function", "name": "shell", "parameters": {"type": "object"}},
    {"type": "namespace", "name": "mcp__x", "tools": [{"type": "function", "name": "go"}]},
    {"type": "custom", "name": "apply_patch"},
]


def asked(**fields: Any) -> ChatRequest:
    return responses.parse(json.dumps({"model": "m", "input": "x", "tools": TOOLS} | fields).encode())


PLAIN = asked()
HIDDEN = asked(reasoning={"summary": "none"})
NAMES = st.sampled_from(["shell", "mcp__x__go", "apply_patch", "unknown"])


class Client:
    """Builds the response out of the events, and complains about whatever does not fit."""

    def __init__(self) -> None:
        self.output: list[dict[str, Any]] = []
        self.last: dict[str, Any] = {}
        self.names: list[str] = []
        self._open: dict[str, Any] | None = None
        self._part: dict[str, Any] | None = None
        self._text_is_done = False

    def read(self, stream: bytes) -> "Client":
        assert stream.endswith(b"\n\n")
        for number, block in enumerate(stream.decode().removesuffix("\n\n").split("\n\n")):
            event, data = block.split("\n")
            fields = json.loads(data.removeprefix("data: "))
            name = fields.pop("type")
            assert event == f"event: {name}"
            assert fields.pop("sequence_number") == number
            assert not self.names or self.names[-1] not in ("response.completed", "response.failed")
            self.names.append(name)
            getattr(self, "_" + name.removeprefix("response.").replace(".", "_"))(**fields)
        return self

    def _lifecycle(self, response: dict[str, Any], status: str) -> None:
        assert response["id"] == "resp_01CALL" and response["object"] == "response"
        assert response["status"] == status and response["model"] == OPENING.model
        assert response["output"] == self.output
        self.last = response

    def _created(self, response: dict[str, Any]) -> None:
        assert self.names == ["response.created"]
        self._lifecycle(response, "in_progress")

    def _in_progress(self, response: dict[str, Any]) -> None:
        self._lifecycle(response, "in_progress")

    def _completed(self, response: dict[str, Any]) -> None:
        assert self._open is None
        self._lifecycle(response, "completed")

    def _incomplete(self, response: dict[str, Any]) -> None:
        assert self._open is None
        self._lifecycle(response, "incomplete")

    def _failed(self, response: dict[str, Any]) -> None:
        self._lifecycle(response, "failed")

    def _output_item_added(self, output_index: int, item: dict[str, Any]) -> None:
        assert self._open is None and output_index == len(self.output)
        self._open = item
        self._text_is_done = False

    def _output_item_done(self, output_index: int, item: dict[str, Any]) -> None:
        assert self._open is not None and output_index == len(self.output) and self._part is None
        if "status" in item:
            assert self._open.pop("status") == "in_progress"
            assert item["status"] in ("completed", "incomplete")
            self._open["status"] = item["status"]
        if item["type"] == "reasoning":
            assert self._open["encrypted_content"] is None
            self._open["encrypted_content"] = item["encrypted_content"]
        assert self._open == item
        self.output.append(item)
        self._open = None

    def _at(self, item_id: str, output_index: int, type_: str) -> dict[str, Any]:
        assert self._open is not None and not self._text_is_done
        assert self._open["type"] == type_ and self._open["id"] == item_id
        assert output_index == len(self.output)
        return self._open

    def _add_part(self, parts: list[Any], part: dict[str, Any]) -> None:
        assert self._part is None and not parts and part["text"] == ""
        self._part = part
        parts.append(part)

    def _finish_part(self, part: dict[str, Any]) -> None:
        assert self._text_is_done and self._part == part
        self._part = None
        self._text_is_done = False

    def _more(self, delta: str) -> None:
        assert self._part is not None and delta
        self._part["text"] += delta

    def _no_more(self, text: str) -> None:
        assert self._part is not None and self._part["text"] == text
        self._text_is_done = True

    def _content_part_added(
        self, item_id: str, output_index: int, content_index: int, part: dict[str, Any]
    ) -> None:
        assert content_index == 0
        self._add_part(self._at(item_id, output_index, "message")["content"], part)

    def _output_text_delta(
        self, item_id: str, output_index: int, content_index: int, logprobs: list[Any], delta: str
    ) -> None:
        assert (content_index, logprobs) == (0, [])
        self._at(item_id, output_index, "message")
        self._more(delta)

    def _output_text_done(
        self, item_id: str, output_index: int, content_index: int, logprobs: list[Any], text: str
    ) -> None:
        assert (content_index, logprobs) == (0, [])
        self._at(item_id, output_index, "message")
        self._no_more(text)

    def _content_part_done(
        self, item_id: str, output_index: int, content_index: int, part: dict[str, Any]
    ) -> None:
        self._finish_part(part)

    def _reasoning_summary_part_added(
        self, item_id: str, output_index: int, summary_index: int, part: dict[str, Any]
    ) -> None:
        assert summary_index == 0
        self._add_part(self._at(item_id, output_index, "reasoning")["summary"], part)

    def _reasoning_summary_text_delta(
        self, item_id: str, output_index: int, summary_index: int, delta: str
    ) -> None:
        self._at(item_id, output_index, "reasoning")
        self._more(delta)

    def _reasoning_summary_text_done(
        self, item_id: str, output_index: int, summary_index: int, text: str
    ) -> None:
        self._at(item_id, output_index, "reasoning")
        self._no_more(text)

    def _reasoning_summary_part_done(
        self, item_id: str, output_index: int, summary_index: int, part: dict[str, Any]
    ) -> None:
        self._finish_part(part)

    def _function_call_arguments_delta(self, item_id: str, output_index: int, delta: str) -> None:
        self._at(item_id, output_index, "function_call")["arguments"] += delta

    def _function_call_arguments_done(
        self, item_id: str, output_index: int, name: str, arguments: str
    ) -> None:
        item = self._at(item_id, output_index, "function_call")
        assert (item["name"], item["arguments"]) == (name, arguments)
        self._text_is_done = True

    def _custom_tool_call_input_delta(self, item_id: str, output_index: int, delta: str) -> None:
        self._at(item_id, output_index, "custom_tool_call")["input"] += delta

    def _custom_tool_call_input_done(self, item_id: str, output_index: int, input: str) -> None:
        assert self._at(item_id, output_index, "custom_tool_call")["input"] == input
        self._text_is_done = True


def stream(chunks: list[Chunk], request: ChatRequest = PLAIN, ping_after: set[int] = frozenset()) -> bytes:  # type: ignore[assignment]
    encoder = responses.encoder(OPENING, request)
    written = encoder.start()
    for i, chunk in enumerate(chunks[:-1]):
        written += encoder.feed(chunk) + (encoder.ping() if i in ping_after else b"")
    return written + encoder.end(chunks[-1], ENDING)


def as_plain_text(part: Any) -> Any:
    """A call of the plain-text tool as it comes back: only its input is kept of what the model wrote."""
    if not isinstance(part, ToolUse) or part.name != "apply_patch":
        return part
    text = json.loads(part.arguments).get("input", "" if part.arguments == "{}" else part.arguments)
    return ToolUse(part.id, part.name, json.dumps({"input": text}, ensure_ascii=False, separators=(",", ":")))


def history(output: list[dict[str, Any]]) -> tuple[Any, ...]:
    items = [*output, {"role": "user", "content": "x"}]
    return tuple(part for message in asked(input=items).messages[:-1] for part in message.parts)


@given(answers(NAMES), st.sets(st.integers(0, 9)), st.sampled_from([PLAIN, HIDDEN]))
def test_any_answer_comes_back_as_it_went(
    chunks: list[Chunk], ping_after: set[int], request: ChatRequest
) -> None:
    client = Client().read(stream(chunks, request, ping_after))
    assert len({item["id"] for item in client.output}) == len(client.output)
    assert history(client.output) == tuple(map(as_plain_text, parts_of(chunks)))


@given(answers(NAMES))
def test_a_whole_answer_is_the_response_that_the_stream_adds_up_to(chunks: list[Chunk]) -> None:
    assert json.loads(responses.whole(OPENING, PLAIN, chunks, ENDING)) == Client().read(stream(chunks)).last


@given(answers(NAMES))
def test_hidden_reasoning_is_nowhere_in_the_stream(chunks: list[Chunk]) -> None:
    client = Client().read(stream(chunks, HIDDEN))
    assert not any("summary" in name for name in client.names)
    assert all(item["summary"] == [] for item in client.output if item["type"] == "reasoning")


def test_the_events_of_one_answer_in_order() -> None:
    chunks: list[Chunk] = [
        Progress(9, 1, 3),
        ThinkingDelta("hm"),
        TextDelta("a"),
        TextDelta("b"),
        ToolStart("c1", "shell"),
        ToolDelta('{"a":1}'),
        ToolEnd(),
        End("tool_use", Usage(10, 4, 7, 2)),
    ]
    client = Client().read(stream(chunks))
    assert [name.removeprefix("response.") for name in client.names] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert [item["id"] for item in client.output] == ["rs_01CALL_0", "msg_01CALL_1", "fc_01CALL_2"]
    assert client.last["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 17,
    }


@pytest.mark.parametrize(
    ("reason", "status", "details"),
    [
        ("end_turn", "completed", None),
        ("stop_sequence", "completed", None),
        ("tool_use", "completed", None),
        ("max_tokens", "incomplete", {"reason": "max_output_tokens"}),
        ("context_full", "incomplete", {"reason": "max_output_tokens"}),
        ("refusal", "incomplete", {"reason": "content_filter"}),
    ],
)
def test_how_a_response_ends(reason: Any, status: str, details: dict[str, str] | None) -> None:
    client = Client().read(stream([TextDelta("x"), End(reason, Usage())]))
    assert client.names[-1] == f"response.{status}"
    assert (client.last["status"], client.last["incomplete_details"]) == (status, details)
    assert client.output[0]["status"] == status


def called(name: str, *deltas: str) -> dict[str, Any]:
    chunks = [ToolStart("c1", name), *map(ToolDelta, deltas), ToolEnd(), End("tool_use", Usage())]
    (item,) = Client().read(stream(chunks)).output
    return {key: value for key, value in item.items() if key not in ("id", "status")}


@pytest.mark.parametrize(
    ("name", "deltas", "item"),
    [
        ("shell", ['{"a"', ":1}"], {"type": "function_call", "name": "shell", "arguments": '{"a":1}'}),
        ("shell", [], {"type": "function_call", "name": "shell", "arguments": "{}"}),
        ("made_up", ["{}"], {"type": "function_call", "name": "made_up", "arguments": "{}"}),
        (
            "mcp__x__go",
            ["{}"],
            {"type": "function_call", "name": "go", "namespace": "mcp__x", "arguments": "{}"},
        ),
        (
            "apply_patch",
            ['{"inp', 'ut": "a\\nb"}'],
            {"type": "custom_tool_call", "name": "apply_patch", "input": "a\nb"},
        ),
        (
            "apply_patch",
            ['{"patch": 1}'],
            {"type": "custom_tool_call", "name": "apply_patch", "input": '{"patch": 1}'},
        ),
        ("apply_patch", [], {"type": "custom_tool_call", "name": "apply_patch", "input": ""}),
        ("apply_patch", ["{", "}"], {"type": "custom_tool_call", "name": "apply_patch", "input": ""}),
    ],
)
def test_calls_come_back_under_the_names_that_the_client_gave(
    name: str, deltas: list[str], item: dict[str, Any]
) -> None:
    assert called(name, *deltas) == item | {"call_id": "c1"}


def test_arguments_may_be_split_at_every_character() -> None:
    text = json.dumps({"command": "grep \"a|b\" | sed 's/\\n//' 渐 😀 \u0007"}, ensure_ascii=False)
    assert called("shell", *text)["arguments"] == text


def test_a_failure_is_no_clean_end() -> None:
    encoder = responses.encoder(OPENING, PLAIN)
    written = (
        encoder.start() + encoder.feed(TextDelta("ha")) + encoder.error(502, "backend_failed", 'It "broke".')
    )
    client = Client().read(written)
    assert client.names[-1] == "response.failed"
    assert client.last["error"] == {"code": "backend_failed", "message": 'It "broke".'}
    assert client.last["output"] == [] and client.last["usage"] is None


def test_a_prompt_that_does_not_fit_is_named_as_clients_know_it() -> None:
    encoder = responses.encoder(OPENING, PLAIN)
    client = Client().read(encoder.start() + encoder.error(400, "prompt_too_long", "prompt is too long"))
    assert client.last["error"]["code"] == "context_length_exceeded"


def test_the_keep_alive_is_an_event() -> None:
    encoder = responses.encoder(OPENING, PLAIN)
    client = Client().read(encoder.start() + encoder.ping() + encoder.feed(TextDelta("x")) + encoder.ping())
    assert client.names.count("response.in_progress") == 3


def test_what_only_others_understand_is_left_out() -> None:
    encoder = responses.encoder(OPENING, PLAIN)
    assert encoder.feed(Progress(1, 2, 3)) == encoder.feed(Verbatim("ping", b"{}")) == b""
    assert encoder.end(Verbatim("message_stop", b"{}"), ENDING) == b""


@pytest.mark.parametrize(
    ("fields", "field", "value"),
    [
        ({}, "tool_choice", "auto"),
        ({"tool_choice": "required"}, "tool_choice", "required"),
        ({"tool_choice": "none"}, "tool_choice", "none"),
        (
            {"tool_choice": {"type": "function", "name": "shell"}},
            "tool_choice",
            {"type": "function", "name": "shell"},
        ),
        (
            {"tool_choice": {"type": "function", "name": "go", "namespace": "mcp__x"}},
            "tool_choice",
            {"type": "function", "name": "go", "namespace": "mcp__x"},
        ),
        (
            {"tool_choice": {"type": "custom", "name": "apply_patch"}},
            "tool_choice",
            {"type": "custom", "name": "apply_patch"},
        ),
        ({"parallel_tool_calls": False}, "parallel_tool_calls", False),
        ({"max_output_tokens": 9}, "max_output_tokens", 9),
        ({"temperature": 0.5}, "temperature", 0.5),
        ({"reasoning": {"effort": "low"}}, "reasoning", {"effort": "low", "summary": None}),
        ({"reasoning": {"effort": "none"}}, "reasoning", {"effort": "none", "summary": None}),
        ({}, "text", {"format": {"type": "text"}}),
        ({"text": {"format": {"type": "json_object"}}}, "text", {"format": {"type": "json_object"}}),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"a": 1}}}},
            "text",
            {"format": {"type": "json_schema", "name": "n", "schema": {"a": 1}}},
        ),
    ],
)
def test_the_response_says_what_was_asked(fields: dict[str, Any], field: str, value: object) -> None:
    whole = json.loads(responses.whole(OPENING, asked(**fields), [End("end_turn", Usage())], ENDING))
    assert whole[field] == value


def test_errors_have_the_same_form_as_those_of_chat_completions() -> None:
    assert json.loads(responses.error_body(404, "unknown_model", "No such model.", "01CALL")) == {
        "error": {
            "message": "No such model.",
            "type": "not_found_error",
            "param": None,
            "code": "model_not_found",
        }
    }


def test_the_module_is_a_dialect() -> None:
    dialect: Dialect = responses
    assert {"parse", "encoder", "whole", "error_body"} <= set(dir(dialect))
