"""What cursors, filters, acknowledgements, rules and frames get that cannot be meant: a clear error, no more."""

import json
import socket
from typing import Any

import pytest
from gateway import GatewayProcess
from refusals import DEEP, GOOD, assert_problem, assert_serves
from websockets.exceptions import ConnectionClosed
from wire import Socket, call

BIG = b'{"op": "publish", "ref": 1, "events": "' + b"x" * 10_000_000 + b'"}'  # 10 MB; the limit is 8 MiB

CURSORS = [
    "x", "-1", "1.5", "0x10", "1 2", "00000000:1-2", "00000000:1-2-3-4", "0000000g:1-2-3",
    "99999999999999999999", str(2**63), "00000000:9223372036854775808-0-0", "%00", "%F0%9F%98%80", "'; DROP",
]  # fmt: skip


@pytest.mark.parametrize("cursor", CURSORS)
@pytest.mark.parametrize("accepts", ["application/json", "text/event-stream"])
def test_a_cursor_that_is_none(unharmed: GatewayProcess, cursor: str, accepts: str) -> None:
    query = cursor.replace(" ", "%20").replace("'", "%27").replace(";", "%3B")
    answer = call(unharmed, "GET", f"/v1/events?after={query}", headers={"accept": accepts})
    assert_problem(answer, 400, "bad_cursor")


@pytest.mark.parametrize("cursor", ["x", "\u00ff\u00fe", "1" * 5000])
def test_a_last_event_id_that_is_none(unharmed: GatewayProcess, cursor: str) -> None:
    headers = {"accept": "text/event-stream", "last-event-id": cursor}
    problem = assert_problem(call(unharmed, "GET", "/v1/events", headers=headers), 400, "bad_cursor")
    assert len(problem["detail"]) < 500


QUERIES = [
    "nonsense=1", "limit=0", "limit=1001", "limit=x", "limit=-1", "after=0&after=1", "as=", "as=%0A",
    "type=", "type=*%0A", "subject=*" + "a" * 1024, "attr.=1", "type=%ff", "&".join(f"type=a{n}" for n in range(65)),
    "&".join(f"attr.a{n}=1" for n in range(33)), "type=" + "x" * 17_000,
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES, ids=[q[:20] for q in QUERIES])
def test_a_query_that_cannot_be_meant(unharmed: GatewayProcess, query: str) -> None:
    assert_problem(call(unharmed, "GET", f"/v1/events?{query}"), 400, "bad_filter", "bad_glob")


@pytest.mark.parametrize("seq", ["x", "-1", "1e3", "99999999999999999999", "1/2", "\u0661"])
def test_an_event_that_cannot_be(unharmed: GatewayProcess, seq: str) -> None:
    path = f"/v1/events/{seq}".encode().decode("latin-1").encode("ascii", "backslashreplace").decode()
    status, code = (404, "not_found") if "/" in seq else (400, "invalid_request")
    assert_problem(call(unharmed, "GET", path), status, code)


def test_an_unknown_target_cannot_acknowledge(unharmed: GatewayProcess) -> None:
    answer = call(unharmed, "POST", "/v1/targets/nobody/ack", {"cursor": "0"})
    assert_problem(answer, 404, "unknown_target")


ACKS: list[tuple[Any, tuple[str, ...]]] = [
    ({"cursor": "x"}, ("bad_cursor",)),
    ({"cursor": 1}, ("invalid_request",)),
    ({}, ("invalid_request",)),
    ({"cursor": "0", "x": 1}, ("invalid_request",)),
    (b"{", ("invalid_request", "invalid_json")),
    (b'{"cursor": ' + DEEP[:60_000], ("invalid_request", "invalid_json")),
    ({"cursor": "00000000:0-0-0"}, ("foreign_cursor",)),
    ({"cursor": "999999"}, ("foreign_cursor",)),
]


@pytest.mark.parametrize(("body", "codes"), ACKS, ids=[str(row[0])[:30] for row in ACKS])
def test_an_acknowledgement_that_cannot_be_meant(
    shared: GatewayProcess, body: Any, codes: tuple[str, ...]
) -> None:
    call(shared, "GET", "/v1/events?as=someone")
    assert_problem(call(shared, "POST", "/v1/targets/someone/ack", body), 400, *codes)
    assert_serves(shared)


