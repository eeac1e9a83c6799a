"""What clients send to /v1/chat/completions, kind by kind, and what is wrong with what they send."""

import json
from typing import Any

import pytest

from herdr.errors import InvalidInput
from herdr.pool.protocols import openai
from herdr.pool.protocols.openai.content import AUDIO_LEFT_OUT, FILE_LEFT_OUT
from herdr.pool.request import (
    ChatRequest,
    Image,
    Message,
    ResponseFormat,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
)

HELLO = [{"role": "user", "content": "hello"}]


def parse(**fields: Any) -> ChatRequest:
    return openai.parse(json.dumps({"model": "m", "messages": HELLO} | fields).encode())


def said(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return parse(messages=list(messages)).messages


def call(arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}} | fields


def test_the_least_that_a_client_sends() -> None:
    assert parse() == ChatRequest(model="m", messages=(Message("user", (Text("hello"),)),))


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("plain", (Text("plain"),)),
        ("", ()),
        (None, ()),
        ([], ()),
        (["bare"], (Text("bare"),)),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": ""}], (Text("a"),)),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], (Text("a"), Text("b"))),
        ([{"type": "refusal", "refusal": "no"}], (Text("no"),)),
        (
            [{"type": "image_url", "image_url": {"url": "data:image/PNG;base64,aGk="}}],
            (Image("image/png", "aGk="),),
        ),
        (
            [
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;charset=x;base64,aGk=", "detail": "low"},
                }
            ],
            (Image("image/png", "aGk="),),
        ),
        ([{"type": "image_url", "image_url": {"url": "https://h/a.png"}}], (Image(url="https://h/a.png"),)),
        ([{"type": "image_url", "image_url": "https://h/a.png"}], (Image(url="https://h/a.png"),)),
        ([{"type": "image_url", "image_url": {"url": "data:,x"}}], (Image(url="data:,x"),)),
        ([{"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}], (Text(AUDIO_LEFT_OUT),)),
        ([{"type": "file", "file": {"file_id": "f1"}}], (Text(FILE_LEFT_OUT),)),
    ],
)
def test_content(content: Any, parts: tuple[Any, ...]) -> None:
    assert said({"role": "user", "content": content}) == (Message("user", parts),)


@pytest.mark.parametrize(
    ("role", "neutral"),
    [("system", "system"), ("developer", "system"), ("user", "user"), ("assistant", "assistant")],
)
def test_roles(role: str, neutral: str) -> None:
    assert said({"role": role, "content": "x"})[0].role == neutral


def test_system_messages_stay_where_they_stand() -> None:
    roles = ["system", "user", "developer", "assistant", "system"]
    messages = said(*({"role": role, "content": role} for role in roles))
    assert [message.parts[0] for message in messages] == [Text(role) for role in roles]


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (
            {"content": None, "tool_calls": [call('{"b": 1,  "a":2}')]},
            (ToolUse("c1", "f", '{"b": 1,  "a":2}'),),
        ),
        ({"content": "", "tool_calls": [call("")]}, (ToolUse("c1", "f", "{}"),)),
        ({"tool_calls": [call(None)]}, (ToolUse("c1", "f", "{}"),)),
        ({"tool_calls": [call({"a": 1})]}, (ToolUse("c1", "f", '{"a": 1}'),)),
        ({"tool_calls": [call('{"a": "cut o')]}, (ToolUse("c1", "f", '{"arguments":"{\\"a\\": \\"cut o"}'),)),
        ({"tool_calls": [call("[1]")]}, (ToolUse("c1", "f", '{"arguments":"[1]"}'),)),
        ({"content": "x", "tool_calls": []}, (Text("x"),)),
        ({"content": "x", "tool_calls": None}, (Text("x"),)),
        ({"content": "x", "reasoning_content": "hm"}, (Thinking("hm"), Text("x"))),
        ({"content": "x", "reasoning": "hm"}, (Thinking("hm"), Text("x"))),
        ({"content": "x", "reasoning": {"effort": "low"}}, (Text("x"),)),
        ({"content": None, "refusal": "I won't"}, (Text("I won't"),)),
        ({"function_call": {"name": "f", "arguments": "{}"}}, (ToolUse("call_f", "f", "{}"),)),
        (
            {"tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sql", "input": 'a"b'}}]},
            (ToolUse("c1", "sql", '{"input":"a\\"b"}'),),
        ),
        (
            {"content": "x", "reasoning_content": "hm", "tool_calls": [call(), call(id="c2")]},
            (Thinking("hm"), Text("x"), ToolUse("c1", "f", "{}"), ToolUse("c2", "f", "{}")),
        ),
    ],
)
def test_what_an_assistant_did(message: dict[str, Any], parts: tuple[Any, ...]) -> None:
    assert said({"role": "assistant"} | message) == (Message("assistant", parts),)


