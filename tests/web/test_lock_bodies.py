from typing import Any

import msgspec
import pytest

from herdr.errors import InvalidInput
from herdr.locks.paths import PATHS_MAX
from herdr.web.lock_bodies import (
    EXPECTED,
    PURPOSE_MAX,
    TOKENS_MAX,
    CheckBody,
    EndWaitBody,
    ListQuery,
    LockBody,
    ReleaseBody,
    RenewBody,
    WaitBody,
    parse_tokens,
    read_body_as,
    read_either,
    read_query_as,
)


def refused(type_: type[msgspec.Struct], body: bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read_body_as(type_, body)
    return caught.value


def test_what_is_left_out_has_its_default() -> None:
    body = read_body_as(LockBody, b'{"paths":["a"]}')
    assert (body.paths, body.owner, body.workspace, body.ttl_s, body.wait_s, body.mode) == (
        *(["a"], None, "default", 60.0, 0.0, "write"),
    )
    assert (body.purpose, body.session) == (None, None)
    assert read_body_as(WaitBody, b'{"on":"b"}').ttl_s == 600


def test_the_bounds_are_within() -> None:
    body = {
        "paths": ["a"] * PATHS_MAX,
        "ttl_s": 3600,
        "wait_s": 600,
        "purpose": "p" * PURPOSE_MAX,
        "mode": "intent",
    }
    assert len(read_body_as(LockBody, msgspec.json.encode(body)).paths) == PATHS_MAX
    assert read_body_as(LockBody, b'{"paths":["a"],"ttl_s":0.001,"wait_s":0}').ttl_s == 0.001


WRONG = [
    ("", "paths"),
    ("{}", "paths"),
    ('{"paths":[]}', "paths"),
    ('{"paths":["a"%s]}' % (',"a"' * PATHS_MAX), "paths"),
    ('{"paths":"a"}', "paths"),
    ('{"paths":[1]}', "paths[0]"),
    ('{"paths":null}', "paths"),
    *(
        (f'{{"paths":["a"],"ttl_s":{value}}}', "ttl_s")
        for value in ("0", "-1", "3600.01", "1e999", "9" * 400)
    ),
    *((f'{{"paths":["a"],"ttl_s":{value}}}', "ttl_s") for value in ("true", '"60"', "null", "[1]")),
    *(
        (f'{{"paths":["a"],"wait_s":{value}}}', "wait_s")
        for value in ("-0.1", "600.5", "true", '"1"', "null")
    ),
    *((f'{{"paths":["a"],"mode":{value}}}', "mode") for value in ('"read"', "1", "null")),
    *((f'{{"paths":["a"],"owner":{value}}}', "owner") for value in ('""', '"a\\n"', "1", f'"{"a" * 129}"')),
    ('{"paths":["a"],"workspace":""}', "workspace"),
    ('{"paths":["a"],"session":"\\u0000"}', "session"),
    ('{"paths":["a"],"purpose":"%s"}' % ("p" * (PURPOSE_MAX + 1)), "purpose"),
    ('{"paths":["a"],"ttl":60}', "ttl"),
    ('{"paths":["a"],"bound":true}', "bound"),
]


@pytest.mark.parametrize(("body", "field"), WRONG, ids=[f"{field}: {body[:40]}" for body, field in WRONG])
def test_a_wrong_field_is_named(body: str, field: str) -> None:
    error = refused(LockBody, body.encode())
    assert error.code == "invalid_request"
    assert [entry.field for entry in error.errors] == [field]
    assert error.errors[0].message and error.detail.startswith(field)


def test_an_unknown_field_is_told_which_there_are() -> None:
    message = refused(RenewBody, b'{"tokens":1}').errors[0].message
    assert message == "unknown field; there are token, ttl_s"


@pytest.mark.parametrize(
    "body", [b"{", b"nonsense", b'{"paths":["a"],"ttl_s":NaN}', b"\xff", b'{"paths":["\xff"]}']
)
def test_what_is_not_json_is_called_that(body: bytes) -> None:
    assert refused(LockBody, body).code == "invalid_json"


@pytest.mark.parametrize("body", [b"[]", b"1", b'"a"', b'{"paths":' + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_what_is_no_such_object_is_refused(body: bytes) -> None:
    assert refused(LockBody, body).code == "invalid_request"


def test_every_field_is_explained() -> None:
    for type_ in (LockBody, CheckBody, RenewBody, ReleaseBody, WaitBody, EndWaitBody, ListQuery):
        assert set(type_.__struct_fields__) <= set(EXPECTED)


def test_queries_are_read() -> None:
    assert read_query_as(RenewBody, b"token=17&ttl_s=2.5") == RenewBody(17, 2.5)
    assert read_query_as(ReleaseBody, b"force=true&reason=left+it%20open") == ReleaseBody(
        None, True, "left it open"
    )
    assert read_query_as(ListQuery, b"path=src/%C3%BC&owner=null") == ListQuery(None, "src/ü", "null")
    assert read_query_as(ListQuery, b"") == ListQuery()


BAD_QUERIES: list[tuple[Any, bytes, str | None]] = [
    (RenewBody, b"token=seventeen", "token"),
    (RenewBody, b"token=0", "token"),
    (RenewBody, b"token=-1", "token"),
    (RenewBody, b"token=", "token"),
    (RenewBody, b"token=" + b"9" * 30, "token"),
    *(
        (RenewBody, b"token=1&ttl_s=" + text, "ttl_s")
        for text in (b"nan", b"inf", b"-inf", b"0", b"3601", b"")
    ),
    (RenewBody, b"token=1&token=1", "token"),
    (ReleaseBody, b"force=maybe", "force"),
    (ReleaseBody, b"force=true&reason=", "reason"),
    (ListQuery, b"paths=a", "paths"),
    (ListQuery, b"owner=", "owner"),
    (ListQuery, b"path=%ff", None),
    (ListQuery, "path=ü".encode(), None),
    (ListQuery, b"&".join([b"x=1"] * 101), None),
]


@pytest.mark.parametrize(
    ("type_", "query", "field"), BAD_QUERIES, ids=[str(row[1][:30]) for row in BAD_QUERIES]
)
def test_a_wrong_query_is_refused(type_: Any, query: bytes, field: str | None) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_query_as(type_, query)
    assert [entry.field for entry in caught.value.errors] == ([] if field is None else [field])


def test_the_token_may_come_either_way_or_twice_the_same() -> None:
    wanted = RenewBody(17, 5.0)
    for query, body in (
        (b"token=17&ttl_s=5", b""),
        (b"", b'{"token":17,"ttl_s":5}'),
        (b"token=17", b'{"ttl_s":5}'),
        (b"token=17&ttl_s=5", b'{"token":17}'),
    ):
        assert read_either(RenewBody, query, body) == wanted


@pytest.mark.parametrize(
    ("query", "body", "field"),
    [(b"token=17", b'{"token":18}', "token"), (b"token=1&ttl_s=5", b'{"token":1,"ttl_s":6}', "ttl_s")],
)
def test_two_different_ones_are_refused(query: bytes, body: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_either(RenewBody, query, body)
    assert [entry.field for entry in caught.value.errors] == [field]


def test_the_header_is_read() -> None:
    assert parse_tokens([b"17"]) == (17,)
    assert parse_tokens([b" 17 ,18", b"19"]) == (17, 18, 19)
    assert len(parse_tokens([b",".join([b"1"] * TOKENS_MAX)])) == TOKENS_MAX


@pytest.mark.parametrize(
    "value", [b"", b"x", b"1,", b"1.0", b"-1", b"+1", b"1 2", b"\xd9\xa1", b"9" * 20, b",".join([b"1"] * 17)]
)
def test_a_malformed_header_is_refused(value: bytes) -> None:
    with pytest.raises(InvalidInput, match="X-Herdr-Lock-Token"):
        parse_tokens([value])
