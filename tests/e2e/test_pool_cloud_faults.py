"""A cloud that refuses, fails, is used up or is full, and clients that leave it."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import fake_anthropic as anthropic
import pytest
from fake_anthropic import (
    HELLO,
    Answer,
    FakeAnthropic,
    refused,
)
from fake_llama import Die
from gateway import GatewayProcess
from model_clients import CHAT, CLIENTS, COMPLETIONS, MESSAGES, Client, Json
from model_gateway import (
    assert_quiet,
    backend,
    model_gateway,
    row,
    until_heard,
    wait_for_queue,
    wait_for_rest,
)
from wire import wait_until

KEY = "sk-ant-the-gateways-own-4711"
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
streamed_or_not = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeAnthropic]:
    with FakeAnthropic() as server:
        yield server


@pytest.fixture(scope="module")
def shared(fake: FakeAnthropic, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    about = {"kind": "anthropic", "url": fake.url, "api_key_env": "CLOUD_KEY"}
    servers: dict[str, Json] = {
        "claude": about,
        "one": {**about, "concurrency": 1},
        **{f"quota{n}": about for n in range(len(QUOTAS))},
        "exhausted": about,
        "vague": about,
    }
    names = {**{name: name for name in servers}, "claude-*": "claude"}
    folder = tmp_path_factory.mktemp("cloud-faults")
    env = {"CLOUD_KEY": KEY}
    with model_gateway(folder, servers, env=env, names=names, queue_timeout_s=5) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fake: FakeAnthropic) -> Iterator[GatewayProcess]:
    """The shared gateway, at rest before and after."""
    fake.script(HELLO)
    yield shared
    fake.release()
    for name in ("claude", "one"):
        wait_for_rest(shared, name)
    assert_quiet(shared)
    assert KEY not in str(shared.log)


REFUSALS = [
    (refused(400, "invalid_request_error", "messages: too odd"), 400, "invalid_request_error", "too odd"),
    (
        refused(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        400,
        "invalid_request_error",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ),
    (refused(401, "authentication_error", f"invalid x-api-key {KEY}"), 502, "api_error", "api_key_env"),
    (refused(403, "permission_error", f"not for {KEY}"), 502, "api_error", "api_key_env"),
    (refused(404, "not_found_error", "model: claude-99"), 404, "not_found_error", "claude-99"),
    (refused(413, "request_too_large", "Request too large"), 400, "invalid_request_error", "too large"),
    (refused(500, "api_error", f"Internal {KEY}"), 502, "api_error", "Internal"),
    (refused(529, "overloaded_error", "Overloaded"), 503, "api_error", "verloaded"),
]


@each
@streamed_or_not
@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case[0].refuse.status}-{case[3][:6]}")
def test_a_refusal_is_a_status_in_the_clients_terms(
    gateway: GatewayProcess,
    fake: FakeAnthropic,
    client: Client,
    stream: bool,
    case: tuple[Answer, int, str, str],
) -> None:
    answer, status, kind, says = case
    fake.script(answer)
    with client.ask(gateway, "Hi", model="claude-sonnet-9", stream=stream) as asking:
        got = asking.answer()
        found = row(gateway, asking.header("x-herdr-call"))
    assert got.status == status, got
    given, message = client.refusal(got)
    assert says in message and KEY not in message
    if client is MESSAGES:  # Claude Code gives background calls up when it reads that word
        assert given == kind and b"overloaded_error" not in got.body
    assert found["error"] and found["error"] != "internal"
    assert backend(gateway, "claude")["state"] == "ready", "one refusal is not everybody's"


LATE = {
    "overloaded": anthropic.event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
    "api": anthropic.event("error", error={"type": "api_error", "message": f"Internal {KEY}"}),
    "dies": Die(),
    "ends": None,
    "no JSON": b"event: content_block_delta\ndata: {]\n\n",
    "half a character": b'event: content_block_delta\ndata: {"type": "x", "text": "\xe6\xb8"}\n\n',
}


@each
@pytest.mark.parametrize("case", LATE)
def test_a_failure_in_mid_stream_is_an_error_event(
    gateway: GatewayProcess, fake: FakeAnthropic, client: Client, case: str
) -> None:
    piece = LATE[case]
    pieces = [anthropic.start(), *anthropic.text(0, "Hel")[:-1], *([] if piece is None else [piece])]
    fake.script(Answer(pieces))
    fake.hold(after=3)
    with client.ask(gateway, "Hi", model="claude-sonnet-9", stream=True) as asking:
        seen, stream = until_heard(asking, client)
        fake.release()
        seen += stream
        assert not asking.broken
        failure = client.failure(seen)
        assert failure and KEY not in failure
        assert client is not MESSAGES or "overloaded_error" not in seen[-1].data
        assert row(gateway, asking.header("x-herdr-call"))["error"] in ("backend_failed", "overloaded")


@each
def test_a_whole_answer_that_fails_half_way_is_an_error(
    gateway: GatewayProcess, fake: FakeAnthropic, client: Client
) -> None:
    fake.script(Answer([anthropic.start(), *anthropic.text(0, "Hel"), LATE["overloaded"]]))  # type: ignore[list-item]
    with client.ask(gateway, "Hi", model="claude-sonnet-9", stream=False) as asking:
        answer = asking.answer()
    assert answer.status == 503
    client.refusal(answer)


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


QUOTAS = [
    lambda: {"retry-after": "2"},
    lambda: {
        "anthropic-ratelimit-requests-reset": in_seconds(3600),
        "anthropic-ratelimit-requests-remaining": "17",
        "anthropic-ratelimit-tokens-reset": in_seconds(2.5),
        "anthropic-ratelimit-tokens-remaining": "0",
    },
]


@pytest.mark.parametrize("number", range(len(QUOTAS)), ids=["Retry-After", "reset"])
def test_a_quota_stops_everybody_for_as_long_as_it_says(
    gateway: GatewayProcess, fake: FakeAnthropic, number: int
) -> None:
    name, before = f"quota{number}", len(fake.requests)
    full = refused(429, "rate_limit_error", "This request would exceed your rate limit", QUOTAS[number]())
    answers = iter([full])
    fake.script(lambda body: next(answers, HELLO))
    with ExitStack() as stack:
        first = stack.enter_context(MESSAGES.ask(gateway, "one", model=name, stream=True))
        wait_until(lambda: backend(gateway, name)["state"] == "paused", "the pause")
        assert 0 < backend(gateway, name)["paused_s"] <= 2.5
        second = stack.enter_context(COMPLETIONS.ask(gateway, "two", model=name, stream=True))
        wait_for_queue(gateway, 2, name)
        assert len(fake.requests) == before + 1
        assert CHAT.text(CHAT.whole(gateway, "three", model="claude-sonnet-9")) == "Hello!", "another backend"
        assert MESSAGES.text(MESSAGES.assembled(list(first.events()))) == "Hello!"
        assert COMPLETIONS.text(COMPLETIONS.assembled(list(second.events()))) == "Hello!"
        assert int(str(first.header("x-herdr-queue-ms"))) >= 1900, "headers went out during the pause"
    refusal, *others = fake.requests[before:]
    paused = [one for one in others if "three" not in str(one.body)]
    assert len(paused) == 2 and all(one.arrived - refusal.arrived >= 1.9 for one in paused)


def test_a_quota_beyond_the_queues_time_is_passed_on(gateway: GatewayProcess, fake: FakeAnthropic) -> None:
    fake.script(refused(429, "rate_limit_error", "Used up", {"retry-after": "3600"}))
    before = len(fake.requests)
    with MESSAGES.ask(gateway, "one", model="exhausted", stream=True) as asking:
        answer = asking.answer()
    assert answer.status == 429 and answer.headers["retry-after"] == "60"
    assert MESSAGES.refusal(answer)[0] == "rate_limit_error"
    assert 3500 < backend(gateway, "exhausted")["paused_s"] <= 3600
    assert len(fake.requests) == before + 1


def test_a_quota_that_does_not_say_for_how_long(gateway: GatewayProcess, fake: FakeAnthropic) -> None:
    fake.script(refused(429, "rate_limit_error", "Too many"))
    with MESSAGES.ask(gateway, "one", model="vague", stream=True) as asking:
        answer = asking.answer()
    assert answer.status == 429 and answer.headers["retry-after"] == "5"
    assert 3 < backend(gateway, "vague")["paused_s"] <= 5


def test_as_many_at_once_as_the_backend_may_have(gateway: GatewayProcess, fake: FakeAnthropic) -> None:
    fake.hold(after=3)
    before = len(fake.requests)
    with ExitStack() as stack:
        first = stack.enter_context(MESSAGES.ask(gateway, "one", model="one", stream=True))
        fake.until(lambda: len(fake.requests) == before + 1)
        second = stack.enter_context(
            CHAT.ask(gateway, "two", model="one", headers={"x-priority": "9"}, stream=True)
        )
        wait_for_queue(gateway, 1, "one")
        urgent = stack.enter_context(
            MESSAGES.ask(gateway, "three", model="one", headers={"x-priority": "0"}, stream=True)
        )
        wait_for_queue(gateway, 2, "one")
        assert len(fake.requests) == before + 1
        fake.release()
        for client, one in ((MESSAGES, first), (MESSAGES, urgent), (CHAT, second)):
            assert client.text(client.assembled(list(one.events()))) == "Hello!"
    texts = [str(one.body["messages"]) for one in fake.requests[before:]]
    assert ["three" in said for said in texts] == [False, True, False]


@each
def test_a_client_that_leaves_ends_the_servers_work(
    gateway: GatewayProcess, fake: FakeAnthropic, client: Client
) -> None:
    fake.hold(after=3)
    asking = client.ask(gateway, "Hi", model="one", stream=True)
    until_heard(asking, client)
    asked = fake.requests[-1]
    asking.leave()
    fake.until(lambda: asked.state == "cancelled")
    wait_for_rest(gateway, "one")
    assert row(gateway, asking.header("x-herdr-call"))["error"] == "client_gone"
