import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from herdr.bus.cursor import parse_cursor
from herdr.bus.envelope import build_event
from herdr.bus.follow import Gap
from herdr.bus.page import Item, Page
from herdr.event import Delivery, Draft, Event, Lane, Positions, corrupt_event, restore_event
from herdr.web.sse import (
    event_json,
    gap_block,
    keep_alive,
    page_block,
    start_block,
    synthetic_block,
)
from herdr_sdk.sse import SSEEvent, SSEParser

EPOCH = "0123abcd"
AT = 1_700_000_000_123_456

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab\r\n\u2028:", max_size=4), inner),
    max_leaves=8,
)
SPACED = st.sampled_from(
    [(",", ":"), (", ", ": "), (",\n", ":\r"), ("\r\n,", "\n\n:"), (" ,\t", ":\r\n\r\n")]
)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


def make_event(seq: int = 7, data: bytes = b'{"a":1}', **fields: Any) -> Event:
    draft = msgspec.convert({"type": "tool.result", **fields}, Draft)
    draft.data = Raw(data)
    event = build_event(draft, "ci", f"id-{seq}", "tool", ("t",), Lane.P1, ())
    event.seq, event.accepted_us = seq, AT
    return event


def read(*blocks: bytes) -> list[SSEEvent]:
    return SSEParser().feed(b"".join(blocks))


def page_of(*events: Event, form: str = "full") -> Page:
    delivery = msgspec.convert(["t", 1000, form], Delivery)
    items = [Item(event, (event.seq, event.seq, event.seq), delivery) for event in events]
    return Page(items, items[-1].after if items else (0, 0, 0), True)


def test_a_full_event_has_every_field() -> None:
    event = make_event(subject="a.py", session="s", based_on=3)
    assert json.loads(event_json(event, EPOCH)) == {
        "seq": 7,
        "epoch": EPOCH,
        "accepted": "2023-11-14T22:13:20.123Z",
        "id": "id-7",
        "type": "tool.result",
        "source": "ci",
        "workspace": "default",
        "class": "tool",
        "priority": "P1",
        "tags": ["t"],
        "data": {"a": 1},
        "subject": "a.py",
        "session": "s",
        "based_on": 3,
    }


def test_a_summary_has_everything_but_the_payload() -> None:
    full = json.loads(event_json(make_event(subject="a.py"), EPOCH))
    del full["data"]
    assert json.loads(event_json(make_event(subject="a.py"), EPOCH, "summary")) == {
        **full,
        "data_bytes": len(b'{"a":1}'),
        "ref": "/v1/events/7",
    }


def test_a_ref_has_hardly_anything() -> None:
    assert json.loads(event_json(make_event(), EPOCH, "ref")) == {
        "seq": 7,
        "type": "tool.result",
        "ref": "/v1/events/7",
    }
    assert json.loads(event_json(make_event(subject="a"), EPOCH, "ref"))["subject"] == "a"


@pytest.mark.parametrize("form", ["full", "summary", "ref"])
def test_a_corrupt_event_shows_no_payload_in_any_form(form: str) -> None:
    shown = json.loads(event_json(corrupt_event(9, 1, AT), EPOCH, form))
    assert (shown["seq"], shown["type"]) == (9, "herdr.corrupt")
    assert "checksum" in shown["detail"]
    assert "data" not in shown


@pytest.mark.parametrize("form", ["full", "summary", "ref"])
def test_context_stands_beside_the_event_in_every_form(form: str) -> None:
    event = make_event(subject="a.py", session="s")
    (plain,) = page_of(event, form=form).items
    said = {"graph": {"text": "def f():\n  \u2028", "ref": "r"}}
    with_context = plain._replace(context=msgspec.json.encode(said))
    shown = json.loads(event_json(event, EPOCH, form))
    assert "context" not in shown
    assert json.loads(event_json(event, EPOCH, form, with_context.context)) == {**shown, "context": said}
    (block,) = read(page_block(Page([with_context], (1, 1, 1), True), EPOCH))
    assert json.loads(block.data) == {**shown, "context": said}


@given(JSON_VALUES, SPACED, st.sampled_from(["full", "summary", "ref"]))
def test_no_payload_breaks_its_frame(value: Any, spaced: tuple[str, str], form: str) -> None:
    payload = json.dumps(value, separators=spaced, ensure_ascii=False).encode()
    event = make_event(data=payload)
    stored = restore_event(event.seq, event.lane, AT, None, event.body)
    block = page_block(page_of(event, stored, form=form), EPOCH)
    first, second = read(block)
    assert first == second
    assert (first.event, first.id) == ("tool.result", f"{EPOCH}:7-7-7")
    shown = json.loads(first.data)
    assert shown["seq"] == 7
    if form == "full":
        assert shown["data"] == value
    if form == "summary":
        assert shown["data_bytes"] == len(payload)


@given(NAMES, NAMES, st.text("/\u2028\x85é", min_size=1, max_size=20))
def test_no_name_breaks_its_frame(source: str, session: str, subject: str) -> None:
    draft = Draft("a", subject=subject, session=session, ext={"x\r\n": "\n\ndata: y"})
    event = build_event(draft, source, "\u2028", "tool", (), Lane.P2, ())
    event.seq = 1
    (got,) = read(page_block(page_of(event), EPOCH))
    shown = json.loads(got.data)
    assert (shown["source"], shown["session"], shown["subject"]) == (source, session, subject)
    assert shown["ext"] == {"x\r\n": "\n\ndata: y"}


def test_each_event_carries_the_place_after_it() -> None:
    places: list[Positions] = [(3, 1, 1), (4, 4, 1), (6, 6, 6)]
    items = [Item(make_event(seq), place, None) for seq, place in zip((3, 4, 6), places, strict=True)]
    got = read(page_block(Page(items, (9, 9, 9), True), EPOCH))
    assert [parse_cursor(event.id) for event in got] == [(EPOCH, place) for place in places]
    assert [json.loads(event.data)["seq"] for event in got] == [3, 4, 6]


def test_a_page_is_encoded_once() -> None:
    page = page_of(make_event())
    assert page_block(page, EPOCH) is page_block(page, EPOCH)


def test_an_empty_page_is_nothing() -> None:
    assert page_block(Page([], (0, 0, 0), True), EPOCH) == b""


def test_the_start_and_keep_alives_dispatch_nothing_but_move_the_place() -> None:
    parser = SSEParser()
    assert parser.feed(start_block(EPOCH, (1, 2, 3), 2500)) == []
    assert (parser.last_event_id, parser.retry_ms) == (f"{EPOCH}:1-2-3", 2500)
    assert parser.feed(keep_alive(EPOCH, (4, 5, 6))) == []
    assert parser.last_event_id == f"{EPOCH}:4-5-6"


def test_a_gap_says_what_is_missing_and_moves_the_place() -> None:
    (got,) = read(gap_block(Gap("retention", 3, 9, (9, 9, 9)), EPOCH))
    assert (got.event, got.id) == ("herdr.gap", f"{EPOCH}:9-9-9")
    assert json.loads(got.data) == {"reason": "retention", "from": 3, "to": 9}


def test_a_synthetic_event_moves_nothing() -> None:
    block = synthetic_block("herdr.bye", {"retry_ms": 5, "text": "\r\n\n"})
    assert b"id:" not in block
    (got,) = read(start_block(EPOCH, (1, 2, 3), 1), block)
    assert (got.event, got.id) == ("herdr.bye", f"{EPOCH}:1-2-3")
    assert json.loads(got.data) == {"retry_ms": 5, "text": "\r\n\n"}
