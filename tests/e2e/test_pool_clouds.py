"""A backend that speaks Anthropic: what its own clients get as it is, and what others get in their terms."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import fake_anthropic as anthropic
import pytest
from fake_anthropic import (
    CACHED_TOKENS,
    HELLO,
    PING,
    PROMPT_TOKENS,
    SIGNATURE,
    Answer,
    FakeAnthropic,
)
from gateway import GatewayProcess
from model_asking import Asking
from model_clients import CHAT, CLIENTS, COMPLETIONS, MESSAGES, RESPONSES, Client, Json
from model_gateway import (
    assert_quiet,
    backend,
    model_gateway,
    recorded,
    row,
    until_heard,
    wait_for_queue,
    wait_for_rest,
)
from wire import call

KEY = "sk-ant-the-gateways-own-4711"
OTHERS = (CHAT, COMPLETIONS, RESPONSES)
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
other = pytest.mark.parametrize("client", OTHERS, ids=lambda client: client.name)
streamed_or_not = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])

FULL = [
    anthropic.start(),
    PING,
    *anthropic.thinking(0, "Let me ", "see."),
    *anthropic.block(1, {"type": "redacted_thinking", "data": "EmwKAhgB"}),
    anthropic.event("herdr_never_heard_of_this", index=9, anything={"a": [1, None]}),
    PING,
    *anthropic.text(2, "I'll \u2028 look: ", "caf\u00e9"),
    *anthropic.tool_use(3, "toolu_01A", "weather", '{"city": "Pa', 'ris",  "days": 2}'),
    *anthropic.stop("tool_use", 31, output_tokens_details={"thinking_tokens": 5}),
]
"""All that a message may hold: what we know, what others have no words for, and what nobody knows."""


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeAnthropic]:
    with FakeAnthropic() as server:
        yield server


@pytest.fixture(scope="module")
def shared(fake: FakeAnthropic, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    about = {"kind": "anthropic", "url": fake.url, "api_key_env": "CLOUD_KEY"}
    servers: dict[str, Json] = {
        "claude": about,
        "renamed": {**about, "url": fake.url + "/v1", "model": "claude-opus-9", "concurrency": 1},
    }
    servers["streaming"] = {**about, "tool_calls": "stream"}
    names = {**{name: name for name in servers}, "claude-*": "claude"}
    folder = tmp_path_factory.mktemp("clouds")
    env = {"CLOUD_KEY": KEY}
    with model_gateway(folder, servers, env=env, names=names) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fake: FakeAnthropic) -> Iterator[GatewayProcess]:
    """The shared gateway, at rest before and after."""
    fake.script(HELLO)
    yield shared
    fake.release()
    for name in ("claude", "renamed"):
        wait_for_rest(shared, name)
    assert_quiet(shared)
    assert KEY not in str(shared.log)


def answered(gateway: GatewayProcess, client: Client, body: Json, **headers: str) -> bytes:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with Asking(gateway, client.path, body, sent) as asking:
        answer = asking.answer()
    assert answer.status == 200, answer
    return answer.body


def asked_for(*turns: str, **more: object) -> Json:
    return MESSAGES.body(*(turns or ("Weather?",)), model="claude-sonnet-9", stream=True, **more)


def without_pings(pieces: list[bytes]) -> bytes:
    return b"".join(piece for piece in pieces if piece != PING)


# -- a client of the same protocol --------------------------------------------------------------------------


def test_the_servers_events_go_out_byte_for_byte(gateway: GatewayProcess, fake: FakeAnthropic) -> None:
    fake.script(Answer(FULL))
    assert answered(gateway, MESSAGES, asked_for(**MESSAGES.tools())) == without_pings(FULL)


def test_a_whole_answer_keeps_what_only_the_server_knows(
    gateway: GatewayProcess, fake: FakeAnthropic
) -> None:
    fake.script(Answer(FULL))
    whole = MESSAGES.whole(gateway, "Weather?", model="claude-sonnet-9", **MESSAGES.tools())
    assert fake.requests[-1].body["stream"] is True
    assert whole["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "EmwKAhgB"},
        {"type": "text", "text": "I'll \u2028 look: café"},
        {"type": "tool_use", "id": "toolu_01A", "name": "weather", "input": {"city": "Paris", "days": 2}},
    ]
    assert (whole["id"], whole["model"]) == ("msg_01Xy", "claude-opus-4-20250514")
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("tool_use", None)
    counts = {"output_tokens": 31, "output_tokens_details": {"thinking_tokens": 5}}
    assert whole["usage"] == {**anthropic.USAGE, **counts}


def test_a_body_goes_on_as_the_client_wrote_it(gateway: GatewayProcess, fake: FakeAnthropic) -> None:
    """Prompt caches and signatures hold only for the very bytes: spaces, escapes and the order of keys."""
    values = {
        "system": '[{"text": "Be  brief",\n "type":"text","cache_control":{"type":"ephemeral","ttl":"1h"}}]',
        "messages": (
            '[ {"role":"user","content":[{"type":"text","text":"caf\\u00e9 \\/ caf\u00e9",'
            ' "cache_control": {"type": "ephemeral"}}]},\n'
            '{"content":[{"signature":"EuYBCkQYAiJA9zHX/abc+def==","thinking":"Hm","type":"thinking"},'
            '{"type":"redacted_thinking","data":"EmwKAhgB"},{"type":"text","text":"Yes"}],"role":"assistant"},'
            '{"role":"user","content":"Go on"} ]'
        ),
        "tools": (
            '[{"name":"z","input_schema":{"type":"object","properties":{"b":{},"a":{}}}},'
            '{"type":"web_search_20250305","name":"web_search","max_uses":5}]'
        ),
        "metadata": '{"user_id":"u-1"}',
        "thinking": '{"type":"enabled", "budget_tokens":2048}',
        "context_management": '{"edits":[{"type":"clear_tool_uses_20250919"}]}',
        "frobnicate": '{"deep":[1.0,1e3,-0]}',
        "max_tokens": "4000",
        "temperature": "1.0",
    }
    fields = ",".join(f'"{name}": {value}' for name, value in values.items())
    body = f'{{"model":"claude-sonnet-9",{fields}}}'.encode()
    whole = json.loads(answered(gateway, MESSAGES, body))  # type: ignore[arg-type]
    assert MESSAGES.text(whole) == "Hello!"
    sent = fake.requests[-1]
    assert sent.body == {**json.loads(body), "stream": True}
    for name, value in values.items():
        assert value.encode() in sent.raw, name
    assert sent.path == "/v1/messages"


def test_a_configured_model_and_a_url_with_its_version(gateway: GatewayProcess, fake: FakeAnthropic) -> None:
    for client in CLIENTS:
        assert client.text(client.whole(gateway, "Hi", model="renamed")) == "Hello!"
        assert (fake.requests[-1].path, fake.requests[-1].body["model"]) == ("/v1/messages", "claude-opus-9")


@pytest.mark.parametrize("path", ["/v1/messages?beta=true", "/v1/messages?beta=true&x=%2F"])
def test_a_query_changes_nothing(gateway: GatewayProcess, fake: FakeAnthropic, path: str) -> None:
    with Asking(gateway, path, asked_for()) as asking:
        assert asking.answer().body == b"".join(HELLO.pieces)  # type: ignore[arg-type]


@each
def test_the_gateways_key_goes_on_and_the_clients_never(
    gateway: GatewayProcess, fake: FakeAnthropic, client: Client
) -> None:
    headers = {
        "x-api-key": "the-clients-own",
        "authorization": "Bearer the-clients-own",
        "cookie": "the-clients-own=1",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "context-1m-2025-08-07,x",
        "x-claude-code-session-id": "the-clients-own",
        "user-agent": "the-clients-own",
        "x-forwarded-for": "10.1.2.3",
    }
    client.whole(gateway, "Hi", model="claude-sonnet-9", headers=headers)
    sent = fake.requests[-1].headers
    assert sent["x-api-key"] == KEY and "authorization" not in sent and "cookie" not in sent
    assert sent["anthropic-version"] == "2023-06-01"
    assert sent["anthropic-beta"] == "context-1m-2025-08-07,x"
    assert "the-clients-own" not in str(sent) and "10.1.2.3" not in str(sent)
    client.whole(gateway, "Hi", model="claude-sonnet-9")
    assert (
        fake.requests[-1].headers["anthropic-version"] and "anthropic-beta" not in fake.requests[-1].headers
    )


# -- clients of other protocols -----------------------------------------------------------------------------


@other
@streamed_or_not
def test_others_get_the_same_in_their_own_terms(
    gateway: GatewayProcess, fake: FakeAnthropic, client: Client, stream: bool
) -> None:
    fake.script(Answer(FULL))
    whole = (client.streamed if stream else client.whole)(
        gateway, "Weather?", model="claude-sonnet-9", system="Be brief", **client.tools()
    )
    assert client.text(whole) == "I'll \u2028 look: café"
    made = client.calls(whole)
    assert [(one.name, one.input) for one in made] == [("weather", {"city": "Paris", "days": 2})]
    assert client.tokens(whole) == (PROMPT_TOKENS, CACHED_TOKENS, 31)
    if client is CHAT:
        assert whole["stop_reason"] == "tool_use"
    sent = fake.requests[-1].body
    assert sent["system"] == [{"type": "text", "text": "Be brief"}]
    assert sent["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Weather?"}]}]
    assert sent["tools"][0]["name"] == "weather" and sent["tools"][0]["input_schema"]["required"] == ["city"]
    assert (sent["stream"], sent["max_tokens"]) == (True, 4096)


@each
def test_a_tools_answer_goes_back(gateway: GatewayProcess, fake: FakeAnthropic, client: Client) -> None:
    fake.script(Answer(FULL))
    body = client.body("Weather?", model="claude-sonnet-9", stream=False, **client.tools())
    with Asking(gateway, client.path, body) as asking:
        (made,) = client.calls(asking.answer().json())
    fake.script(HELLO)
    answered(gateway, client, client.with_result(body, made, "25 degrees"))
    used, result = fake.requests[-1].body["messages"][-2:]
    assert [block["type"] for block in used["content"]] == ["tool_use"]
    assert used["content"][0]["input"] == {"city": "Paris", "days": 2}
    assert result["content"][0]["tool_use_id"] == used["content"][0]["id"] == made.id
    assert "25 degrees" in str(result["content"][0]["content"])


@each
def test_a_call_to_a_cloud_is_in_the_records(
    gateway: GatewayProcess, fake: FakeAnthropic, client: Client
) -> None:
    fake.script(Answer(FULL))
    headers = {"x-agent-id": "cloudy", "x-herdr-session": f"cloudy-{client.name}"}
    body = client.body("Weather?", model="claude-sonnet-9", stream=True, **client.tools())
    with Asking(gateway, client.path, body, headers) as asking:
        assert asking.header("x-herdr-slot") == "none"
        asking.answer()
        found = row(gateway, asking.header("x-herdr-call"))
    expected = {
        "agent": "cloudy",
        "backend": "claude",
        "model": "claude-sonnet-9",
        "slot": None,
        "prompt_tokens": PROMPT_TOKENS,
        "cached_tokens": CACHED_TOKENS,
        "output_tokens": 31,
        "stop_reason": "tool_use",
        "error": None,
    }
    assert {name: found[name] for name in expected} == expected
    assert 0 <= found["queue_ms"] <= found["first_token_ms"] <= found["total_ms"]
    turns = [
        e["data"] for e in recorded(gateway, "session.message") if e["session"] == f"cloudy-{client.name}"
    ]
    assert [(turn["role"], turn["content"]) for turn in turns] == [
        ("user", "Weather?"),
        ("assistant", "I'll \u2028 look: café"),
    ]


def test_fragments_of_calls_are_passed_on_where_that_is_wanted(
    gateway: GatewayProcess, fake: FakeAnthropic
) -> None:
    fake.script(Answer(FULL))
    fake.hold(after=FULL.index(anthropic.stop("tool_use")[1]) - 3)  # within the call's arguments
    with COMPLETIONS.ask(gateway, "Go", model="streaming", stream=True, **COMPLETIONS.tools()) as asking:
        seen, stream = [], asking.events()
        while not seen or "Pa" not in seen[-1].data:
            seen.append(next(stream))
        assert fake.requests[-1].state == "held"
        fake.release()
        (made,) = COMPLETIONS.calls(COMPLETIONS.assembled([*seen, *stream]))
    assert (made.name, made.input) == ("weather", {"city": "Paris", "days": 2})


# -- one generation for several -----------------------------------------------------------------------------


def test_clients_of_two_protocols_are_not_mixed_up(gateway: GatewayProcess, fake: FakeAnthropic) -> None:
    """One has the server's own bytes, the others a translation; so each kind has a generation of its own."""
    fake.hold(after=3)
    before = len(fake.requests)
    body = asked_for("the same", temperature=0)
    with ExitStack() as stack:
        own = [stack.enter_context(Asking(gateway, "/v1/messages", body)) for _ in range(2)]
        own.append(stack.enter_context(Asking(gateway, "/v1/messages", {**body, "stream": False})))
        more = {"model": "claude-sonnet-9", "temperature": 0, "max_tokens": 100}
        translated = [
            (client, stack.enter_context(client.ask(gateway, "the same", stream=stream, **more)))
            for client in OTHERS
            for stream in (True, False)
        ]
        heard = [until_heard(one, MESSAGES) for one in own[:2]]
        heard += [until_heard(one, client) for client, one in translated[::2]]
        fake.release()
        for seen, stream in heard[:2]:
            assert MESSAGES.text(MESSAGES.assembled([*seen, *stream])) == "Hello!"
        for (seen, stream), client in zip(heard[2:], OTHERS, strict=True):
            assert client.text(client.assembled([*seen, *stream])) == "Hello!"
        assert json.loads(own[2].answer().body)["id"] == "msg_01Xy"
        for client, one in translated[1::2]:
            assert client.text(one.answer().json()) == "Hello!"
    contents = [one.body["messages"][0]["content"] for one in fake.requests[before:]]
    assert len(contents) == 2, "whichever of the two came first"
    assert "the same" in contents and [{"type": "text", "text": "the same"}] in contents


