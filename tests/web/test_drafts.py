import json
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.errors import InvalidInput
from herdr.event import Draft, Receipt
from herdr.web.drafts import (
    ERRORS_SHOWN_MAX,
    EVENTS_MAX,
    EXPECTED,
    EXT_MAX,
    asks_for_p0,
    check_sizes,
    encode_receipts,
)
from herdr.web.drafts import parse_body as parse_any_body
from herdr.web.drafts import parse_lines as parse_any_lines

DATA_MAX = 1024 * 1024
parse_body = partial(parse_any_body, data_max=DATA_MAX)
parse_lines = partial(parse_any_lines, data_max=DATA_MAX)

GOOD = {"type": "test.failed"}


def parse_array(body: bytes) -> list[Draft]:
    return parse_body(body)[0]


def parse_line_of_one(body: bytes) -> list[Draft]:
    return parse_lines(body)


FORMS: list[tuple[Callable[[bytes], list[Draft]], bytes, bytes]] = [
    (parse_array, b"", b""),
    (parse_array, b"[", b"]"),
    (parse_line_of_one, b"", b"\n"),
]
in_every_form = pytest.mark.parametrize(("parse", "before", "after"), FORMS, ids=["object", "array", "lines"])


def refused(parse: Callable[[bytes], Any], body: bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as error:
        parse(body)
    return error.value


def test_one_object_is_told_from_an_array() -> None:
    assert parse_body(b'\r\n\t {"type":"a"}')[1] is True
    assert parse_body(b'\r\n\t [{"type":"a"}]')[1] is False
    assert parse_body(b"[]") == ([], False)


def test_every_field_is_read() -> None:
    fields = {
        "type": "tool.result",
        "source": "ci",
        "id": "7",
        "subject": "a/b.py",
        "workspace": "w",
        "session": "s",
        "task": "t",
        "time": "2026-01-31T12:00:00+01:00",
        "priority": "P1",
        "tags": ["x"],
        "based_on": 3,
        "if_stale": "reject",
        "trace": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "data": {"a": 1},
        "ext": {"n": 1, "t": "x", "b": False},
    }
    ((draft,), _) = parse_body(json.dumps(fields).encode())
    assert json.loads(msgspec.json.encode(draft)) == fields
    assert set(fields) == set(EXPECTED) == set(Draft.__struct_fields__)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=20))
def test_a_payload_keeps_its_bytes(value: Any) -> None:
    payload = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    ((draft,), _) = parse_body(b'{"data": ' + payload + b', "type":"a"}')
    assert bytes(draft.data) == payload


@in_every_form
@pytest.mark.parametrize(
    ("event", "field"),
    [
        (b"{", ""),
        (b"not json", ""),
        (b'"text"', ""),
        (b"7", ""),
        (b"null", ""),
        (b"{}", "type"),
        (b'{"type":"a"} {"type":"b"}', ""),
        (b'{"type":5}', "type"),
        (b'{"type":"A.b"}', "type"),
        (b'{"type":"a..b"}', "type"),
        (b'{"type":"a b"}', "type"),
        (b'{"type":""}', "type"),
        (b'{"type":"' + b"a" * 129 + b'"}', "type"),
        (b'{"type":"a\\r\\nid: 5"}', "type"),
        (b'{"type":"a\\n"}', "type"),
        (b'{"type":"a","id":"b\\u0000"}', "id"),
        (b'{"type":"a","id":"b\\n"}', "id"),
        (b'{"type":"a","source":"b\\r"}', "source"),
        (b'{"type":"a","source":""}', "source"),
        (b'{"type":"a","source":null}', "source"),
        (b'{"type":"a","subject":"x\\ny"}', "subject"),
        (b'{"type":"a","seq":5}', "seq"),
        (b'{"type":"a","wrokspace":"x"}', "wrokspace"),
        (b'{"type":"a","time":"2026-02-30 noon"}', "time"),
        (b'{"type":"a","priority":"P3"}', "priority"),
        (b'{"type":"a","priority":0}', "priority"),
        (b'{"type":"a","tags":"x"}', "tags"),
        (b'{"type":"a","tags":[1]}', "tags[0]"),
        (b'{"type":"a","tags":[' + b'"x",' * 16 + b'"x"]}', "tags"),
        (b'{"type":"a","based_on":-1}', "based_on"),
        (b'{"type":"a","based_on":9223372036854775808}', "based_on"),
        (b'{"type":"a","based_on":"5"}', "based_on"),
        (b'{"type":"a","if_stale":"no"}', "if_stale"),
        (b'{"type":"a","trace":"00-00"}', "trace"),
        (b'{"type":"a","ext":{"x":1.5}}', "ext[...]"),
        (b'{"type":"a","ext":{"x":99999999999999999999}}', "ext.x"),
        (b'{"type":"a","ext":{"x":"' + b"x" * EXT_MAX + b'"}}', "ext"),
        (b'{"type":"herdr.started"}', "type"),
        (b'{"type":"lock.granted"}', "type"),
        (b'{"type":"a","source":"\\ud800"}', ""),
        (b'{"type":"a","data":"\\ud800"}', ""),
        (b'{"type":"a","data":"\\udc00"}', ""),
        (b'{"type":"a","data":1e400}', "data"),
        (b'{"type":"a","data":-1E+309}', "data"),
        (b'{"type":"a","data":' + b"9" * 310 + b".0}", "data"),
        (b'{"type":"a","data":' + b"9" * 260 + b"e60}", "data"),
        (b'{"type":"a","data":NaN}', ""),
        (b'{"type":"a","data":' + b"[" * 950 + b"]" * 950 + b"}", "data"),
        (b'{"type":"a","data":' + b'{"a":' * 950 + b"1" + b"}" * 950 + b"}", "data"),
        (b'{"type":"a","data":' + b'[{"a": ' * 475 + b"1" + b"}]" * 475 + b"}", "data"),
        (b'{"type":"a","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else value,
)
def test_a_bad_event_is_refused_with_its_field(
    parse: Callable[[bytes], Any], before: bytes, after: bytes, event: bytes, field: str
) -> None:
    error = refused(parse, before + event + after)
    assert error.code in ("invalid_event", "invalid_json")
    assert error.errors[0].field == field
    assert error.errors[0].message
    assert "nothing of this request was stored" in error.detail
    assert len(error.detail) < 1000


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b"not json", "invalid_json"),
        (b'{"type":"a"} {"type":"b"}', "invalid_json"),
        (b'{"type":"a","data":NaN}', "invalid_json"),
        (b'{"type":"a","data":"\\ud800"}', "invalid_json"),
        (b'[{"type":"a"},{"type":]', "invalid_json"),
        (b'[{"type":5},{"type":]', "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b'"text"', "invalid_event"),
        (b"{}", "invalid_event"),
        (b'{"type":5}', "invalid_event"),
        (b'{"type":"a","seq":5}', "invalid_event"),
        (b'{"type":"herdr.x"}', "invalid_event"),
        (b"[{}]", "invalid_event"),
        (b"[[]]", "invalid_event"),
        (b'{"type":"a","data":1e400}', "invalid_event"),
    ],
    ids=lambda value: repr(value[:40]),
)
def test_what_is_no_json_is_told_from_what_is_no_event(body: bytes, code: str) -> None:
    assert refused(parse_body, body).code == code