def test_tool_messages_in_a_row_are_one_message_in_their_order() -> None:
    messages = said(
        {"role": "assistant", "tool_calls": [call(), call(id="c2")]},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image_url", "image_url": {"url": "https://h/a.png"}},
            ],
        },
        {"role": "user", "content": "go on"},
        {"role": "tool", "tool_call_id": "c3", "content": ""},
    )
    assert messages[1:] == (
        Message(
            "user",
            (ToolResult("c2", (Text("two"),)), ToolResult("c1", (Text("one"), Image(url="https://h/a.png")))),
        ),
        Message("user", (Text("go on"),)),
        Message("user", (ToolResult("c3"),)),
    )


def test_an_older_function_message_answers_its_call() -> None:
    messages = said(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "x"},
    )
    assert isinstance(messages[0].parts[0], ToolUse)
    assert messages[1].parts == (ToolResult(messages[0].parts[0].id, (Text("x"),)),)


def test_tools_keep_the_clients_own_schema() -> None:
    schema = '{ "type":"object",\n "properties": {"b": {"maxLength": 1e2}, "a": {"description": "\\u00e9"}}}'
    body = (
        '{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":'
        f'{{"name":"f","description":"d","strict":true,"parameters":{schema}}}}},'
        '{"type":"web_search"},{"type":"custom","custom":{"name":"c"}},'
        '{"function":{"name":"g","parameters":null,"description":null}}]}'
    )
    assert openai.parse(body.encode()).tools == (Tool("f", "d", schema, True), Tool("g"))


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({}, ToolChoice()),
        ({"tool_choice": None}, ToolChoice()),
        ({"tool_choice": "auto"}, ToolChoice()),
        ({"tool_choice": "none"}, ToolChoice("none")),
        ({"tool_choice": "required"}, ToolChoice("any")),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, ToolChoice("tool", "f")),
        ({"parallel_tool_calls": False}, ToolChoice(parallel=False)),
        ({"parallel_tool_calls": True, "tool_choice": "required"}, ToolChoice("any")),
        ({"tool_choice": "required", "parallel_tool_calls": False}, ToolChoice("any", parallel=False)),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "required",
                        "tools": [{"type": "function", "function": {"name": "f"}}],
                    },
                }
            },
            ToolChoice("tool", "f"),
        ),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "auto",
                        "tools": [{"type": "function", "function": {"name": "f"}}],
                    },
                }
            },
            ToolChoice(),
        ),
        ({"tool_choice": {"type": "web_search"}}, ToolChoice()),
    ],
)
def test_tool_choice(fields: dict[str, Any], choice: ToolChoice) -> None:
    assert parse(**fields).tool_choice == choice


@pytest.mark.parametrize(
    ("fields", "sampling"),
    [
        ({"temperature": 0, "top_p": 0.5, "top_k": 40, "min_p": 0.1}, Sampling(0, 0.5, 40, 0.1)),
        (
            {"seed": 7, "presence_penalty": 1, "frequency_penalty": -1},
            Sampling(None, None, None, None, 7, 1, -1),
        ),
        ({"stop": "END"}, Sampling(stop=("END",))),
        ({"stop": ["a", "", "b"]}, Sampling(stop=("a", "b"))),
        ({"stop": None, "temperature": None}, Sampling()),
    ],
)
def test_sampling(fields: dict[str, Any], sampling: Sampling) -> None:
    assert parse(**fields).sampling == sampling


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, ResponseFormat("json_object")),
        (
            {"type": "json_object", "schema": {"type": "array"}},
            ResponseFormat("json_schema", schema='{"type": "array"}'),
        ),
        (
            {
                "type": "json_schema",
                "json_schema": {"name": "n", "strict": True, "schema": {"type": "object"}},
            },
            ResponseFormat("json_schema", "n", '{"type": "object"}', True),
        ),
    ],
)
def test_response_format(format_: Any, expected: ResponseFormat | None) -> None:
    assert parse(response_format=format_).response_format == expected


