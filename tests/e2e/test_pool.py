"""The four protocols against the real process: answers, headers, tools, and every call in the records."""

import json
import re
from collections.abc import Iterator

import pytest
from fake_llama import FakeLlama, Script, Think, Tool
from gateway import GatewayProcess
from model_asking import Asking, Event
from model_clients import CHAT, CLIENTS, COMPLETIONS, MESSAGES, RESPONSES, Client
from model_gateway import (
    at_rest,
    last,
    plain_gateway,
    row,
)

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
    with plain_gateway(tmp_path_factory.mktemp("pool"), fake) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fake: FakeLlama) -> Iterator[GatewayProcess]:
    """The shared gateway, at rest before and after."""
    with at_rest(shared, fake) as process:
        yield process


def ended(events: list[Event], client: Client) -> str:
    return client.text(client.assembled(events))


# -- answers ------------------------------------------------------------------------------------------------


@each
@streamed_or_not
def test_an_answer(gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool) -> None:
    ask = client.streamed if stream else client.whole
    whole = ask(gateway, "Say hello", system="Be brief", headers={"x-agent-id": "brief"})
    assert client.text(whole) == "Hello!"
    asked = last(fake)
    assert client.tokens(whole) == (asked.prompt_tokens, asked.cached, 3)
    assert [m["content"] for m in asked.body["messages"]] == ["Be brief", "Say hello"]
    assert asked.body["stream"] is asked.body["cache_prompt"] is asked.body["return_progress"] is True
    assert asked.body["id_slot"] == asked.slot


@each
@streamed_or_not
def test_what_every_answer_carries(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool
) -> None:
    with client.ask(gateway, "Hi", stream=stream, headers={"x-agent-id": "headers"}) as asking:
        assert asking.status == 200
        id_ = asking.header("x-herdr-call")
        assert re.fullmatch(ULID, str(id_))
        assert asking.header("request-id") == f"req_{id_}"
        assert asking.header("x-herdr-slot") == str(last(fake).slot)
        assert int(str(asking.header("x-herdr-queue-ms"))) >= 0
        kind = "text/event-stream" if stream else "application/json"
        assert str(asking.header("content-type")).startswith(kind)
        asking.answer()
    assert row(gateway, id_)["slot"] == last(fake).slot


@each
def test_words_come_as_they_are_made(gateway: GatewayProcess, fake: FakeLlama, client: Client) -> None:
    fake.hold(after=1)
    with client.ask(gateway, "Hi", stream=True) as asking:
        events, heard = [], ""
        stream = asking.events()
        while not heard:
            events.append(next(stream))
            heard = client.heard(events)
        assert heard == "Hel" and last(fake).state == "held"
        fake.release()
        assert ended([*events, *stream], client) == "Hello!"


@each
@streamed_or_not
def test_a_tool_is_called_and_answers(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool
) -> None:
    fake.script(Script(["Let me look. ", *CALL]))
    body = client.body("Weather?", stream=stream, **client.tools())
    with Asking(gateway, client.path, body) as asking:
        whole = client.assembled(list(asking.events())) if stream else asking.answer().json()
    assert client.text(whole) == "Let me look. "
    made = client.calls(whole)
    assert [(one.name, one.input) for one in made] == [("weather", {"city": "Paris", "days": 2})]
    assert made[0].id
    offered = last(fake).body["tools"]
    assert offered[0]["function"]["name"] == "weather"
    assert list(offered[0]["function"]["parameters"]["properties"]) == ["city", "days"]

    fake.script(Script(["Sunny"]))
    with Asking(gateway, client.path, client.with_result(body, made[0], "25 degrees")) as asking:
        whole = client.assembled(list(asking.events())) if stream else asking.answer().json()
    assert client.text(whole) == "Sunny"
    used, answered = last(fake).body["messages"][-2:]
    assert used["tool_calls"][0]["function"]["name"] == "weather"
    assert json.loads(used["tool_calls"][0]["function"]["arguments"]) == {"city": "Paris", "days": 2}
    assert (answered["role"], answered["content"]) == ("tool", "25 degrees")
    assert answered["tool_call_id"] == used["tool_calls"][0]["id"]


@each
@streamed_or_not
def test_two_tools_at_once(gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool) -> None:
    second = [Tool(1, "call_2", "weather", '{"city":'), Tool(1, arguments='"Oslo"}')]
    fake.script(Script([*CALL, *second]))
    whole = (client.streamed if stream else client.whole)(gateway, "Weather?", **client.tools())
    assert [one.input["city"] for one in client.calls(whole)] == ["Paris", "Oslo"]
    assert len({one.id for one in client.calls(whole)}) == 2


