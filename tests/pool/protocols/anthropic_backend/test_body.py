"""What is sent to an Anthropic backend: bodies and headers."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.errors import InvalidInput
from herdr.pool.canonical import canonical
from herdr.pool.protocols.anthropic_backend.body import (
    count_request,
    messages_body,
    pass_through,
    passed_on,
)
from herdr.pool.request import (
    ChatRequest,
    Image,
    Message,
    ResponseFormat,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
)

HI = (Message("user", (Text("Hi"),)),)
TOOLS = (Tool("look", "Looks.", '{"type":"object","properties":{"z":{},"a":{}}}'),)


def ask(*messages: Message, **fields: Any) -> ChatRequest:
    return ChatRequest("mine", messages or HI, **fields)


def raw_body(request: ChatRequest, max_tokens: int = 4096) -> bytes:
    return messages_body(canonical(request).request, model="claude", max_tokens=max_tokens)


def body(request: ChatRequest, max_tokens: int = 4096) -> dict[str, Any]:
    read = json.loads(raw_body(request, max_tokens))
    assert isinstance(read, dict)
    return read


def said(role: Role, *texts: str) -> Message:
    return Message(role, tuple(Text(text) for text in texts))


def test_pass_through_changes_model_and_stream_alone() -> None:
    sent = (
        b'{ "max_tokens": 10,\n "model":"mine","system":[{"cache_control" : {"type":"ephemeral"}}],'
        b'"stream":false, "new_field":{"b": 1.50, "a":"\\u00e9\xc3\xa9"},"messages":[ {"x":1e2} ]}'
    )
    assert pass_through(sent, model="claude") == (
        b'{"max_tokens":10,"model":"claude","system":[{"cache_control" : {"type":"ephemeral"}}],'
        b'"stream":true,"new_field":{"b": 1.50, "a":"\\u00e9\xc3\xa9"},"messages":[ {"x":1e2} ]}'
    )


def test_pass_through_adds_stream_and_keeps_the_model() -> None:
    assert pass_through(b'{"model":"mine"}', model=None) == b'{"model":"mine","stream":true}'


@pytest.mark.parametrize("bad", [b"", b"[]", b"{", b'{"a":', b'{"a":' + b"[" * 5000])
def test_pass_through_refuses_what_is_no_object(bad: bytes) -> None:
    with pytest.raises(InvalidInput, match="not a JSON object"):
        pass_through(bad, model="claude")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=5), st.booleans(), st.sampled_from([None, 1]))
def test_pass_through_keeps_every_field_in_its_place(
    fields: dict[str, Any], ascii_only: bool, indent: int | None
) -> None:
    sent = json.dumps(fields, ensure_ascii=ascii_only, indent=indent).encode(errors="replace")
    fields = json.loads(sent)
    got = json.loads(pass_through(sent, model="claude"))
    assert got == fields | {"model": "claude", "stream": True}
    assert [name for name in got if name in fields] == list(fields)


def test_count_request_has_the_prompt_alone() -> None:
    request = ask(said("system", "Be brief."), *HI, tools=TOOLS, sampling=Sampling(temperature=0.5))
    counted = json.loads(count_request(request, model="claude"))
    assert set(counted) == {"model", "system", "messages", "tools"}


def test_a_plain_request() -> None:
    assert body(ask()) == {
        "model": "claude",
        "max_tokens": 4096,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }


def test_leading_system_messages_are_the_system_prompt_and_later_ones_user_text() -> None:
    request = ask(said("system", "a", "b"), said("system", "c"), *HI, said("system", "d"), said("user", "e"))
    got = body(request)
    assert [block["text"] for block in got["system"]] == ["a\n\nb\n\nc"]
    assert got["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi\n\nd\n\ne"}]}]


def test_calls_and_results() -> None:
    arguments = '{"z": 1.50, "a": "\\u00e9"}'
    raw = raw_body(
        ask(
            *HI,
            Message("assistant", (Thinking("hm"), Text("I look."), ToolUse("call:1", "look", arguments))),
            said("user", "Also:"),
            Message(
                "user",
                (
                    ToolResult("call:1", (Text("seen"), Image("image/png", "AAAA")), True),
                    Text("Go on."),
                    ToolResult("b"),
                ),
            ),
            tools=TOOLS,
        )
    )
    assert b'"input":' + arguments.encode() in raw
    assert b'"input_schema":{"type":"object","properties":{"z":{},"a":{}}}' in raw
    assistant, user = json.loads(raw)["messages"][1:]
    assert [block["type"] for block in assistant["content"]] == ["text", "tool_use"]
    assert assistant["content"][1]["id"] == "call_1"
    assert user["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "call_1",
            "content": [
                {"type": "text", "text": "seen"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            ],
            "is_error": True,
        },
        {"type": "tool_result", "tool_use_id": "b"},
        {"type": "text", "text": "Also:"},
        {"type": "text", "text": "Go on."},
    ]


def test_an_image_by_url() -> None:
    got = body(ask(Message("user", (Image(url="https://example.org/a.png"),))))
    source = got["messages"][0]["content"][0]["source"]
    assert source == {"type": "url", "url": "https://example.org/a.png"}


def test_empty_messages_vanish_and_their_neighbours_merge() -> None:
    got = body(ask(said("user", "a"), Message("assistant", (Thinking("hm"), Text(" \n"))), said("user", "b")))
    assert got["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ]


def test_a_prefill_ends_without_white_space() -> None:
    picture = Image("image/png", "AAAA")
    prefill = Message("assistant", (Text("As I "), picture, Text("said: \n")))
    assert [block.get("text") for block in body(ask(*HI, prefill))["messages"][1]["content"]] == [
        "As I ",
        None,
        "said:",
    ]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a":', {"arguments": '{"a":'}),
        ("[1]", {"arguments": "[1]"}),
        ('{"a":' * 5000, {"arguments": '{"a":' * 5000}),
    ],
)
def test_arguments_that_are_no_object(arguments: str, sent: dict[str, Any]) -> None:
    got = body(ask(*HI, Message("assistant", (ToolUse("a", "look", arguments),))))
    assert got["messages"][1]["content"][0]["input"] == sent


def test_tools() -> None:
    tools = (Tool("plain", parameters="{}"), Tool("exact", "Exact.", '{"type":"object"}', True))
    assert body(ask(tools=tools))["tools"] == [
        {"name": "plain", "input_schema": {"type": "object"}},
        {"name": "exact", "description": "Exact.", "input_schema": {"type": "object"}, "strict": True},
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(), None),
        (ToolChoice("auto", parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice("any"), {"type": "any"}),
        (
            ToolChoice("tool", "look", False),
            {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
        ),
        (ToolChoice("none", parallel=False), {"type": "none"}),
    ],
)
def test_tool_choice(choice: ToolChoice, sent: dict[str, Any] | None) -> None:
    assert body(ask(tools=TOOLS, tool_choice=choice)).get("tool_choice") == sent
    assert "tool_choice" not in body(ask(tool_choice=choice))


@pytest.mark.parametrize(
    ("sampling", "sent"),
    [
        (Sampling(temperature=0.0, top_p=0.9, top_k=5, stop=("a",)), (0.0, None, 5, ["a"])),
        (Sampling(temperature=1.7), (1.0, None, None, None)),
        (Sampling(top_p=0.9, top_k=-1, seed=1, min_p=0.1), (None, 0.9, None, None)),
        (Sampling(top_k=0), (None, None, None, None)),
    ],
)
def test_sampling(sampling: Sampling, sent: tuple[Any, ...]) -> None:
    got = body(ask(sampling=sampling))
    assert tuple(got.get(name) for name in ("temperature", "top_p", "top_k", "stop_sequences")) == sent
    assert not {"seed", "min_p"} & set(got)


@pytest.mark.parametrize(
    ("fields", "max_tokens", "sent"),
    [
        ({}, 9000, None),
        ({"thinking": False}, 9000, {"type": "disabled"}),
        ({"thinking": True}, 40_000, {"type": "enabled", "budget_tokens": 8192}),
        ({"effort": "low"}, 40_000, {"type": "enabled", "budget_tokens": 2048}),
        ({"thinking": True, "effort": "high"}, 9000, {"type": "enabled", "budget_tokens": 4500}),
        ({"thinking": True}, 2048, {"type": "enabled", "budget_tokens": 1024}),
        ({"thinking": True}, 2047, None),
        ({"effort": "unheard-of"}, 9000, None),
        ({"thinking": False, "effort": "high"}, 9000, {"type": "disabled"}),
        ({"thinking": True, "tools": TOOLS, "tool_choice": ToolChoice("any")}, 9000, None),
        (
            {"thinking": True, "tool_choice": ToolChoice("any")},
            9000,
            {"type": "enabled", "budget_tokens": 4500},
        ),
        (
            {"thinking": True, "tools": TOOLS, "tool_choice": ToolChoice("none")},
            9000,
            {"type": "enabled", "budget_tokens": 4500},
        ),
    ],
)
def test_thinking(fields: dict[str, Any], max_tokens: int, sent: dict[str, Any] | None) -> None:
    assert body(ask(**fields), max_tokens).get("thinking") == sent


@pytest.mark.parametrize(
    "last",
    [said("assistant", "As I"), Message("user", (Text("so"), ToolResult("a", (Text("seen"),))))],
)
def test_no_thinking_where_the_api_refuses_it(last: Message) -> None:
    call = Message("assistant", (ToolUse("a", "look", "{}"),))
    assert "thinking" not in body(ask(*HI, call, last, tools=TOOLS, thinking=True), 9000)


def test_thinking_takes_no_sampling() -> None:
    sampling = Sampling(temperature=0.2, top_k=3, stop=("x",))
    got = body(ask(thinking=True, sampling=sampling), 9000)
    assert not {"temperature", "top_k"} & set(got)
    assert got["stop_sequences"] == ["x"]
    assert body(ask(thinking=False, sampling=sampling))["temperature"] == 0.2


def test_response_format() -> None:
    schema = '{"type":"object","properties":{"b":{},"a":{}}}'
    raw = messages_body(
        ask(response_format=ResponseFormat("json_schema", schema=schema)), model="claude", max_tokens=9
    )
    assert b'"output_config":{"format":{"type":"json_schema","schema":%s}}' % schema.encode() in raw
    assert "output_config" not in body(ask(response_format=ResponseFormat("json_object")))


parts = st.lists(
    st.one_of(
        st.builds(Text, st.text(max_size=5)),
        st.builds(Thinking, st.text(max_size=5)),
        st.builds(ToolUse, st.text(max_size=5), st.just("look"), st.text(max_size=5)),
        st.builds(ToolResult, st.text(max_size=5), st.just((Text("x"), Text(" ")))),
    ),
    max_size=4,
).map(tuple)


@given(st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), parts), max_size=6))
def test_any_conversation_alternates_and_has_no_blank_text(messages: list[Message]) -> None:
    got = body(ChatRequest("mine", (*HI, *messages)))["messages"]
    roles = [turn["role"] for turn in got]
    assert all(one != two for one, two in itertools.pairwise(roles))
    for turn in got:
        kinds = [block["type"] for block in turn["content"]]
        assert kinds
        assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result")
        for block in turn["content"]:
            assert block.get("text", "x").strip()
            assert isinstance(block.get("input", {}), dict)


def test_two_of_a_clients_headers_are_passed_on() -> None:
    client = {
        "Anthropic-Version": "2026-10-21",
        "anthropic-beta": "a,b",
        "X-Api-Key": "herdr-token",
        "Authorization": "Bearer herdr-token",
        "Connection": "keep-alive",
        "Transfer-Encoding": "chunked",
        "X-Agent-Id": "reviewer",
        "X-Herdr-Route": "primary_agent",
        "X-Conversation-Id": "c",
        "Cookie": "c",
        "Host": "localhost",
        "User-Agent": "claude-cli",
    }
    assert passed_on(client) == {"anthropic-version": "2026-10-21", "anthropic-beta": "a,b"}
    assert passed_on({"anthropic-beta": ""}) == {"anthropic-version": "2023-06-01"}
