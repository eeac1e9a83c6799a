from typing import Any

import msgspec
import pytest

from herdr.errors import InvalidInput
from herdr.pool.protocols.herdr import parse
from herdr.pool.request import (
    ChatRequest,
    ContextWish,
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

HI = [{"role": "user", "content": "hi"}]
SAID_HI = (Message("user", (Text("hi"),)),)


def asked(**fields: Any) -> ChatRequest:
    return parse(msgspec.json.encode({"messages": HI, **fields}))


def conversation(*messages: Any) -> tuple[Message, ...]:
    return asked(messages=messages).messages


def test_the_least_that_one_may_send() -> None:
    assert parse(b'{"messages":[{"role":"user","content":"hi"}]}') == ChatRequest(
        "default", SAID_HI, stream=True, include_usage=True
    )


def test_all_that_one_may_send() -> None:
    request = asked(
        model="m",
        system="be brief",
        route="r",
        session="s",
        agent="a",
        priority=0,
        max_tokens=5,
        temperature=0,
        top_p=0.5,
        top_k=4,
        min_p=0.1,
        seed=7,
        presence_penalty=1,
        frequency_penalty=-1,
        stop="END",
        response_format={"type": "json_object"},
        thinking=False,
        effort="low",
        stream=False,
        unknown={"x": 1},
    )
    assert request == ChatRequest(
        "m",
        (Message("system", (Text("be brief"),)), *SAID_HI),
        sampling=Sampling(0, 0.5, 4, 0.1, 7, 1, -1, ("END",)),
        response_format=ResponseFormat("json_object"),
        max_tokens=5,
        thinking=False,
        effort="low",
        stream=False,
        include_usage=True,
        session="s",
        agent="a",
        route="r",
        priority=0,
    )


def test_nulls_are_as_good_as_nothing() -> None:
    names = ["model", "system", "route", "session", "agent", "priority", "max_tokens", "tools", "tool_choice"]
    names += ["temperature", "stop", "response_format", "thinking", "effort", "stream"]
    assert asked(**dict.fromkeys(names)) == asked()
    assert asked(session="", agent="", route="", model="") == asked()


def test_thinking_in_both_forms() -> None:
    assert asked(thinking=True).thinking is True
    assert asked(thinking={"type": "enabled", "budget_tokens": 5}).thinking is True
    assert asked(thinking={"type": "disabled"}).thinking is False


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"b": 1, "a": 2}}},
        {"type": "function", "name": "f", "description": "d", "parameters": {"b": 1, "a": 2}},
        {"name": "f", "description": "d", "input_schema": {"b": 1, "a": 2}, "cache_control": {}},
    ],
)
def test_tools_in_three_forms(tool: Any) -> None:
    assert asked(tools=[tool]).tools == (Tool("f", "d", '{"b":1,"a":2}'),)


def test_tools_without_a_schema_and_tools_of_others() -> None:
    assert asked(tools=[{"name": "f"}, {"type": "web_search_20250305", "name": "web"}]).tools == (Tool("f"),)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("any")),
        ({"type": "any"}, ToolChoice("any")),
        ({"type": "tool", "name": "f"}, ToolChoice("tool", "f")),
        ({"type": "function", "function": {"name": "f"}}, ToolChoice("tool", "f")),
    ],
)
def test_tool_choice(choice: Any, expected: ToolChoice) -> None:
    assert asked(tool_choice=choice).tool_choice == expected
    assert asked(tool_choice=choice, parallel_tool_calls=False).tool_choice.parallel is False


def test_texts_and_images() -> None:
    content = [
        "a",
        {"type": "text", "text": "b"},
        {"type": "text", "text": ""},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image_url", "image_url": "http://x/y.png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "aGk="}},
        {"type": "image", "source": {"type": "url", "url": "http://x/z.png"}},
    ]
    assert conversation({"role": "user", "content": content})[0].parts == (
        Text("a"),
        Text("b"),
        Image("image/png", "aGk="),
        Image(url="http://x/y.png"),
        Image("image/gif", "aGk="),
        Image(url="http://x/z.png"),
    )


def test_a_string_and_one_text_are_equal() -> None:
    assert conversation({"role": "user", "content": [{"type": "text", "text": "hi"}]}) == SAID_HI


EXPECTED_TURNS = (
    *SAID_HI,
    Message(
        "assistant",
        (Thinking("hm"), Text("I look."), ToolUse("a", "f", '{"y":1,"x":2}'), ToolUse("b", "g", "{}")),
    ),
    Message(
        "user", (ToolResult("a", (Text("1"),)), ToolResult("b", (Text("2"), Image("image/png", "aGk="))))
    ),
)
IMAGE = {"type": "image", "source": {"media_type": "image/png", "data": "aGk="}}
RESULTS = [
    {"role": "tool", "tool_call_id": "a", "content": "1"},
    {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "2"}, IMAGE]},
]
AS_OPENAI = {
    "role": "assistant",
    "content": "I look.",
    "reasoning_content": "hm",
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"y":1,"x":2}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
    ],
}
AS_OURS = {
    "role": "assistant",
    "content": "I look.",
    "thinking": "hm",
    "tool_calls": [{"id": "a", "name": "f", "input": {"y": 1, "x": 2}}, {"id": "b", "name": "g"}],
}
AS_ANTHROPIC = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"y": 1, "x": 2}},
        {"type": "tool_use", "id": "b", "name": "g", "input": {}},
    ],
}
ANTHROPIC_RESULTS = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "1"},
        {"type": "tool_result", "tool_use_id": "b", "content": ["2", IMAGE], "is_error": False},
    ],
}


