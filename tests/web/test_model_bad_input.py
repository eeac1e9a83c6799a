"""What the model endpoints refuse, each in its own client's terms, and that nothing of it reaches a model."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fake_llama import FakeLlama, Script, error
from gateway import GatewayProcess
from model_asking import Asking
from model_clients import CHAT, CLIENTS, COMPLETIONS, MESSAGES, RESPONSES, Client, Json
from model_gateway import calls, last, model_gateway, recorded, refused, row, slots, wait_for_rest
from refusals import DEEP
from wire import Answer, call, send_raw

MIB = 1024 * 1024
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@pytest.fixture(scope="module")
def fakes() -> Iterator[dict[str, FakeLlama]]:
    with ExitStack() as stack:
        found = {
            "local": FakeLlama(2),
            "seeing": FakeLlama(2, vision=True),
            "small": FakeLlama(2, n_ctx=200),
            "cloud": FakeLlama(2),
        }
        yield {name: stack.enter_context(fake) for name, fake in found.items()}


@pytest.fixture(scope="module")
def shared(fakes: dict[str, FakeLlama], tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    servers: dict[str, Any] = {**fakes, "cloud": {"kind": "openai", "url": fakes["cloud"].url}}
    with model_gateway(tmp_path_factory.mktemp("bad"), servers) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fakes: dict[str, FakeLlama]) -> Iterator[GatewayProcess]:
    for fake in fakes.values():
        fake.script(Script(["Hello!"]))
    yield shared
    for name in ("local", "seeing", "small"):
        wait_for_rest(shared, name)
        assert fakes[name].violations == []
    assert not [line for line in shared.log if "Traceback" in line]


@pytest.fixture
def unasked(gateway: GatewayProcess, fakes: dict[str, FakeLlama]) -> Iterator[GatewayProcess]:
    """A gateway that must not have asked any model, nor recorded a call."""
    before = [len(fake.requests) for fake in fakes.values()], len(recorded(gateway, "model.call"))
    yield gateway
    assert before == ([len(fake.requests) for fake in fakes.values()], len(recorded(gateway, "model.call")))


def assert_invalid(answer: Answer, client: Client, *says: str) -> None:
    assert answer.status == 400, answer
    kind, message = client.refusal(answer)
    assert kind == ("invalid_request" if client is CHAT else "invalid_request_error")
    for word in says:
        assert word in message, message


def turns_of(client: Client) -> str:
    return "input" if client is RESPONSES else "messages"


# -- bodies -------------------------------------------------------------------------------------------------

NO_JSON = {
    "empty": b"",
    "half": b'{"model": "local", "messages": [',
    "no object": b'["model"]',
    "null": b"null",
    "no UTF-8": b'{"model": "local", "messages": [{"role": "user", "content": "\xff\xfe"}]}',
    "two": b"{} {}",
    "deep": b'{"model": "local", "messages": ' + DEEP + b"}",
    "deep elsewhere": b'{"model": "local", "messages": [], "else": ' + DEEP + b"}",
}


@each
@pytest.mark.parametrize("case", NO_JSON)
def test_a_body_that_is_no_json_object(unasked: GatewayProcess, client: Client, case: str) -> None:
    assert_invalid(refused(unasked, client, NO_JSON[case]), client)


@each
@pytest.mark.parametrize("value", [..., None, [], "", {}, 7, [7], [None], [[]], [{}]], ids=repr)
def test_messages_that_are_none(unasked: GatewayProcess, client: Client, value: Any) -> None:
    body = client.body("Hi")
    field = turns_of(client)
    if value is ...:
        del body[field]
    else:
        body[field] = value
    assert_invalid(refused(unasked, client, body), client, field)


@each
@pytest.mark.parametrize("role", ["wizard", "", "USER", None, 7])
def test_a_role_that_is_none(unasked: GatewayProcess, client: Client, role: Any) -> None:
    body = client.body("Hi", "Hello", "Go on")
    body[turns_of(client)][1]["role"] = role
    assert_invalid(refused(unasked, client, body), client, f"{turns_of(client)}[1].role")


@each
@pytest.mark.parametrize("content", [7, True, {"type": "text", "text": "x"}, [7], [{"type": 7}]], ids=repr)
def test_content_that_is_none(unasked: GatewayProcess, client: Client, content: Any) -> None:
    body = client.body("Hi")
    body[turns_of(client)][0]["content"] = content
    assert_invalid(refused(unasked, client, body), client, f"{turns_of(client)}[0].content")


@each
def test_nobody_says_anything(unasked: GatewayProcess, client: Client) -> None:
    assert_invalid(refused(unasked, client, client.body("")), client)


@each
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", "hot"),
        ("temperature", [1]),
        ("max_tokens", "many"),
        ("max_tokens", -5),
        ("max_tokens", 1.5),
        ("stream", "yes"),
        ("model", 7),
        ("tools", "weather"),
        ("tools", [7]),
    ],
)
def test_fields_of_a_wrong_kind(unasked: GatewayProcess, client: Client, field: str, value: Any) -> None:
    body = client.body("Hi", **client.tools())
    if client is RESPONSES and field == "max_tokens":
        field = "max_output_tokens"
    assert_invalid(refused(unasked, client, {**body, field: value}), client, field)


@each
def test_a_tool_without_a_name_or_with_a_schema_that_is_none(unasked: GatewayProcess, client: Client) -> None:
    for wrong in (
        {"name": None},
        {"name": 7},
        {"input_schema": "x", "parameters": "x"},
        {"input_schema": [], "parameters": []},
    ):
        body = client.body("Hi", **client.tools())
        tool = body["tools"][0].get("function", body["tools"][0])
        tool.update({name: value for name, value in wrong.items() if name == "name" or name in tool})
        assert_invalid(refused(unasked, client, body), client, "tools[0]")


@each
def test_unknown_fields_are_ignored(gateway: GatewayProcess, client: Client) -> None:
    body = client.body("Hi", frobnicate={"a": [1, 2]}, stream=False)
    body[turns_of(client)][0]["frobnicate"] = 7
    with Asking(gateway, client.path, body) as asking:
        answer = asking.answer()
    assert answer.status == 200 and client.text(answer.json()) == "Hello!"


@each
@pytest.mark.parametrize("priority", ["10", "-1", "high", "", "1.5", "0x1", "1 2"])
def test_a_priority_that_is_none(unasked: GatewayProcess, client: Client, priority: str) -> None:
    answer = refused(unasked, client, client.body("Hi"), {"x-priority": priority})
    assert_invalid(answer, client, "X-Priority", "0", "9")


@pytest.mark.parametrize("priority", [10, -1, "high", 1.5])
def test_a_priority_that_is_none_in_the_body_of_chat(unasked: GatewayProcess, priority: Any) -> None:
    assert_invalid(refused(unasked, CHAT, CHAT.body("Hi", priority=priority)), CHAT, "priority")


@each
def test_a_body_beyond_the_limit(unasked: GatewayProcess, client: Client) -> None:
    head = f"POST {client.path} HTTP/1.1\r\nhost: 127.0.0.1:{unasked.port}\r\ncontent-length: {32 * MIB + 1}\r\n\r\n"
    answer = send_raw(unasked, head.encode())
    assert answer.status == 413, answer
    kind, message = client.refusal(answer)
    expected = {"chat": "too_large", "messages": "request_too_large"}
    assert kind == expected.get(client.name, "invalid_request_error")
    assert str(32 * MIB) in message
    assert "events" not in message and "body_max_bytes" not in message, "it advises what does not help here"


@each
def test_a_body_beyond_the_limit_that_does_not_say_so(unasked: GatewayProcess, client: Client) -> None:
    with socket.create_connection(("127.0.0.1", unasked.port), timeout=20) as sock:
        head = f"POST {client.path} HTTP/1.1\r\nhost: 127.0.0.1:{unasked.port}\r\ntransfer-encoding: chunked\r\n\r\n"
        sock.sendall(head.encode())
        chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
        try:
            for _ in range(34):
                sock.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        said = b""
        try:
            while data := sock.recv(65536):
                said += data
        except ConnectionResetError:
            pass
    assert said.startswith(b"HTTP/1.1 413 "), said[:200]


@each
def test_a_large_body_within_the_limit(
    gateway: GatewayProcess, fakes: dict[str, FakeLlama], client: Client
) -> None:
    body = client.body("Hi", stream=False, model="cloud")
    body["else"] = "x" * (9 * MIB)  # more than events may have
    with Asking(gateway, client.path, body) as asking:
        assert client.text(asking.answer().json()) == "Hello!"


# -- what a model cannot do ---------------------------------------------------------------------------------


def image_for(client: Client) -> Json:
    if client in (MESSAGES, CHAT):
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}}
    url = f"data:image/png;base64,{DOT}"
    if client is RESPONSES:
        return {"type": "input_image", "image_url": url}
    return {"type": "image_url", "image_url": {"url": url}}


def with_image(client: Client, model: str) -> Json:
    body = client.body("What is this?", model=model, stream=False)
    kind = "input_text" if client is RESPONSES else "text"
    body[turns_of(client)][0]["content"] = [{"type": kind, "text": "What is this?"}, image_for(client)]
    return body


@each
def test_an_image_for_a_model_that_sees(
    gateway: GatewayProcess, fakes: dict[str, FakeLlama], client: Client
) -> None:
    with Asking(gateway, client.path, with_image(client, "seeing")) as asking:
        assert client.text(asking.answer().json()) == "Hello!"
    parts = last(fakes["seeing"]).body["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    assert parts[1]["image_url"]["url"] == f"data:image/png;base64,{DOT}"


@each
def test_an_image_for_a_model_without_eyes(
    gateway: GatewayProcess, fakes: dict[str, FakeLlama], client: Client
) -> None:
    before = len(fakes["local"].requests)
    answer = refused(gateway, client, with_image(client, "local"))
    assert len(fakes["local"].requests) == before
    assert answer.status == 400
    kind, message = client.refusal(answer)
    assert kind == ("unsupported_input" if client is CHAT else "invalid_request_error")
    assert "image" in message


def test_an_image_in_a_tools_result_does_not_end_a_conversation(
    gateway: GatewayProcess, fakes: dict[str, FakeLlama]
) -> None:
    """The agent did not choose what its tool returns, and would send it again on every turn."""
    body = MESSAGES.body("Look", stream=False, **MESSAGES.tools())
    used = {"type": "tool_use", "id": "t", "name": "weather", "input": {"city": "Paris"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [image_for(MESSAGES)]}
    body["messages"] += [{"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    with Asking(gateway, "/v1/messages", body) as asking:
        assert asking.answer().status == 200
    assert "image omitted" in str(last(fakes["local"]).body["messages"][-1])


@each
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_prompt_longer_than_the_slot(
    gateway: GatewayProcess, fakes: dict[str, FakeLlama], client: Client, stream: bool
) -> None:
    answer = refused(gateway, client, client.body("word " * 200, model="small", stream=stream))
    tokens = last(fakes["small"]).prompt_tokens
    assert answer.status == 400
    kind, message = client.refusal(answer)
    assert message == f"prompt is too long: {tokens} tokens > 200 maximum"
    assert kind == ("prompt_too_long" if client is CHAT else "invalid_request_error")
    if client in (COMPLETIONS, RESPONSES):
        assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert row(gateway, answer.headers["x-herdr-call"])["error"] == "prompt_too_long"
    assert all(slot["state"] != "busy" for slot in slots(gateway, "small"))


@each
def test_an_answer_never_exceeds_what_is_left_of_the_slot(
    gateway: GatewayProcess, fakes: dict[str, FakeLlama], client: Client
) -> None:
    fakes["small"].script(Script(["x "] * 500))
    whole = client.whole(gateway, "Hi", model="small", max_tokens=10_000)
    prompt, _, output = client.tokens(whole)
    assert prompt + output == 200


@each
def test_a_model_that_the_backend_does_not_have(
    gateway: GatewayProcess, fakes: dict[str, FakeLlama], client: Client
) -> None:
    refusal = error(404, "not_found_error", "The model `gpt-99` does not exist")
    fakes["cloud"].script(Script(refuse=refusal))
    answer = refused(gateway, client, client.body("Hi", model="cloud"))
    assert answer.status == 404
    kind, message = client.refusal(answer)
    assert kind == {"chat": "unknown_model"}.get(client.name, "not_found_error")
    assert "gpt-99" in message
    if client in (COMPLETIONS, RESPONSES):
        assert answer.json()["error"]["code"] == "model_not_found"


@each
def test_a_tool_schema_that_the_server_refuses(
    gateway: GatewayProcess, fakes: dict[str, FakeLlama], client: Client
) -> None:
    complaint = "failed to parse grammar: unexpected pattern"
    fakes["local"].script(Script(refuse=error(400, "invalid_request_error", complaint)))
    answer = refused(gateway, client, client.body("Hi", stream=True, **client.tools()))
    assert answer.status == 400 and complaint in client.refusal(answer)[1]


def test_a_gateway_without_any_backend(tmp_path: Path) -> None:
    with model_gateway(tmp_path, {}) as gateway:
        for one in CLIENTS:
            answer = refused(gateway, one, one.body("Hi"))
            assert answer.status == 404
            assert "models.backends" in one.refusal(answer)[1]
        assert call(gateway, "GET", "/v1/models").json()["data"] == []
        assert calls(gateway) == []


# -- headers ------------------------------------------------------------------------------------------------


@each
def test_a_refusal_carries_what_every_answer_carries(unasked: GatewayProcess, client: Client) -> None:
    answer = refused(unasked, client, b"{")
    assert answer.headers["request-id"] == f"req_{answer.headers['x-herdr-call']}"
    assert answer.headers["x-herdr-slot"] == "none"
    assert int(answer.headers["x-herdr-queue-ms"]) == 0


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_a_prompt_that_cannot_be_counted(unasked: GatewayProcess, body: bytes) -> None:
    answer = call(unasked, "POST", "/v1/messages/count_tokens", body, {"content-type": "application/json"})
    assert answer.status == 400 and MESSAGES.refusal(answer)[0] == "invalid_request_error"
    assert answer.headers["request-id"].startswith("req_")


def test_names_from_headers_are_cleaned(gateway: GatewayProcess) -> None:
    with CHAT.ask(gateway, "Hi", headers={"x-agent-id": "a%0Ab%1b[31m " + "x" * 500}, stream=False) as asking:
        found = row(gateway, asking.header("x-herdr-call"))
    assert len(found["agent"]) <= 128 and found["agent"].isprintable()
