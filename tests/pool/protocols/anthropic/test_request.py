import json
from typing import Any

import pytest

from herdr.errors import InvalidInput
from herdr.pool.protocols import anthropic
from herdr.pool.protocols.anthropic.request import MENDED_MAX
from herdr.pool.request import ChatRequest, ResponseFormat, Sampling, Text, Tool, ToolChoice

HI = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"b": {}, "a": {}}}
BASH = {"name": "Bash", "description": "Run it", "input_schema": SCHEMA}


def parse(**fields: Any) -> ChatRequest:
    return anthropic.parse(json.dumps({"model": "m", "messages": HI, **fields}).encode())


def refusal(body: bytes) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as raised:
        anthropic.parse(body)
    (error,) = raised.value.errors
    assert error.message in raised.value.detail and error.field in raised.value.detail
    return error.field, error.message


def test_a_request_of_everything_at_once() -> None:
    request = parse(
        system="Be brief.",
        max_tokens=128000,
        temperature=1,
        top_p=0.5,
        top_k=20,
        stop_sequences=["END", ""],
        stream=True,
        thinking={"type": "enabled", "budget_tokens": 1024},
        metadata={"user_id": None},
        context_management={"edits": []},
        service_tier="auto",
        cache_control={"type": "ephemeral"},
    )
    assert request.model == "m" and request.max_tokens == 128000 and request.stream is True
    assert request.sampling == Sampling(temperature=1.0, top_p=0.5, top_k=20, stop=("END",))
    assert request.thinking is True and not request.hide_thinking and request.session is None


def test_a_request_of_the_least() -> None:
    request = anthropic.parse(b'{"messages":[{"role":"user","content":"hi"}]}')
    assert (request.model, request.max_tokens, request.stream) == ("", None, False)
    assert request.sampling == Sampling() and request.tool_choice == ToolChoice()


@pytest.mark.parametrize(
    "field", ["system", "tools", "tool_choice", "stop_sequences", "temperature", "top_p"]
)
def test_null_is_as_good_as_nothing(field: str) -> None:
    assert parse(**{field: None}) == parse()


@pytest.mark.parametrize("value", [0, 1, 10**12])
def test_max_tokens(value: int) -> None:
    assert parse(max_tokens=value).max_tokens == value


class TestTools:
    def test_they_keep_their_schema_as_the_client_wrote_it(self) -> None:
        body = b'{"messages":[{"role":"user","content":"a"}],"tools":[{"name":"B","input_schema":%s}]}'
        for schema in (b'{"type":"object",\n "properties":{"z":{},"a":{}}}', b'{"const":1.10}', b"{}"):
            assert anthropic.parse(body % schema).tools == (Tool("B", "", schema.decode()),)

    def test_what_is_no_part_of_a_tool_is_ignored(self) -> None:
        extras = {
            "type": "custom",
            "cache_control": {"type": "ephemeral"},
            "defer_loading": True,
            "eager_input_streaming": True,
            "input_examples": [{}],
            "strict": True,
        }
        (tool,) = parse(tools=[BASH | extras]).tools
        assert tool == Tool("Bash", "Run it", json.dumps(SCHEMA), True)

    def test_tools_of_anthropics_servers_are_left_out(self) -> None:
        servers = [
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
            {"type": "mcp_toolset", "mcp_server_name": "x"},
            {"type": "bash_20250124", "name": "bash", "input_schema": None},
        ]
        assert [tool.name for tool in parse(tools=[*servers, BASH]).tools] == ["Bash"]
        assert parse(tools=servers, tool_choice={"type": "any"}).tool_choice == ToolChoice("auto")

    @pytest.mark.parametrize(
        ("choice", "expected"),
        [
            ({"type": "auto"}, ToolChoice("auto")),
            ({"type": "any"}, ToolChoice("any")),
            ({"type": "none"}, ToolChoice("none")),
            ({"type": "tool", "name": "Bash"}, ToolChoice("tool", "Bash")),
            ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice("auto", parallel=False)),
            ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("any", parallel=False)),
            (
                {"type": "tool", "name": "Bash", "disable_parallel_tool_use": True},
                ToolChoice("tool", "Bash", False),
            ),
            ({"type": "auto", "disable_parallel_tool_use": None}, ToolChoice("auto")),
        ],
    )
    def test_choices(self, choice: dict[str, Any], expected: ToolChoice) -> None:
        assert parse(tools=[BASH], tool_choice=choice).tool_choice == expected


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        ({"type": "enabled", "budget_tokens": 2000}, (True, False)),
        ({"type": "enabled", "display": "omitted"}, (True, True)),
        ({"type": "enabled", "display": "summarized"}, (True, False)),
        ({"type": "adaptive"}, (None, False)),
        ({"type": "adaptive", "display": "omitted"}, (None, True)),
        ({"type": "disabled"}, (False, False)),
        ({"type": "between_tools"}, (None, False)),
        (None, (None, False)),
    ],
)
def test_thinking(thinking: Any, expected: tuple[bool | None, bool]) -> None:
    request = parse(thinking=thinking)
    assert (request.thinking, request.hide_thinking) == expected


