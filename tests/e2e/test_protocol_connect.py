"""PROTOCOL section 1, one connection for everything: `/v1/connect` in JSON and in MessagePack."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest
from gateway import GatewayProcess
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_websocket
from wire import PATIENCE_S, Socket, Stream, accept, all_events, health, publish, put_route, wait_until


class Wire(NamedTuple):
    """One of the two ways to write frames."""

    protocol: str
    dump: Callable[[Any], str | bytes]
    load: Callable[[Any], Any]


WIRES = [
    Wire("herdr.v1.json", json.dumps, json.loads),
    Wire("herdr.v1.msgpack", msgspec.msgpack.encode, msgspec.msgpack.decode),
]


@pytest.fixture(params=WIRES, ids=[wire.protocol for wire in WIRES])
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param  # type: ignore[no-any-return]


class Talk:
    """A connection that speaks one of them."""

    def __init__(self, gateway: GatewayProcess, wire: Wire) -> None:
        self._wire = wire
        self._connecting = connect_websocket(
            f"ws://127.0.0.1:{gateway.port}/v1/connect",
            subprotocols=[wire.protocol],  # type: ignore[list-item]
            proxy=None,
        )

    def __enter__(self) -> "Talk":
        self.ws: ClientConnection = self._connecting.__enter__()
        assert self.ws.subprotocol == self._wire.protocol
        return self

    def __exit__(self, *_: object) -> None:
        self.ws.close()

    def send(self, op: str, **fields: Any) -> None:
        self.ws.send(self._wire.dump({"op": op, **fields}))

    def recv(self) -> dict[str, Any]:
        got = self.ws.recv(timeout=PATIENCE_S)
        assert isinstance(got, str) is (self._wire.protocol == "herdr.v1.json")
        return dict(self._wire.load(got))

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self.send(op, **fields)
        return self.recv()


def test_publish_is_answered_with_receipts(gateway: GatewayProcess, wire: Wire) -> None:
    data = {"text": "ä\U0001f600", "n": [1, 2.5, None, True, -(2**63)]}
    with Talk(gateway, wire) as talk:
        event = {"type": "tool.result", "id": "a", "source": "me", "data": data}
        said = talk.ask("publish", ref=7, events=[event, event])
        assert (said["op"], said["ref"]) == ("receipts", 7)
        assert [r["status"] for r in said["results"]] == ["accepted", "duplicate"]
        assert talk.ask("publish", ref="text", events=[]) == {"op": "receipts", "ref": "text", "results": []}
    (stored,) = all_events(gateway)
    assert (stored["data"], stored["id"], stored["source"]) == (data, "a", "me")


def test_publishes_are_pipelined_and_keep_their_order(gateway: GatewayProcess, wire: Wire) -> None:
    with Talk(gateway, wire) as talk:
        for ref in range(300):
            talk.send("publish", ref=ref, events=[{"type": "tool.result", "id": str(ref)}])
        frames = [talk.recv() for _ in range(300)]
    assert {frame["ref"] for frame in frames} == set(range(300))
    assert [event["id"] for event in all_events(gateway)] == [str(ref) for ref in range(300)]
    by_ref = {frame["ref"]: frame["results"][0]["seq"] for frame in frames}
    assert by_ref == {ref: ref + 1 for ref in range(300)}


def test_channels_are_independent(gateway: GatewayProcess, wire: Wire) -> None:
    with Talk(gateway, wire) as talk:
        first = talk.ask("follow", ref=1, type=["tool.*"])
        assert (first["op"], first["ref"], first["events"]) == ("events", 1, []) and first["cursor"]
        talk.ask("follow", ref="two", type="test.*", source=["ci", "x*"])
        said = talk.ask(
            "publish", ref=3, events=[{"type": "tool.result"}, {"type": "test.failed", "source": "ci"}]
        )
        frames = [said, talk.recv(), talk.recv()]
        assert {frame["op"] for frame in frames} == {"receipts", "events"}
        by_ref = {frame["ref"]: [e["seq"] for e in frame.get("events", [])] for frame in frames}
        assert by_ref == {3: [], 1: [1], "two": [2]}
        talk.send("unfollow", ref=1)
        said = talk.ask(
            "publish", ref=4, events=[{"type": "tool.result"}, {"type": "test.failed", "source": "xy"}]
        )
        frames = [said, talk.recv()]
        assert {frame["ref"] for frame in frames} == {4, "two"}
        assert talk.ask("ping") == {"op": "pong"} and talk.ask("ping", ref=9) == {"op": "pong", "ref": 9}
        assert talk.ask("follow", ref=1, after="0")["events"] == [], "the ref is free again"
        assert [e["seq"] for e in talk.recv()["events"]] == [1, 2, 3, 4]


def test_a_follow_resumes_from_its_cursor_and_acknowledges(gateway: GatewayProcess, wire: Wire) -> None:
    put_route(gateway, "t", event="tool.*", target="ann", timeout_ms=60_000)
    publish(gateway, *[{"type": "tool.result"}] * 3)
    with Talk(gateway, wire) as talk:
        talk.ask("follow", ref=1, **{"as": "ann"})
        got = talk.recv()
        assert [e["seq"] for e in got["events"]] == [1, 2, 3]
        assert talk.ask("ack", ref=1, cursor=got["cursor"]) == {
            "op": "ack",
            "ref": 1,
            "cursor": got["cursor"],
        }
        accept(gateway, type="tool.result")
        assert [e["seq"] for e in talk.recv()["events"]] == [4]
    with Talk(gateway, wire) as talk:
        talk.ask("follow", ref=5, **{"as": "ann"})
        assert [e["seq"] for e in talk.recv()["events"]] == [4], "it goes on behind what was acknowledged"
        talk.ask("follow", ref=6, after=got["cursor"])
        assert [e["seq"] for e in talk.recv()["events"]] == [4]
        said = talk.ask("ack", ref=6, cursor=got["cursor"])
        assert said["op"] == "error", "only a target has a place to acknowledge"


def test_events_look_the_same_on_every_way(gateway: GatewayProcess, wire: Wire) -> None:
    accept(gateway, type="test.failed", subject="a.py", tags=["x"], data={"a": [1, {"b": None}]})
    with Talk(gateway, wire) as talk, Stream(gateway, "after=0") as stream:
        talk.ask("follow", ref=1, after=0)
        assert talk.recv()["events"] == [stream.next().json()] == all_events(gateway)


def test_an_error_has_the_ref_of_its_frame(gateway: GatewayProcess, wire: Wire) -> None:
    with Talk(gateway, wire) as talk:
        said = talk.ask("publish", ref="p", events=[{"type": "tool.result"}, {"type": "NO"}])
        assert (said["op"], said["ref"], said["code"]) == ("error", "p", "invalid_event")
        assert said["errors"][0]["index"] == 1 and said["errors"][0]["field"] == "type"
        assert talk.ask("follow", ref=2)["op"] == "events"
        said = talk.ask("follow", ref=2)
        assert (said["op"], said["ref"]) == ("error", 2), "a ref is one channel"
    assert all_events(gateway) == []


def test_msgpack_that_is_none(gateway: GatewayProcess) -> None:
    with Talk(gateway, WIRES[1]) as talk:
        for bad in (
            b"\xc1",
            b"\x81\xa2op",
            b"\x91" * 100_000,
            msgspec.msgpack.encode(msgspec.msgpack.Ext(1, b"x")),
        ):
            talk.ws.send(bad)
            said = talk.recv()
            assert (said["op"], said["code"]) == ("error", "bad_frame")
        assert talk.ask("ping") == {"op": "pong"}
    assert not [line for line in gateway.log if "Traceback" in line]


def test_connections_are_counted(gateway: GatewayProcess) -> None:
    with Socket(gateway) as one, Socket(gateway) as two:
        assert one.ask("ping") == two.ask("ping")
        assert health(gateway)["connections"] == {"sse": 0, "websocket": 2}
    wait_until(lambda: health(gateway)["connections"]["websocket"] == 0, "both to be gone")
