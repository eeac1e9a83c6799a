import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
import pytest
from cloudevents.core.bindings.http import HTTPMessage, to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from herdr.errors import FieldError, InvalidInput
from herdr.event import Draft
from herdr.web import cloudevents
from herdr.web.asgi import Scope
from herdr.web.cloudevents import is_binary
from herdr.web.drafts import EVENTS_MAX
from herdr.web.drafts import parse_body as parse_any_body

DATA_MAX = 1024 * 1024
parse_batch = partial(cloudevents.parse_batch, data_max=DATA_MAX)
parse_binary = partial(cloudevents.parse_binary, data_max=DATA_MAX)
parse_structured = partial(cloudevents.parse_structured, data_max=DATA_MAX)
parse_body = partial(parse_any_body, data_max=DATA_MAX)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
MINIMAL = {"specversion": "1.0", "id": "1", "source": "ci", "type": "test.failed"}
FULL = {
    **MINIMAL,
    "subject": "src/naïve.py",
    "time": "2026-01-31T12:00:00Z",
    "datacontenttype": "application/json",
    "dataschema": "https://example.org/schema",
    "workspace": "shop",
    "session": "s 1",
    "task": 'the "task"',
    "priority": "P2",
    "tags": "slow, red",
    "basedon": "9007199254740993",
    "ifstale": "notify",
    "traceparent": TRACE,
    "comgithubrun": "77",
}


def scope(headers: Mapping[str, str] | list[tuple[str, str]]) -> Scope:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return {"headers": [(name.lower().encode(), value.encode()) for name, value in pairs]}


def binary(headers: Mapping[str, str] | list[tuple[str, str]], body: bytes = b"") -> Draft:
    (draft,) = parse_binary(scope(headers), body)
    return draft


def structured(**members: Any) -> Draft:
    (draft,) = parse_structured(json.dumps({**MINIMAL, **members}).encode())
    return draft


def ce_headers(**attributes: str) -> dict[str, str]:
    return {f"ce-{name}": value for name, value in {**MINIMAL, **attributes}.items()}


def fields_of(draft: Draft) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(draft, builtin_types=(msgspec.Raw,)),
        "data": msgspec.json.decode(draft.data),
    }


def error_of(error: pytest.ExceptionInfo[InvalidInput]) -> FieldError:
    (found,) = error.value.errors
    return found


def test_every_attribute_finds_its_field() -> None:
    draft = structured(**{**FULL, "data": {"level": 3}})
    assert fields_of(draft) == {
        "type": "test.failed",
        "source": "ci",
        "id": "1",
        "subject": "src/naïve.py",
        "workspace": "shop",
        "session": "s 1",
        "task": 'the "task"',
        "time": "2026-01-31T12:00:00Z",
        "priority": "P2",
        "tags": ("slow", "red"),
        "based_on": 9007199254740993,
        "if_stale": "notify",
        "trace": TRACE,
        "data": {"level": 3},
        "ext": {
            "datacontenttype": "application/json",
            "dataschema": "https://example.org/schema",
            "comgithubrun": "77",
        },
    }


@pytest.mark.parametrize("mode", ["structured", "binary", "batch"])
@pytest.mark.parametrize("data", [{"a": [1, "ü\u2028"]}, "just text", None, {}])
def test_events_of_the_cloudevents_package_arrive_whole_in_every_mode(mode: str, data: Any) -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    attributes = {**FULL, "time": at}
    if data == "just text":
        attributes["datacontenttype"] = "text/plain; charset=UTF-8"
    event = CloudEvent(attributes, data)
    wanted = fields_of(structured(**{**attributes, "time": "2026-01-31T12:00:00Z", "data": data}))
    if mode == "binary":
        message = to_binary(event, JSONFormat())
        assert is_binary(scope(message.headers))
        got = parse_binary(scope(message.headers), message.body)
    else:
        message = to_structured(event, JSONFormat())
        assert not is_binary(scope(message.headers))
        got = (
            parse_structured(message.body)
            if mode == "structured"
            else parse_batch(b"[" + message.body + b"]")
        )
    assert [fields_of(draft) for draft in got] == [wanted]


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_bytes_of_the_cloudevents_package_arrive_the_same_in_both_modes(mode: str) -> None:
    event = CloudEvent({**MINIMAL, "datacontenttype": "image/png"}, b"\x89PNG\x00")
    message: HTTPMessage = (to_structured if mode == "structured" else to_binary)(event, JSONFormat())
    (draft,) = (
        parse_structured(message.body)
        if mode == "structured"
        else parse_binary(scope(message.headers), message.body)
    )
    assert msgspec.json.decode(draft.data) == {"base64": base64.b64encode(b"\x89PNG\x00").decode()}
    assert draft.ext == {"datacontenttype": "image/png"}


