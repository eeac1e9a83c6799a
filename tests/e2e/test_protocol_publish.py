"""PROTOCOL section 1, publishing: fields, receipts and their statuses, duplicates, debounce, staleness."""

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from wire import (
    Stream,
    accept,
    all_events,
    call,
    health,
    page,
    post,
    publish,
    put_route,
    wait_until,
)

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def test_a_minimal_event_gets_the_gateway_s_fields(gateway: GatewayProcess) -> None:
    answer = post(gateway, {"type": "tool.result"})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    receipt = answer.json()
    assert set(receipt) == {"status", "id", "seq", "epoch"} and receipt["status"] == "accepted"
    (event,) = all_events(gateway)
    assert event["seq"] == receipt["seq"] == 1
    assert re.fullmatch("[0-9a-f]{8}", event["epoch"]) and event["epoch"] == receipt["epoch"]
    assert ULID.fullmatch(event["id"]) and event["id"] == receipt["id"]
    assert TIME.fullmatch(event["accepted"])
    assert event["workspace"] == "default" and event["source"] and event["data"] is None


def test_every_field_of_a_publisher_comes_back(gateway: GatewayProcess) -> None:
    sent = {
        "type": "test.failed", "id": "run-1/ä", "source": "ci", "subject": "src/a [1].py", "workspace": "shop",
        "session": "s-1", "task": "t-1", "time": "2026-01-31T12:00:00.5+02:00", "priority": "P0",
        "tags": ["slow", "nightly"], "based_on": 0, "if_stale": "notify",
        "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "data": {"n": [1, 2.50, None, True, "\u2028"]},
    }  # fmt: skip
    accept(gateway, **sent)
    (event,) = all_events(gateway)
    tags = event.pop("tags")
    assert {key: event[key] for key in sent if key != "tags"} == {
        k: v for k, v in sent.items() if k != "tags"
    }
    assert set(sent["tags"]) <= set(tags)  # type: ignore[call-overload]
    assert event["class"] == "environment"


CLASSES = [
    ("user.message", "user", "P0"), ("assistant.message", "tool", "P1"), ("tool.result", "tool", "P1"),
    ("test.failed", "environment", "P1"), ("lint.error", "environment", "P1"), ("git.commit", "environment", "P1"),
    ("files.changed", "environment", "P2"), ("index.updated", "environment", "P2"), ("x", "tool", "P1"),
]  # fmt: skip


def test_class_and_priority_come_from_the_type(gateway: GatewayProcess) -> None:
    publish(gateway, *({"type": type_} for type_, _, _ in CLASSES))
    found = {(e["type"], e["class"], e["priority"]) for e in all_events(gateway)}
    assert found == set(CLASSES)


def test_a_wish_counts_only_where_no_rule_speaks(gateway: GatewayProcess) -> None:
    put_route(gateway, "quiet", event="tool.*", target="a", priority="P2")
    put_route(gateway, "louder", event="tool.result", target="b", priority="P1")
    publish(gateway, {"type": "tool.result", "priority": "P0"}, {"type": "other.thing", "priority": "P2"})
    assert [event["priority"] for event in all_events(gateway)] == ["P1", "P2"]


def test_data_keeps_its_bytes_but_for_line_breaks_between_tokens(gateway: GatewayProcess) -> None:
    body = b'{"type": "tool.result", "data": {"a" : 1.50,\n  "b":\t[1e2,\r\n"\\u00e4\\n"]}}'
    assert post(gateway, body).status == 200
    raw = call(gateway, "GET", "/v1/events/1").body
    assert b'"data":{"a" : 1.50,   "b":\t[1e2,  "\\u00e4\\n"]}' in raw
    with Stream(gateway, "after=0") as stream:
        assert stream.next().json()["data"] == {"a": 1.5, "b": [100.0, "ä\n"]}


def test_an_array_is_answered_in_order(gateway: GatewayProcess) -> None:
    answer = post(gateway, [{"type": "tool.result", "id": str(n)} for n in range(1000)])
    assert answer.status == 200
    assert [r["id"] for r in answer.json()["results"]] == [str(n) for n in range(1000)]
    seqs = [r["seq"] for r in answer.json()["results"]]
    assert seqs == sorted(seqs) and len(all_events(gateway)) == 1000
    assert post(gateway, []).json() == {"results": []}


def test_ndjson_with_blank_lines_and_crlf(gateway: GatewayProcess) -> None:
    body = b'\n{"type": "tool.result", "id": "a"}\r\n\n{"type": "tool.result", "id": "b"}'
    answer = post(gateway, body, content_type="application/x-ndjson; charset=utf-8")
    assert [r["id"] for r in answer.json()["results"]] == ["a", "b"]