def test_a_message_begins_with_the_prompts_exact_size(gateway: GatewayProcess, fake: FakeLlama) -> None:
    for _ in range(2):
        with MESSAGES.ask(gateway, "Size?", stream=True, headers={"x-agent-id": "size"}) as asking:
            usage = next(asking.events()).json()["message"]["usage"]
            asking.answer()
        asked = last(fake)
        assert usage == {
            "input_tokens": asked.prompt_tokens - asked.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": asked.cached,
            "output_tokens": 0,
        }


def test_why_an_answer_with_calls_stopped(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.script(Script(CALL))
    assert MESSAGES.whole(gateway, "Weather?", **MESSAGES.tools())["stop_reason"] == "tool_use"
    assert CHAT.streamed(gateway, "Weather?", **CHAT.tools())["stop_reason"] == "tool_use"
    whole = COMPLETIONS.whole(gateway, "Weather?", **COMPLETIONS.tools())
    assert whole["choices"][0]["finish_reason"] == "tool_calls"


@streamed_or_not
def test_reasoning_is_kept_apart_from_the_answer(
    gateway: GatewayProcess, fake: FakeLlama, stream: bool
) -> None:
    fake.script(Script([Think("Hm, "), Think("yes."), "Fine"]))
    whole = (MESSAGES.streamed if stream else MESSAGES.whole)(gateway, "Why?")
    assert [(block["type"], block.get("thinking")) for block in whole["content"]] == [
        ("thinking", "Hm, yes."),
        ("text", None),
    ]
    assert whole["content"][0]["signature"]
    for client in (CHAT, COMPLETIONS, RESPONSES):
        assert client.text((client.streamed if stream else client.whole)(gateway, "Why?")) == "Fine"


def test_a_stop_sequence_is_named_and_left_out(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.script(Script(["one, tw", "o, STO", "P, three"]))
    whole = MESSAGES.streamed(gateway, "Count", stop_sequences=["STOP", "x"])
    assert MESSAGES.text(whole) == "one, two, "
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("stop_sequence", "STOP")
    assert COMPLETIONS.text(COMPLETIONS.whole(gateway, "Count", stop="STOP")) == "one, two, "


@each
def test_an_answer_that_is_cut_short_says_so(
    gateway: GatewayProcess, fake: FakeLlama, client: Client
) -> None:
    whole = client.whole(gateway, "Hi", max_tokens=2)
    assert last(fake).body["max_tokens"] == 2
    assert client.text(whole) == "Hello"
    if client is RESPONSES:
        assert (whole["status"], whole["incomplete_details"]["reason"]) == ("incomplete", "max_output_tokens")
    elif client is COMPLETIONS:
        assert whole["choices"][0]["finish_reason"] == "length"
    else:
        assert whole["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("client", [CHAT, MESSAGES, COMPLETIONS], ids=lambda client: client.name)
@streamed_or_not
def test_who_asks_for_no_tokens_gets_none(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool
) -> None:
    """The server makes one all the same, and a limit of 0 would mean something else to it."""
    whole = (client.streamed if stream else client.whole)(gateway, "Hi", max_tokens=0)
    assert client.text(whole) == "" and last(fake).body["max_tokens"] == 1


def test_a_missing_limit_gets_the_default_and_one_too_large_is_clamped(
    gateway: GatewayProcess, fake: FakeLlama
) -> None:
    CHAT.whole(gateway, "Hi")
    assert last(fake).body["max_tokens"] == 4096
    CHAT.whole(gateway, "Hi", max_tokens=1_000_000)
    assert last(fake).body["max_tokens"] <= fake.n_ctx


def test_a_plain_client_can_read_chat(gateway: GatewayProcess, fake: FakeLlama) -> None:
    """Post, read lines, skip comments, collect fields, decode the joined data at each blank line."""
    fake.script(Script([Think("Hm"), "two\nlines ", "and \u2028 more", *CALL]))
    body = {"messages": [{"role": "user", "content": "Weather?"}], "route": "primary_agent", **CHAT.tools()}
    with Asking(gateway, "/v1/chat", body) as asking:
        lines = asking.answer().body.decode().split("\n")
    seen: list[tuple[str, str, dict[str, object]]] = []
    id_, name, data = "", "", []
    for line in lines:
        if line.startswith(":"):
            continue
        if line.startswith("id:"):
            id_ = line[3:].strip()
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            seen.append((id_, name, json.loads("\n".join(data))))
            id_, name, data = "", "", []
    names = [name for _, name, _ in seen]
    assert names[0] == "message.start" and names[-1] == "message.end"
    start, end = seen[0][2], seen[-1][2]
    assert set(start) >= {"call", "model", "agent", "slot", "queue_ms"}
    assert start["call"] == asking.header("x-herdr-call")
    assert (
        "".join(str(d.get("text", "")) for _, n, d in seen if n == "message.delta")
        == "two\nlines and \u2028 more"
    )
    assert "".join(str(d.get("thinking", "")) for _, n, d in seen if n == "message.delta") == "Hm"
    tools = [d for _, n, d in seen if n == "tool.call"]
    assert [(d["name"], d["input"]) for d in tools] == [("weather", {"city": "Paris", "days": 2})]
    assert end["stop_reason"] == "tool_use"
    usage, timings = end["usage"], end["timings"]
    assert isinstance(usage, dict) and isinstance(timings, dict)
    assert set(usage) >= {"input_tokens", "cached_tokens", "output_tokens"}
    assert timings["queue_ms"] <= timings["first_token_ms"] <= timings["total_ms"]
    assert [id_ for id_, _, _ in seen] == [f"{start['call']}.{n}" for n in range(len(seen))] or [
        id_ for id_, _, _ in seen
    ] == [f"{start['call']}.{n + 1}" for n in range(len(seen))]


def test_a_client_that_does_not_say_how_gets_a_stream_from_chat_and_a_whole_answer_elsewhere(
    gateway: GatewayProcess,
) -> None:
    for client in CLIENTS:
        with client.ask(gateway, "Hi") as asking:
            kind = str(asking.header("content-type")).partition(";")[0]
            asking.answer()
        assert kind == ("text/event-stream" if client is CHAT else "application/json"), client.name


# -- turns --------------------------------------------------------------------------------------------------


@each
def test_the_second_turn_finds_the_first_in_its_slot(
    gateway: GatewayProcess, fake: FakeLlama, client: Client
) -> None:
    agent = {"x-agent-id": f"turns-{client.name}"}
    system = "You are a careful engineer who answers in few words."
    first = client.streamed(gateway, "Say hello to me", system=system, headers=agent)
    before = last(fake)
    second = client.streamed(
        gateway, "Say hello to me", client.text(first), "And again", system=system, headers=agent
    )
    after = last(fake)
    assert after.slot == before.slot
    assert after.prompt.startswith(before.prompt + "Hello!")
    cached = client.tokens(second)[1]
    assert cached == after.cached >= before.prompt_tokens + 3


def test_the_record_names_the_first_section_that_changed(gateway: GatewayProcess, fake: FakeLlama) -> None:
    agent = {"x-agent-id": "edits"}

    def changed(*turns: str) -> object:
        with CHAT.ask(gateway, *turns, system="Be brief", headers=agent, stream=False) as asking:
            id_ = asking.header("x-herdr-call")
            asking.answer()
        return row(gateway, id_)["changed"]

    assert changed("one") is None
    assert changed("one", "Hello!", "two") is None
    assert changed("one", "Hello?", "two") == "message 2"


def test_what_moves_in_a_prompt_does_not_reach_the_model(gateway: GatewayProcess, fake: FakeLlama) -> None:
    agent = {"x-agent-id": "moving"}
    prompts = []
    for number in range(2):
        marker = {"cache_control": {"type": "ephemeral"}} if number else {}
        billing = (
            f"x-anthropic-billing-header: cc_version=2.1.100.ab{number}; cc_entrypoint=cli; cch=0000{number};"
        )
        system = [{"type": "text", "text": billing}, {"type": "text", "text": "Be brief", **marker}]
        content = [{"type": "text", "text": "Hi", **marker}] if number else "Hi"
        body = {
            "model": "local",
            "max_tokens": 9,
            "system": system,
            "messages": [{"role": "user", "content": content}],
        }
        with Asking(gateway, "/v1/messages", body, agent) as asking:
            assert asking.answer().status == 200
        prompts.append(last(fake).prompt)
    assert prompts[0] == prompts[1] and "billing" not in prompts[0]
    assert last(fake).cached == last(fake).prompt_tokens - 1
