import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from herdr.bus.envelope import build_event
from herdr.config import RouteRule
from herdr.event import Draft, Lane, Receipt
from herdr.web.asgi import Receive, Scope, Send
from herdr.web.auth import Caller
from herdr.web.openapi import FollowedEvent, describe
from herdr.web.sse import event_json
from herdr.web.surface import PUBLIC, Endpoint


class Body(msgspec.Struct):
    """A body."""

    cursor: str


async def handler(scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
    """Never called: a description needs no answer."""


ENDPOINTS = [
    Endpoint(
        "POST",
        "/v1/events",
        "events:publish",
        handler,
        "Publish",
        Draft | list[Draft],
        Receipt,
        {202: "deferred", 409: "stale", 413: "too large", 503: "overloaded"},
    ),
    Endpoint("GET", "/v1/events", "events:follow", handler, "Follow"),
    Endpoint("GET", "/v1/events/{seq}", "events:follow", handler, "Read one"),
    Endpoint("POST", "/v1/targets/{name:path}/ack", "events:follow", handler, "Acknowledge", Body, Body),
    Endpoint("PUT", "/v1/routes/{name:path}", "routes", handler, "Set", RouteRule, RouteRule, {201: "new"}),
    Endpoint("DELETE", "/v1/routes/{name:path}", "routes", handler, "Remove"),
    Endpoint("GET", "/healthz", PUBLIC, handler, "Health"),
    Endpoint("GET", "/metrics", PUBLIC, handler, "Numbers"),
]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return json.loads(msgspec.json.encode(describe(ENDPOINTS, "1.2.3")))


def walk(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(child)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, by_method in document["paths"].items():
        for method, operation in by_method.items():
            yield method.upper(), path, operation


def find(document: dict[str, Any], reference: str) -> Any:
    node: Any = document
    for name in reference.removeprefix("#/").split("/"):
        node = node[name]
    return node


def test_every_endpoint_is_there_once(document: dict[str, Any]) -> None:
    wanted = {(e.method, e.path.replace(":path", "")) for e in ENDPOINTS}
    listed = [(method, path) for method, path, _ in operations(document)]
    assert set(listed) == wanted
    assert len(listed) == len(ENDPOINTS)
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "1.2.3")


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    references = [node["$ref"] for node in walk(document) if isinstance(node.get("$ref"), str)]
    assert "#/components/schemas/Draft" in references
    for reference in references:
        assert isinstance(find(document, reference), dict)


def test_every_operation_is_whole(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    for _, path, operation in operations(document):
        assert operation["summary"]
        assert set(operation["responses"]) & {"200", "204"}
        assert operation["responses"]["default"] == {"$ref": "#/components/responses/Problem"}
        assert all(
            find(document, r["$ref"]) if "$ref" in r else r["description"]
            for r in operation["responses"].values()
        )
        in_path = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
        assert in_path == {part[1:-1] for part in path.split("/") if part.startswith("{")}
        assert all(p["required"] for p in operation["parameters"] if p["in"] == "path")


def test_every_operation_names_its_scope_and_public_ones_none(document: dict[str, Any]) -> None:
    schemes = document["components"]["securitySchemes"]
    assert schemes["bearer"] == {"type": "http", "scheme": "bearer"}
    assert schemes["key"] == {"type": "apiKey", "in": "header", "name": "x-api-key"}
    for endpoint in ENDPOINTS:
        operation = document["paths"][endpoint.path.replace(":path", "")][endpoint.method.lower()]
        scopes = [] if endpoint.scope is None else [{"bearer": [endpoint.scope]}, {"key": [endpoint.scope]}]
        assert operation["security"] == scopes
        assert ("401" in operation["responses"]) is (endpoint.scope is not None)


def test_publishing_says_what_it_takes_and_answers(document: dict[str, Any]) -> None:
    operation = document["paths"]["/v1/events"]["post"]
    draft, receipt = "#/components/schemas/Draft", "#/components/schemas/Receipt"
    assert set(operation["requestBody"]["content"]) == {
        "application/json",
        "application/x-ndjson",
        "application/cloudevents+json",
        "application/cloudevents-batch+json",
    }
    shapes = operation["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
    assert {"$ref": draft} in shapes
    assert {"type": "array", "items": {"$ref": draft}} in shapes
    for status, kinds in {
        "200": {"application/json"},
        "202": {"application/json"},
        "400": {"application/problem+json"},
        "409": {"application/json", "application/problem+json"},
        "413": {"application/problem+json"},
        "503": {"application/json", "application/problem+json"},
    }.items():
        content = operation["responses"][status]["content"]
        assert set(content) == kinds
        if status in ("202", "409", "503"):
            assert content["application/json"]["schema"] == {"$ref": receipt}


def test_following_says_its_query(document: dict[str, Any]) -> None:
    operation = document["paths"]["/v1/events"]["get"]
    names = [p["name"] for p in operation["parameters"]]
    assert names == [
        *("type", "class", "priority", "source", "workspace", "session", "subject"),
        *("as", "after", "limit", "attr", "Last-Event-ID"),
    ]
    assert set(operation["responses"]["200"]["content"]) == {"text/event-stream", "application/json"}


def test_a_draft_is_described_as_it_is_decoded(document: dict[str, Any]) -> None:
    draft = document["components"]["schemas"]["Draft"]
    assert set(draft["properties"]) == set(Draft.__struct_fields__)
    assert draft["required"] == ["type"]
    assert draft["additionalProperties"] is False
    assert draft["properties"]["data"] == {"default": None}


def test_a_deletion_answers_nothing(document: dict[str, Any]) -> None:
    responses = document["paths"]["/v1/routes/{name}"]["delete"]["responses"]
    assert responses["204"] == {"description": "Done."}
    assert "200" not in responses


def test_no_default_breaks_its_own_schema(document: dict[str, Any]) -> None:
    for node in walk(document["components"]["schemas"]):
        if isinstance(node.get("default"), str) and "minLength" in node:
            assert len(node["default"]) >= node["minLength"]


def test_what_followers_get_is_what_is_described(document: dict[str, Any]) -> None:
    draft = Draft("a.b", subject="s", session="x", based_on=1, ext={"n": 1})
    event = build_event(draft, "ci", "1", "tool", ("t",), Lane.P1, ())
    event.seq, event.accepted_us = 5, 1_700_000_000_000_000
    shown = event_json(event, "0123abcd")
    assert msgspec.json.decode(shown, type=FollowedEvent).seq == 5
    schema = document["components"]["schemas"]["FollowedEvent"]
    assert set(json.loads(shown)) <= set(schema["properties"])
    assert set(schema["required"]) <= set(json.loads(shown))
