"""Who may ask a model, and how many at once."""

from collections.abc import Iterator

import pytest
from fake_llama import FakeLlama, Script
from gateway import GatewayProcess
from model_clients import CHAT, CLIENTS, COMPLETIONS, MESSAGES, Client
from model_gateway import configured, refused
from wire import call, wait_until

TOKENS = [
    {"name": "agent-one", "token": "one", "scopes": ["models"]},
    {"name": "reader", "token": "two", "scopes": ["events:follow"]},
    {"name": "boss", "token": "three", "scopes": ["admin"]},
]
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(2) as server:
        server.script(Script(["Hello!"]))
        yield server


@pytest.fixture(scope="module")
def locked(fake: FakeLlama, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    more = {"auth": {"tokens": TOKENS}, "server": {"max_connections": 1}}
    process = configured(tmp_path_factory.mktemp("locked"), {"local": fake}, more=more).start()
    boss = {"authorization": "Bearer three"}
    try:
        wait_until(
            lambda: call(process, "GET", "/v1/pool", headers=boss).json()["backends"][0]["state"] == "ready",
            "the backend",
        )
        yield process
    finally:
        process.kill()


ALLOWED = [
    {"authorization": "Bearer one"},
    {"authorization": "bearer one"},
    {"x-api-key": "one"},
    {"authorization": "Bearer three"},
]
DENIED = [
    ({}, 401, "authentication_error"),
    ({"authorization": "Bearer wrong"}, 401, "authentication_error"),
    ({"x-api-key": "wrong"}, 401, "authentication_error"),
    ({"authorization": "Bearer two"}, 403, "permission_error"),
    ({"x-api-key": "two"}, 403, "permission_error"),
]


@each
@pytest.mark.parametrize("headers", ALLOWED, ids=str)
def test_who_may_ask(locked: GatewayProcess, client: Client, headers: dict[str, str]) -> None:
    assert client.text(client.whole(locked, "Hi", headers=headers))


@each
@pytest.mark.parametrize(("headers", "status", "kind"), DENIED, ids=str)
def test_who_may_not_ask(
    locked: GatewayProcess,
    fake: FakeLlama,
    client: Client,
    headers: dict[str, str],
    status: int,
    kind: str,
) -> None:
    before = len(fake.requests)
    answer = refused(locked, client, client.body("Hi"), headers)
    assert answer.status == status
    given, message = client.refusal(answer)
    assert given == ({401: "unauthorized", 403: "missing_scope"}[status] if client is CHAT else kind)
    assert ("models" in message) == (status == 403)
    assert ("www-authenticate" in answer.headers) == (status == 401)
    assert len(fake.requests) == before


def test_the_other_endpoints_ask_for_the_scope_too(locked: GatewayProcess) -> None:
    body = MESSAGES.body("Hi")
    answer = call(locked, "POST", "/v1/messages/count_tokens", body, {"x-api-key": "two"})
    assert answer.status == 403 and MESSAGES.refusal(answer)[0] == "permission_error"
    for path in ("/v1/pool", "/v1/calls"):
        answer = call(locked, "GET", path, headers={"x-api-key": "two"})
        assert answer.status == 403 and answer.json()["code"] == "missing_scope"
    answer = call(locked, "GET", "/v1/models", headers={"x-api-key": "two"})
    assert answer.status == 403 and COMPLETIONS.refusal(answer)[0] == "permission_error"
    for path in ("/v1/pool", "/v1/calls", "/v1/models"):
        assert call(locked, "GET", path, headers={"x-api-key": "one"}).status == 200


def test_a_client_without_a_name_has_that_of_its_token(locked: GatewayProcess) -> None:
    CHAT.whole(locked, "Hi", headers={"x-api-key": "one"})
    boss = {"x-api-key": "three"}
    newest = call(locked, "GET", "/v1/calls?limit=1", headers=boss).json()["calls"][0]
    assert newest["agent"] == "agent-one"


@each
def test_more_streams_than_connections(locked: GatewayProcess, fake: FakeLlama, client: Client) -> None:
    token = {"x-api-key": "one"}
    fake.hold(after=0)
    try:
        with CHAT.ask(locked, "Hi", headers=token) as first:
            assert first.status == 200
            answer = refused(locked, client, client.body("Hi too"), token)
            assert answer.status == 503 and 1 <= int(answer.headers["retry-after"]) <= 60
            assert "max_connections" in client.refusal(answer)[1]
    finally:
        fake.release()

    def is_free() -> bool:
        with client.ask(locked, "Hi", headers=token, stream=False) as asking:
            return asking.answer().status == 200

    wait_until(is_free, "the place to be free again")
