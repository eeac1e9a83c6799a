"""What clients, Codex first of all, send to /v1/responses, and what is wrong with what they send."""

import base64
import json
from typing import Any

import pytest

from herdr.errors import InvalidInput
from herdr.pool.protocols import responses
from herdr.pool.protocols.openai.content import FILE_LEFT_OUT, IMAGE_LEFT_OUT
from herdr.pool.protocols.responses.tools import MappedTool
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

HELLO = Message("user", (Text("hello"),))
USER = {"type": "message", "role": "user", "content": "x"}


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "input": "hello"} | fields).encode()


def parse(**fields: Any) -> ChatRequest:
    return responses.parse(body(**fields))


def heard(*items: dict[str, Any]) -> tuple[Message, ...]:
    return parse(input=list(items)).messages


def done(*items: dict[str, Any]) -> tuple[Any, ...]:
    """What the items say that an assistant did."""
    (message, _) = heard(*items, USER)
    assert message.role == "assistant"
    return message.parts


def packed(text: str) -> str:
    return "herdr1:" + base64.b64encode(text.encode()).decode()


def test_the_least_that_a_client_sends() -> None:
    assert parse() == ChatRequest(model="m", messages=(HELLO,))


def test_instructions_come_first() -> None:
    assert parse(instructions="Be brief.").messages == (Message("system", (Text("Be brief."),)), HELLO)
    assert parse(instructions=None).messages == parse(instructions="").messages == (HELLO,)


@pytest.mark.parametrize(
    ("role", "neutral"),
    [("system", "system"), ("developer", "system"), ("user", "user"), ("assistant", "assistant")],
)
@pytest.mark.parametrize(
    "type_", [{}, {"type": "message"}, {"type": "message", "id": "msg_1", "status": "completed"}]
)
def test_messages(role: str, neutral: Any, type_: dict[str, str]) -> None:
    assert heard(type_ | {"role": role, "content": "hi"}) == (Message(neutral, (Text("hi"),)),)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ()),
        (None, ()),
        (
            [{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b", "annotations": []}],
            (Text("a"), Text("b")),
        ),
        ([{"type": "refusal", "refusal": "no"}], (Text("no"),)),
        ([{"type": "input_image", "image_url": "data:image/png;base64,aGk="}], (Image("image/png", "aGk="),)),
        (
            [{"type": "input_image", "image_url": "https://h/a.png", "detail": "auto"}],
            (Image(url="https://h/a.png"),),
        ),
        ([{"type": "input_image", "file_id": "f1"}], (Text(IMAGE_LEFT_OUT),)),
        ([{"type": "input_file", "file_data": "x", "filename": "a.pdf"}], (Text(FILE_LEFT_OUT),)),
        ([{"type": "smell"}], (Text("[Content of the type smell was left out.]"),)),
        ([{"type": "smell", "text": "of roses"}], (Text("of roses"),)),
    ],
)
def test_content(content: Any, parts: tuple[Any, ...]) -> None:
    assert heard({"role": "user", "content": content}) == (Message("user", parts),)


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"b": 1,  "a":2}'}


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        (CALL, (ToolUse("c1", "f", '{"b": 1,  "a":2}'),)),
        (CALL | {"arguments": ""}, (ToolUse("c1", "f", "{}"),)),
        (CALL | {"arguments": {"a": 1}}, (ToolUse("c1", "f", '{"a": 1}'),)),
        (CALL | {"arguments": '{"a'}, (ToolUse("c1", "f", '{"arguments":"{\\"a"}'),)),
        (CALL | {"namespace": "mcp__x"}, (ToolUse("c1", "mcp__x__f", '{"b": 1,  "a":2}'),)),
        (CALL | {"namespace": "mcp__x__"}, (ToolUse("c1", "mcp__x__f", '{"b": 1,  "a":2}'),)),
        (CALL | {"namespace": None}, (ToolUse("c1", "f", '{"b": 1,  "a":2}'),)),
        (
            {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": 'a"\n'},
            (ToolUse("c1", "apply_patch", '{"input":"a\\"\\n"}'),),
        ),
        (
            {
                "type": "local_shell_call",
                "id": "l1",
                "call_id": "c1",
                "action": {"type": "exec", "command": ["ls"]},
            },
            (ToolUse("c1", "local_shell", '{"type": "exec", "command": ["ls"]}'),),
        ),
        ({"type": "local_shell_call", "id": "l1"}, (ToolUse("l1", "local_shell", "{}"),)),
        (
            {"type": "reasoning", "summary": [], "encrypted_content": packed("渐 hm\n")},
            (Thinking("渐 hm\n"),),
        ),
        (
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "short"}],
                "encrypted_content": packed("long"),
            },
            (Thinking("long"),),
        ),
        (
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
            },
            (Thinking("a\n\nb"),),
        ),
        (
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "a"}],
                "content": [{"type": "reasoning_text", "text": "whole"}],
                "encrypted_content": None,
            },
            (Thinking("whole"),),
        ),
    ],
)
def test_what_an_assistant_did(item: dict[str, Any], parts: tuple[Any, ...]) -> None:
    assert done(item) == parts


