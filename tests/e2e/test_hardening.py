"""What one client, page or folder may not do to the gateway and to everybody else."""

import contextlib
import json
import os
import socket as sockets
import threading
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from refusals import assert_problem
from websockets.exceptions import ConnectionClosed
from wire import Socket, all_events, call, health, post, publish, put_route, wait_until

BIG = 7 * 1024 * 1024
EMPTY = b"[" + b"{}," * (BIG // 3) + b"{}]"


def test_millions_of_wrong_events_are_refused_without_being_looked_at(gateway: GatewayProcess) -> None:
    """They are wrong as well: whoever had looked at one would say so. It took 8.5 s, and nobody else was served."""
    with Socket(gateway) as connection:
        connection.ws.send('{"op": "publish", "ref": 1, "events": ' + EMPTY.decode() + "}")
        said = connection.recv()
        assert (said["op"], said["ref"], said["code"]) == ("error", 1, "too_many_events")
    for body, kind in ((EMPTY, "json"), (EMPTY[1:-1].replace(b",", b"\n"), "x-ndjson")):
        answer = post(gateway, body, content_type=f"application/{kind}")
        assert_problem(answer, 400, "too_many_events")
    assert all_events(gateway) == []


def test_acknowledgements_that_wait_have_a_bound(gateway: GatewayProcess) -> None:
    """While their answers are not read, further frames are not either: 126,500 of them took 1.4 GiB once."""
    put_route(gateway, "t", event="tool.*", target="ann")
    with sockets.create_connection(("127.0.0.1", gateway.port), timeout=20) as raw:
        raw.sendall(
            b"GET /v1/connect HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert b" 101 " in raw.recv(4096)
        raw.sendall(masked({"op": "follow", "ref": 1, "as": "ann"}))
        raw.recv(4096)
        flood = (
            masked(
                {
                    "op": "ack",
                    "ref": 1,
                    "cursor": "0",
                }
            )
            * 2000
        )
        raw.settimeout(1.0)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 400_000:
                raw.sendall(flood)
                sent += 2000
        assert sent < 400_000, "the gateway took them all"
    assert health(gateway)["status"] == "ok"


def masked(frame: dict[str, Any]) -> bytes:
    text = json.dumps(frame).encode()
    assert len(text) < 126
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text


def test_attributes_are_replaced_and_bounded(gateway: GatewayProcess) -> None:
    match = {"attr.a": "1", "attr.b": "2"}
    put_route(gateway, "both", event="tool.*", target="ann", match=match, timeout_ms=60_000)
    put_route(gateway, "end", event="end", target="ann", timeout_ms=60_000)

    def seen(connection: Socket) -> list[str]:
        publish(gateway, {"type": "tool.result"}, {"type": "end"})
        types: list[str] = []
        while "end" not in types:
            types += [event["type"] for event in connection.events(1)]
        return types

    with Socket(gateway) as connection:
        connection.ask("follow", ref=1, **{"as": "ann"}, attrs={"b": "2"})
        assert seen(connection) == ["end"]
        connection.send("attrs", attrs={"a": "1", "b": "own attributes win"})
        assert connection.ask("ping")["op"] == "pong"
        assert seen(connection) == ["tool.result", "end"]
        connection.send("attrs", attrs={"c": "3"})
        assert connection.ask("ping")["op"] == "pong"
        assert seen(connection) == ["end"], "an attribute that is not named any more is gone"
        for attrs in ({str(n): "" for n in range(33)}, {"a": "x" * 1025}, {"x" * 1025: "a"}):
            said = connection.ask("attrs", attrs=attrs)
            assert (said["op"], said["ref"], said["code"]) == ("error", None, "bad_filter")
        assert seen(connection) == ["end"]


def test_the_patterns_of_one_follow_have_a_bound_on_both_fronts(gateway: GatewayProcess) -> None:
    patterns = [f"{n}/" + "a" * 150 + "*" for n in range(28)]
    with Socket(gateway) as connection:
        said = connection.ask("follow", ref=1, subject=patterns)
        assert (said["op"], said["code"]) == ("error", "bad_filter")
        said = connection.ask("follow", ref=1, after="0" * 20_000)
        assert (said["op"], said["code"]) == ("error", "bad_filter")
        assert connection.ask("follow", ref=1, subject=patterns[:20])["op"] == "events"
    query = "&".join(f"subject={pattern}" for pattern in patterns)
    assert_problem(call(gateway, "GET", f"/v1/events?{query}"), 400, "bad_filter")


def test_a_page_of_another_site_cannot_follow_by_an_image(gateway: GatewayProcess) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    answer = call(gateway, "GET", "/v1/events?as=x", headers=headers)
    assert_problem(answer, 403, "foreign_origin")
    for site in ("same-origin", "same-site", "none"):
        assert call(gateway, "GET", "/v1/events", headers={"sec-fetch-site": site}).status == 200


def test_the_websocket_s_path_asks_for_an_upgrade(gateway: GatewayProcess) -> None:
    answer = call(gateway, "GET", "/v1/connect")
    assert_problem(answer, 426, "upgrade_required")
    assert answer.headers["upgrade"] == "websocket"


@pytest.mark.parametrize("seq", ["x", "-1", "1e3", "9" * 20])
def test_what_is_no_seq_is_invalid_wherever_it_stands(gateway: GatewayProcess, seq: str) -> None:
    assert_problem(call(gateway, "GET", f"/v1/events/{seq}"), 400, "invalid_request")
    assert_problem(call(gateway, "POST", f"/v1/events/{seq}/redact"), 400, "invalid_request")


def test_a_goodbye_comes_after_the_receipts(gateway: GatewayProcess) -> None:
    with Socket(gateway) as idle, Socket(gateway) as connection:
        assert idle.ask("ping") == connection.ask("ping")
        for ref in range(60):
            events = [{"type": "tool.result", "data": "x" * 10_000}] * 20
            connection.send("publish", ref=ref, events=events)
        connection.recv()
        threading.Thread(target=gateway.stop).start()
        frames = []
        with contextlib.suppress(ConnectionClosed):
            while True:
                frames.append(connection.recv())
        assert frames[-1]["op"] == "bye"
        assert all(frame["op"] == "receipts" for frame in frames[:-1])
        assert idle.recv()["op"] == "bye", "also without a follow"
    wait_until(lambda: not gateway.running(), "the end")
    assert not [line for line in gateway.log if "Traceback" in line]
    answered = 1 + len(frames) - 1
    with running_gateway(gateway.data) as again:
        assert len(all_events(again, "type=tool.result")) == 20 * answered


LONG = "/" + "x" * 300


@pytest.mark.parametrize("path", [LONG, "/" + "x/" * 3000, "/nowhere", "relative", "/dev/null"])
def test_what_is_no_folder_is_a_bad_workspace(gateway: GatewayProcess, path: str) -> None:
    assert_problem(call(gateway, "POST", "/v1/workspaces", {"path": path}), 400, "bad_workspace")


@pytest.mark.skipif(
    os.geteuid() == 0, reason="root may look everywhere; scripts/test runs it as another user"
)
def test_a_folder_that_may_not_be_looked_at_is_a_bad_workspace(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0)
    try:
        answer = call(gateway, "POST", "/v1/workspaces", {"path": str(closed / "inner")})
        assert_problem(answer, 400, "bad_workspace")
    finally:
        closed.chmod(0o700)


@pytest.mark.parametrize("place", [".", "inner/workspace"])
def test_a_workspace_in_the_data_folder_is_watched_all_the_same(tmp_path: Path, place: str) -> None:
    workspace = tmp_path / "data" / place
    workspace.mkdir(parents=True, exist_ok=True)
    with running_gateway(tmp_path / "data", "--workspace", str(workspace)) as gateway:
        name = workspace.name
        wait_until(lambda: health(gateway)["workspaces"][name]["status"] == "watching", "the watcher")
        (workspace / "new.py").write_text("1")
        wait_until(lambda: all_events(gateway, "type=file.changed"), "the change")
        assert {event["subject"] for event in all_events(gateway, "type=file.changed")} == {"new.py"}
        assert health(gateway)["workspaces"][name]["files"] == 1, "the log's own files are not followed"


def test_a_refused_file_is_told_without_its_path(tmp_path: Path) -> None:
    file = tmp_path / "herdr.yaml"
    file.write_text("{}")
    with running_gateway(tmp_path / "data", "--config", str(file)) as gateway:
        file.write_text("rotues: []\nserver: {prot: 1}\n")
        wait_until(lambda: all_events(gateway, "type=herdr.routes_rejected"), "the refusal")
        (event,) = all_events(gateway, "type=herdr.routes_rejected")
        assert event["data"]["problems"] == 2
        assert str(tmp_path) not in json.dumps(event) and "rotues" not in json.dumps(event)
        assert any("rotues" in line for line in gateway.log)