@pytest.mark.parametrize(
    ("fields", "attribute", "value"),
    [
        ({"max_tokens": 5}, "max_tokens", 5),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens", 6),
        ({"max_tokens": -1}, "max_tokens", None),
        ({"max_completion_tokens": 0, "max_tokens": 5}, "max_tokens", 0),
        ({"max_tokens": None}, "max_tokens", None),
        ({"reasoning_effort": "high"}, "effort", "high"),
        ({"reasoning_effort": "high"}, "thinking", None),
        ({"reasoning_effort": "none"}, "effort", None),
        ({"reasoning_effort": "none"}, "thinking", False),
        ({"chat_template_kwargs": {"enable_thinking": False}}, "thinking", False),
        ({"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "none"}, "thinking", True),
        ({"chat_template_kwargs": {"other": [1]}}, "thinking", None),
        ({"stream": True}, "stream", True),
        ({"stream": None}, "stream", False),
        ({"stream_options": {"include_usage": True}}, "include_usage", True),
        ({"stream_options": {}}, "include_usage", False),
        ({"user": "ann"}, "session", None),
        ({"prompt_cache_key": "s1"}, "session", "s1"),
        ({"n": 1, "logprobs": True, "made_up": {"x": []}}, "model", "m"),
    ],
)
def test_other_fields(fields: dict[str, Any], attribute: str, value: object) -> None:
    assert getattr(parse(**fields), attribute) == value


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": HELLO} | fields).encode()


def saying(**message: Any) -> bytes:
    return body(messages=[{"role": "user", "content": "x"}, {"role": "assistant"} | message])


@pytest.mark.parametrize(
    ("sent", "field", "says"),
    [
        (body(model=5), "model", "got int"),
        (body(messages=[]), "messages", "at least one"),
        (body(messages="hi"), "messages", "got str"),
        (body(messages=[{"content": "x"}]), "messages[0].role", "missing"),
        (body(messages=[*HELLO, {"role": "user", "content": 5}]), "messages[1].content", "got int"),
        (
            body(messages=[{"role": "user", "content": [{"text": "x"}]}]),
            "messages[0].content[0].type",
            "missing",
        ),
        (
            body(messages=[{"role": "user", "content": [{"type": "text"}]}]),
            "messages[0].content[0].text",
            "missing",
        ),
        (
            body(messages=[{"role": "user", "content": [{"type": "smell"}]}]),
            "messages[0].content[0].type",
            "smell",
        ),
        (
            body(messages=[{"role": "user", "content": [{"type": "image_url"}]}]),
            "messages[0].content[0].image_url",
            "missing",
        ),
        (
            body(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
            "messages[0].content[0].image_url.url",
            "missing",
        ),
        (body(messages=[{"role": "tool", "content": "x"}]), "messages[0].tool_call_id", "missing"),
        (body(messages=[{"role": "function", "content": "x"}]), "messages[0].name", "missing"),
        (saying(tool_calls=[{"id": "c"}]), "messages[1].tool_calls[0].function", "missing"),
        (saying(tool_calls=[{"function": {"name": "f"}}]), "messages[1].tool_calls[0].id", "missing"),
        (
            saying(tool_calls=[{"id": "c", "function": {}}]),
            "messages[1].tool_calls[0].function.name",
            "missing",
        ),
        (
            saying(tool_calls=[{"id": "c", "function": {"name": "f", "arguments": "\ud800"}}]),
            "",
            "JSON",
        ),
        (body(tools=[{"type": "function"}]), "tools[0].function", "missing"),
        (body(tools=[{"function": {"name": "f"}}, {"function": {}}]), "tools[1].function.name", "missing"),
        (
            body(tools=[{"function": {"name": "f", "parameters": "x"}}]),
            "tools[0].function.parameters",
            "object",
        ),
        (
            body(tools=[{"function": {"name": "f", "parameters": {"a": "\ud800"}}}]),
            "",
            "JSON",
        ),
        (body(tool_choice="perhaps"), "tool_choice", "perhaps"),
        (body(tool_choice={"type": "function"}), "tool_choice.function", "missing"),
        (body(tool_choice={}), "tool_choice.type", "missing"),
        (body(n=2), "n", "one choice only"),
        (body(n=0), "n", "one choice only"),
        (body(max_completion_tokens=-5), "max_completion_tokens", "0 or more"),
        (body(max_tokens=1.5), "max_tokens", "got float"),
        (body(temperature="hot"), "temperature", "got str"),
        (body(stop=[1]), "stop[0]", "got int"),
        (body(stream="yes"), "stream", "got str"),
        (body(response_format={"type": "xml"}), "response_format.type", "xml"),
        (body(response_format={"type": "json_schema"}), "response_format.json_schema", "missing"),
        (
            body(response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": [1]}}),
            "response_format.json_schema.schema",
            "object",
        ),
    ],
)
def test_bad_input_is_refused_with_its_path(sent: bytes, field: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        openai.parse(sent)
    assert [error.field for error in caught.value.errors] == [field]
    assert says in caught.value.detail
    assert caught.value.detail.startswith(field)
    assert len(caught.value.detail) < 300
