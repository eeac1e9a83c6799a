"""Keys and credentials: each goes to the one server that it is for, and nowhere else."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_llama import FakeLlama, Raw, Script, error
from gateway import GatewayProcess, refused_start
from model_clients import CHAT, CLIENTS, Client
from model_gateway import (
    assert_well,
    configured,
    last,
    model_gateway,
    pool,
    row,
)
from wire import all_events, call, health

HELLO = Script(["Hel", "lo", "!"])
SECRET = "a9Zq-4711-topsecret"
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(slots=2) as server:
        yield server


@pytest.fixture(scope="module")
def shared(fake: FakeLlama, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    servers = {
        "local": fake,
        "cloud": {"kind": "openai", "url": fake.url, "api_key_env": "CLOUD_KEY"},
    }
    folder = tmp_path_factory.mktemp("secrets")
    with model_gateway(folder, servers, env={"CLOUD_KEY": SECRET}) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fake: FakeLlama) -> Iterator[GatewayProcess]:
    """The shared gateway, which every fault has to leave at rest and able to answer."""
    fake.script(HELLO)
    yield shared
    assert_well(shared, fake, "local")


# -- secrets ------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 500, 503])
def test_a_key_that_the_server_repeats_goes_nowhere(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, status: int
) -> None:
    said = error(status, "server_error", f"Incorrect API key provided: {SECRET}. It is {SECRET}!")
    fake.script(Script(refuse=said))
    before = len(gateway.log)
    with client.ask(gateway, "Hi", model="cloud", stream=True) as asking:
        answer = asking.answer()
        row(gateway, asking.header("x-herdr-call"))
    assert last(fake).headers["authorization"] == f"Bearer {SECRET}"
    assert answer.status >= 400
    assert SECRET not in answer.body.decode()
    assert SECRET not in str(gateway.log[before:])


def test_a_key_inside_a_stream_goes_nowhere(gateway: GatewayProcess, fake: FakeLlama) -> None:
    before = len(gateway.log)
    data = json.dumps({"error": {"code": 500, "message": f"key {SECRET} is used up"}}).encode()
    for pieces in ([Raw(b"data: " + data + b"\n\n")], [Raw(b"data: {" + SECRET.encode() + b"}\n\n")]):
        fake.script(Script(["Hel", *pieces]))
        for client in CLIENTS:
            with client.ask(gateway, "Hi", model="cloud", stream=True) as asking:
                assert SECRET not in asking.answer().body.decode()
    assert SECRET not in str(gateway.log[before:])


def test_nothing_that_can_be_asked_holds_a_key(gateway: GatewayProcess, fake: FakeLlama) -> None:
    CHAT.whole(gateway, "Hi", model="cloud")
    assert last(fake).headers["authorization"] == f"Bearer {SECRET}"
    seen = [str(pool(gateway)), str(health(gateway)), str(all_events(gateway))]
    for path in ("/metrics", "/v1/models", "/v1/calls", "/openapi.json"):
        seen.append(call(gateway, "GET", path).body.decode())
    assert not [text for text in seen if SECRET in text]


def test_a_clients_own_credentials_are_not_passed_on(gateway: GatewayProcess, fake: FakeLlama) -> None:
    headers = {"authorization": "Bearer the-clients-own", "x-api-key": "the-clients-own", "cookie": "a=b"}
    for model in ("local", "cloud"):
        CHAT.whole(gateway, "Hi", model=model, headers=headers)
        assert "the-clients-own" not in str(last(fake).headers) and "cookie" not in last(fake).headers


def test_a_missing_key_is_said_before_anything_starts(tmp_path: Path) -> None:
    servers = {"cloud": {"kind": "openai", "url": "http://127.0.0.1:9", "api_key_env": "NO_SUCH_KEY"}}
    gateway = configured(tmp_path, servers)
    said = refused_start(gateway.data, *gateway.args)
    assert "cloud" in said and "NO_SUCH_KEY" in said
