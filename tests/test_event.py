import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from herdr.event import (
    LANE_NAMES,
    TAGS_MAX,
    Conflict,
    Delivery,
    Draft,
    Envelope,
    Event,
    Lane,
    Receipt,
    WantedContext,
    corrupt_event,
    encode_extra,
    id_hash,
    restore_event,
    single_line,
)

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def draft(**fields: Any) -> Draft:
    return msgspec.json.decode(json.dumps({"type": "tool.result"} | fields), type=Draft)


def test_a_draft_needs_only_a_type() -> None:
    bare = draft()
    assert (bare.type, bare.source, bare.id, bare.workspace) == ("tool.result", UNSET, UNSET, "default")
    assert bytes(bare.data) == b"null"


def test_a_full_draft() -> None:
    full = {
        "type": "file.changed", "source": "claude-code/3f2a", "id": "1", "subject": "src/ä b.py",
        "workspace": "w", "session": "s", "task": "t", "time": "2024-02-29T23:59:60.123456789+01:00",
        "priority": "P0", "tags": ["a", "b"], "based_on": 2**63 - 1, "if_stale": "reject", "trace": TRACE,
        "data": {"hash": "x"}, "ext": {"partitionkey": "k", "sampled": 1, "flag": True},
    }  # fmt: skip
    assert json.loads(msgspec.json.encode(draft(**full))) == full


@pytest.mark.parametrize(
    ("field", "good"),
    [
        ("type", ["a", "user.message", "a-b_c.d0", "x" * 128]),
        ("source", ["cursor", "claude-code/3f2a", "a b", "é\u2028", "x" * 128]),
        ("id", ["1", "\U0001f600" * 128]),
        ("subject", ["app/[id]/page.tsx", "x" * 4096]),
        ("time", ["2024-01-01T00:00:00Z", "2024-01-01 00:00:00.1z", "2024-12-31t23:59:60-23:59"]),
        ("tags", [[], ["x"] * TAGS_MAX, ["x" * 64]]),
        ("based_on", [0, 2**63 - 1, None]),
        ("if_stale", ["notify", "reject"]),
        ("priority", ["P0", "P1", "P2"]),
        ("trace", [TRACE]),
        ("ext", [{}, {"a": "b", "c": 1, "d": False}]),
    ],
)
def test_what_a_field_takes(field: str, good: list[Any]) -> None:
    for value in good:
        taken = getattr(draft(**{field: value}), field)
        assert (list(taken) if field == "tags" else taken) == value


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("type", ["", "A", "a.", ".a", "a..b", "a b", "a\n", "a/b", "é", "x" * 129, None, 1]),
        ("source", ["", "a\nb", "a\r", "\0", "\x7f", "x" * 129, None, 1]),
        ("id", ["", "a\n", "\t", "x" * 129, None, 5]),
        ("subject", ["", "a\0b", "a\n", "x" * 4097, 1]),
        ("workspace", ["", "\n", None]),
        ("session", ["", "x" * 129]),
        ("task", ["", "\n"]),
        (
            "time",
            [
                "", "now", "2024-01-01", "2024-01-01T00:00:00", "2024-13-01T00:00:00Z",
                "2024-00-01T00:00:00Z", "2024-01-32T00:00:00Z", "2024-01-01T24:00:00Z",
                "2024-01-01T00:60:00Z", "2024-01-01T00:00:61Z", "2024-01-01T00:00:00.Z",
                "2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00Z\n", "٢٠٢٤-01-01T00:00:00Z",
                "2024-01-01T00:00:00.1234567890Z", 1704067200,
            ],
        ),
        ("priority", ["p0", "P3", 0]),
        ("tags", ["x", [""], ["x" * 65], ["a\n"], ["x"] * (TAGS_MAX + 1), [1]]),
        ("based_on", [-1, 2**63, 1.5, True, "1"]),
        ("if_stale", ["ignore", True]),
        (
            "trace",
            [
                "", "ff" + TRACE[2:], TRACE.upper(), TRACE + "\n", TRACE + "-x",
                f"00-{'0' * 32}-00f067aa0ba902b7-01", f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
            ],
        ),
        ("ext", [[], {"a": None}, {"a": 1.5}, {"a": {}}]),
        ("seq", [1]),
        ("class", ["user"]),
        ("Type", ["a"]),
    ],
)  # fmt: skip
def test_what_a_field_refuses(field: str, bad: list[Any]) -> None:
    for value in bad:
        with pytest.raises(msgspec.ValidationError, match=field):
            draft(**{field: value})


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"a","id":"\xff"}',
        rb'{"type":"a","id":"\ud800"}',
        rb'{"type":"a","data":"\ud800"}',
        b'{"type":"a","data":"a\nb"}',
        b'{"type":"a","data":NaN}',
        b'{"type":"a","data":[1,]}',
        b'{"type":"a","data":}',
        b'{"type":"a"',
        b'{"type":"a"}x',
    ],
)
def test_what_is_no_json(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(body, type=Draft)


def test_the_payload_stays_the_publishers_bytes() -> None:
    body = b'{"type":"a","data":{"b": 1.10,\t"a":"\\u00e9\\/", "a" : 123456789012345678901234567890}}'
    data = msgspec.json.decode(body, type=Draft).data
    assert bytes(data) == body[len(b'{"type":"a","data":') : -1]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'{"a": 1}', b'{"a": 1}'),
        (b'{\n"a":\r\n1\r}', b'{ "a":  1 }'),
        (rb'"a\nb\r"', rb'"a\nb\r"'),
        (b"null", b"null"),
    ],
)
def test_a_single_line(data: bytes, line: bytes) -> None:
    assert bytes(single_line(Raw(data))) == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(JSON, st.sampled_from([None, 0, 2]), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_a_single_line_has_the_same_value(value: Any, indent: int | None, end: str, ascii_only: bool) -> None:
    # dumps escapes line breaks inside strings, so every raw one stands between tokens
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).replace("\n", end)
    line = bytes(single_line(Raw(data.encode())))
    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(line) == value