RULES: list[tuple[str, Any, tuple[str, ...]]] = [
    ("empty glob", {"event": "", "target": "a"}, ("bad_glob", "invalid_request")),
    ("control in a glob", {"event": "a\n", "target": "a"}, ("bad_glob", "invalid_request")),
    ("long glob", {"event": "a" * 1025, "target": "a"}, ("bad_glob", "invalid_request")),
    (
        "bad glob in match",
        {"event": "*", "target": "a", "match": {"source": ""}},
        ("bad_glob", "invalid_request"),
    ),
    ("unknown match field", {"event": "*", "target": "a", "match": {"colour": "red"}}, ("bad_rule",)),
    ("data. alone", {"event": "*", "target": "a", "match": {"data.": "red"}}, ("bad_rule",)),
    ("attr. alone", {"event": "*", "target": "a", "match": {"attr.": "red"}}, ("bad_rule",)),
    ("empty list", {"event": "*", "target": "a", "match": {"source": []}}, ("bad_rule", "invalid_request")),
    ("null match", {"event": "*", "target": "a", "match": {"source": None}}, ("invalid_request",)),
    ("no target", {"event": "*"}, ("invalid_request",)),
    ("no event", {"target": "a"}, ("invalid_request",)),
    ("unknown key", {"event": "*", "target": "a", "colour": "red"}, ("invalid_request",)),
    ("wrong priority", {"event": "*", "target": "a", "priority": "P9"}, ("invalid_request",)),
    ("zero timeout", {"event": "*", "target": "a", "timeout_ms": 0}, ("invalid_request",)),
    ("wrong format", {"event": "*", "target": "a", "format": "xml"}, ("invalid_request",)),
    ("another name", {"event": "*", "target": "a", "name": "other"}, ("bad_rule",)),
    ("target with a line break", {"event": "*", "target": "a\nb"}, ("invalid_request",)),
    ("a list", [], ("invalid_request",)),
    ("deep", b'{"event": "*", "target": "a", "match": ' + b"[" * 60_000, ("invalid_request", "invalid_json")),
]


