"""A backend that speaks OpenAI's chat completions: what it is asked, and what is done for it on the way back."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import fake_anthropic
import pytest
from fake_anthropic import FakeAnthropic
from fake_llama import Die, FakeLlama, Script, Think, Tool, error
from gateway import GatewayProcess
from model_asking import Event
from model_clients import CHAT, CLIENTS, COMPLETIONS, MESSAGES, RESPONSES, WEATHER, Client, Json
from model_gateway import (
    assert_quiet,
    backend,
    configured,
    last,
    model_gateway,
    row,
    until_running,
    wait_for_queue,
    wait_for_rest,
)
from wire import wait_until

KEY = "sk-the-gateways-own-4711"
CALL = [Tool(0, "call_1", "weather", '{"city":"Pa'), Tool(0, arguments='ris","days":2}')]
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
streamed_or_not = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(8) as server:
        yield server


@pytest.fixture(scope="module")
def shared(fake: FakeLlama, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    about = {"kind": "openai", "url": fake.url}
    servers: dict[str, Json] = {
        "plain": about,
        "keyed": {**about, "url": fake.url + "/v1", "api_key_env": "CLOUD_KEY"},
        "slashed": {**about, "url": fake.url + "/v1/"},
        "renamed": {**about, "model": "vendor/model-7b:free"},
        "two": {**about, "concurrency": 2},
        "lowered": {**about, "structured_output": "json_object"},
        "streaming": {**about, "tool_calls": "stream"},
        "recovering": {**about, "recover_tool_calls": True},
    }
    folder = tmp_path_factory.mktemp("openai")
    with model_gateway(folder, servers, env={"CLOUD_KEY": KEY}) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fake: FakeLlama) -> Iterator[GatewayProcess]:
    """The shared gateway, at rest before and after."""
    fake.script(Script(["Hel", "lo", "!"], progress=False, timings=False))
    yield shared
    fake.release()
    for name in ("plain", "two", "streaming"):
        wait_for_rest(shared, name)
    assert fake.violations == []
    assert_quiet(shared)


# -- what it is asked ---------------------------------------------------------------------------------------


@each
@streamed_or_not
def test_it_is_asked_for_what_every_such_server_knows(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool
) -> None:
    ask = client.streamed if stream else client.whole
    whole = ask(gateway, "Say hello", system="Be brief", model="plain", max_tokens=50, **client.tools())
    assert client.text(whole) == "Hello!"
    asked = last(fake)
    assert client.tokens(whole) == (asked.prompt_tokens, asked.cached, 3)
    body = asked.body
    assert set(body) <= {"model", "messages", "tools", "max_tokens", "stream", "stream_options"}
    assert (body["model"], body["stream"], body["max_tokens"]) == ("plain", True, 50)
    assert body["stream_options"] == {"include_usage": True}
    assert [(m["role"], m["content"]) for m in body["messages"]] == [
        ("system", "Be brief"),
        ("user", "Say hello"),
    ]
    assert "authorization" not in asked.headers


@pytest.mark.parametrize("name", ["keyed", "slashed", "plain"])
def test_the_url_may_end_with_the_version_or_not(gateway: GatewayProcess, fake: FakeLlama, name: str) -> None:
    paths = fake.asked["/v1/chat/completions"]
    for client in CLIENTS:
        assert client.text(client.whole(gateway, "Hi", model=name)) == "Hello!"
    assert fake.asked["/v1/chat/completions"] == paths + len(CLIENTS)


@each
def test_the_gateways_key_goes_on_and_the_clients_never(
    gateway: GatewayProcess, fake: FakeLlama, client: Client
) -> None:
    own = {"authorization": "Bearer the-clients-own", "x-api-key": "the-clients-own", "cookie": "a=b"}
    client.whole(gateway, "Hi", model="keyed", headers=own)
    sent = last(fake).headers
    assert sent["authorization"] == f"Bearer {KEY}"
    assert "the-clients-own" not in str(sent) and not {"x-api-key", "cookie"} & set(sent)


@each
def test_a_configured_model_is_the_servers_business(
    gateway: GatewayProcess, fake: FakeLlama, client: Client
) -> None:
    with client.ask(gateway, "Hi", model="renamed", stream=False) as asking:
        whole = asking.answer().json()
        assert row(gateway, asking.header("x-herdr-call"))["model"] == "renamed"
    assert last(fake).body["model"] == "vendor/model-7b:free"
    assert whole["model"] == "renamed"


def schema_for(client: Client) -> Json:
    form = {"type": "json_schema", "name": "report", "schema": WEATHER, "strict": True}
    if client is RESPONSES:
        return {"text": {"format": form}}
    nested = {"name": "report", "schema": WEATHER, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": nested}}


@pytest.mark.parametrize("client", [COMPLETIONS, RESPONSES], ids=lambda client: client.name)
def test_a_strict_schema_is_lowered_where_it_hangs_the_server(
    gateway: GatewayProcess, fake: FakeLlama, client: Client
) -> None:
    client.whole(gateway, "Report", model="lowered", **schema_for(client))
    assert last(fake).body["response_format"] == {"type": "json_object"}
    told = last(fake).body["messages"][-1]["content"]
    assert told.startswith("Report\n") and json.loads(told[told.index("{") :]) == WEATHER
    client.whole(gateway, "Report", model="plain", **schema_for(client))
    wanted = last(fake).body["response_format"]
    assert wanted["type"] == "json_schema" and wanted["json_schema"]["schema"] == WEATHER
    assert last(fake).body["messages"][-1]["content"] == "Report"


def test_as_many_at_once_as_it_may_have(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.hold(after=1)
    before = len(fake.requests)
    with ExitStack() as stack:
        asking = [
            (client, stack.enter_context(client.ask(gateway, f"for {client.name}", model="two", stream=True)))
            for client in CLIENTS
        ]
        until_running(fake, 2)
        wait_for_queue(gateway, 2, "two")
        seen = backend(gateway, "two")
        assert (seen["running"], seen["concurrency"], seen["slots"]) == (2, 2, [])
        other = stack.enter_context(CHAT.ask(gateway, "elsewhere", model="plain"))
        until_running(fake, 3)
        assert len(fake.requests) == before + 3
        fake.release()
        assert CHAT.text(CHAT.assembled(list(other.events()))) == "Hello!"
        for client, one in asking:
            assert client.text(client.assembled(list(one.events()))) == "Hello!"
            assert one.header("x-herdr-slot") == "none"


# -- tools --------------------------------------------------------------------------------------------------


def fragments(client: Client, events: list[Event]) -> str:
    """The arguments so far of a stream's one call."""
    found: list[str] = []
    for event in events:
        said: Any = {} if event.data == "[DONE]" else event.json()
        if client is MESSAGES:
            found.append(said.get("delta", {}).get("partial_json", ""))
        elif client is COMPLETIONS:
            deltas = [choice["delta"].get("tool_calls", []) for choice in said.get("choices", [])]
            found += [call["function"]["arguments"] for calls in deltas for call in calls]
        elif event.name == "response.function_call_arguments.delta":
            found.append(said["delta"])
    return "".join(found)


