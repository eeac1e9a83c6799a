from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.pool.canonical import canonical
from herdr.pool.protocols.backend.body import chat_body
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

HI = (Message("user", (Text("hi"),)),)
PICTURE = Image("image/png", "aGk=")
SCHEMA = '{"type": "object",  "properties":{"b":{},"a":{}}}'


def raw(request: ChatRequest, **given: Any) -> bytes:
    settings: dict[str, Any] = {
        "model": "m",
        "max_tokens": 9,
        "kind": "llamacpp",
        "slot": 3,
        "lower_schema": False,
        "vision": False,
    }
    return chat_body(canonical(request).request, **{**settings, **given})


def body(*messages: Message, given: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(
        raw(ChatRequest("x", messages or HI, **fields), **(given or {}))
    )
    return found


def rendered(*messages: Message, **given: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body(*messages, given=given)["messages"]
    return found


def test_the_whole_body_for_llamacpp() -> None:
    request = ChatRequest(
        "client's name",
        (Message("system", (Text("be brief"),)), *HI),
        tools=(Tool("f", "does f", SCHEMA),),
        sampling=Sampling(temperature=0.5, top_k=4, stop=("END",)),
        thinking=True,
    )
    assert raw(request) == (
        b'{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],'
        b'"tools":[{"type":"function","function":{"name":"f","description":"does f","parameters":'
        b'{"type": "object",  "properties":{"b":{},"a":{}}}}}],"parallel_tool_calls":true,"max_tokens":9,'
        b'"temperature":0.5,"top_k":4,"stream":true,"stream_options":{"include_usage":true},"id_slot":3,'
        b'"cache_prompt":true,"return_progress":true,"timings_per_token":true,'
        b'"chat_template_kwargs":{"enable_thinking":true}}'
    )


def test_the_whole_body_for_openai() -> None:
    request = ChatRequest(
        "x", HI, sampling=Sampling(top_p=0.5, top_k=4, seed=1, stop=("END",)), effort="high"
    )
    assert raw(request, kind="openai", slot=None) == (
        b'{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":9,"top_p":0.5,"seed":1,'
        b'"stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"high"}'
    )


def test_leading_system_messages_become_one_and_later_ones_stay_in_place() -> None:  # rows 15 and 38
    system = [Message("system", (Text("a"), Text(""))), Message("system", (Text("b"), PICTURE, Text("c")))]
    assert rendered(*system, *HI, Message("system", (Text("note"),)), *HI) == [
        {"role": "system", "content": "a\n\nb\n\n[image omitted: this model cannot see]\n\nc"},
        {"role": "user", "content": "hi\n\nnote\n\nhi"},
    ]


def test_tool_results_come_before_the_text_of_their_message() -> None:
    message = Message(
        "user",
        (Text("first"), ToolResult("a", (Text("1"), Text("2"))), Text("second"), ToolResult("b")),
    )
    assert rendered(message) == [
        {"role": "tool", "tool_call_id": "a", "content": "1\n\n2"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "user", "content": "first\n\nsecond"},
    ]


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ((Text("no file"),), "Error: no file"),
        ((Text("Error: no file"),), "Error: no file"),
        ((Text("error: no file"),), "error: no file"),
        ((), "Error: the call failed"),
        ((Text(""), Text("Error: x")), "Error: x"),
        ((PICTURE,), "Error: the call failed\n\n[image omitted: this model cannot see]"),
    ],
)
def test_a_failed_call_says_so_once(parts: tuple[Any, ...], content: str) -> None:
    assert rendered(Message("user", (ToolResult("a", parts, is_error=True),)))[0]["content"] == content


def test_an_assistant_turn_keeps_reasoning_text_and_calls() -> None:  # rows 16 and 36
    turn = Message(
        "assistant",
        (
            Thinking(" I\n"),
            Thinking("look "),
            Text("ok"),
            ToolUse("a", "f", '{"b": 1,"a":2}'),
            ToolUse("b", "g", ""),
        ),
    )
    assert rendered(*HI, turn, *HI)[1] == {
        "role": "assistant",
        "content": "ok",
        "reasoning_content": " I\nlook ",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"b": 1,"a":2}'}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    silent = Message("assistant", (ToolUse("a", "f", "{}"),))
    assert rendered(*HI, silent)[1]["content"] == ""


def test_images_in_a_user_message() -> None:
    message = Message("user", (Text("see"), PICTURE, Image(url="http://x/y.png"), Text("")))
    assert rendered(message) == [
        {"role": "user", "content": "see" + "\n\n[image omitted: this model cannot see]" * 2}
    ]
    assert rendered(message, vision=True)[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "http://x/y.png"}},
    ]


def test_images_in_a_tool_result() -> None:  # row 32
    message = Message(
        "user", (ToolResult("a", (Text("shot"), PICTURE)), ToolResult("b", (Text("2"),)), Text("so?"))
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    blind, second, asked = rendered(message)
    assert blind["content"] == "shot\n\n[image omitted: this model cannot see]"
    assert rendered(message, vision=True) == [
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "shot"}, image]},
        second,
        asked,
    ]
    assert rendered(message, vision=True, kind="openai") == [
        {"role": "tool", "tool_call_id": "a", "content": "shot\n\n[image: see below]"},
        second,
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[from the result of call a]"},
                image,
                {"type": "text", "text": "so?"},
            ],
        },
    ]


