"""The gateway's side of spec/examples: what the documents show is what the gateway takes and says.

The SDK's tests read the same files, so the two cannot drift apart unseen.
"""

import json
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from herdr.bus.follow import Gap
from herdr.bus.page import Item, Page, arrange, page_end
from herdr.errors import InvalidInput
from herdr.event import Envelope, Event, Receipt, restore_event
from herdr.tasks.fold import after, begin
from herdr.tasks.task import New, Step
from herdr.tasks.views import task_view
from herdr.web.drafts import parse_body
from herdr.web.frames import Follow, parse_frame
from herdr.web.lock_routes import lock_endpoints
from herdr.web.problems import Problem
from herdr.web.query import parse_fields
from herdr.web.sse import event_json, gap_block, keep_alive, page_block, start_block, synthetic_block
from herdr.web.task_routes import task_endpoints

EXAMPLES = Path(__file__).parent.parent.parent / "spec" / "examples"
DATA_MAX = 1024 * 1024


def examples(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text())
    assert found
    return found


def each(name: str) -> list[Any]:
    return [pytest.param(value, id=key) for key, value in examples(name).items()]


@pytest.mark.parametrize("draft", each("drafts"))
def test_a_draft_is_taken(draft: dict[str, Any]) -> None:
    (taken,), single = parse_body(json.dumps(draft).encode(), DATA_MAX)
    assert single
    kept = json.loads(msgspec.json.encode(taken))
    assert {name: kept.get(name) for name in draft} == draft


@pytest.mark.parametrize("example", each("drafts-refused"))
def test_a_wrong_draft_is_refused_with_its_field(example: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_body(json.dumps(example["draft"]).encode(), DATA_MAX)
    assert example["field"] in [error.field.partition("[")[0] for error in refused.value.errors]


def stored(envelope: dict[str, Any]) -> Event:
    """Return the event that the envelope shows, as it comes out of the log."""
    fields = {k: v for k, v in envelope.items() if k not in ("seq", "epoch", "accepted")}
    body = msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(fields), type=Envelope))
    return restore_event(
        envelope["seq"], ("P0", "P1", "P2").index(envelope["priority"]), _us(envelope), None, body
    )


def _us(envelope: dict[str, Any]) -> int:
    return round(msgspec.convert(envelope["accepted"], type=datetime).timestamp() * 1_000_000)


def whole(name: str) -> list[Any]:
    return [pytest.param(e, id=k) for k, e in examples(name).items() if "data" in e and "priority" in e]


@pytest.mark.parametrize("envelope", whole("events"))
def test_an_event_looks_as_shown(envelope: dict[str, Any]) -> None:
    shown = json.loads(event_json(stored(envelope), envelope["epoch"]))
    assert shown == envelope
    assert list(shown)[:3] == ["seq", "epoch", "accepted"]


@pytest.mark.parametrize("name", ["format_ref", "format_ref_with_context"])
def test_an_event_in_short_looks_as_shown(name: str) -> None:
    shown = examples("events")[name]
    event = stored(examples("events")["every_field"])
    beside = json.dumps(shown["context"]).encode() if "context" in shown else None
    assert json.loads(event_json(event, "9f3c21ab", "ref", beside)) == shown


@pytest.mark.parametrize("receipt", each("receipts"))
def test_a_receipt_looks_as_shown(receipt: dict[str, Any]) -> None:
    assert msgspec.to_builtins(msgspec.convert(receipt, Receipt, strict=True)) == receipt


@pytest.mark.parametrize("frame", each("client-frames"))
def test_a_client_frame_is_taken(frame: dict[str, Any]) -> None:
    parsed = parse_frame(json.dumps(frame).encode(), DATA_MAX)
    if isinstance(parsed, Follow):
        query = parse_fields(parsed.fields)
        assert query.after == frame.get("after")
        assert query.selection.target == frame.get("as")
    else:
        taken = msgspec.json.decode(msgspec.json.encode(parsed))
        assert {name: taken.get(name) for name in frame if name != "events"} == {
            name: value for name, value in frame.items() if name != "events"
        }


@pytest.mark.parametrize("kind", ["requests", "answers"])
def test_locks_are_asked_for_and_shown_as_described(kind: str) -> None:
    listed = lock_endpoints(MagicMock(), MagicMock(), MagicMock())
    types = {f"{e.method} {e.path}": e.request if kind == "requests" else e.response for e in listed}
    shown = examples("locks")[kind]
    assert set(shown) == {name for name, type_ in types.items() if type_ is not None}
    for name, value in shown.items():
        taken = msgspec.json.decode(json.dumps(value).encode(), type=types[name])
        again = msgspec.json.decode(msgspec.json.encode(taken))
        assert {field: again[field] for field in value} == value
        assert kind == "requests" or set(again) == set(value)