@each
def test_fragments_of_calls_are_passed_on_where_that_is_wanted(
    gateway: GatewayProcess, fake: FakeLlama, client: Client
) -> None:
    fake.script(Script(CALL))
    for name in ("streaming", "plain"):
        fake.hold(after=1)
        with client.ask(gateway, "Weather?", model=name, stream=True, **client.tools()) as asking:
            seen, stream = [], asking.events()
            until_running(fake, 1)
            while name == "streaming" and client is not CHAT and not fragments(client, seen):
                seen.append(next(stream))
            assert last(fake).state == "held"
            fake.release()
            before = fragments(client, seen)
            seen += stream
        assert before == ('{"city":"Pa' if name == "streaming" and client is not CHAT else "")
        (made,) = client.calls(client.assembled(seen))
        assert (made.name, made.input) == ("weather", {"city": "Paris", "days": 2})
        whole = client.whole(gateway, "Weather?", model=name, **client.tools())
        assert client.calls(whole)[0].input == {"city": "Paris", "days": 2}


LEFT_BEHIND = {
    "hermes": [
        "Sure. <tool",
        '_call>{"name": "weather", "arg',
        'uments": {"city": "Paris"}}</tool_',
        "call>",
    ],
    "qwen": ["Sure. <function=weather><parameter=", "city>\nParis\n</parameter></func", "tion>"],
    "llama": ["Sure. <|python_tag|>", '{"name": "weather", "parameters": {"city": "Paris"}}'],
    "thought": [
        Think('Sure. <tool_call>{"name": "weather", "arguments": '),
        Think('{"city": "Paris"}}</tool_call>'),
    ],
}


@each
@streamed_or_not
@pytest.mark.parametrize("form", LEFT_BEHIND)
def test_calls_that_a_server_left_in_the_text_are_found(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool, form: str
) -> None:
    fake.script(Script(LEFT_BEHIND[form]))  # type: ignore[arg-type]
    ask = client.streamed if stream else client.whole
    whole = ask(gateway, "Weather?", model="recovering", **client.tools())
    (made,) = client.calls(whole)
    assert (made.name, made.input) == ("weather", {"city": "Paris"}) and made.id
    assert client.text(whole).strip() == ("" if form == "thought" else "Sure.")
    if client is MESSAGES:
        assert whole["stop_reason"] == "tool_use"
    # A tool that nobody offered is text, and so is all of it where the switch is off.
    assert client.calls(ask(gateway, "Weather?", model="recovering")) == []
    whole = ask(gateway, "Weather?", model="plain", **client.tools())
    assert client.calls(whole) == []
    assert form == "thought" or "".join(LEFT_BEHIND[form]) == client.text(whole)  # type: ignore[arg-type]


