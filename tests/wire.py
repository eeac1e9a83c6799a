"""An outside client for tests: plain HTTP, SSE and WebSocket from the standard library and `websockets`.

It shares no code with the gateway or the SDK, so that a mistake of theirs is not repeated here.
"""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from gateway import GatewayProcess
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_websocket

PATIENCE_S = 20.0  # for whatever is waited for; reaching it is a failure
JSON = {"content-type": "application/json"}


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """With names in lower case."""
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def call(
    gateway: GatewayProcess,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send one request; a body that is not bytes goes as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
    sent = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        sent.setdefault("content-type", "application/json")
    with contextlib.closing(connection):
        connection.request(method, path, body, sent)
        return _answer(connection.getresponse())


def _answer(response: http.client.HTTPResponse) -> Answer:
    return Answer(
        response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    )


def send_raw(gateway: GatewayProcess, data: bytes, *, finish: bool = False) -> Answer:
    """Send bytes on a socket of their own and return what is answered; `finish` closes our side first."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE_S) as sock:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(data)  # an early refusal ends it half-way; the answer is there all the same
        if finish:
            sock.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(sock)
        response.begin()
        return _answer(response)


def post(gateway: GatewayProcess, body: Any, **headers: str) -> Answer:
    """Publish; header names are given with underscores."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(gateway, "POST", "/v1/events", body, {**JSON, **sent})


def publish(gateway: GatewayProcess, *events: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Publish events in one batch and return their receipts."""
    answer = post(gateway, list(events))
    assert answer.status == 200, answer
    return list(answer.json()["results"])


def accept(gateway: GatewayProcess, **event: Any) -> int:
    """Publish one event that must be accepted, and return its seq."""
    receipt = post(gateway, event)
    assert receipt.status == 200 and receipt.json()["status"] == "accepted", receipt
    return int(receipt.json()["seq"])


def page(gateway: GatewayProcess, query: str = "after=0", **headers: str) -> dict[str, Any]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = call(gateway, "GET", f"/v1/events?{query}", headers=sent)
    assert answer.status == 200, answer
    return dict(answer.json())


def all_events(gateway: GatewayProcess, query: str = "") -> list[dict[str, Any]]:
    """Read everything that is retained, page by page, in `seq` order (near the head P0 comes first)."""
    events: list[dict[str, Any]] = []
    cursor, seen = "0", ""
    while cursor != seen:
        got = page(gateway, f"after={cursor}&limit=1000&{query}")
        events.extend(got["events"])
        cursor, seen = got["cursor"], cursor
    return sorted(events, key=lambda event: int(event["seq"]))


def health(gateway: GatewayProcess) -> dict[str, Any]:
    return dict(call(gateway, "GET", "/healthz").json())


def ack(gateway: GatewayProcess, target: str, cursor: str) -> Answer:
    return call(gateway, "POST", f"/v1/targets/{target}/ack", {"cursor": cursor})


def put_route(gateway: GatewayProcess, name: str, **rule: Any) -> None:
    answer = call(gateway, "PUT", f"/v1/routes/{name}", rule)
    assert answer.status in (200, 201), answer


def wait_until(true: Callable[[], Any], what: str) -> None:
    """Look again and again until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        threading.Event().wait(0.02)


class Block(NamedTuple):
    """One block of an SSE stream, by the rules of the WHATWG: it dispatches only with data."""

    event: str
    data: str
    id: str | None
    retry: int | None

    def json(self) -> Any:
        return json.loads(self.data)


class Stream:
    """One SSE stream. Blocks come from a plain blocking socket, so `next` waits for as long as it takes."""

    def __init__(
        self, gateway: GatewayProcess, query: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
        path = f"/v1/events?{query}" if query else "/v1/events"
        self._connection.request("GET", path, headers={"accept": "text/event-stream", **(headers or {})})
        self.response = self._connection.getresponse()
        assert self.response.status == 200, _answer(self.response)
        self.broken = False
        self.last_id = ""
        self.retry: int | None = None

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.response.close()
        self._connection.close()

    def blocks(self) -> Iterator[Block]:
        """Yield blocks until the stream ends, cleanly or not."""
        fields: dict[str, str] = {}
        data: list[str] = []
        while True:
            try:
                line = self.response.readline()
            except (http.client.IncompleteRead, ConnectionResetError):
                self.broken = True
                return
            if not line:
                return
            name, _, value = line.rstrip(b"\n").decode().partition(":")
            value = value.removeprefix(" ")
            if line != b"\n":
                if name == "data":
                    data.append(value)
                fields[name] = value
                continue
            block = Block(
                fields.get("event", "message"),
                "\n".join(data),
                fields.get("id"),
                int(fields["retry"]) if "retry" in fields else None,
            )
            self.last_id = self.last_id if block.id is None else block.id
            self.retry = self.retry if block.retry is None else block.retry
            yield block
            fields, data = {}, []

    def next(self) -> Block:
        """Return the next block that dispatches an event."""
        for block in self.blocks():
            if block.data:
                return block
        raise AssertionError("the stream ended")

    def take(self, count: int) -> list[dict[str, Any]]:
        """Return the next `count` events as objects."""
        return [self.next().json() for _ in range(count)]

    def start(self) -> "Stream":
        """Wait for the first block: from here on the follower sees what is published."""
        first = next(self.blocks())
        assert first.id and first.retry and not first.data
        return self


class Socket:
    """One `/v1/connect` in JSON. Frames that nobody asked for yet are kept by ref."""

    def __init__(
        self, gateway: GatewayProcess, headers: Mapping[str, str] | None = None, max_queue: int | None = None
    ) -> None:
        self._connecting = connect_websocket(
            f"ws://127.0.0.1:{gateway.port}/v1/connect",
            subprotocols=["herdr.v1.json"],  # type: ignore[list-item]
            additional_headers=dict(headers or {}),
            proxy=None,
            max_size=None,
            open_timeout=PATIENCE_S,
            ping_interval=None,
            close_timeout=1,
            max_queue=max_queue,  # received frames beyond which the socket is not read
        )

    def __enter__(self) -> "Socket":
        self.ws: ClientConnection = self._connecting.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.ws.close()

    def send(self, op: str, **fields: Any) -> None:
        self.ws.send(json.dumps({"op": op, **fields}))

    def recv(self) -> dict[str, Any]:
        return dict(json.loads(self.ws.recv(timeout=PATIENCE_S)))

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self.send(op, **fields)
        return self.recv()

    def events(self, count: int) -> list[dict[str, Any]]:
        """Return the next `count` events of whatever follows there are."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            frame = self.recv()
            assert frame["op"] == "events", frame
            found.extend(frame["events"])
        return found