def test_empty_texts_are_dropped() -> None:  # row 35
    assert rendered(Message("user", (Text(""), PICTURE)), vision=True)[0]["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    ]
    assert rendered(Message("user", (ToolResult("a"), Text("")))) == [
        {"role": "tool", "tool_call_id": "a", "content": ""}
    ]


@pytest.mark.parametrize(
    ("choice", "llamacpp", "openai"),
    [
        (ToolChoice(), None, None),
        (ToolChoice("any"), "required", "required"),
        (ToolChoice("none"), "none", "none"),
        (ToolChoice("tool", "g"), "required", {"type": "function", "function": {"name": "g"}}),
    ],
)
def test_tool_choice(choice: ToolChoice, llamacpp: Any, openai: Any) -> None:
    tools = (Tool("f"), Tool("g", strict=True))
    found = body(tools=tools, tool_choice=choice)
    assert found.get("tool_choice") == llamacpp
    names = [tool["function"]["name"] for tool in found["tools"]]
    assert names == (["g"] if choice.mode == "tool" else ["f", "g"])
    found = body(tools=tools, tool_choice=choice, given={"kind": "openai"})
    assert found.get("tool_choice") == openai
    assert found["tools"][1]["function"]["strict"] is True and "strict" not in found["tools"][0]["function"]
    assert len(found["tools"]) == 2


def test_parallel_calls_may_be_forbidden() -> None:
    one_call = ToolChoice(parallel=False)
    for kind, by_default in (("llamacpp", True), ("openai", None)):
        assert body(tools=(Tool("f"),), given={"kind": kind}).get("parallel_tool_calls") is by_default
        assert (
            body(tools=(Tool("f"),), tool_choice=one_call, given={"kind": kind})["parallel_tool_calls"]
            is False
        )
        assert "parallel_tool_calls" not in body(tool_choice=one_call, given={"kind": kind})


def test_answers_in_json() -> None:  # row 44
    plain = body(response_format=ResponseFormat("json_object"))
    assert plain["response_format"] == {"type": "json_object"}
    wanted = ResponseFormat("json_schema", "person", SCHEMA, True)
    exact = {
        "type": "json_schema",
        "json_schema": {"name": "person", "schema": msgspec.json.decode(SCHEMA), "strict": True},
    }
    assert body(response_format=wanted)["response_format"] == exact
    assert SCHEMA.encode() in raw(ChatRequest("x", HI, response_format=wanted))
    lowered = body(response_format=wanted, given={"lower_schema": True})
    assert lowered["response_format"] == {"type": "json_object"}
    assert (
        lowered["messages"][0]["content"]
        == f"hi\n\nAnswer with one JSON object that fits this JSON Schema:\n{SCHEMA}"
    )
    after_a_result = body(
        Message("user", (ToolResult("a"),)), response_format=wanted, given={"lower_schema": True}
    )
    assert [m["role"] for m in after_a_result["messages"]] == ["tool", "user"]


@pytest.mark.parametrize("thinking", [None, True, False])
def test_thinking(thinking: bool | None) -> None:
    prefill = (*HI, Message("assistant", (Text("{"),)))
    expected = None if thinking is None else {"enable_thinking": thinking}
    assert body(thinking=thinking).get("chat_template_kwargs") == expected
    assert body(*prefill, thinking=thinking)["chat_template_kwargs"] == {"enable_thinking": False}
    found = body(*prefill, thinking=thinking, effort="xhigh", given={"kind": "openai"})
    assert "chat_template_kwargs" not in found
    assert found.get("reasoning_effort") == (None if thinking is False else "high")


def test_stop_sequences_are_never_sent() -> None:
    with_stop = body(sampling=Sampling(stop=("END",)))
    assert "stop" not in with_stop and with_stop["timings_per_token"] is True
    assert "timings_per_token" not in body()
    assert "id_slot" not in body(given={"slot": None}) and body(given={"slot": 0})["id_slot"] == 0


PARTS = st.one_of(
    st.builds(Text, st.text(max_size=5)),
    st.builds(lambda: PICTURE),
    st.builds(lambda t: ToolResult("a", (Text(t), PICTURE)), st.text(max_size=3)),
)
MESSAGES = st.one_of(
    st.builds(lambda p: Message("user", tuple(p)), st.lists(PARTS, max_size=3)),
    st.builds(lambda t: Message("system", (Text(t),)), st.text(max_size=3)),
    st.builds(
        lambda t, u: Message("assistant", (Thinking(t), Text(u))), st.text(max_size=3), st.text(max_size=3)
    ),
)


@given(st.lists(MESSAGES, min_size=1, max_size=6), st.booleans(), st.sampled_from(["llamacpp", "openai"]))
def test_a_conversation_that_grew_renders_to_a_longer_list(
    turns: list[Message], vision: bool, kind: str
) -> None:
    turns = list(canonical(ChatRequest("x", (*HI, *turns))).request.messages)
    longer = rendered(*turns, vision=vision, kind=kind)
    for length in range(1, len(turns)):
        shorter = rendered(*turns[:length], vision=vision, kind=kind)
        assert longer[: len(shorter)] == shorter
