"""The example files of `spec/` are what both sides of the wire are held to."""

import json
from datetime import UTC, datetime

import msgspec
import pytest

from herdr_sdk import Draft, Hub, Receipt
from herdr_sdk.event import Event, as_draft, encode_draft
from herdr_sdk.frames import (
    Acked,
    Busy,
    Bye,
    Declared,
    Events,
    Failure,
    Gap,
    Leased,
    Pong,
    Receipts,
    Renewed,
    Unlocked,
    Unwaited,
    ack_frame,
    attrs_frame,
    cancel_frame,
    decode_frame,
    follow_frame,
    lock_frame,
    publish_frame,
    renew_frame,
    unfollow_frame,
    unlock_frame,
    unwait_frame,
    wait_frame,
)

KINDS = {
    "receipts": Receipts, "events": Events, "gap": Gap, "ack": Acked, "busy": Busy, "bye": Bye, "pong": Pong,
    "error": Failure, "lock": Leased, "renew": Renewed, "unlock": Unlocked, "wait": Declared, "unwait": Unwaited,
}  # fmt: skip


def test_every_receipt_decodes_and_says_whether_it_is_stored(examples) -> None:
    receipts = {name: msgspec.convert(one, Receipt) for name, one in examples("receipts.json").items()}
    assert {name for name, receipt in receipts.items() if receipt.stored} == {
        "accepted", "accepted_with_conflict", "duplicate"
    }  # fmt: skip
    for name, one in examples("receipts.json").items():
        assert msgspec.to_builtins(receipts[name]) == one


def test_every_event_decodes_without_losing_a_field(examples) -> None:
    for name, one in examples("events.json").items():
        event = msgspec.convert(one, Event)
        kept = json.loads(msgspec.json.encode(event))
        assert kept == {k: v for k, v in one.items() if (k, v) not in _DEFAULTS}, name
        assert not event.synthetic


_DEFAULTS = [("tags", []), ("data", None)]


def test_every_draft_is_written_as_it_stands(examples) -> None:
    for name, one in examples("drafts.json").items():
        written = json.loads(encode_draft(as_draft(one)))
        assert written == {k: v for k, v in one.items() if (k, v) != ("data", None)}, name


def test_every_server_frame_decodes_to_its_kind(examples) -> None:
    frames = examples("server-frames.json")
    for name, one in frames.items():
        assert isinstance(decode_frame(json.dumps(one)), KINDS[one["op"]]), name
    assert {one["op"] for one in frames.values()} == set(KINDS)
    refused = decode_frame(json.dumps(frames["error_events"]))
    assert isinstance(refused, Failure)
    assert [(error.index, error.field) for error in refused.errors] == [(0, "type"), (3, "sujbect")]


def test_client_frames_are_written_as_they_stand(examples) -> None:
    frames = examples("client-frames.json")
    publish, ack, attrs = frames["publish"], frames["ack"], frames["attrs"]
    bodies = [encode_draft(as_draft(event)) for event in publish["events"]]
    assert json.loads(publish_frame(publish["ref"], bodies)) == publish
    assert json.loads(ack_frame(ack["ref"], ack["cursor"])) == ack
    assert json.loads(unfollow_frame(frames["unfollow"]["ref"])) == frames["unfollow"]
    assert json.loads(attrs_frame(attrs["attrs"])) == attrs
    for name in ("follow_everything_new", "follow_every_field", "follow_after_seq"):
        query = {k: v for k, v in frames[name].items() if k not in ("op", "ref")}
        assert json.loads(follow_frame(frames[name]["ref"], query)) == frames[name]


def test_frames_about_locks_are_written_as_they_stand(examples) -> None:
    written = {
        "lock": lambda one, rest: lock_frame(one["ref"], rest),
        "renew": lambda one, rest: renew_frame(one["ref"], **rest),
        "wait": lambda one, rest: wait_frame(one["ref"], rest),
        "unwait": lambda one, rest: unwait_frame(one["ref"], rest["wait"]),
        "unlock": lambda one, rest: (
            cancel_frame(one["ref"], rest["cancel"]) if "cancel" in rest else unlock_frame(one["ref"], **rest)
        ),
    }
    frames = [one for one in examples("client-frames.json").values() if one["op"] in written]
    for one in frames:
        rest = {name: value for name, value in one.items() if name not in ("op", "ref")}
        assert json.loads(written[one["op"]](one, rest)) == one
    assert {one["op"] for one in frames} == set(written)


async def test_the_hub_sends_the_example_follow(faulty, examples) -> None:
    wanted = examples("client-frames.json")["follow_every_field"]
    async with Hub() as hub:
        names = {"class": "class_", "as": "as_"}
        arguments = {names.get(k, k): v for k, v in wanted.items() if k not in ("op", "ref")}
        faulty.epoch = wanted["after"].split(":")[0]
        async with hub.follow(**{**arguments, "after": faulty.cursor(0)}):
            pass
    [sent] = faulty.of("follow")
    assert {**sent, "ref": 3, "after": wanted["after"]} == wanted


@pytest.mark.parametrize("name", ["field_unknown", "seq_set_by_publisher"])
def test_unknown_fields_do_not_get_as_far_as_the_gateway(examples, name) -> None:
    with pytest.raises(Exception, match=examples("drafts-refused.json")[name]["field"]):
        as_draft(examples("drafts-refused.json")[name]["draft"])


def test_a_frame_of_a_later_version_is_ignored_and_a_broken_one_reported() -> None:
    assert decode_frame('{"op":"handoff","ref":3}') is None
    broken = decode_frame('{"op":"events","ref":3,"events":5,"cursor":"x"}')
    assert isinstance(broken, Failure)
    assert (broken.ref, broken.code) == (3, "bad_frame")
    with pytest.raises(msgspec.DecodeError):
        decode_frame("[]")


def test_a_draft_with_a_datetime_is_written_as_rfc_3339() -> None:
    written = json.loads(encode_draft(Draft("tool.result", time=datetime(2026, 3, 2, 9, 15, 4, tzinfo=UTC))))
    assert written["time"] == "2026-03-02T09:15:04Z"