@pytest.mark.parametrize(
    "foreign", ["gAAAAB", "herdr1:***", "herdr1:/w==", "herdr1:a", "", "herdr2:aGk=", None]
)
def test_reasoning_that_another_server_packed_is_read_from_its_summary(foreign: str | None) -> None:
    item = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "s"}],
        "encrypted_content": foreign,
    }
    assert done(item) == (Thinking("s"),)


@pytest.mark.parametrize(
    ("output", "parts"),
    [
        ("text", (Text("text"),)),
        ("", ()),
        (None, ()),
        (
            [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://h/a"}],
            (Text("a"), Image(url="https://h/a")),
        ),
        ([], ()),
        ({"content": "x"}, (Text('{"content": "x"}'),)),
    ],
)
@pytest.mark.parametrize(
    "kind", ["function_call_output", "custom_tool_call_output", "local_shell_call_output"]
)
def test_outputs(kind: str, output: Any, parts: tuple[Any, ...]) -> None:
    item = {"type": kind, "call_id": "c1", "id": "fco_1", "output": output}
    assert heard(item) == (Message("user", (ToolResult("c1", parts),)),)


def test_an_assistants_items_in_a_row_are_one_turn_and_so_are_outputs() -> None:
    thought = {"type": "reasoning", "summary": [], "encrypted_content": packed("hm")}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}
    answered = {"type": "function_call_output", "call_id": "c1", "output": "one"}
    assert heard(
        USER,
        USER,
        thought,
        said,
        CALL,
        CALL | {"call_id": "c2"},
        answered,
        answered | {"call_id": "c2"},
        said,
        USER,
    ) == (
        Message("user", (Text("x"),)),
        Message("user", (Text("x"),)),
        Message(
            "assistant",
            (
                Thinking("hm"),
                Text("I look."),
                ToolUse("c1", "f", '{"b": 1,  "a":2}'),
                ToolUse("c2", "f", '{"b": 1,  "a":2}'),
            ),
        ),
        Message("user", (ToolResult("c1", (Text("one"),)), ToolResult("c2", (Text("one"),)))),
        Message("assistant", (Text("I look."),)),
        Message("user", (Text("x"),)),
    )


@pytest.mark.parametrize(
    "item",
    [
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": 5},
        },
        {"type": "item_reference", "id": "msg_1"},
        {"type": "compaction", "encrypted_content": "x"},
        {"type": "tool_search_call", "arguments": {}},
        {"type": "from_next_year", "content": 5, "role": []},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": []},
    ],
)
def test_items_that_say_nothing_to_a_local_model_leave_no_trace(item: dict[str, Any]) -> None:
    assert heard(USER, item, USER) == heard(USER, USER)
    assert done(CALL, item, CALL) == done(CALL, CALL)


def test_reasoning_of_a_broken_stream_at_the_end_is_left_out() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    assert heard(USER, thought) == heard(USER)
    assert len(heard(USER, thought, CALL)) == 2