@pytest.mark.parametrize("turn", [AS_OPENAI, AS_OURS, AS_ANTHROPIC])
@pytest.mark.parametrize("results", [RESULTS, [ANTHROPIC_RESULTS]])
def test_calls_and_results_in_all_forms(turn: Any, results: list[Any]) -> None:
    assert conversation(*HI, turn, *results) == EXPECTED_TURNS


def test_results_before_more_text() -> None:
    followed = conversation(*HI, AS_OPENAI, *RESULTS, *HI)
    assert followed == (*EXPECTED_TURNS, *SAID_HI)
    failed = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": True}, "so?"],
    }
    assert conversation(failed)[0].parts == (ToolResult("a", (), True), Text("so?"))


def test_roles() -> None:
    turns = conversation({"role": "developer", "content": "a"}, {"role": "system", "content": None}, *HI)
    assert [turn.role for turn in turns] == ["system", "system", "user"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"messages":[]}', "messages"),
        (b'{"messages":"hi"}', "messages"),
        (b'{"messages":[{"content":"x"}]}', "messages[0].role"),
        (b'{"messages":[{"role":"tool","content":"x"}]}', "messages[0].tool_call_id"),
        (b'{"messages":[{"role":"user","content":[{"type":"text"}]}]}', "messages[0].content[0].text"),
        (b'{"messages":[{"role":"user","content":[{"type":"video"}]}]}', "messages[0].content[0].type"),
        (b'{"messages":[{"role":"user","content":[{"type":"image"}]}]}', "messages[0].content[0].source"),
        (
            b'{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}',
            "messages[0].content[0].image_url",
        ),
        (b'{"messages":[{"role":"user","content":[{"type":"tool_use"}]}]}', "messages[0].content[0].type"),
        (b'{"messages":[{"role":"assistant","content":[{"type":"tool_use"}]}]}', "messages[0].content[0].id"),
        (
            b'{"messages":[{"role":"assistant","content":[{"type":"tool_result"}]}]}',
            "messages[0].content[0].type",
        ),
        (
            b'{"messages":[{"role":"user","content":[{"type":"tool_result"}]}]}',
            "messages[0].content[0].tool_use_id",
        ),
        (
            b'{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]}]}',
            "messages[0].tool_calls[0].function",
        ),
        (b'{"messages":[{"role":"user","content":"x"}],"priority":10}', "priority"),
        (b'{"messages":[{"role":"user","content":"x"}],"agent":"a\\nb"}', "agent"),
        (b'{"messages":[{"role":"user","content":"x"}],"tools":[{}]}', "tools[0].name"),
        (
            b'{"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","parameters":1}]}',
            "tools[0].parameters",
        ),
        (b'{"messages":[{"role":"user","content":"x"}],"tool_choice":"f"}', "tool_choice"),
        (b'{"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"tool"}}', "tool_choice.type"),
    ],
)
def test_what_is_wrong_is_named(body: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(body)
    assert [error.field for error in caught.value.errors] == [field]
    assert len(caught.value.detail) < 300


def test_what_of_the_context_is_wanted() -> None:
    assert asked().context is None and asked(context=None).context is None
    assert asked(context={}).context == ContextWish()
    assert asked(
        context={
            "session": True,
            "map_tokens": 16,
            "files": ["a.py", "src/[id]/é.tsx", "a.py"],
            "workspace": "w",
        }
    ).context == ContextWish(True, 16, ("a.py", "src/[id]/é.tsx"), "w")
    nulls = dict.fromkeys(["session", "map_tokens", "files", "workspace"])
    assert asked(context=nulls).context == ContextWish()
    assert asked(context={"map_tokens": 100_000, "files": ["x"] * 32}).context == ContextWish(
        map_tokens=100_000, files=("x",)
    )


@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({"sesion": True}, "context"),
        ({"session": 1}, "context.session"),
        ({"map_tokens": 15}, "context.map_tokens"),
        ({"map_tokens": 100_001}, "context.map_tokens"),
        ({"map_tokens": 99.5}, "context.map_tokens"),
        ({"files": "a.py"}, "context.files"),
        ({"files": ["x"] * 33}, "context.files"),
        ({"files": ["a.py", ""]}, "context.files[1]"),
        ({"files": ["/etc/passwd"]}, "context.files[0]"),
        ({"files": ["src/../../x"]}, "context.files[0]"),
        ({"files": ["a\nb"]}, "context.files[0]"),
        ({"files": ["x" * 4097]}, "context.files[0]"),
        ({"workspace": "a\nb"}, "context.workspace"),
        (True, "context"),
    ],
)
def test_a_wrong_context_is_refused_with_its_field(context: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        asked(context=context)
    assert [error.field for error in caught.value.errors] == [field]
    assert "sesion" in caught.value.detail or field in caught.value.detail


def test_names_have_a_bound() -> None:
    assert asked(session="x" * 128).session == "x" * 128
    with pytest.raises(InvalidInput, match="session"):
        asked(session="x" * 129)