@pytest.mark.parametrize("kind", ["requests", "answers"])
def test_tasks_are_told_of_and_shown_as_described(kind: str) -> None:
    listed = task_endpoints(MagicMock(), MagicMock())
    types = {f"{e.method} {e.path}": e.request if kind == "requests" else e.response for e in listed}
    shown = examples("tasks")[kind]
    assert set(shown) == {name for name, type_ in types.items() if type_ is not None}
    for name, value in shown.items():
        taken = msgspec.json.decode(json.dumps(value).encode(), type=types[name])
        again = msgspec.json.decode(msgspec.json.encode(taken))
        assert {field: again[field] for field in value} == value
        assert kind == "requests" or set(again) == set(value)


def test_a_task_looks_as_shown() -> None:
    """What the fold makes of the steps is what stands beside them."""
    for shown in examples("tasks")["answers"].values():
        if isinstance(steps := shown.get("steps"), list):
            assert steps[-1]["state"] == shown["state"] and steps[-1]["role"] == shown["role"]
            whole = [
                msgspec.convert({**step, "what": step["type"][8:], "at_us": _at(step)}, Step)
                for step in steps
            ]
            text = [
                next((step[n] for n in ("question", "answer", "reason") if n in step), None) for step in steps
            ]
            whole = [msgspec.structs.replace(step, text=said) for step, said in zip(whole, text, strict=True)]
            new = New(**{n: shown[n] for n in NEW}, role=whole[0].role, by=whole[0].by, note=whole[0].note)
            task = reduce(after, whole[1:], begin(new, whole[0]))
            expires = None if shown["expires"] is None else _us({"accepted": shown["expires"]})
            assert json.loads(msgspec.json.encode(task_view(task, expires))) == shown


NEW = ("task", "title", "description", "workspace", "session")


def _at(step: dict[str, Any]) -> int:
    return _us({"accepted": step["time"]})


def test_frames_about_locks_say_what_http_says() -> None:
    frames, answers = examples("server-frames"), examples("locks")["answers"]
    for op, name in (
        ("lock", "POST /v1/locks"),
        ("renew", "PUT /v1/locks/{lock}"),
        ("wait", "POST /v1/waits"),
    ):
        assert frames[op] == {"op": op, "ref": frames[op]["ref"], **answers[name]}


@pytest.mark.parametrize("problem", each("problems"))
def test_a_problem_has_the_fields_shown(problem: dict[str, Any]) -> None:
    convert = msgspec.convert(problem, Problem, strict=True)
    assert msgspec.to_builtins(convert) == problem
    assert convert.type == f"urn:herdr:problem:{convert.code}"


def test_a_stream_looks_as_shown_byte_for_byte() -> None:
    """Rebuild the shown transcript from its own parts: the events' order, ids and framing are the gateway's."""
    transcript = (EXAMPLES / "sse-follow.txt").read_bytes()
    blocks = [block + b"\n\n" for block in transcript.split(b"\n\n") if block]
    envelopes = [json.loads(line[6:]) for line in transcript.split(b"\n") if line.startswith(b'data: {"seq"')]
    epoch = envelopes[0]["epoch"]
    assert blocks[0] == start_block(epoch, (40, 40, 40), 2143)
    first = [e for e in envelopes if e["seq"] in (41, 42, 43)]
    events = sorted((stored(e) for e in first), key=lambda event: event.seq)
    items = [Item(event, after, None) for event, after in arrange(events, (40, 40, 40), reached_head=True)]
    page = Page(items, page_end(events, (40, 40, 40)), reached_head=True)
    built = page_block(page, epoch)
    assert transcript.startswith(blocks[0] + built)
    assert keep_alive(epoch, (1, 2, 3)) == f": keep-alive\nid: {epoch}:1-2-3\n\n".encode()
    assert synthetic_block("herdr.bye", {"retry_ms": 1}) == b'event: herdr.bye\ndata: {"retry_ms":1}\n\n'
    gap = gap_block(Gap("retention", 1, 9, (9, 9, 9)), epoch)
    assert gap.startswith(f"id: {epoch}:9-9-9\nevent: herdr.gap\ndata: ".encode())