def test_ids_of_items_never_reach_the_prompt() -> None:
    def items(salt: str) -> list[dict[str, Any]]:
        return [
            USER | {"id": f"msg_{salt}"},
            {"type": "reasoning", "id": f"rs_{salt}", "summary": [{"type": "summary_text", "text": "hm"}]},
            CALL | {"id": f"fc_{salt}", "status": salt},
            {"type": "function_call_output", "id": f"fco_{salt}", "call_id": "c1", "output": "x"},
        ]

    assert heard(*items("a")) == heard(*items("b"))


def test_tools() -> None:
    schema = '{ "type":"object", "properties":{"b":{},"a":{}}}'
    tools = (
        '[{"type":"function","name":"exec","description":"Runs.","strict":false,"parameters":' + schema + "},"
        '{"type":"namespace","name":"mcp__x","description":"X.","tools":['
        '{"type":"function","name":"go","description":"Goes.","parameters":'
        + schema
        + ',"defer_loading":true},'
        '{"type":"custom","name":"sql"},{"type":"namespace","name":"deeper","tools":[{"type":"function","name":"f"}]}]},'
        '{"type":"web_search","name":7,"external_web_access":true},{"type":"local_shell"},{"type":"tool_search"},'
        '{"type":"function","name":"bare","parameters":null}]'
    )
    request = responses.parse(b'{"model":"m","input":"x","tools":' + tools.encode() + b"}")
    assert [tool.name for tool in request.tools] == ["exec", "mcp__x__go", "mcp__x__sql", "bare"]
    exec_, go, sql, bare = request.tools
    assert exec_ == Tool("exec", "Runs.", schema, False)
    assert go == MappedTool("mcp__x__go", "Goes.", schema, None, "go", "mcp__x")
    assert isinstance(sql, MappedTool)
    assert (sql.member, sql.namespace, sql.custom) == ("sql", "mcp__x", True)
    assert bare == Tool("bare")


def test_a_plain_text_tool_becomes_a_function_of_its_input_with_its_grammar_described() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}
    (tool,) = parse(
        tools=[{"type": "custom", "name": "apply_patch", "description": "D", "format": grammar}]
    ).tools
    schema = json.loads(tool.parameters)
    text = schema["properties"].pop("input")
    assert schema == {"type": "object", "properties": {}, "required": ["input"]}
    assert text["type"] == "string" and 'lark grammar:\nstart: "x"' in text["description"]
    assert (tool.name, tool.description) == ("apply_patch", "D")


def test_of_two_tools_with_one_name_the_first_counts() -> None:
    tools = [
        {"type": "namespace", "name": "a", "tools": [{"type": "function", "name": "f"}]},
        {"type": "function", "name": "a__f"},
    ]
    (tool,) = parse(tools=tools).tools
    assert isinstance(tool, MappedTool)


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({"tool_choice": "auto", "parallel_tool_calls": True}, ToolChoice()),
        ({"tool_choice": "none"}, ToolChoice("none")),
        ({"tool_choice": "required"}, ToolChoice("any")),
        ({"parallel_tool_calls": False}, ToolChoice(parallel=False)),
        ({"tool_choice": {"type": "function", "name": "f"}}, ToolChoice("tool", "f")),
        ({"tool_choice": {"type": "function", "name": "f", "namespace": "n"}}, ToolChoice("tool", "n__f")),
        ({"tool_choice": {"type": "custom", "name": "f"}}, ToolChoice("tool", "f")),
        ({"tool_choice": {"type": "web_search"}}, ToolChoice()),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "required",
                    "tools": [{"type": "function", "name": "f"}],
                }
            },
            ToolChoice("tool", "f"),
        ),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "required",
                    "tools": [{"name": "f"}, {"name": "g"}],
                }
            },
            ToolChoice("any"),
        ),
    ],
)
def test_tool_choice(fields: dict[str, Any], choice: ToolChoice) -> None:
    assert parse(**fields).tool_choice == choice