def test_only_bodies_that_say_the_same_are_joined(gateway: GatewayProcess, fake: FakeAnthropic) -> None:
    fake.hold(after=3)
    before = len(fake.requests)
    body = asked_for("alike", temperature=0, metadata={"user_id": "one"})
    cached = [{"type": "text", "text": "alike", "cache_control": {"type": "ephemeral"}}]
    same = {**body, "metadata": {"user_id": "two"}, "stream": False}
    others: list[tuple[Json, dict[str, str]]] = [
        ({**body, "thinking": {"type": "enabled", "budget_tokens": 1024}}, {}),
        ({**body, "frobnicate": 1}, {}),
        ({**body, "messages": [{"role": "user", "content": cached}]}, {}),
        (body, {"anthropic-beta": "context-1m-2025-08-07"}),
    ]
    with ExitStack() as stack:
        first = stack.enter_context(Asking(gateway, "/v1/messages", body))
        fake.until(lambda: len(fake.requests) == before + 1)
        joined = stack.enter_context(Asking(gateway, "/v1/messages", same, {"x-agent-id": "two"}))
        rest = [stack.enter_context(Asking(gateway, "/v1/messages", *one)) for one in others]
        wait_for_queue(gateway, 1, "claude")  # four at once
        fake.release()
        texts = [MESSAGES.text(MESSAGES.assembled(list(one.events()))) for one in (first, *rest)]
        assert texts == ["Hello!"] * 5
        assert joined.header("x-herdr-call") == first.header("x-herdr-call")
    assert len(fake.requests) == before + 5


