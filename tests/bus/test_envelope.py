import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from herdr.bus.envelope import (
    OWN_TIMEOUT_MS,
    address,
    build_event,
    merge_tags,
    own_draft,
    redacted_body,
    wire_json,
)
from herdr.event import TAGS_MAX, Delivery, Draft, Event, Lane, restore_event

DELIVERIES = (Delivery("cursor", 5000, "summary"),)


def build(draft: Draft, lane: Lane = Lane.P1) -> Event:
    return build_event(draft, "ci", "7", "tool", ("x",), lane, DELIVERIES)


@pytest.mark.parametrize(
    ("own", "wanted", "result"),
    [
        ((), (), ()),
        ((), ("x", "y", "x"), ("x", "y")),
        (("failure",), (), ("failure",)),
        (("failure",), ("red", "failure"), ("failure", "red")),
        (("change", "failure"), ("x",), ("change", "failure", "x")),
    ],
)
def test_the_classifiers_tags_come_first_and_each_once(
    own: tuple[str, ...], wanted: tuple[str, ...], result: tuple[str, ...]
) -> None:
    assert merge_tags(own, wanted) == result


def test_none_of_the_publishers_tags_is_lost() -> None:
    tags = tuple(f"t{n}" for n in range(TAGS_MAX))
    assert merge_tags(("change", "failure"), tags) == ("change", "failure", *tags)


def test_the_body_holds_what_followers_see() -> None:
    draft = Draft(
        "tool.result",
        subject="s",
        workspace="w",
        session="x",
        task="t",
        time="2026-01-31T12:00:00Z",
        based_on=0,
        if_stale="reject",
        trace="00-1",
        data=Raw(b'{"a":1}'),
        ext={"n": 1},
    )
    event = build(draft, Lane.P2)
    assert json.loads(event.body) == {
        "id": "7",
        "type": "tool.result",
        "source": "ci",
        "workspace": "w",
        "class": "tool",
        "priority": "P2",
        "tags": ["x"],
        "data": {"a": 1},
        "subject": "s",
        "session": "x",
        "task": "t",
        "time": "2026-01-31T12:00:00Z",
        "based_on": 0,
        "if_stale": "reject",
        "trace": "00-1",
        "ext": {"n": 1},
    }
    assert (event.lane, event.deliveries, event.seq) == (Lane.P2, DELIVERIES, 0)


@given(
    st.builds(
        Draft,
        st.just("a.b"),
        subject=st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        session=st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        data=st.sampled_from([Raw(b"null"), Raw(b"[1,\r\n 2]"), Raw(b'{"type":"not.me","id":"no"}')]),
    )
)
def test_the_stored_body_restores_the_event(draft: Draft) -> None:
    event = build(draft)
    event.seq, event.accepted_us = 5, 6
    assert b"\n" not in event.body
    assert b"\r" not in event.body
    restored = restore_event(5, event.lane, 6, None, event.body)
    assert _fields(restored) == _fields(event)


def _fields(event: Event) -> tuple[Any, ...]:
    return (
        *(event.seq, event.lane, event.id, event.type, event.source, event.workspace, event.class_),
        *(event.body, event.subject, event.session, event.accepted_us),
    )


def test_the_gateways_fields_come_in_front_of_the_stored_ones() -> None:
    event = build(Draft("a"))
    event.seq, event.accepted_us = 41, 1_700_000_000_123_456
    shown = wire_json(event, "0123abcd")
    assert list(json.loads(shown))[:4] == ["seq", "epoch", "accepted", "id"]
    assert json.loads(shown)["seq"] == 41
    assert json.loads(shown)["accepted"] == "2023-11-14T22:13:20.123Z"
    assert shown.endswith(event.body[1:])
    event.accepted = "as the writer made it for the whole batch"
    assert json.loads(wire_json(event, "0123abcd"))["accepted"] == event.accepted


def test_the_gateways_own_events_are_drafts_like_any_other() -> None:
    draft = own_draft("conflict.detected", {"x": "ü"}, subject="s", workspace="w")
    assert (draft.type, draft.subject, draft.workspace) == ("conflict.detected", "s", "w")
    assert json.loads(bytes(draft.data)) == {"x": "ü"}


def test_addressed_targets_come_before_routed_ones_and_each_once() -> None:
    routed = (Delivery("a", 1, "ref"), Delivery("c", 2, "summary", (("x", ("y",)),)), Delivery("c", 3))
    assert address(("a", "b", "a"), routed) == (
        Delivery("a", OWN_TIMEOUT_MS),
        Delivery("b", OWN_TIMEOUT_MS),
        *routed[1:],
    )
    assert address((), ()) == ()


def test_a_redacted_body_keeps_only_what_filters_need() -> None:
    secret = "hunter2"
    draft = Draft(
        "user.message",
        subject=secret,
        session="s",
        task=secret,
        tags=(secret,),
        data=Raw(b'"hunter2"'),
        ext={"note": secret, secret: 1},
    )
    event = build_event(draft, "ci", "7", "user", (secret,), Lane.P0, DELIVERIES)
    body = redacted_body(event)
    assert secret.encode() not in body
    restored = restore_event(5, 0, 6, None, body)
    assert (restored.id, restored.type, restored.source, restored.session) == ("7", "user.message", "ci", "s")
    assert json.loads(body)["data"] == {"redacted": True}
    assert json.loads(body)["priority"] == "P0"
