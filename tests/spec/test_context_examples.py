"""The examples of the shared context: a real gateway answers them as they are shown, and OpenAPI describes them."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest
from gateway import GatewayProcess, running_gateway
from wire import Answer, call

from herdr.web.context_routes import context_endpoints
from herdr.web.openapi_context import MORE

SHOWN: dict[str, Any] = json.loads((Path(__file__).parents[2] / "spec/examples/context.json").read_text())
EXCHANGES: list[dict[str, Any]] = SHOWN["exchanges"]
ENDPOINTS = [
    (endpoint.method, endpoint.path)
    for endpoint in context_endpoints(*(MagicMock() for _ in inspect.signature(context_endpoints).parameters))
]
VARIES = {
    *("seq", "id", "time", "created", "expires", "used", "first", "updated", "verified", "version", "ref"),
    *("tokens", "tokenizer", "full_tokens", "saved_tokens", "took_s", "progress", "last_pass"),
}
"""What is another one each time, or hangs on the tokenizer that is installed."""

OWN = {"again", "options", "chosen", "refused"}
"""The summariser's own notes beside a decision: no part of the protocol."""


def masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: "…" if name in VARIES else masked(inner) for name, inner in value.items() if name not in OWN
        }
    if isinstance(value, list):
        return [masked(inner) for inner in value]
    return re.sub(r"(?m)^#\d+", "#N", value) if isinstance(value, str) else value


def endpoint_of(exchange: dict[str, Any]) -> tuple[str, str]:
    """Return the first endpoint that fits, as the gateway finds it."""
    for method, template in ENDPOINTS:
        pattern = re.sub(r"\{\w+:path\}", ".+", re.sub(r"\{\w+\}", "[^/]+", template))
        if method == exchange["method"] and re.fullmatch(pattern, exchange["path"].partition("?")[0]):
            return method, template
    raise AssertionError(f"there is no {exchange['method']} {exchange['path']}")


class Client:
    """Asks as the examples do, with the hashes and files of this gateway in place of those shown."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self._gateway = gateway
        self._ref = ""
        self._snapshot = b""

    def ask(self, exchange: dict[str, Any]) -> Answer:
        path = re.sub(r"(?<=/v1/blobs/)[0-9a-f]{64}", lambda _: self._ref, exchange["path"])
        body = self._snapshot if exchange.get("content") == "the snapshot" else exchange.get("content")
        body = exchange.get("body", body)
        if isinstance(body, str):
            body = body.encode()
        answer = call(self._gateway, exchange["method"], path, body, exchange.get("headers", {}))
        self._ref = answer.json().get("ref", self._ref) if is_json(answer) else self._ref
        self._snapshot = (
            answer.body if answer.headers.get("content-type") == "application/zstd" else self._snapshot
        )
        return answer


def is_json(answer: Answer) -> bool:
    return "json" in answer.headers.get("content-type", "")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    place = tmp_path_factory.mktemp("examples")
    for path, text in SHOWN["files"].items():
        file = place / "shop" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with running_gateway(place / "data", "--workspace", str(place / "shop")) as process:
        call(process, "GET", "/v1/context/shop/graph/skipped")  # waits until all files are read
        yield Client(process)


@pytest.fixture(scope="module")
def answers(client: Client) -> list[Answer]:
    return [client.ask(exchange) for exchange in EXCHANGES]


def test_every_endpoint_has_an_example() -> None:
    assert {endpoint_of(exchange) for exchange in EXCHANGES} == set(ENDPOINTS)


@pytest.mark.parametrize("place", range(len(EXCHANGES)), ids=[e["does"] for e in EXCHANGES])
def test_the_gateway_answers_as_shown(answers: list[Answer], place: int) -> None:
    answer, shown = answers[place], EXCHANGES[place]
    assert answer.status == shown["status"], answer.body
    if is_json(answer):
        assert masked(answer.json()) == masked(shown["answer"])
    elif isinstance(shown["answer"], str):
        assert answer.body.decode() == shown["answer"]
    else:
        assert (shown["answer"] is None) and (answer.status in (204, 304) or answer.body)


@pytest.mark.parametrize(
    "exchange", [pytest.param(e, id=e["does"]) for e in EXCHANGES if isinstance(e["answer"], dict)]
)
def test_openapi_describes_what_is_shown(exchange: dict[str, Any]) -> None:
    if exchange["status"] >= 400:
        assert set(exchange["answer"]) >= {"type", "title", "status", "code", "detail"}
        return
    type_ = MORE[endpoint_of(exchange)]["answers"]
    again = msgspec.json.decode(msgspec.json.encode(msgspec.convert(exchange["answer"], type_)))
    assert masked(again) == masked(exchange["answer"])