@pytest.mark.parametrize("at", ["output_config", "output_format"])
def test_structured_output(at: str) -> None:
    form = {"type": "json_schema", "schema": SCHEMA}
    request = parse(**{at: {"format": form} if at == "output_config" else form})
    assert request.response_format == ResponseFormat("json_schema", schema=json.dumps(SCHEMA))


def test_effort() -> None:
    assert parse(output_config={"effort": "medium", "format": None}).effort == "medium"
    assert parse(output_config={"effort": None}).effort is None


UUID = "0b9f3f1e-8a9e-4d0a-9d4e-2f1f0a6f7c11"


@pytest.mark.parametrize(
    ("user", "session"),
    [
        (json.dumps({"device_id": "d", "account_uuid": "", "session_id": UUID, "team": [1]}), UUID),
        (f"user_0a1b2c_account__session_{UUID}", UUID),
        (f"user_0a1b2c_account_{UUID}_session_{UUID[:-1]}2", f"{UUID[:-1]}2"),
        ("someone@example.org", None),
        ("", None),
        ("{", None),
        ('{"x":' + "[" * 100_000, None),
        ('{"session_id":7}', None),
        ('{"session_id":""}', None),
        ("7", None),
    ],
)
def test_the_session_in_the_user_id(user: str, session: str | None) -> None:
    assert parse(metadata={"user_id": user}).session == session


@pytest.mark.parametrize(
    "written", [b'{"a":' * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]}]}"]
)
def test_arguments_nested_too_deeply_are_refused(written: bytes) -> None:
    body = (
        b'{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":'
        + written
    )
    field, message = refusal(body)
    assert field == "" and "nested too deeply" in message