def test_the_same_id_is_one_event_per_source_over_restarts_and_crashes(tmp_path: Path) -> None:
    event = {"type": "tool.result", "source": "ci", "id": "run-1", "data": 1}
    with running_gateway(tmp_path / "data") as gateway:
        first = post(gateway, event).json()
        again = post(gateway, {**event, "data": 2})
        assert again.status == 200
        assert again.json() == {**first, "status": "duplicate"}
        assert post(gateway, {**event, "source": "other"}).json()["status"] == "accepted"
        in_one = publish(gateway, *[{"type": "tool.result", "id": "same"}] * 3)
        assert [r["status"] for r in in_one] == ["accepted", "duplicate", "duplicate"]
        assert len({r["seq"] for r in in_one}) == 1
        assert gateway.stop() == 0
    for _ in range(2):
        with running_gateway(tmp_path / "data") as gateway:
            assert post(gateway, event).json() == {**first, "status": "duplicate"}
            gateway.kill()
    with running_gateway(tmp_path / "data") as gateway:
        assert len(all_events(gateway)) == 3


def save(gateway: GatewayProcess, n: int, **more: Any) -> dict[str, Any]:
    event = {
        "type": "file.changed",
        "source": "editor",
        "subject": "a.py",
        "id": f"save-{n}",
        "data": n,
        **more,
    }
    answer = post(gateway, event)
    assert (answer.status, answer.json()) == (202, {"status": "deferred", "id": f"save-{n}"})
    return event