# -- one server for another ---------------------------------------------------------------------------------


@each
@streamed_or_not
def test_a_cloud_takes_over_for_a_local_server_that_is_away(
    away: GatewayProcess, fake: FakeLlama, client: Client, stream: bool
) -> None:
    fake.script(Script(["from ", "the cloud"]))
    with client.ask(away, "Hi", model="local", stream=stream) as asking:
        whole = client.assembled(list(asking.events())) if stream else asking.answer().json()
        assert client.text(whole) == "from the cloud"
        assert asking.header("x-herdr-slot") == "none"
        assert row(away, asking.header("x-herdr-call"))["backend"] == "cloud"


@pytest.fixture(scope="module")
def claude() -> Iterator[FakeAnthropic]:
    with FakeAnthropic() as server:
        server.script(fake_anthropic.said("from ", "claude"))
        yield server


@pytest.fixture(scope="module")
def deaf() -> Iterator[str]:
    """The address of a server that takes the connection by which it is looked at, and then neither takes nor
    refuses any: its line is full.
    """
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(scope="module")
def away(
    fake: FakeLlama, claude: FakeAnthropic, deaf: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    nowhere = "http://127.0.0.1:9"
    impatient = {"connect_s": 2.5}
    servers: dict[str, Json] = {
        "local": {"kind": "llamacpp", "url": nowhere, "fallback": "cloud"},
        "cloud": {"kind": "openai", "url": fake.url},
        "gone": {"kind": "openai", "url": nowhere, "fallback": "claude"},
        "absent": {"kind": "anthropic", "url": nowhere, "fallback": "cloud"},
        "deaf": {"kind": "anthropic", "url": deaf, "fallback": "cloud", "timeouts": impatient},
        "claude": {"kind": "anthropic", "url": claude.url},
        "wary": {"kind": "openai", "url": fake.url, "fallback": "claude"},
    }
    gateway = configured(tmp_path_factory.mktemp("away"), servers).start()
    try:
        wait_until(lambda: backend(gateway, "local")["state"] == "unreachable", "the bad news")
        wait_until(lambda: backend(gateway, "deaf")["state"] == "ready", "the good news")
        yield gateway
    finally:
        gateway.kill()
    assert_quiet(gateway)


@each
@streamed_or_not
@pytest.mark.parametrize(("name", "says"), [("gone", "claude"), ("absent", "the cloud")])
def test_one_cloud_takes_over_for_another_of_another_kind(
    away: GatewayProcess, fake: FakeLlama, client: Client, stream: bool, name: str, says: str
) -> None:
    fake.script(Script(["from ", "the cloud"]))
    whole = (client.streamed if stream else client.whole)(away, "Hi", model=name)
    assert client.text(whole) == f"from {says}"


@pytest.mark.parametrize("first", CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize(("name", "says"), [("gone", "claude"), ("absent", "the cloud")])
def test_clients_that_join_after_another_cloud_took_over(
    away: GatewayProcess, fake: FakeLlama, claude: FakeAnthropic, first: Client, name: str, says: str
) -> None:
    """Whatever the one that began it speaks, each reads the answer in its own terms."""
    fake.script(Script(["from ", "the cloud"]))
    fake.hold(after=1)
    claude.hold(after=3)
    more = {"model": name, "temperature": 0, "max_tokens": 100, "stream": True}
    try:
        with ExitStack() as stack:
            asking = []
            for client in (first, *(client for client in CLIENTS if client is not first)):
                one = stack.enter_context(client.ask(away, f"from {first.name}", **more))
                assert one.status == 200
                asking.append((client, one))
            fake.release()
            claude.release()
            for client, one in asking:
                assert client.text(client.assembled(list(one.events()))) == f"from {says}", client.name
            ids = {one.header("x-herdr-call") for _, one in asking}
            assert len(ids) == (2 if name == "absent" else 1)
    finally:
        fake.release()
        claude.release()


def test_another_cloud_takes_over_after_the_stream_was_opened(away: GatewayProcess, fake: FakeLlama) -> None:
    fake.script(Script(["from ", "the cloud"]))
    with ExitStack() as stack:
        asking = [
            (client, stack.enter_context(client.ask(away, "Hi", model="deaf", stream=True)))
            for client in CLIENTS
        ]
        assert [one.status for _, one in asking] == [200] * len(CLIENTS)
        for client, one in asking:
            assert client.text(client.assembled(list(one.events()))) == "from the cloud"


@each
def test_a_server_that_fails_is_there_so_nobody_takes_over(
    away: GatewayProcess, fake: FakeLlama, claude: FakeAnthropic, client: Client
) -> None:
    asked = len(claude.requests)
    for script in (Script(refuse=error(500, "server_error", "broken")), Script(before=Die())):
        fake.script(script)
        with client.ask(away, "Hi", model="wary", stream=True) as asking:
            answer = asking.answer()
        assert answer.status == 502
        client.refusal(answer)
    assert len(claude.requests) == asked
