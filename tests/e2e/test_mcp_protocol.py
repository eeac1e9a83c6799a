"""The MCP endpoint by hand: what the SDK's client never does, and what a client does that knows of no restart."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, running_gateway
from mcp_client import ERAS, MODERN, VERSIONS, post, tool_call
from wire import PATIENCE_S, Answer, call, send_raw, wait_until

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "hand", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    env = {"HERDR_GATEWAY_SERVER__ALLOWED_HOSTS": '["127.0.0.1", "box.example"]'}
    with running_gateway(tmp_path_factory.mktemp("mcp") / "data", env=env) as process:
        yield process
        assert not [line for line in process.log if "Traceback" in line]
        assert not [line for line in process.log if '"mcp.server' in line], "the SDK tells of each request"


def modern(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": META}}


def begin(gateway: GatewayProcess) -> str:
    answer = post(gateway, INITIALIZE)
    assert answer.status == 200 and answer.json()["result"]["protocolVersion"] == "2025-11-25"
    return answer.headers["mcp-session-id"]


def register(gateway: GatewayProcess, name: str) -> str:
    answer = post(gateway, tool_call("register", name=name)).json()
    return str(answer["result"]["structuredContent"]["agent"])


class Notices:
    """The stream of notices of one client of the older era."""

    def __init__(self, gateway: GatewayProcess, session: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
        self._connection.request(
            "GET", "/mcp", headers={"accept": "text/event-stream", "mcp-session-id": session}
        )
        self._response = self._connection.getresponse()
        assert self._response.status == 200
        assert self._response.getheader("content-type") == "text/event-stream"
        assert self._response.readline() == b": keep-alive\n"

    def next(self) -> dict[str, Any]:
        while True:
            line = self._response.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                return dict(json.loads(line[6:]))

    def rest(self) -> bytes:
        return self._response.read()

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def make_task(gateway: GatewayProcess) -> None:
    body = {"title": "x", "role": "nobody", "owner": "hand"}
    assert call(gateway, "POST", "/v1/tasks", body).status == 201


def take_lock(gateway: GatewayProcess, path: str) -> dict[str, Any]:
    answer = call(gateway, "POST", "/v1/locks", {"paths": [path], "owner": "holder"})
    assert answer.status == 201, answer
    return dict(answer.json())


def free(gateway: GatewayProcess, lock: dict[str, Any]) -> None:
    assert call(gateway, "DELETE", f"/v1/locks/{lock['lock']}?token={lock['token']}").status == 204


def test_a_session_that_nobody_knows_is_served(gateway: GatewayProcess) -> None:
    for session in ("0123456789abcdef", "of-another-server"):
        answer = post(gateway, LIST, mcp_session_id=session)
        assert answer.status == 200 and len(answer.json()["result"]["tools"]) == 12
        assert "resultType" not in answer.json()["result"]
        told = post(
            gateway, {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session
        )
        assert told.status == 202


def test_a_session_that_its_client_has_ended_is_not(gateway: GatewayProcess) -> None:
    session = begin(gateway)
    assert call(gateway, "DELETE", "/mcp", headers={"mcp-session-id": session}).status == 200
    answer = post(gateway, LIST, mcp_session_id=session)
    assert answer.status == 404 and "begin a new one" in answer.json()["error"]["message"]
    headers = {"accept": "text/event-stream", "mcp-session-id": session}
    assert call(gateway, "GET", "/mcp", headers=headers).status == 404
    assert call(gateway, "DELETE", "/mcp").status == 405


def test_a_session_hears_of_what_it_has_subscribed_to(gateway: GatewayProcess) -> None:
    session = begin(gateway)
    for uri, method in (("locks", "subscribe"), ("tasks", "subscribe"), ("tasks", "unsubscribe")):
        message = {"id": 1, "method": f"resources/{method}", "params": {"uri": f"herdr://{uri}"}}
        assert post(gateway, {"jsonrpc": "2.0", **message}, mcp_session_id=session).json()["result"] == {}
    notices = Notices(gateway, session)
    make_task(gateway)
    lock = take_lock(gateway, "heard.py")
    assert notices.next() == {
        "jsonrpc": "2.0",
        "method": "notifications/resources/updated",
        "params": {"uri": "herdr://locks"},
    }
    free(gateway, lock)
    notices.close()


def test_a_session_of_before_a_restart_hears_of_everything(gateway: GatewayProcess) -> None:
    notices = Notices(gateway, "of-before")
    make_task(gateway)
    while notices.next()["params"] != {"uri": "herdr://tasks"}:
        pass  # of a test before this one
    told = {"messages": [{"role": "user", "content": "hello"}]}
    assert call(gateway, "POST", "/v1/sessions/a%2Fb/messages", told).status == 201
    assert [notices.next()["params"]["uri"] for _ in range(2)] == [
        "herdr://sessions",
        "herdr://sessions/a%2Fb",
    ]
    notices.close()


def test_a_new_workspace_is_a_change_of_the_list(gateway: GatewayProcess, tmp_path: Path) -> None:
    notices = Notices(gateway, "of-before")
    (tmp_path / "a.py").write_text("x = 1\n")
    body = {"name": "later", "path": str(tmp_path)}
    assert call(gateway, "POST", "/v1/workspaces", body).status in (200, 201)
    told = [notices.next() for _ in range(2)]
    assert {"jsonrpc": "2.0", "method": "notifications/resources/list_changed", "params": {}} in told
    listed = post(gateway, modern("resources/list"), MODERN, mcp_method="resources/list").json()["result"]
    assert "herdr://later/map" in [resource["uri"] for resource in listed["resources"]]
    assert call(gateway, "DELETE", "/v1/workspaces/later").status == 204
    notices.close()


def test_a_call_is_cancelled_by_another_request(gateway: GatewayProcess) -> None:
    session, lock = begin(gateway), take_lock(gateway, "wanted.py")
    handle = register(gateway, "impatient")
    with ThreadPoolExecutor() as pool:
        message = tool_call("lock", 42, agent=handle, paths=["wanted.py"], wait_s=60)
        asking = pool.submit(post, gateway, message, mcp_session_id=session)
        wait_until(lambda: call(gateway, "GET", "/v1/locks").json()["waiting"], "somebody in line")
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 42}}
        assert (
            post(gateway, cancel, mcp_session_id="of-another").status == 202
        )  # not its own: nothing happens
        assert call(gateway, "GET", "/v1/locks").json()["waiting"]
        assert post(gateway, cancel, mcp_session_id=session).status == 202
        answer = asking.result(PATIENCE_S)
    assert answer.json()["error"]["message"] == "Request cancelled" and answer.json()["id"] == 42
    wait_until(lambda: not call(gateway, "GET", "/v1/locks").json()["waiting"], "an empty line")
    free(gateway, lock)


NESTED = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"7",
        b'"x"',
        b"{}",
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}',
        json.dumps([LIST, LIST]).encode(),
        b"\xff\xfe",
        NESTED,
    ],
)
def test_what_is_no_message_is_refused(gateway: GatewayProcess, era: str, body: bytes) -> None:
    answer = post(gateway, body, era)
    assert answer.status == 400, answer
    assert "error" in answer.json() and b"Traceback" not in answer.body


@pytest.mark.parametrize("era", ERAS)
def test_what_a_tool_or_method_is_not_called(gateway: GatewayProcess, era: str) -> None:
    message = modern("tools/nonsense") if era == MODERN else {**LIST, "method": "tools/nonsense"}
    answer = post(gateway, message, era, mcp_method="tools/nonsense")
    assert answer.json()["error"]["code"] == -32601
    message = tool_call("nonsense")
    message["params"]["_meta"] = META
    answer = post(gateway, message, era, mcp_method="tools/call", mcp_name="nonsense")
    assert answer.json()["error"]["code"] == -32602 and "register" in answer.json()["error"]["message"]


@pytest.mark.parametrize("era", ERAS)
def test_a_body_that_is_too_large_says_what_to_do(gateway: GatewayProcess, era: str) -> None:
    head = f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nmcp-protocol-version: {VERSIONS[era]}\r\n"
    answer = send_raw(gateway, f"{head}content-length: {4 * 1024 * 1024 + 1}\r\n\r\n".encode())
    assert answer.status == 413 and "artifact" in answer.json()["detail"]


def test_spaces_around_a_header_are_none_of_it(gateway: GatewayProcess) -> None:
    message = modern("tools/call", name="check_paths", arguments={"paths": ["a.py"]})
    answer = post(gateway, message, MODERN, mcp_method="tools/call", mcp_name="  check_paths  ")
    assert answer.status == 200 and answer.json()["result"]["structuredContent"] == {"conflicts": []}
    answer = post(gateway, message, MODERN, mcp_method="tools/call", mcp_name="lock")
    assert answer.status == 400 and answer.json()["error"]["code"] == -32020


def test_a_version_that_is_not_spoken_names_those_that_are(gateway: GatewayProcess) -> None:
    message = json.loads(json.dumps(modern("tools/list")).replace(MODERN, "1999-01-01"))
    answer = post(gateway, message, mcp_protocol_version="1999-01-01", mcp_method="tools/list")
    assert answer.status == 400 and "2026-07-28" in json.dumps(answer.json()["error"]["data"])


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 406),
        ("GET", {"accept": "text/event-stream", "mcp-protocol-version": MODERN}, 405),
        ("HEAD", {"accept": "text/event-stream"}, 200),
        ("DELETE", {"mcp-session-id": "x", "mcp-protocol-version": MODERN}, 405),
        ("PUT", {}, 405),
    ],
)
def test_other_methods(gateway: GatewayProcess, method: str, headers: dict[str, str], status: int) -> None:
    assert call(gateway, method, "/mcp", headers=headers).status == status


def test_a_head_opens_no_stream(gateway: GatewayProcess) -> None:
    wait_until(lambda: not open_streams(gateway), "the streams of tests before this one to end")
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
    connection.request("HEAD", "/mcp", headers={"accept": "text/event-stream"})
    with connection.getresponse() as response:
        assert response.getheader("content-type") == "text/event-stream"
        assert not open_streams(gateway)
    connection.close()


def open_streams(gateway: GatewayProcess) -> int:
    return int(call(gateway, "GET", "/healthz").json()["connections"]["sse"])


@pytest.mark.parametrize("era", ERAS)
def test_who_hangs_up_while_waiting_leaves_the_line(gateway: GatewayProcess, era: str) -> None:
    lock, handle = take_lock(gateway, "busy.py"), register(gateway, "hasty")
    message = tool_call("lock", agent=handle, paths=["busy.py"], wait_s=60)
    message["params"]["_meta"] = META
    body = json.dumps(message).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"accept: application/json, text/event-stream\r\nmcp-protocol-version: {VERSIONS[era]}\r\n"
        f"mcp-method: tools/call\r\nmcp-name: lock\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE_S) as sock:
        sock.sendall(head.encode() + body)
        wait_until(lambda: call(gateway, "GET", "/v1/locks").json()["waiting"], "somebody in line")
    wait_until(lambda: not call(gateway, "GET", "/v1/locks").json()["waiting"], "an empty line")
    free(gateway, lock)


@pytest.mark.parametrize("era", ERAS)
def test_hosts_and_origins_are_the_guards_alone(gateway: GatewayProcess, era: str) -> None:
    def ask(**headers: str) -> Answer:
        message = modern("tools/list") if era == MODERN else LIST
        return post(gateway, message, era, mcp_method="tools/list", **headers)

    assert ask(host="box.example").status == 200  # the SDK alone would refuse all but loopback
    assert ask(host="box.example:8787", origin="https://box.example").status == 200
    assert ask(host="evil.example").status == 421
    assert ask(origin="https://evil.example").status == 403


def test_streams_count_and_end_with_the_gateway(tmp_path: Path) -> None:
    env = {"HERDR_GATEWAY_SERVER__MAX_CONNECTIONS": "1"}
    with running_gateway(tmp_path / "data", env=env) as gateway:
        notices = Notices(gateway, "one")
        refused = call(gateway, "GET", "/mcp", headers={"accept": "text/event-stream"})
        assert refused.status == 503 and "retry-after" in refused.headers
        rest: list[bytes] = []
        reading = threading.Thread(target=lambda: rest.append(notices.rest()))
        reading.start()
        assert gateway.stop() == 0
        reading.join(PATIENCE_S)
        assert rest == [b"\n"]  # the end of the first block, and of the stream
        notices.close()


def test_a_listener_of_the_newer_era_is_told_of_the_end(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        message = modern("subscriptions/listen", notifications={"resourceSubscriptions": ["herdr://locks"]})
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": "subscriptions/listen",
        }
        connection.request("POST", "/mcp", json.dumps(message), headers)
        response = connection.getresponse()
        assert response.status == 200
        assert response.readline() == b"event: message\r\n"
        assert b"acknowledged" in response.readline()
        assert gateway.stop() == 0
        assert json.loads(response.read().rpartition(b"data: ")[2])["id"] == 7  # its answer: a clean end
        connection.close()


def test_the_older_era_is_the_default(gateway: GatewayProcess) -> None:
    headers = {"content-type": "application/json", "accept": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
    for _ in range(2):  # the connection stays open, and the second request is not kept waiting
        connection.request("POST", "/mcp", json.dumps(LIST), headers)
        response = connection.getresponse()
        assert response.status == 200 and response.getheader("content-type") == "application/json"
        assert len(json.loads(response.read())["result"]["tools"]) == 12
    connection.close()
