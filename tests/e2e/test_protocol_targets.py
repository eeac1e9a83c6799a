"""PROTOCOL sections 1 and 2, named targets: what the rules send, acknowledgements, timeouts, formats, attributes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from wire import (
    Socket,
    Stream,
    accept,
    ack,
    all_events,
    call,
    health,
    page,
    publish,
    put_route,
    wait_until,
)


@pytest.fixture
def routed(gateway: GatewayProcess) -> Iterator[GatewayProcess]:
    put_route(gateway, "tests", event="test.*", target="ann", timeout_ms=60_000)
    put_route(gateway, "end", event="end", target="ann", timeout_ms=60_000)
    yield gateway


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in events]


def test_a_target_gets_what_the_rules_send_and_nothing_else(routed: GatewayProcess) -> None:
    with Stream(routed, "as=ann") as ann, Stream(routed, "as=nobody") as nobody, Stream(routed) as everybody:
        for stream in (ann, nobody, everybody):
            stream.start()
        publish(routed, {"type": "test.failed", "id": "1"}, {"type": "tool.result", "id": "2"})
        accept(routed, type="end", id="3")
        assert ids(ann.take(2)) == ["1", "3"]
        assert ids(everybody.take(3)) == ["1", "2", "3"]
        put_route(routed, "last", event="last", target="nobody")
        accept(routed, type="last", id="4")
        assert ids(nobody.take(1)) == ["4"], "there is no broadcast"


def test_a_target_goes_on_from_what_it_acknowledged(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        put_route(gateway, "tests", event="test.*", target="ann", timeout_ms=60_000)
        publish(gateway, *({"type": "test.failed", "id": str(n)} for n in range(6)))
        with Stream(gateway, "as=ann") as stream:
            assert ids(stream.take(2)) == ["0", "1"]
            answer = ack(gateway, "ann", stream.last_id)
            assert (answer.status, answer.json()) == (200, {"target": "ann", "cursor": stream.last_id})
            stream.take(2)
        with Stream(gateway, "as=ann") as stream:
            assert ids(stream.take(1)) == ["2"], "what was not acknowledged comes again"
        gateway.kill()
    with running_gateway(tmp_path / "data") as gateway:
        with Stream(gateway, "as=ann") as stream:
            assert ids(stream.take(4)) == ["2", "3", "4", "5"]
        assert ids(page(gateway, "as=ann&limit=1")["events"]) == ["2"]
        assert ids(page(gateway, "as=ann&after=0")["events"]) == ["0", "1", "2", "3", "4", "5"]
        with Socket(gateway) as connection:
            connection.send("follow", ref=1, **{"as": "ann"})
            frames = [connection.recv(), connection.recv()]
            assert ids(frames[1]["events"]) == ["2", "3", "4", "5"]
            said = connection.ask("ack", ref=1, cursor=frames[1]["cursor"])
            assert said == {"op": "ack", "ref": 1, "cursor": frames[1]["cursor"]}
        assert page(gateway, "as=ann")["events"] == []


def test_a_new_target_begins_with_what_is_still_in_time(gateway: GatewayProcess) -> None:
    put_route(gateway, "tests", event="test.*", target="ann", timeout_ms=60_000)
    put_route(gateway, "old", event="old.*", target="ann", timeout_ms=1)
    publish(gateway, {"type": "old.news", "id": "0"}, {"type": "test.failed", "id": "1"})
    wait_until(lambda: ids(page(gateway, "as=ann")["events"]) == ["1"], "the old news to be over")


@pytest.mark.parametrize("way", ["sse", "websocket", "page"])
@pytest.mark.parametrize("lane", ["P1", "P2"])
def test_what_is_over_time_is_skipped_and_counted(tmp_path: Path, way: str, lane: str) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        put_route(gateway, "brief", event="brief.*", target="ann", timeout_ms=1, priority=lane)
        put_route(gateway, "end", event="end", target="ann", timeout_ms=60_000)
        assert ack(gateway, "ann", "0").status == 200
        publish(gateway, *({"type": "brief.news", "id": str(n)} for n in range(3)))
        accept(gateway, type="tool.result")  # a commit later: more than 1 ms has passed
        accept(gateway, type="tool.result")
        if way == "sse":
            with Stream(gateway, "as=ann") as stream:
                stream.start()
                wait_until(lambda: health(gateway)["dropped"]["expired"] == 3, "the count")
                accept(gateway, type="end", id="end")
                assert ids(stream.take(1)) == ["end"]
        elif way == "websocket":
            with Socket(gateway) as connection:
                connection.send("follow", ref=1, **{"as": "ann"})
                accept(gateway, type="end", id="end")
                assert ids(connection.events(1)) == ["end"]
        else:
            assert page(gateway, "as=ann")["events"] == []
        assert health(gateway)["dropped"]["expired"] == 3
        seen = page(gateway, "as=ann&after=0")["events"]
        assert {"0", "1", "2"} <= set(ids(seen)), "who asks for a place sees everything"
        assert health(gateway)["dropped"]["expired"] == 3


def test_a_p0_over_time_is_delivered_late_and_its_sender_is_told_once(gateway: GatewayProcess) -> None:
    put_route(gateway, "words", event="user.*", target="ann", timeout_ms=50)
    with Stream(gateway, "as=cursor") as sender:
        sender.start()
        seq = accept(gateway, type="user.message", source="cursor", id="hello")
        told = sender.next().json()
        assert told["type"] == "herdr.undelivered"
        assert told["data"] == {"seq": seq, "target": "ann"}
        with Stream(gateway, "as=ann") as ann:
            assert ids(ann.take(1)) == ["hello"], "late, but delivered"
    assert len(all_events(gateway, "type=herdr.undelivered")) == 1


def test_a_p0_in_time_raises_nothing(gateway: GatewayProcess) -> None:
    put_route(gateway, "words", event="user.*", target="ann", timeout_ms=300)
    put_route(gateway, "late", event="user.late", target="bob", timeout_ms=400)
    with Stream(gateway, "as=ann") as ann, Stream(gateway, "as=cursor") as sender:
        for stream in (ann, sender):
            stream.start()
        accept(gateway, type="user.message", source="cursor", id="hello")
        ann.next()
        late = accept(gateway, type="user.late", source="cursor")
        ann.next()
        # The notice about `late` comes after the time of `hello` is over too: so there is none about that.
        assert sender.next().json()["data"] == {"seq": late, "target": "bob"}
    assert len(all_events(gateway, "type=herdr.undelivered")) == 1


DATA = {"text": "x" * 100, "n": [1, 2]}


def test_formats(gateway: GatewayProcess) -> None:
    for form in ("full", "summary", "ref"):
        put_route(gateway, form, event="tool.*", target=form, format=form)
    seq = accept(gateway, type="tool.result", subject="a.py", data=DATA)
    whole = call(gateway, "GET", f"/v1/events/{seq}").json()
    got = {form: page(gateway, f"as={form}&after=0")["events"][0] for form in ("full", "summary", "ref")}
    assert got["full"] == whole and whole["data"] == DATA
    summary = {key: value for key, value in whole.items() if key != "data"}
    bytes_, ref = got["summary"].pop("data_bytes"), got["summary"].pop("ref")
    assert got["summary"] == summary and bytes_ >= len(DATA["text"])
    assert got["ref"] == {"seq": seq, "type": "tool.result", "subject": "a.py", "ref": ref}
    assert call(gateway, "GET", ref).json() == whole
    with Stream(gateway, "as=ref&after=0") as stream:
        block = stream.next()
        assert (block.event, block.json()) == ("tool.result", got["ref"])


def test_several_rules_match_highest_priority_and_each_target_once(gateway: GatewayProcess) -> None:
    put_route(gateway, "a", event="tool.*", target="ann", priority="P2", format="ref")
    put_route(gateway, "b", event="tool.result", target="ann", priority="P0", format="full")
    put_route(gateway, "c", event="*", target="bob")
    seq = accept(gateway, type="tool.result", data=DATA)
    (event,) = page(gateway, "as=ann&after=0")["events"]
    assert (event["seq"], event["priority"], event["data"]) == (seq, "P0", DATA)
    assert len(page(gateway, "as=bob&after=0")["events"]) == 1


MATCHES: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"source": "ci"}, {"source": "ci"}, True),
    ({"source": "ci*"}, {"source": "ci-7"}, True),
    ({"source": ["a", "b"]}, {"source": "b"}, True),
    ({"source": "ci"}, {"source": "cx"}, False),
    ({"subject": "src/**"}, {"subject": "src/a/b.py"}, True),
    ({"subject": "src/*"}, {"subject": "src/a/b.py"}, False),
    ({"subject": "**"}, {}, False),
    ({"workspace": "shop"}, {"workspace": "shop"}, True),
    ({"session": "s1", "task": "t1"}, {"session": "s1", "task": "t1"}, True),
    ({"session": "s1", "task": "t1"}, {"session": "s1"}, False),
    ({"class": "tool"}, {}, True),
    ({"priority": "P0"}, {"priority": "P0"}, True),
    ({"tags": "slow"}, {"tags": ["new", "slow"]}, True),
    ({"data.level": "error"}, {"data": {"level": "error"}}, True),
    ({"data.level": "err*"}, {"data": {"level": "error"}}, True),
    ({"data.level": "error"}, {"data": "error"}, False),
    ({"data.a.b": 3}, {"data": {"a": {"b": 3}}}, True),
    ({"data.a.b": 3}, {"data": {"a": {"b": "3"}}}, False),
    ({"data.flag": True}, {"data": {"flag": True}}, True),
    ({"data.flag": True}, {"data": {"flag": 1}}, False),
    ({"data.list": "x"}, {"data": {"list": ["y", "x"]}}, True),
    ({"type": "tool.*"}, {}, True),
]


@pytest.fixture(scope="module")
def matching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path_factory.mktemp("match") / "data") as process:
        yield process


@pytest.mark.parametrize(("match", "event", "fits"), MATCHES, ids=[str(m[0]) for m in MATCHES])
def test_conditions(
    matching: GatewayProcess, match: dict[str, Any], event: dict[str, Any], fits: bool
) -> None:
    put_route(matching, "rule", event="tool.*", target="ann", match=match)
    seq = accept(matching, type="tool.result", **event)
    assert bool(page(matching, f"as=ann&after={seq - 1}")["events"]) is fits


def test_conditions_on_the_subscriber_are_judged_while_following(gateway: GatewayProcess) -> None:
    match = {"attr.activity": ["debug*", "testing"], "data.level": "error"}
    put_route(gateway, "errors", event="tool.*", target="ann", match=match)
    put_route(gateway, "end", event="end", target="ann")
    with (
        Stream(gateway, "as=ann&attr.activity=debugging") as fits,
        Stream(gateway, "as=ann&attr.activity=writing") as not_,
        Stream(gateway, "as=ann") as none,
        Socket(gateway) as connection,
    ):
        for stream in (fits, not_, none):
            stream.start()
        connection.send("follow", ref=1, **{"as": "ann"})
        connection.recv()
        publish(
            gateway,
            {"type": "tool.result", "id": "1", "data": {"level": "error"}},
            {"type": "end", "id": "2"},
        )
        assert ids(fits.take(2)) == ["1", "2"]
        assert ids(not_.take(1)) == ids(none.take(1)) == ids(connection.events(1)) == ["2"]
        connection.send("attrs", attrs={"activity": "testing"})
        assert connection.ask("ping")["op"] == "pong"  # the attributes are set by now
        publish(gateway, {"type": "tool.result", "id": "3", "data": {"level": "error"}})
        assert ids(connection.events(1)) == ["3"]


def test_filters_narrow_what_a_target_gets(routed: GatewayProcess) -> None:
    publish(routed, {"type": "test.failed", "id": "1"}, {"type": "end", "id": "2"})
    assert ids(page(routed, "as=ann&after=0&type=test.*")["events"]) == ["1"]
    assert len(page(routed, "as=ann&after=0")["events"]) == 2


def test_targets_are_fixed_at_the_commit(routed: GatewayProcess) -> None:
    accept(routed, type="test.failed", id="before")
    put_route(routed, "tests", event="other", target="ann")
    accept(routed, type="test.failed", id="after")
    assert ids(page(routed, "as=ann&after=0")["events"]) == ["before"]