def event(**fields: Any) -> Event:
    envelope = Envelope(
        "1", "file.changed", "cursor", "w", "environment", "P2", ("t",), Raw(b'{"class":"no","id":5}'),
        subject="a.py", session="s", task="k", based_on=3, ext={"class": "no"},
    )  # fmt: skip
    body = msgspec.json.encode(envelope)
    given = {"subject": "a.py", "session": "s", "seq": 7, "accepted_us": 1000} | fields
    return Event(2, "1", "file.changed", "cursor", "w", "environment", body, **given)


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"replaced_ids": ("0", "x")},
        {"deliveries": (Delivery("t", 1000),)},
        {
            "deliveries": (
                Delivery("t", 1000, "ref", (("activity", ("debug*", "test")), ("x", ("y",)))),
                Delivery("u", 5),
                Delivery("v", 5, context=WantedContext(2048, True)),
            ),
            "replaced_ids": ("0",),
        },
    ],
)
def test_what_is_stored_comes_back(kept: dict[str, Any]) -> None:
    stored = event(**kept)
    extra = encode_extra(stored)
    assert (extra is None) == (not kept)
    assert restore_event(7, 2, 1000, extra, stored.body) == stored


def test_rows_from_before_there_was_context_can_be_read() -> None:
    body = msgspec.json.encode(Envelope("1", "a", "ci", "w", "tool", "P1", (), Raw(b"1")))
    older = b'[[["t",1000,"ref",[["activity",["debug*"]]]],["u",5]]]'
    assert restore_event(7, 1, 9, older, body).deliveries == (
        Delivery("t", 1000, "ref", (("activity", ("debug*",)),)),
        Delivery("u", 5),
    )


def test_an_event_about_nothing_comes_back() -> None:
    body = msgspec.json.encode(Envelope("1", "a", "s", "w", "tool", "P1", (), Raw(b"null")))
    restored = restore_event(1, 1, 5, None, body)
    assert restored == Event(1, "1", "a", "s", "w", "tool", body, seq=1, accepted_us=5)


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b'{"id":"1"', b'{"id":1}', b"\xff"])
def test_a_row_that_holds_no_event(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        restore_event(1, 0, 0, None, body)


def test_a_corrupt_event_keeps_its_place_and_shows_nothing() -> None:
    broken = corrupt_event(9, 2, 1000)
    assert (broken.seq, broken.lane, broken.accepted_us, broken.corrupt) == (9, 2, 1000, True)
    assert (broken.body, broken.deliveries, broken.subject) == (b"", (), None)
    assert not event().corrupt


@pytest.mark.parametrize(
    ("receipt", "wire"),
    [
        (
            Receipt("accepted", "1", 7, "ab12cd34"),
            {"status": "accepted", "id": "1", "seq": 7, "epoch": "ab12cd34"},
        ),
        (Receipt("deferred", "1"), {"status": "deferred", "id": "1"}),
        (
            Receipt("dropped", "1", reason="overloaded"),
            {"status": "dropped", "id": "1", "reason": "overloaded"},
        ),
        (
            Receipt("stale", "1", conflict=Conflict("a.py", 5, "ci", "2024-01-01T00:00:00.000Z")),
            {
                "status": "stale",
                "id": "1",
                "conflict": {"subject": "a.py", "seq": 5, "source": "ci", "time": "2024-01-01T00:00:00.000Z"},
            },
        ),
    ],
)
def test_receipts_on_the_wire(receipt: Receipt, wire: dict[str, Any]) -> None:
    assert json.loads(msgspec.json.encode(receipt)) == wire


def test_lanes_are_in_order_of_their_right_of_way() -> None:
    assert sorted(Lane) == [Lane.P0, Lane.P1, Lane.P2] == [0, 1, 2]
    assert LANE_NAMES == ("P0", "P1", "P2")


def test_the_hash_of_an_id_never_changes() -> None:
    """It is stored: another value would make old ids unknown. Computed with coreutils' b2sum -l 64."""
    assert id_hash("cursor", "1") == int.from_bytes(bytes.fromhex("820242fdb5aae75f"), "big", signed=True)
    assert id_hash("é", "\U0001f600") == int.from_bytes(bytes.fromhex("996cb263616e810b"), "big", signed=True)


def test_source_and_id_do_not_run_together() -> None:
    assert id_hash("ab", "c") != id_hash("a", "bc")


@given(st.text(), st.text())
def test_a_hash_fits_a_signed_column(source: str, event_id: str) -> None:
    assert -(2**63) <= id_hash(source, event_id) < 2**63