def test_the_payload_keeps_its_bytes_in_every_mode() -> None:
    payload = b'{ "n" : 1.50, "n": 12345678901234567890123, "s":"\\u00fc" }'
    attributes = json.dumps(MINIMAL).encode()[:-1]
    body = attributes + b', "data": ' + payload + b"}"
    headers = {**ce_headers(), "content-type": "application/json"}
    for drafts in (
        parse_structured(body),
        parse_batch(b"[ " + body + b"]"),
        parse_binary(scope(headers), payload),
    ):
        assert bytes(drafts[0].data) == payload


@pytest.mark.parametrize(
    ("content_type", "body", "data"),
    [
        (None, b'{"a":1}', {"a": 1}),
        ("application/json; charset=utf-8", b"[]", []),
        ("application/vnd.github+json", b"true", True),
        ("text/plain", "zürich".encode(), "zürich"),
        ("text/plain; charset=iso-8859-1", b"z\xfcrich", {"base64": "evxyaWNo"}),
        ("Text/XML", b"<a/>", "<a/>"),
        ("application/soap+xml", b"<a/>", "<a/>"),
        ("application/octet-stream", b"\x00\xff", {"base64": "AP8="}),
        ("application/json", b"", None),
        ("text/plain", b"", None),
    ],
)
def test_what_a_binary_body_becomes(content_type: str | None, body: bytes, data: Any) -> None:
    headers = ce_headers() | ({} if content_type is None else {"content-type": content_type})
    draft = binary(headers, body)
    assert msgspec.json.decode(draft.data) == data
    assert draft.ext == (None if content_type is None else {"datacontenttype": content_type})


@pytest.mark.parametrize(
    ("members", "data"),
    [
        ({"data_base64": "eyJhIjoxfQ==", "datacontenttype": "application/json"}, {"a": 1}),
        ({"data_base64": "aGk=", "datacontenttype": "text/plain"}, "hi"),
        ({"data_base64": "AP8="}, {"base64": "AP8="}),
        ({"data_base64": None, "data": 1}, 1),
        ({"data": None}, None),
        ({}, None),
        ({"data": "<a/>", "datacontenttype": "application/xml"}, "<a/>"),
    ],
)
def test_what_structured_data_becomes(members: dict[str, Any], data: Any) -> None:
    assert msgspec.json.decode(structured(**members).data) == data


@pytest.mark.parametrize(
    ("raw", "decoded"),
    [
        ("plain", "plain"),
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("%41%2541", "A%41"),  # decoded once, and also what needed no encoding
        ("100%", "100%"),
        ('"quoted text"', "quoted text"),
        (r'"a \"word\" and \\ %41"', r'a "word" and \ A'),
        ('before "in side" after', "before in side after"),
        ("raw ü", "raw ü"),
    ],
)
def test_header_values_are_decoded_as_the_http_binding_says(raw: str, decoded: str) -> None:
    assert binary(ce_headers(subject=raw)).subject == decoded


@pytest.mark.parametrize("raw", ["%C0%A0", "%ff", "%ED%A0%80", "%F8%88%80%80%80"])
def test_header_values_that_are_not_utf_8_are_refused(raw: str) -> None:
    with pytest.raises(InvalidInput, match="ce-subject"):
        binary(ce_headers(subject=raw))


@pytest.mark.parametrize("raw", ["a%0d%0ab", "a%00", "%0A"])
def test_control_characters_cannot_be_smuggled_in(raw: str) -> None:
    for name in ("id", "source", "type", "subject"):
        with pytest.raises(InvalidInput) as error:
            binary(ce_headers(**{name: raw}))
        assert error_of(error).field == name


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40))
def test_whatever_the_package_encodes_comes_back(text: str) -> None:
    message = to_binary(CloudEvent({**MINIMAL, "subject": text, "x": text}), JSONFormat())
    draft = binary(message.headers, message.body)
    assert (draft.subject, draft.ext) == (text, {"x": text})


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ([("ce-id", "1")], True),
        ([("content-type", "text/plain"), ("ce-id", "1")], True),
        ([("content-type", "application/json")], False),
        ([("cexy", "1"), ("x-ce-id", "1")], False),
        ([("ce-id", "1"), ("content-type", "Application/CloudEvents+json; charset=utf-8")], False),
        ([("ce-id", "1"), ("content-type", "application/cloudevents-batch+json")], False),
    ],
)
def test_binary_mode_is_told_by_its_headers(headers: list[tuple[str, str]], answer: bool) -> None:
    assert is_binary(scope(headers)) is answer


