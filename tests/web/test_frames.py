import json

import msgspec
import pytest

from herdr.errors import InvalidInput
from herdr.web.drafts import ERRORS_SHOWN_MAX, EVENTS_MAX
from herdr.web.frames import Attrs, BadFrame, Follow, Ping, Publish, from_msgpack, parse_frame
from herdr.web.query import QUERY_MAX

DATA_MAX = 1000


def refused(data: bytes, *, packed: bool = False) -> BadFrame:
    with pytest.raises(BadFrame) as caught:
        parse_frame(from_msgpack(data) if packed else data, DATA_MAX)
    return caught.value


def publish(events: bytes) -> bytes:
    return b'{"op":"publish","ref":"r","events":%s}' % events


def test_frames_are_read() -> None:
    frame = parse_frame(publish(b'[{"type":"a"},{"type":"b","data":{"x":[]}}]'), DATA_MAX)
    assert isinstance(frame, Publish) and [draft.type for draft in frame.events] == ["a", "b"]
    assert parse_frame(b'{"op":"ping"}', DATA_MAX) == Ping()
    assert parse_frame(b'{"op":"attrs","attrs":{"a":"b"}}', DATA_MAX) == Attrs({"a": "b"})
    assert parse_frame(b' {"op":"follow","ref":1,"type":["a",null]}', DATA_MAX) == Follow(
        1, {"type": ["a", None]}
    )


def test_a_thousand_events_are_taken_in_both_forms() -> None:
    events = [{"type": "a", "data": {"b": {}}}] * EVENTS_MAX
    for frame in (
        parse_frame(publish(json.dumps(events).encode()), DATA_MAX),
        parse_frame(
            from_msgpack(msgspec.msgpack.encode({"op": "publish", "ref": 1, "events": events})), DATA_MAX
        ),
    ):
        assert isinstance(frame, Publish) and len(frame.events) == EVENTS_MAX


@pytest.mark.parametrize("event", [{}, 1, {"type": "a"}], ids=str)
def test_too_many_events_are_refused_before_any_is_decoded(event: object) -> None:
    """The first of them is wrong as well: whoever had decoded it would say so."""
    frame = {"op": "publish", "ref": "r", "events": [event] * (EVENTS_MAX + 1)}
    for bad in (refused(json.dumps(frame).encode()), refused(msgspec.msgpack.encode(frame), packed=True)):
        assert (bad.error.code, bad.ref) == ("too_many_events", "r")


def test_mistakes_are_listed_up_to_a_number() -> None:
    bad = refused(publish(b"[%s]" % b",".join([b'{"type":"a"}', *[b"{}"] * 100])))
    assert isinstance(bad.error, InvalidInput)
    errors = bad.error.errors
    assert [error.index for error in errors] == list(range(1, ERRORS_SHOWN_MAX + 1))


def test_a_payload_that_is_too_large_is_not_looked_at() -> None:
    bad = refused(publish(b'[{"type":"a","data":[1e999,"%s"]}]' % (b"x" * DATA_MAX)))
    assert (bad.error.code, bad.ref) == ("too_large", "r")


@pytest.mark.parametrize(
    "value", ["1e999", "[" * 8000 + "]" * 8000, '"\\ud800"'], ids=["range", "deep", "half"]
)
def test_what_no_decoder_takes_is_not_json(value: str) -> None:
    assert refused(b'{"op":"follow","ref":1,"type":%s}' % value.encode()).error.code == "bad_frame"
    assert refused(b'{"op":%s,"ref":1}' % value.encode()).error.code == "bad_frame"


def test_a_follow_has_the_bound_of_a_query() -> None:
    frame = {"op": "follow", "ref": 1, "type": "a" * (QUERY_MAX - 100)}
    assert isinstance(parse_frame(json.dumps(frame).encode(), DATA_MAX), Follow)
    frame["type"] = "a" * QUERY_MAX
    bad = refused(json.dumps(frame).encode())
    assert (bad.error.code, bad.ref) == ("bad_filter", 1)


@pytest.mark.parametrize("frame", [b"[]", b"1", b'"x"', b"null", b" [{}]"])
def test_a_frame_is_an_object(frame: bytes) -> None:
    bad = refused(frame)
    assert (bad.error.code, bad.ref) == ("bad_frame", None)
    assert bad.error.detail == "a frame is a JSON object with an `op`"
