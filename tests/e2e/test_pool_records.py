"""What is kept of every call, and what can be asked about the pool while it works."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_llama import FakeLlama, Script, Think, Tool
from gateway import GatewayProcess
from model_asking import Event
from model_clients import CHAT, CLIENTS, MESSAGES, Client
from model_gateway import (
    at_rest,
    backend,
    calls,
    last,
    model_gateway,
    plain_gateway,
    pool,
    recorded,
    row,
    slot_of,
    wait_for_rest,
)
from wire import Stream, call, health, put_route, wait_until

CALL = [Tool(0, "call_1", "weather", '{"city":"Pa'), Tool(0, arguments='ris","days":2}')]
ULID = r"[0-9A-HJKMNP-TV-Z]{26}"
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
streamed_or_not = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(slots=4) as server:
        yield server


@pytest.fixture(scope="module")
def shared(fake: FakeLlama, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with plain_gateway(tmp_path_factory.mktemp("records"), fake) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fake: FakeLlama) -> Iterator[GatewayProcess]:
    """The shared gateway, at rest before and after."""
    with at_rest(shared, fake) as process:
        yield process


def ended(events: list[Event], client: Client) -> str:
    return client.text(client.assembled(events))


# -- records ------------------------------------------------------------------------------------------------


@each
def test_a_call_is_in_the_log_before_its_answer_ends(gateway: GatewayProcess, client: Client) -> None:
    with client.ask(gateway, "Hi", stream=True, headers={"x-agent-id": "records"}) as asking:
        id_ = asking.header("x-herdr-call")
        assert ended(list(asking.events()), client) == "Hello!"
    records = recorded(gateway, "model.call", id_)
    assert len(records) == 1


def test_the_record_of_a_call(gateway: GatewayProcess, fake: FakeLlama) -> None:
    headers = {
        "x-agent-id": "reviewer",
        "x-priority": "3",
        "x-herdr-route": "background",
        "x-herdr-session": "s-1",
    }
    with MESSAGES.ask(gateway, "Look at this", model="claude-x", headers=headers) as asking:
        id_ = asking.header("x-herdr-call")
        asking.answer()
    (event,) = recorded(gateway, "model.call", id_)
    data = event["data"]
    assert event["priority"] == "P1" and event["session"] == "s-1"
    expected = {
        "call": id_,
        "agent": "reviewer",
        "session": "s-1",
        "route": "background",
        "priority": 3,
        "backend": "local",
        "model": "claude-x",
        "slot": last(fake).slot,
        "prompt_tokens": last(fake).prompt_tokens,
        "cached_tokens": last(fake).cached,
        "output_tokens": 3,
        "stop_reason": "end_turn",
    }
    assert {name: data[name] for name in expected} == expected
    assert 0 <= data["queue_ms"] <= data["first_token_ms"] <= data["total_ms"]
    assert data.get("error") is None
    assert row(gateway, id_) == {**row(gateway, id_), **expected}


@each
def test_turns_are_recorded_as_session_messages(gateway: GatewayProcess, client: Client) -> None:
    headers = {"x-agent-id": "talker", "x-herdr-session": f"talk-{client.name}"}
    client.whole(gateway, "First words", headers=headers)
    client.streamed(gateway, "First words", "Hello!", "Second words", headers=headers)
    events = [e for e in recorded(gateway, "session.message") if e["session"] == headers["x-herdr-session"]]
    assert [(e["data"]["role"], e["data"]["content"]) for e in events] == [
        ("user", "First words"),
        ("assistant", "Hello!"),
        ("user", "Second words"),
        ("assistant", "Hello!"),
    ]
    assert {event["priority"] for event in events} == {"P2"}


def test_records_are_routed_and_turns_are_not(gateway: GatewayProcess) -> None:
    put_route(gateway, "all", event="*", target="spy", priority="P0")
    with Stream(gateway, "as=spy&after=0") as spy:
        first, second = CHAT.whole(gateway, "Hi"), CHAT.whole(gateway, "Hi again")
        seen = []
        while len([e for e in seen if e["type"] == "model.call"]) < 2:
            seen += spy.take(1)
    assert {event["type"] for event in seen} == {"model.call"}
    assert [event["data"]["call"] for event in seen] == [first["call"], second["call"]]
    assert all(event["priority"] == "P2" for event in recorded(gateway, "session.message"))
    assert call(gateway, "DELETE", "/v1/routes/all").status in (200, 204)


def test_no_call_makes_a_user_message(gateway: GatewayProcess) -> None:
    CHAT.whole(gateway, "Do it")
    assert recorded(gateway, "user.*") == []


def test_records_survive_a_restart(fake: FakeLlama, tmp_path: Path) -> None:
    fake.script(Script(["Hello!"]))
    with model_gateway(tmp_path, {"local": fake}) as gateway:
        made = [CHAT.whole(gateway, f"Call {n}", headers={"x-agent-id": f"a{n}"})["call"] for n in range(3)]
        before = calls(gateway)
        assert [r["call"] for r in before] == made[::-1]
        assert gateway.stop() == 0
        gateway.start()
        assert calls(gateway) == before
        wait_until(lambda: backend(gateway)["state"] == "ready", "the backend")
        newest = CHAT.whole(gateway, "Call 3", headers={"x-agent-id": "a3"})["call"]
        assert [r["call"] for r in calls(gateway)] == [newest, *made[::-1]]
        assert [r["call"] for r in calls(gateway, "limit=2")] == [newest, made[2]]
        assert [r["call"] for r in calls(gateway, "agent=a1")] == [made[1]]
        assert [r["call"] for r in calls(gateway, f"after={made[1]}")] == [newest, made[2]]
        assert calls(gateway, "route=background") == []


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "color=red"])
def test_a_wrong_query_of_calls(gateway: GatewayProcess, query: str) -> None:
    answer = call(gateway, "GET", f"/v1/calls?{query}")
    assert answer.status == 400 and answer.headers["content-type"] == "application/problem+json"
    assert query.partition("=")[0] in answer.json()["detail"]


def test_metadata_keeps_no_word_of_what_was_said(fake: FakeLlama, tmp_path: Path) -> None:
    fake.script(Script(["the ", "answer"]))
    with model_gateway(tmp_path, {"local": fake}, audit="metadata") as gateway:
        CHAT.whole(gateway, "the question", system="the system prompt")
        CHAT.streamed(gateway, "the question")
        events = recorded(gateway, "*")
        assert [event["type"] for event in events] == ["model.call", "model.call"]
        assert (
            "question" not in str(events)
            and "answer" not in str(events)
            and "system prompt" not in str(events)
        )


def test_full_keeps_everything(fake: FakeLlama, tmp_path: Path) -> None:
    fake.script(Script([Think("the thought"), "the answer", *CALL]))
    with model_gateway(tmp_path, {"local": fake}, audit="full") as gateway:
        CHAT.whole(gateway, "the question", system="the system prompt", **CHAT.tools())
        (record,) = recorded(gateway, "model.call")
        assert "the system prompt" in str(record["data"]) and "the question" in str(record["data"])
        turns = [event["data"] for event in recorded(gateway, "session.message")]
        assert [(turn["role"], turn["content"]) for turn in turns] == [
            ("user", "the question"),
            ("assistant", "the answer"),
        ]
        assert turns[1]["thinking"] == "the thought"
        assert "Paris" in str(turns[1]["tool_calls"])


def test_turns_keep_neither_thoughts_nor_arguments(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.script(Script([Think("the thought"), "the answer", *CALL]))
    id_ = CHAT.whole(gateway, "the question", system="the system prompt", **CHAT.tools())["call"]
    kept = str(recorded(gateway, "model.call", id_) + recorded(gateway, "session.message", id_))
    assert "the question" in kept and "the answer" in kept and "weather" in kept
    assert "the thought" not in kept and "Paris" not in kept and "system prompt" not in kept


# -- what can be asked about the pool -----------------------------------------------------------------------


def test_the_pool_shows_who_is_where(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.hold(after=1)
    headers = {"x-agent-id": "watched", "x-herdr-route": "primary_agent"}
    with CHAT.ask(gateway, "Hi", headers=headers) as asking:
        id_, slot = asking.header("x-herdr-call"), int(str(asking.header("x-herdr-slot")))
        seen = backend(gateway)
        about = seen["slots"][slot]
        assert (about["state"], about["agent"], about["call"]) == ("busy", "watched", id_)
        assert seen["running"] == 1 and seen["shares"]["primary_agent"]["running"] == 1
        fake.release()
        asking.answer()
    wait_for_rest(gateway)
    about = backend(gateway)["slots"][slot]
    assert (about["state"], about["agent"], about["call"]) == ("warm", "watched", None)
    assert about["cached_tokens"] == last(fake).prompt_tokens + 3
    assert about["idle_s"] < 60
    seen = backend(gateway)
    assert (seen["kind"], seen["url"], seen["state"]) == ("llamacpp", fake.url, "ready")
    assert (seen["context"], len(seen["slots"])) == (fake.n_ctx, 4)
    assert seen["queue"] == {"total": 0, "by_priority": {}}
    assert seen["shares"]["primary_agent"]["part"] == 2  # 0.6 of four, rounded to the nearest
    assert pool(gateway)["names"] == {"small": "local", "claude-*": "local", "*": "local"}


def test_a_side_call_goes_to_the_background(gateway: GatewayProcess) -> None:
    session = {"x-claude-code-session-id": "11111111-2222-4333-8444-555555555555"}
    for more, headers in (({"max_tokens": 1}, {}), ({}, session)):
        with MESSAGES.ask(gateway, "title?", headers=headers, **more) as asking:
            id_ = asking.header("x-herdr-call")
            asking.answer()
        assert row(gateway, id_)["route"] == "background"
    with MESSAGES.ask(gateway, "go", headers=session, **MESSAGES.tools()) as asking:
        id_ = asking.header("x-herdr-call")
        asking.answer()
    assert row(gateway, id_)["route"] == "primary_agent"


def test_chat_names_route_session_and_agent_in_its_body(gateway: GatewayProcess) -> None:
    whole = CHAT.streamed(gateway, "Hi", route="background", session="s-9", agent="body-agent")
    found = row(gateway, whole["call"])
    assert (found["route"], found["session"], found["agent"]) == ("background", "s-9", "body-agent")
    assert whole["agent"] == "body-agent"
    headers = {"x-agent-id": "header-agent", "x-herdr-route": "r", "x-herdr-session": "s-10"}
    whole = CHAT.streamed(gateway, "Hi", route="background", session="s-9", agent="body", headers=headers)
    found = row(gateway, whole["call"])
    assert (found["route"], found["session"], found["agent"]) == ("r", "s-10", "header-agent")


def test_the_models(gateway: GatewayProcess) -> None:
    answer = call(gateway, "GET", "/v1/models")
    assert answer.status == 200
    listed = answer.json()
    assert listed["object"] == "list"
    assert {"small", "local"} <= {model["id"] for model in listed["data"]}
    assert all("*" not in model["id"] and model["object"] == "model" for model in listed["data"])


def test_tokens_are_counted_without_a_slot(gateway: GatewayProcess, fake: FakeLlama) -> None:
    body = MESSAGES.body("How long is this, all in all?", system="Be brief", **MESSAGES.tools())
    generated = len(fake.requests)
    answer = call(gateway, "POST", "/v1/messages/count_tokens", body)
    assert answer.status == 200 and len(fake.requests) == generated
    assert answer.headers["request-id"]
    MESSAGES.whole(gateway, "How long is this, all in all?", system="Be brief", **MESSAGES.tools())
    assert answer.json() == {"input_tokens": last(fake).prompt_tokens}


def test_health_shows_the_backends(gateway: GatewayProcess, fake: FakeLlama) -> None:
    asked = sum(fake.asked.values())
    (seen,) = health(gateway)["backends"]
    assert sum(fake.asked.values()) == asked, "health asked the model server"
    assert {name: seen[name] for name in ("name", "kind", "state", "running", "waiting", "slots")} == {
        "name": "local",
        "kind": "llamacpp",
        "state": "ready",
        "running": 0,
        "waiting": 0,
        "slots": 4,
    }
    assert "agent" not in str(seen) and fake.url not in str(seen)


def test_metrics_count_calls_and_tokens(gateway: GatewayProcess, fake: FakeLlama) -> None:
    def value(name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", call(gateway, "GET", "/metrics").body.decode(), re.M)
        assert found, name
        return float(found[1])

    CHAT.whole(gateway, "Hi", headers={"x-agent-id": "metrics"})
    names = ('herdr_model_calls_total{outcome="ok"}', "gen_ai_client_operation_duration_seconds_count")
    prompt, cached = "herdr_model_prompt_tokens_total", "herdr_model_cached_tokens_total"
    before = {name: value(name) for name in (*names, prompt, cached)}
    CHAT.whole(gateway, "Hi", headers={"x-agent-id": "metrics"})
    assert all(value(name) == before[name] + 1 for name in names)
    assert value(prompt) == before[prompt] + last(fake).prompt_tokens
    assert value(cached) == before[cached] + last(fake).prompt_tokens - 1
    assert value('herdr_pool_backend_ready{backend="local"}') == 1
    assert value('herdr_pool_slots{backend="local",state="busy"}') == 0
    fake.hold(after=0)
    with CHAT.ask(gateway, "Hi") as asking:
        assert asking.status == 200
        assert value('herdr_pool_running_calls{backend="local"}') == 1
        assert value('herdr_pool_slots{backend="local",state="busy"}') == 1


def test_an_agent_keeps_one_slot_and_is_shown_with_it(gateway: GatewayProcess, fake: FakeLlama) -> None:
    for client in CLIENTS:
        client.whole(gateway, "Hi", system="the same", headers={"x-agent-id": "faithful"})
    assert len(slot_of(gateway, "faithful")) == 1