@pytest.mark.parametrize(
    ("fields", "path", "said"),
    [
        ({"messages": []}, "messages", "a list of at least one message"),
        ({"messages": None}, "messages", "got null"),
        ({"messages": "hi"}, "messages", "got str"),
        ({"messages": ["hi"]}, "messages[0]", "got str"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role", "missing"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "missing"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "got null"),
        ({"messages": [{"role": "user", "content": {"type": "text"}}]}, "messages[0].content", "got object"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages[0].content[0]", "a content block"),
        ({"messages": [*HI, {"role": "tool", "content": "x"}]}, "messages[1].role", "Unknown role 'tool'"),
        ({"messages": [{"role": 5, "content": "x"}]}, "messages[0].role", "user, assistant or system"),
        ({"model": 7}, "model", "a string"),
        ({"system": 7}, "system", "a string or a list"),
        ({"system": [{"type": "text", "text": 7}]}, "system[0].text", "got int"),
        ({"system": ["x"]}, "system[0]", "a content block"),
        ({"max_tokens": -1}, "max_tokens", "a whole number"),
        ({"max_tokens": 1.5}, "max_tokens", "got float"),
        ({"max_tokens": "10"}, "max_tokens", "got str"),
        ({"max_tokens": True}, "max_tokens", "got bool"),
        ({"temperature": "hot"}, "temperature", "a number from 0 to 2"),
        ({"temperature": -0.1}, "temperature", "a number from 0 to 2"),
        ({"top_p": 1.1}, "top_p", "a number from 0 to 1"),
        ({"top_k": -1}, "top_k", "a whole number"),
        ({"stop_sequences": "END"}, "stop_sequences", "a list of strings"),
        ({"stop_sequences": [1]}, "stop_sequences[0]", "a string"),
        ({"stream": "yes"}, "stream", "true or false"),
        ({"tools": {}}, "tools", "got object"),
        ({"tools": [7]}, "tools[0]", "name, description and input_schema"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name", "a string"),
        ({"tools": [BASH, BASH | {"name": ""}]}, "tools[1].name", "empty"),
        ({"tools": [BASH | {"input_schema": "x"}]}, "tools[0].input_schema", "a JSON object"),
        ({"tools": [BASH | {"description": 7}]}, "tools[0].description", "got int"),
        ({"tool_choice": "auto"}, "tool_choice", "auto, any, tool or none"),
        ({"tool_choice": {}}, "tool_choice.type", "missing"),
        ({"tool_choice": {"type": "required"}}, "tool_choice.type", "auto, any, tool or none"),
        ({"tool_choice": {"type": "tool"}, "tools": [BASH]}, "tool_choice.name", "Name one of"),
        (
            {"tool_choice": {"type": "tool", "name": "Read"}, "tools": [BASH]},
            "tool_choice.name",
            "Name one of",
        ),
        ({"thinking": True}, "thinking", "enabled, adaptive or disabled"),
        ({"thinking": {}}, "thinking.type", "missing"),
        ({"output_config": "high"}, "output_config", "an object"),
        ({"output_config": {"effort": 3}}, "output_config.effort", "got int"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type", "json_schema"),
        (
            {"output_config": {"format": {"type": "json_schema"}}},
            "output_config.format.schema",
            "a JSON object",
        ),
        ({"metadata": "me"}, "metadata", "an object"),
        ({"metadata": {"user_id": 7}}, "metadata.user_id", "got int"),
    ],
)
def test_a_wrong_field_is_named_with_what_it_should_be(fields: dict[str, Any], path: str, said: str) -> None:
    field, message = refusal(json.dumps({"model": "m", "messages": HI} | fields).encode())
    assert field == path and said in message
    assert len(message) < 300


def test_missing_messages() -> None:
    field, message = refusal(b'{"model":"m"}')
    assert field == "messages" and "missing; send a list of at least one message" in message


def test_a_hundred_thousand_messages() -> None:
    message = b'{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":"b"}'
    body = b'{"model":"m","messages":[' + b",".join([message] * 50_000) + b"]}"
    assert len(anthropic.parse(body).messages) == 100_000


@pytest.mark.parametrize(
    "wide", [b'["a"' + b',"a"' * 200_000 + b"]", b"[" * 8 + b'""' + b',""' * 200_000 + b"]" * 8]
)
def test_a_result_of_many_pieces(wide: bytes) -> None:
    body = b'{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":%s}]}]}'
    (part,) = anthropic.parse(body % wide).messages[0].parts
    assert len(part.parts) == wide.count(b'"a"')  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"a\ud83d", "a\ufffd"),
        (r"\uD83Dx\uDE00", "\ufffdx\ufffd"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"\\\ud83d \\ud83d \u00e4\n", "\\\ufffd \\ud83d ä\n"),
    ],
)
def test_half_an_emoji_does_not_cost_the_session(written: str, read: str) -> None:
    body = '{"messages":[{"role":"user","content":"%s"}],"tools":[{"name":"n","input_schema":{"a":"%s"}}]}'
    request = anthropic.parse((body % (written, written)).encode())
    assert request.messages[0].parts == (Text(read),)
    assert json.loads(request.tools[0].parameters) == {"a": read}


def test_a_large_broken_body_is_refused_without_mending() -> None:
    body = b'{"messages":[{"role":"user","content":"\\ud83d%s"}]}'
    anthropic.parse(body % b"")
    with pytest.raises(InvalidInput, match="not valid JSON"):
        anthropic.parse(body % (b" " * MENDED_MAX))
