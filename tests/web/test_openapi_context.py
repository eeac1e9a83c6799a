"""What OpenAPI says of queries about the shared context, from the structs that decode them."""

import inspect
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from herdr.web.context_bodies import EXPECTED, EdgesQuery, MapQuery, ShelfQuery
from herdr.web.context_routes import context_endpoints
from herdr.web.openapi import describe
from herdr.web.openapi_context import MORE, queries

ENDPOINTS = context_endpoints(*(MagicMock() for _ in inspect.signature(context_endpoints).parameters))


def by_name(type_: type[msgspec.Struct]) -> dict[str, dict[str, Any]]:
    return {parameter["name"]: parameter for parameter in queries(type_)}


def test_a_query_says_what_is_needed_and_what_it_takes() -> None:
    found = by_name(EdgesQuery)
    assert list(found) == ["symbol", "limit"]
    assert [found[name]["required"] for name in found] == [True, False]
    assert found["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    assert found["symbol"]["description"] == EXPECTED["symbol"]


def test_what_may_stand_several_times_is_an_array() -> None:
    schema = by_name(MapQuery)["focus"]["schema"]
    assert (schema["type"], schema["maxItems"], schema["items"]["type"]) == ("array", 32, "string")


def test_what_may_be_left_out_is_not_null() -> None:
    assert by_name(ShelfQuery)["kind"]["schema"] == {"type": "string", "maxLength": 64}


def test_more_is_said_of_endpoints_that_there_are() -> None:
    assert set(MORE) <= {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_every_answer_has_a_form(endpoint: Any) -> None:
    document = describe([endpoint], "1.2.3")
    ((operation,),) = (methods.values() for methods in document["paths"].values())
    done = {code for code, answer in operation["responses"].items() if code < "300" and "content" in answer}
    last = endpoint.path.rpartition("/")[2]
    posted = {"index": {"202"}, "messages": {"201"}}.get(last, {"200"})
    assert done == {"DELETE": set(), "PUT": {"200", "201"}, "POST": posted}.get(endpoint.method, {"200"})
    if endpoint.method in ("PUT", "POST"):
        assert operation["requestBody"]["content"]