@in_every_form
@pytest.mark.parametrize(
    "payload",
    [
        b'{"a":"\\ud800"}',
        b'{"\\udc00":1}',
        b'["\\ud83d\\ud83d"]',
        b"[1e999]",
        b'{"a":[0,-1e400]}',
        b"[" * 401 + b"1e999" + b"]" * 401,
    ],
    ids=lambda value: repr(value[:30]) if isinstance(value, bytes) else value,
)
def test_a_payload_that_readers_cannot_decode_is_refused(
    parse: Callable[[bytes], Any], before: bytes, after: bytes, payload: bytes
) -> None:
    error = refused(parse, before + b'{"type":"a","data":' + payload + b"}" + after)
    assert error.errors[0].field in ("", "data")


@in_every_form
@pytest.mark.parametrize(
    "event",
    [
        b'{"type":"a","source":"\xff"}',
        b'{"type":"a","data":"\xed\xa0\x80"}',
        b'{"type":"a","data":"\xc0\xa0"}',
    ],
)
def test_bytes_that_are_no_utf_8_are_refused(
    parse: Callable[[bytes], Any], before: bytes, after: bytes, event: bytes
) -> None:
    assert refused(parse, before + event + after).code == "invalid_json"


@in_every_form
@pytest.mark.parametrize(
    "payload",
    [
        b"1e308",
        b"1e-400",
        b"9" * 250,
        b"0." + b"3" * 300,
        b'"1e999"',
        b'"\\ud83d\\ude00"',
        b'"[[[[[[[["',
        b'"' + b"[" * 5000 + b'"',
        b"[" * 380 + b"]" * 380,
        b"[" + b"[],{}," * 5000 + b"0]",
    ],
    ids=lambda value: repr(value[:30]) if isinstance(value, bytes) else value,
)
def test_a_payload_that_only_looks_odd_is_taken(
    parse: Callable[[bytes], list[Draft]], before: bytes, after: bytes, payload: bytes
) -> None:
    (draft,) = parse(before + b'{"type":"a","data":' + payload + b"}" + after)
    assert bytes(draft.data) == payload


@pytest.mark.parametrize("parse", [parse_body, parse_lines])
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"type":' * 100_000, b"["])
def test_endless_nesting_is_refused(parse: Callable[[bytes], Any], body: bytes) -> None:
    assert refused(parse, body).errors


def test_an_array_names_the_place_of_each_wrong_event() -> None:
    body = b'[{"type":"a"},{"type":"B"},{"type":"c"},5,{"typ":"d"}]'
    error = refused(parse_body, body)
    assert [(e.index, e.field) for e in error.errors] == [(1, "type"), (3, ""), (4, "typ")]
    assert error.detail.startswith("event 1: type: expected dotted lower case")
    assert "(and 2 more)" in error.detail