@pytest.mark.parametrize(("rule", "codes"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_a_rule_that_cannot_be_meant(unharmed: GatewayProcess, rule: Any, codes: tuple[str, ...]) -> None:
    assert_problem(call(unharmed, "PUT", "/v1/routes/mine", rule), 400, *codes)


def test_a_rule_that_is_not_there(unharmed: GatewayProcess) -> None:
    assert_problem(call(unharmed, "GET", "/v1/routes/none"), 404, "unknown_route")
    assert_problem(call(unharmed, "DELETE", "/v1/routes/none"), 404, "unknown_route")


def test_a_place_where_nothing_is_and_a_method_that_does_not_go(unharmed: GatewayProcess) -> None:
    assert_problem(call(unharmed, "GET", "/v1/nothing"), 404, "not_found")
    answer = call(unharmed, "PATCH", "/v1/events", {})
    assert_problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, POST"


FRAMES: list[tuple[str, str | bytes, str]] = [
    ("no json", "{", "bad_frame"),
    ("a list", "[]", "bad_frame"),
    ("no op", "{}", "bad_frame"),
    ("unknown op", '{"op": "dance", "ref": 1}', "bad_frame"),
    ("op of another type", '{"op": {"a": 1}, "ref": 1}', "bad_frame"),
    ("no ref", '{"op": "publish", "events": []}', "bad_frame"),
    ("boolean ref", '{"op": "follow", "ref": true}', "bad_frame"),
    ("huge ref", '{"op": "ping", "ref": ' + "9" * 5000 + "}", "bad_frame"),
    ("no events", '{"op": "publish", "ref": 1}', "bad_frame"),
    ("unknown key", '{"op": "publish", "ref": 1, "events": [], "x": 1}', "bad_frame"),
    ("unknown field", '{"op": "publish", "ref": 1, "events": [{"type": "a.b", "x": 1}]}', "invalid_event"),
    ("reserved", '{"op": "publish", "ref": 1, "events": [{"type": "herdr.x"}]}', "invalid_event"),
    ("line break", '{"op": "publish", "ref": 1, "events": [{"type": "a.b", "id": "a\\n"}]}', "invalid_event"),
    ("surrogate", '{"op": "publish", "ref": 1, "events": [{"type": "a.b", "id": "\\ud800"}]}', "bad_frame"),
    ("deep", '{"op": "publish", "ref": 1, "events": [{"type": "a.b", "data": ' + DEEP.decode() + "}]}", "bad_frame"),
    ("too many", json.dumps({"op": "publish", "ref": 1, "events": [GOOD] * 1001}), "too_many_events"),
    ("big data", json.dumps({"op": "publish", "ref": 1, "events": [{**GOOD, "data": "x" * 2**20}]}), "too_large"),
    ("bad cursor", '{"op": "follow", "ref": 1, "after": "x"}', "bad_cursor"),
    ("bad filter", '{"op": "follow", "ref": 1, "colour": "red"}', "bad_filter"),
    ("filter of another type", '{"op": "follow", "ref": 1, "type": {"a": 1}}', "bad_filter"),
    ("empty filter", '{"op": "follow", "ref": 1, "subject": ["", "*"]}', "bad_filter"),
    ("bad glob", '{"op": "follow", "ref": 1, "subject": ["*\\u0000", "*"]}', "bad_glob"),
    ("attrs of another type", '{"op": "attrs", "attrs": {"a": 1}}', "bad_frame"),
    ("unfollow of nothing", '{"op": "unfollow", "ref": 9}', "unknown_ref"),
    ("ack of nothing", '{"op": "ack", "ref": 9, "cursor": "0"}', "unknown_ref"),
    ("lock of nothing", '{"op": "lock", "ref": 9, "paths": []}', "invalid_request"),
    ("lock for ever", '{"op": "lock", "ref": 9, "paths": ["a"], "ttl_s": 1e9}', "invalid_request"),
    ("lock outside", '{"op": "lock", "ref": 9, "paths": ["../a"]}', "bad_path"),
    ("lock elsewhere", '{"op": "lock", "ref": 9, "paths": ["a"], "workspace": "no"}', "unknown_workspace"),
    ("unlock of nothing", '{"op": "unlock", "ref": 9, "lock": "L", "token": 1}', "unknown_lock"),
    ("renewal of nothing", '{"op": "renew", "ref": 9, "lock": "L", "token": 1}', "unknown_lock"),
    ("giving up nothing", '{"op": "unlock", "ref": 9, "cancel": 8}', "unknown_ref"),
    ("wait for nobody", '{"op": "wait", "ref": 9}', "invalid_request"),
    ("unwait of nothing", '{"op": "unwait", "ref": 9, "wait": "W"}', "unknown_wait"),
    ("token of nothing", '{"op": "publish", "ref": 9, "events": [{"type": "a.b"}], "tokens": [1]}', "fenced"),
]  # fmt: skip


@pytest.mark.parametrize(("frame", "code"), [f[1:] for f in FRAMES], ids=[f[0] for f in FRAMES])
def test_a_frame_that_cannot_be_carried_out(unharmed: GatewayProcess, frame: str, code: str) -> None:
    with Socket(unharmed) as connection:
        connection.ws.send(frame)
        said = connection.recv()
        assert said["op"] == "error" and said["detail"], said
        codes = {code} if code != "bad_frame" else {"bad_frame", "invalid_event", "invalid_json"}
        assert said["code"] in codes, said
        assert len(said["detail"]) < 500
        assert connection.ask("ping", ref=7) == {"op": "pong", "ref": 7}, "the connection goes on"


def test_a_frame_over_the_limit_ends_only_its_connection(unharmed: GatewayProcess) -> None:
    with Socket(unharmed) as other, Socket(unharmed) as connection:
        with pytest.raises(ConnectionClosed) as closed:
            connection.ws.send(BIG)
            connection.recv()
        # A client that is still sending may hear of the reset before it has read the reason.
        assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
        assert other.ask("ping") == {"op": "pong"}


def test_a_websocket_that_leaves_in_the_middle_of_a_frame(unharmed: GatewayProcess) -> None:
    with Socket(unharmed) as connection, Socket(unharmed) as other:
        connection.ws.socket.sendall(b"\x81\xfe\x01\x00\0\0\0\0{")  # text, masked, 256 bytes announced
        connection.ws.socket.shutdown(socket.SHUT_WR)
        assert other.ask("ping") == {"op": "pong"}