def test_of_many_saves_the_last_one_wins_and_the_replaced_are_duplicates(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway, Stream(gateway) as stream:
        stream.start()
        events = [save(gateway, n) for n in range(4)]
        save(gateway, 9, subject="b.py")
        publish(gateway, {"type": "tool.result", "id": "between"})
        got = stream.take(3)
        assert [event["id"] for event in got] == ["between", "save-3", "save-9"]
        known = [post(gateway, event).json() for event in events]
        assert {(r["status"], r["seq"]) for r in known} == {("duplicate", got[1]["seq"])}
        assert gateway.stop() == 0
    with running_gateway(tmp_path / "data") as gateway:
        known = [post(gateway, event).json() for event in events]
        assert {(r["status"], r["seq"]) for r in known} == {("duplicate", got[1]["seq"])}
        assert len(all_events(gateway)) == 3


def test_a_window_closes_although_saves_go_on(tmp_path: Path) -> None:
    env = {"HERDR_GATEWAY_BUS__DEBOUNCE_MS": "400", "HERDR_GATEWAY_BUS__DEBOUNCE_MAX_MS": "900"}
    with running_gateway(tmp_path / "data", env=env) as gateway:
        numbers = iter(range(10_000))

        def saved() -> list[dict[str, Any]]:
            save(gateway, next(numbers))  # every 20 ms or so: never 400 ms of quiet
            return all_events(gateway)

        wait_until(saved, "the window to close")


def test_a_clean_stop_commits_what_is_held(tmp_path: Path) -> None:
    env = {"HERDR_GATEWAY_BUS__DEBOUNCE_MS": "60000", "HERDR_GATEWAY_BUS__DEBOUNCE_MAX_MS": "60000"}
    with running_gateway(tmp_path / "data", env=env) as gateway:
        for n in range(3):
            save(gateway, n)
        assert gateway.stop() == 0
    with running_gateway(tmp_path / "data") as gateway:
        assert [event["id"] for event in all_events(gateway)] == ["save-2"]


def test_a_p0_save_and_one_without_a_subject_are_not_held(gateway: GatewayProcess) -> None:
    accept(gateway, type="file.changed")
    put_route(gateway, "hot", event="file.*", target="a", match={"subject": "hot/**"}, priority="P0")
    accept(gateway, type="file.changed", subject="hot/a.py")


def test_saves_over_the_rate_join_one_event_instead_of_being_lost(gateway: GatewayProcess) -> None:
    with Stream(gateway, "type=files.changed") as stream:
        stream.start()
        receipts = publish(
            gateway,
            *(
                {"type": "file.changed", "source": "sync", "id": f"f{n}", "subject": f"{n}.py"}
                for n in range(200)
            ),
        )
        assert {receipt["status"] for receipt in receipts} == {"deferred"}
        joined = stream.next().json()
    assert joined["source"] == "sync" and joined["data"]["count"] == len(joined["data"]["paths"])
    wait_until(
        lambda: len(all_events(gateway, "type=file.changed")) + joined["data"]["count"] == 200, "the others"
    )
    alone = {event["subject"] for event in all_events(gateway, "type=file.changed")}
    assert alone | set(joined["data"]["paths"]) == {f"{n}.py" for n in range(200)}
    path = joined["data"]["paths"][0]
    again = post(gateway, {"type": "file.changed", "source": "sync", "id": f"f{path[:-3]}", "subject": path})
    assert again.json()["seq"] == joined["seq"] and again.json()["status"] == "duplicate"
    assert health(gateway)["dropped"]["rate_limited"] == 0


def test_full_lanes_drop_p2_then_p1_and_never_p0(tmp_path: Path) -> None:
    env = {"HERDR_GATEWAY_BUS__BUFFER_SIZE": "10", "HERDR_GATEWAY_BUS__P2_PER_S": "0"}
    with running_gateway(tmp_path / "data", env=env) as gateway:
        for lane, stored in (("P2", 10), ("P1", 20), ("P0", 500)):
            receipts = publish(gateway, *[{"type": "tool.result", "priority": lane}] * 500)
            told = Counter((r["status"], r.get("reason")) for r in receipts)
            assert told["accepted", None] == stored, lane
            assert told["dropped", "overloaded"] == 500 - stored
        assert health(gateway)["dropped"]["overloaded"] == 490 + 480
        assert len(all_events(gateway)) == 530


def test_a_single_event_that_full_lanes_drop_gets_503(tmp_path: Path) -> None:
    env = {"HERDR_GATEWAY_BUS__BUFFER_SIZE": "1", "HERDR_GATEWAY_BUS__P2_PER_S": "0"}
    with running_gateway(tmp_path / "data", env=env) as gateway, ThreadPoolExecutor(16) as pool:
        for _ in range(50):
            answers = list(pool.map(lambda _: post(gateway, {"type": "index.updated"}), range(64)))
            if refused := [answer for answer in answers if answer.status != 200]:
                break
        assert {answer.status for answer in refused} == {503}
        assert int(refused[0].headers["retry-after"]) >= 1
        assert refused[0].headers["content-type"] == "application/json"
        receipt = refused[0].json()
        assert (receipt["status"], receipt["reason"]) == ("dropped", "overloaded") and receipt["id"]


CHANGE = {"type": "change.applied", "subject": "a.py"}


def test_a_stale_event_is_refused_and_both_sides_hear_of_it(gateway: GatewayProcess) -> None:
    seq = accept(gateway, **CHANGE, source="ann")
    with Stream(gateway, "as=ann") as ann, Stream(gateway, "as=bob") as bob, Stream(gateway, "as=eve") as eve:
        for stream in (ann, bob, eve):
            stream.start()
        answer = post(gateway, {**CHANGE, "source": "bob", "id": "b1", "based_on": seq - 1})
        assert answer.status == 409 and answer.headers["content-type"] == "application/json"
        receipt = answer.json()
        conflict = receipt.pop("conflict")
        assert receipt == {"status": "stale", "id": "b1"}
        assert {key: conflict[key] for key in ("subject", "seq", "source")} == {
            "subject": "a.py", "seq": seq, "source": "ann",
        }  # fmt: skip
        assert TIME.fullmatch(conflict["time"])
        heard = [stream.next().json() for stream in (ann, bob)]
        assert heard[0] == heard[1]
        assert (heard[0]["type"], heard[0]["priority"], heard[0]["subject"]) == (
            "conflict.detected",
            "P0",
            "a.py",
        )
        publish(gateway, {"type": "tool.result"})
        put_route(gateway, "eve", event="end", target="eve")
        accept(gateway, type="end")
        assert eve.next().event == "end", "nobody else is told"
    assert "b1" not in {event["id"] for event in all_events(gateway)}


def test_a_stale_event_that_only_notifies_is_stored(gateway: GatewayProcess) -> None:
    seq = accept(gateway, **CHANGE, source="ann")
    for event in (
        {"type": "test.failed", "subject": "a.py", "source": "ci", "based_on": 0},  # notify is its default
        {**CHANGE, "source": "bob", "based_on": 0, "if_stale": "notify"},
    ):
        answer = post(gateway, event)
        assert (answer.status, answer.json()["status"]) == (200, "accepted")
        assert answer.json()["conflict"]["seq"] == seq
    conflicts = all_events(gateway, "type=conflict.*")
    assert [event["data"]["by"]["source"] for event in conflicts] == ["ci", "bob"]


def test_who_is_not_stale(gateway: GatewayProcess) -> None:
    seq = accept(gateway, **CHANGE, source="ann")
    fine: list[dict[str, Any]] = [
        {**CHANGE, "source": "ann", "based_on": 0},  # one's own change
        {"type": "change.x", "subject": "b.py", "source": "bob", "based_on": 0},  # another subject
        {"type": "change.x", "subject": "a.py", "workspace": "w", "source": "bob", "based_on": 0},
        {"type": "tool.result", "subject": "a.py", "source": "bob"},  # says nothing of what it saw
        {**CHANGE, "source": "bob", "based_on": seq + 1},  # has seen the newest
    ]
    for event in fine:
        answer = post(gateway, event)
        assert (answer.status, answer.json()["status"], answer.json().get("conflict")) == (
            200,
            "accepted",
            None,
        )
    answer = post(gateway, {**CHANGE, "source": "ann", "based_on": seq, "if_stale": "reject"})
    assert answer.json()["conflict"]["source"] == "bob"


def test_of_two_with_one_based_on_exactly_one_is_accepted(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway, ThreadPoolExecutor(8) as pool:
        seq = accept(gateway, **CHANGE, source="ann")
        events = [{**CHANGE, "source": f"tool-{n}", "based_on": seq} for n in range(8)]
        told = Counter(answer.json()["status"] for answer in pool.map(lambda e: post(gateway, e), events))
        assert told == {"accepted": 1, "stale": 7}
        newest = max(e["seq"] for e in all_events(gateway, "type=change.*"))
        events = [{**CHANGE, "source": f"tool-{n}", "based_on": newest} for n in range(20, 25)]
        assert Counter(r["status"] for r in publish(gateway, *events)) == {"accepted": 1, "stale": 4}
        assert gateway.stop() == 0
    with running_gateway(tmp_path / "data") as gateway:  # versions are remembered
        assert post(gateway, {**CHANGE, "source": "bob", "based_on": seq}).status == 409


def test_a_known_content_hash_advances_nothing(gateway: GatewayProcess) -> None:
    put_route(gateway, "hot", event="file.*", target="a", priority="P0")
    write = {"type": "file.changed", "subject": "a.py", "data": {"hash": "abc"}}
    seq = accept(gateway, **write, source="ann")
    accept(gateway, **write, source="watcher")
    assert post(gateway, {**CHANGE, "source": "ann", "based_on": seq}).json()["status"] == "accepted"
    other = {**write, "data": {"hash": "def"}}
    newest = accept(gateway, **other, source="watcher")
    stale = post(gateway, {**CHANGE, "source": "ann", "based_on": newest - 1})
    assert (stale.status, stale.json()["conflict"]["source"]) == (409, "watcher")


CLOUD = {
    "specversion": "1.0", "type": "test.failed", "source": "/ci/7", "id": "A-1", "subject": "a.py",
    "time": "2026-01-31T12:00:00Z", "workspace": "shop", "basedon": 0, "ifstale": "notify", "myext": "kept",
    "data": {"n": 1},
}  # fmt: skip


def binary(attributes: dict[str, Any], body: bytes, content_type: str) -> tuple[bytes, dict[str, str]]:
    headers = {f"ce-{name}": str(value) for name, value in attributes.items() if name != "data"}
    return body, {**headers, "content-type": content_type}


@pytest.mark.parametrize("mode", ["structured", "batch", "binary"])
def test_cloudevents_in_three_modes(gateway: GatewayProcess, mode: str) -> None:
    if mode == "binary":
        body, headers = binary(CLOUD, b'{"n": 1}', "application/json")
    else:
        kind = "application/cloudevents" + ("-batch" if mode == "batch" else "") + "+json"
        body, headers = json.dumps([CLOUD] if mode == "batch" else CLOUD).encode(), {"content-type": kind}
    answer = call(gateway, "POST", "/v1/events", body, headers)
    assert answer.status == 200, answer
    receipt = answer.json()["results"][0] if mode == "batch" else answer.json()
    assert (receipt["status"], receipt["id"]) == ("accepted", "A-1")
    (event,) = all_events(gateway)
    for field in ("type", "source", "id", "subject", "time", "workspace", "data"):
        assert event[field] == CLOUD[field], field
    assert (event["based_on"], event["if_stale"]) == (0, "notify")
    assert event["ext"]["myext"] == "kept"


def test_cloudevents_that_lack_an_attribute_are_refused(gateway: GatewayProcess) -> None:
    for name in ("specversion", "type", "source", "id"):
        event = {key: value for key, value in CLOUD.items() if key != name}
        answer = post(gateway, event, content_type="application/cloudevents+json")
        assert (answer.status, answer.json()["errors"][0]["field"]) == (400, name)
    assert page(gateway)["events"] == []