def test_lines_name_the_place_of_each_wrong_event_and_skip_blank_ones() -> None:
    error = refused(parse_lines, b'{"type":"a"}\r\n\r\n  \n{"type":"B"}\n{"type":"c"}\n{')
    assert [(e.index, e.field) for e in error.errors] == [(1, "type"), (3, "")]


def test_reserved_types_name_their_place() -> None:
    error = refused(parse_body, b'[{"type":"a"},{"type":"session.started"}]')
    assert [(e.index, e.field) for e in error.errors] == [(1, "type")]
    assert "session.*" in error.errors[0].message


@pytest.mark.parametrize("parse", [parse_body, parse_lines])
def test_only_so_many_mistakes_are_listed(parse: Callable[[bytes], Any]) -> None:
    wrong = [b'{"type":"B"}'] * (ERRORS_SHOWN_MAX + 30)
    body = b"[" + b",".join(wrong) + b"]" if parse is parse_body else b"\n".join(wrong)
    assert len(refused(parse, body).errors) == ERRORS_SHOWN_MAX


def test_an_array_with_a_syntax_error_says_so_once() -> None:
    error = refused(parse_body, b'[{"type":"a"},{"type":]')
    assert [e.index for e in error.errors] == [None]


@pytest.mark.parametrize("parse", [parse_body, parse_lines])
def test_a_request_holds_a_thousand_events_at_most(parse: Callable[[bytes], Any]) -> None:
    def body(count: int) -> bytes:
        events = [b'{"type":"a"}'] * count
        return b"[" + b",".join(events) + b"]" if parse is parse_body else b"\n".join(events)

    taken = parse(body(EVENTS_MAX))
    assert len(taken[0] if parse is parse_body else taken) == EVENTS_MAX
    assert refused(parse, body(EVENTS_MAX + 1)).code == "too_many_events"


@pytest.mark.parametrize(
    ("parse", "event", "between"),
    [
        (parse_body, b"{}", b","),
        (parse_body, b"1", b","),
        (parse_lines, b"{}", b"\n"),
        (parse_lines, b"1", b"\n "),
    ],
)
def test_too_many_are_refused_before_any_is_decoded(
    parse: Callable[[bytes], Any], event: bytes, between: bytes
) -> None:
    """They are wrong as well: whoever had decoded the first one would say so."""
    body = between.join([event] * (EVENTS_MAX + 1))
    assert refused(parse, b"[%s]" % body if parse is parse_body else body).code == "too_many_events"


def test_blank_lines_do_not_count() -> None:
    assert len(parse_lines(b"\n \t\r\n" * EVENTS_MAX + b' {"type":"a"} \r\n' + b"\n" * EVENTS_MAX)) == 1


def test_lines_may_be_none() -> None:
    assert parse_lines(b"") == parse_lines(b"\n\r\n \n") == []


def test_a_line_that_breaks_off_refuses_the_whole_body() -> None:
    assert refused(parse_lines, b'{"type":"a"}\n{"type":"b"').errors[0].index == 1


def test_a_payload_over_the_limit_is_too_large() -> None:
    drafts, _ = parse_body(b'[{"type":"a","data":"12"},{"type":"a","data":"123"}]')
    check_sizes(drafts, 5)
    with pytest.raises(InvalidInput) as error:
        check_sizes(drafts, 4)
    assert (error.value.code, [e.index for e in error.value.errors]) == ("too_large", [1])


def test_what_is_too_large_is_not_looked_at() -> None:
    body = b'[{"type":"a","data":1e999},{"type":"lock.a","data":"%s"}]' % (b"x" * 100)
    with pytest.raises(InvalidInput) as error:
        parse_any_body(body, 100)
    assert (error.value.code, [e.index for e in error.value.errors]) == ("too_large", [1])


def test_of_many_mistakes_in_what_can_be_decoded_only_so_many_are_listed_too() -> None:
    wrong = b",".join([b'{"type":"lock.a"}'] * (ERRORS_SHOWN_MAX + 30))
    assert len(refused(parse_body, b"[%s]" % wrong).errors) == ERRORS_SHOWN_MAX


def test_a_wish_for_p0_is_seen() -> None:
    plain, _ = parse_body(b'[{"type":"a"},{"type":"user.x"},{"type":"a","priority":"P1"}]')
    wishing, _ = parse_body(b'[{"type":"a"},{"type":"a","priority":"P0"}]')
    assert not asks_for_p0(plain)
    assert asks_for_p0(wishing)


def test_receipts_are_results() -> None:
    body = encode_receipts([Receipt("accepted", "a", 1, "00000000"), Receipt("deferred", "b")])
    assert json.loads(body) == {
        "results": [
            {"status": "accepted", "id": "a", "seq": 1, "epoch": "00000000"},
            {"status": "deferred", "id": "b"},
        ]
    }