# -- the size of a prompt -----------------------------------------------------------------------------------


def test_a_prompt_is_counted_by_the_server(gateway: GatewayProcess, fake: FakeAnthropic) -> None:
    fake.counted = 4711
    body = MESSAGES.body("How long?", model="renamed", system="Be brief", **MESSAGES.tools())
    own = {"x-api-key": "the-clients-own"}
    answer = call(gateway, "POST", "/v1/messages/count_tokens?beta=true", body, own)
    assert answer.status == 200 and answer.json() == {"input_tokens": 4711}
    asked = fake.counts[-1]
    assert asked.headers["x-api-key"] == KEY and "the-clients-own" not in str(asked.headers)
    assert set(asked.body) == {"model", "messages", "system", "tools"}, "the API refuses all else there"
    assert asked.body["model"] == "claude-opus-9"
    assert "How long?" in str(asked.body["messages"]) and asked.body["tools"][0]["name"] == "weather"


def test_a_prompt_is_estimated_where_the_server_does_not_count(
    gateway: GatewayProcess, fake: FakeAnthropic
) -> None:
    fake.counted = None
    before = len(fake.requests)
    body = MESSAGES.body("word " * 100, model="claude-sonnet-9")
    answer = call(gateway, "POST", "/v1/messages/count_tokens", body)
    assert answer.status == 200 and 50 <= answer.json()["input_tokens"] <= 300
    assert len(fake.requests) == before
    assert backend(gateway, "claude")["state"] == "ready"