@pytest.mark.parametrize(
    ("fields", "attribute", "value"),
    [
        ({"max_output_tokens": 9}, "max_tokens", 9),
        ({"temperature": 0, "top_p": 0.5}, "sampling", Sampling(temperature=0, top_p=0.5)),
        ({"reasoning": {"effort": "high", "summary": "auto"}}, "effort", "high"),
        ({"reasoning": {"effort": "none"}}, "thinking", False),
        ({"reasoning": {"effort": "none"}}, "effort", None),
        ({"reasoning": None}, "thinking", None),
        ({"reasoning": {"summary": "none"}}, "hide_thinking", True),
        ({"reasoning": {"summary": "auto"}}, "hide_thinking", False),
        ({}, "hide_thinking", False),
        ({"prompt_cache_key": "s1"}, "session", "s1"),
        ({"prompt_cache_key": ""}, "session", None),
        ({"stream": True}, "stream", True),
        ({"stream": None}, "stream", False),
        ({"text": {"verbosity": "low"}}, "response_format", None),
        ({"text": {"format": {"type": "text"}}}, "response_format", None),
        ({"text": {"format": {"type": "json_object"}}}, "response_format", ResponseFormat("json_object")),
        (
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "n",
                        "strict": True,
                        "schema": {"type": "object"},
                    }
                }
            },
            "response_format",
            ResponseFormat("json_schema", "n", '{"type": "object"}', True),
        ),
        ({"previous_response_id": None, "conversation": None, "store": True, "include": ["x"]}, "model", "m"),
        ({"client_metadata": {"a": "b"}, "made_up": [[]]}, "model", "m"),
    ],
)
def test_other_fields(fields: dict[str, Any], attribute: str, value: object) -> None:
    assert getattr(parse(**fields), attribute) == value


@pytest.mark.parametrize(
    ("sent", "field", "says"),
    [
        (body(input=5), "input", "got int"),
        (body(input=""), "input", "at least one"),
        (body(input=[]), "input", "at least one"),
        (body(input=[{"type": "item_reference", "id": "x"}]), "input", "at least one"),
        (body(input=["hi"]), "input[0]", "got str"),
        (body(input=[{"type": 5}]), "input[0].type", "got int"),
        (body(input=[{"type": "message", "content": "x"}]), "input[0].role", "missing"),
        (body(input=[{"role": "user", "content": 5}]), "input[0].content", "got int"),
        (
            body(input=[{"role": "user", "content": [{"type": "input_text"}]}]),
            "input[0].content[0].text",
            "missing",
        ),
        (body(input=[{"role": "user", "content": [{"text": "x"}]}]), "input[0].content[0].type", "missing"),
        (
            body(input=[{"type": "function_call", "name": "f", "arguments": "{}"}]),
            "input[0].call_id",
            "missing",
        ),
        (body(input=[{"type": "function_call", "call_id": "c"}]), "input[0].name", "missing"),
        (
            body(input=[{"type": "custom_tool_call", "call_id": "c", "name": "n", "input": 5}]),
            "input[0].input",
            "got int",
        ),
        (body(input=[{"type": "function_call_output", "output": "x"}]), "input[0].call_id", "missing"),
        (
            body(input=[{"type": "function_call_output", "call_id": "c", "output": [5]}]),
            "input[0].output[0]",
            "got int",
        ),
        (body(tools={}), "tools", "got object"),
        (body(tools=[5]), "tools[0]", "got int"),
        (body(tools=[{"type": "function"}]), "tools[0].name", "missing"),
        (body(tools=[{"type": "function", "name": "f", "parameters": 5}]), "tools[0].parameters", "object"),
        (
            body(tools=[{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]),
            "tools[0].tools[0].name",
            "missing",
        ),
        (body(tool_choice="perhaps"), "tool_choice", "perhaps"),
        (body(tool_choice={"type": "function"}), "tool_choice.name", "missing"),
        (body(reasoning="high"), "reasoning", "got str"),
        (body(text={"format": {"type": "xml"}}), "text.format.type", "xml"),
        (body(text={"format": {"type": "json_schema", "name": "n"}}), "text.format.schema", "object"),
        (body(previous_response_id="resp_1"), "previous_response_id", "whole conversation"),
        (body(conversation="conv_1"), "conversation", "whole conversation"),
        (body(conversation={"id": "conv_1"}), "conversation", "whole conversation"),
    ],
)
def test_bad_input_is_refused_with_its_path(sent: bytes, field: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        responses.parse(sent)
    assert [error.field for error in caught.value.errors] == [field]
    assert says in caught.value.detail
    assert caught.value.detail.startswith(field)
    assert len(caught.value.detail) < 300
