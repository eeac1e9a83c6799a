import json
import string
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from herdr.bus.envelope import build_event
from herdr.event import Draft, Event, Lane
from herdr.web.live_tail import BODY_SHOWN_MAX, EVENTS_A_BEAT, RECENT, LiveTail

EPOCH = "0123abcd"


def make_event(seq: int, lane: Lane = Lane.P1, data: Any = None, **fields: Any) -> Event:
    draft = msgspec.convert({"type": "tool.result", **fields}, Draft)
    draft.data = Raw(json.dumps(data).encode())
    event = build_event(draft, "ci", f"id-{seq}", "tool", (), lane, ())
    event.seq, event.accepted_us = seq, 1_700_000_000_000_000 + seq
    return event


def told(tail: LiveTail) -> tuple[list[dict[str, Any]], int]:
    text, came = tail.take()
    said = json.loads(text)
    assert len(said["events"]) + said["skipped"] == came
    return said["events"], said["skipped"]


def seqs(events: list[dict[str, Any]]) -> list[int]:
    return [event["seq"] for event in events]


def test_what_is_little_is_shown_whole_and_once() -> None:
    tail = LiveTail(EPOCH)
    tail.add([make_event(1, data={"a": 1}), make_event(2)])
    tail.add([make_event(3)])
    events, skipped = told(tail)
    assert (seqs(events), skipped) == ([1, 2, 3], 0)
    assert (events[0]["data"], events[0]["epoch"], events[0]["source"]) == ({"a": 1}, EPOCH, "ci")
    assert told(tail) == ([], 0)


@given(st.lists(st.lists(st.sampled_from([Lane.P0, Lane.P1, Lane.P2]), max_size=80), max_size=6))
def test_a_storm_leaves_p0_first_then_the_newest_and_every_event_is_counted(lanes: list[list[Lane]]) -> None:
    tail, came = LiveTail(EPOCH), 0
    urgent: list[int] = []
    others: list[int] = []
    for batch in lanes:
        events = [make_event(came + index + 1, lane) for index, lane in enumerate(batch)]
        came += len(batch)
        tail.add(events)
        for event in events:
            (urgent if event.lane == Lane.P0 else others).append(event.seq)
    expected = urgent[:EVENTS_A_BEAT]
    room = EVENTS_A_BEAT - len(expected)
    expected += others[max(0, len(others) - room) :] if room else []
    events_shown, skipped = told(tail)
    assert seqs(events_shown) == sorted(expected)
    assert skipped == came - len(expected)


def test_what_nobody_looked_at_is_not_told_later() -> None:
    tail = LiveTail(EPOCH)
    tail.add([make_event(1, Lane.P0), make_event(2)])
    tail.drop()
    tail.add([make_event(3)])
    events, skipped = told(tail)
    assert (seqs(events), skipped, seqs(json.loads(tail.recent()))) == ([3], 0, [1, 2, 3])


def test_of_a_large_event_only_the_outline_is_shown_and_held() -> None:
    tail = LiveTail(EPOCH)
    large = make_event(5, data="x" * 1_000_000, subject="a.py", ext={"much": "y" * 30_000})
    tail.add([large])
    for event in (*told(tail)[0], *json.loads(tail.recent())):
        assert "data" not in event and "ext" not in event
        assert (event["data_bytes"], event["ref"]) == (1_000_002, "/v1/events/5")
        assert (event["seq"], event["type"], event["subject"], event["priority"]) == (
            *(5, "tool.result", "a.py", "P1"),
        )
    assert len(tail.recent()) < BODY_SHOWN_MAX
    tail.add([make_event(seq, data="x" * 100_000) for seq in range(6, 6 + RECENT)])
    held = [kept.event.body for kept in (*tail._recent, *tail._others)]
    assert held == [b""] * (RECENT + EVENTS_A_BEAT)


def test_an_event_of_a_large_extension_is_outlined_too() -> None:
    tail = LiveTail(EPOCH)
    tail.add([make_event(1, data="small", ext={"much": "y" * 30_000})])
    ((event,), _) = told(tail)
    assert (event["data_bytes"], event["ref"]) == (7, "/v1/events/1")


def test_a_new_stream_begins_with_the_newest() -> None:
    tail = LiveTail(EPOCH)
    for first in range(1, 400, 40):
        tail.add([make_event(seq) for seq in range(first, first + 40)])
    assert seqs(json.loads(tail.recent())) == list(range(301, 401))


def test_a_redacted_event_is_shown_no_more() -> None:
    tail = LiveTail(EPOCH)
    secret = {"password": string.ascii_letters}
    tail.add([make_event(seq, lane, secret, subject="hush") for seq, lane in ((1, Lane.P0), (2, Lane.P1))])
    tail.add([make_event(3, data="open"), make_event(4, data="x" * 9000 + string.ascii_letters)])
    for seq in (1, 2, 4):
        tail.add([make_event(seq + 10, data={"seq": seq, "type": "tool.result"}, type="herdr.redacted")])
    recent = json.loads(tail.recent())
    for events in (recent, told(tail)[0]):
        by_seq = {event["seq"]: event for event in events}
        assert len(by_seq) == 7 and by_seq[3]["data"] == "open"
        for seq in (1, 2, 4):
            assert by_seq[seq]["data"] == {"redacted": True} and "subject" not in by_seq[seq]
            assert by_seq[seq]["source"] == "ci" and by_seq[seq]["accepted"]
        assert string.ascii_letters not in json.dumps(events)