@pytest.mark.parametrize("name", ["id", "source", "specversion", "type"])
def test_a_missing_attribute_is_named(name: str) -> None:
    rest = {key: value for key, value in MINIMAL.items() if key != name}
    for parse in (
        lambda: parse_structured(json.dumps(rest).encode()),
        lambda: parse_structured(json.dumps({**MINIMAL, name: None}).encode()),
        lambda: parse_binary(scope({f"ce-{key}": value for key, value in rest.items()}), b""),
    ):
        with pytest.raises(InvalidInput) as error:
            parse()
        assert error.value.code == "invalid_event"
        assert error_of(error) == FieldError(name, "required by CloudEvents 1.0")


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": 1.0}, "specversion"),
        ({"type": "Com.GitHub.Push"}, "type"),
        ({"type": "lock.granted"}, "type"),
        ({"source": "s" * 129}, "source"),
        ({"id": 7}, "id"),
        ({"time": "yesterday"}, "time"),
        ({"basedon": "-1"}, "basedon"),
        ({"basedon": 1.5}, "basedon"),
        ({"ifstale": "explode"}, "ifstale"),
        ({"traceparent": "00-0"}, "traceparent"),
        ({"priority": "P9"}, "priority"),
        ({"tags": ["a"] * 17}, "tags"),
        ({"x": 1.5}, "x"),
        ({"x": {"y": 1}}, "x"),
        ({"x": 2**64}, "ext.x"),
        ({"based_on": 3}, "based_on"),
        ({"X": 3}, "X"),
        ({"data": 1, "data_base64": "AA=="}, "data_base64"),
        ({"data_base64": "A"}, "data_base64"),
        ({"data_base64": 5}, "data_base64"),
        ({"data_base64": "z", "datacontenttype": "text/plain"}, "data_base64"),
        ({"data_base64": "ew==", "datacontenttype": "application/json"}, "data"),
    ],
)
def test_a_wrong_attribute_is_named_as_the_sender_knows_it(members: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        structured(**members)
    assert error_of(error).field == field
    assert error.value.detail.endswith("nothing of this request was stored")


@pytest.mark.parametrize(
    ("headers", "body", "field"),
    [
        ([*ce_headers().items(), ("ce-id", "2")], b"", "ce-id"),
        ([*ce_headers().items(), ("ce-datacontenttype", "text/plain")], b"", "ce-datacontenttype"),
        ([*ce_headers().items(), ("ce-based-on", "3")], b"", "based-on"),
        ([*ce_headers().items(), ("content-type", "application/json")], b"{", "data"),
        ([*ce_headers().items(), ("content-type", "application/json")], b'"\xff"', "data"),
        ([*ce_headers().items(), ("content-type", "application/json")], b"[" * 100_000, "data"),
        ([*ce_headers().items(), ("content-type", "text/plain")], b"\xff", "data"),
    ],
)
def test_a_wrong_binary_event_says_why(headers: list[tuple[str, str]], body: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        binary(headers, body)
    assert error_of(error).field == field


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"7", b"{}[]", b"\xff", b'{"data":' + b"[" * 100_000])
def test_a_structured_body_is_one_json_object(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_structured(body)


def test_a_batch_may_be_empty() -> None:
    assert parse_batch(b" [ ] ") == []


@pytest.mark.parametrize("body", [b"{}", b"", b"[", b"\xff"])
def test_a_batch_is_an_array(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_batch(body)


def test_a_batch_names_the_place_of_each_wrong_event() -> None:
    batch = [MINIMAL, {**MINIMAL, "time": "noon"}, MINIMAL, 5, {**MINIMAL, "id": ""}]
    with pytest.raises(InvalidInput) as error:
        parse_batch(json.dumps(batch).encode())
    assert [(e.index, e.field) for e in error.value.errors] == [(1, "time"), (3, ""), (4, "id")]


def test_a_batch_has_a_limit() -> None:
    assert len(parse_batch(json.dumps([MINIMAL] * EVENTS_MAX).encode())) == EVENTS_MAX
    with pytest.raises(InvalidInput) as error:
        parse_batch(json.dumps([MINIMAL] * (EVENTS_MAX + 1)).encode())
    assert error.value.code == "too_many_events"


def test_an_event_means_the_same_as_in_our_own_form() -> None:
    ours = {
        **{name: MINIMAL[name] for name in ("id", "source", "type")},
        "based_on": 4,
        "if_stale": "reject",
        "trace": TRACE,
        "tags": ["a", "b"],
        "data": {"k": "v"},
    }
    (own,), _ = parse_body(json.dumps(ours).encode())
    assert own == structured(basedon=4, ifstale="reject", traceparent=TRACE, tags="a,b", data={"k": "v"})
