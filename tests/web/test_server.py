"""The server's own part of HTTP, over real sockets: order, connections that stay, bounds on slow and large heads."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple

import pytest
from gateway import GatewayProcess, running_gateway
from refusals import assert_problem
from wire import PATIENCE_S, Answer, put_route

from herdr.web.server import HEADER_MAX

HOST = b"host: 127.0.0.1\r\n"
DEADLINES = {
    "HERDR_GATEWAY_SERVER__HEADER_TIMEOUT_S": "0.5",
    "HERDR_GATEWAY_SERVER__BODY_TIMEOUT_S": "0.5",
}


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path_factory.mktemp("patient") / "data") as process:
        yield process


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path_factory.mktemp("hurried") / "data", env=DEADLINES) as process:
        yield process


class Line(NamedTuple):
    """One connection, on which answers are read one after the other, by their lengths."""

    sock: socket.socket
    file: BinaryIO

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.sock.sendall(part)

    def answer(self, method: str = "GET") -> Answer:
        status = self.file.readline()
        assert status.startswith(b"HTTP/1.1 "), status
        headers = {}
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            assert name.lower() not in headers, f"{name} twice"
            headers[name.lower()] = value.strip()
        length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
        return Answer(int(status.split()[1]), headers, self.file.read(length))

    def has_ended(self) -> bool:
        return self.file.read() == b""


@contextmanager
def connected(gateway: GatewayProcess) -> Iterator[Line]:
    with (
        socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE_S) as sock,
        sock.makefile("rb") as file,
    ):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield Line(sock, file)


def request(method: str, path: str, body: bytes = b"", *headers: bytes, version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}\r\n".encode(), HOST, *(header + b"\r\n" for header in headers)]
    if body:
        lines.append(b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body))
    return b"".join([*lines, b"\r\n", body])


def publishing(id_: str, size: int = 10) -> bytes:
    return request("POST", "/v1/events", json.dumps({"type": "a", "id": id_, "data": "x" * size}).encode())


LIVE = request("GET", "/livez")


@pytest.mark.parametrize("piece", [10**6, 1000, 7, 1])
def test_pipelined_requests_are_answered_in_order(patient: GatewayProcess, piece: int) -> None:
    put_route(patient, "short-lived", event="x", target="t")
    sent = [
        ("POST", publishing(f"{piece}-1"), 200),  # waits for the disk, while the next ones could go at once
        ("GET", LIVE, 200),
        ("POST", publishing(f"{piece}-2", 5000), 200),
        ("DELETE", request("DELETE", "/v1/routes/short-lived"), 204),
        ("HEAD", request("HEAD", "/livez"), 200),
        ("GET", request("GET", "/nowhere"), 404),
        ("POST", publishing(f"{piece}-2"), 200),
        ("GET", request("GET", "/v1/events?after=0&limit=1"), 200),
    ]
    whole = b"".join(raw for _, raw, _ in sent)
    with connected(patient) as line:
        line.send(*(whole[start : start + piece] for start in range(0, len(whole), piece)))
        answers = [line.answer(method) for method, _, _ in sent]
        line.send(LIVE)
        assert line.answer().status == 200
    assert [answer.status for answer in answers] == [status for _, _, status in sent]
    receipts = [answer.json() for answer in (answers[0], answers[2], answers[6])]
    assert [r["id"] for r in receipts] == [f"{piece}-1", f"{piece}-2", f"{piece}-2"]
    assert [r["status"] for r in receipts] == ["accepted", "accepted", "duplicate"]
    assert len(answers[7].json()["events"]) == 1


def test_after_a_request_that_closes_nothing_more_is_answered(patient: GatewayProcess) -> None:
    with connected(patient) as line:
        line.send(LIVE + request("GET", "/livez", b"", b"connection: close") + LIVE)
        assert "connection" not in line.answer().headers
        assert line.answer().headers["connection"] == "close"
        assert line.has_ended()


def test_a_connection_stays_for_the_next_request(patient: GatewayProcess) -> None:
    with connected(patient) as line:
        for number in range(5):
            line.send(LIVE, publishing(f"kept-{number}"))
            assert line.answer().json() == {"status": "ok"}
            assert line.answer().json()["status"] == "accepted"


def test_a_refusal_before_the_body_has_come_ends_the_connection(patient: GatewayProcess) -> None:
    with connected(patient) as line:
        line.send(request("POST", "/v1/events", b"", b"content-length: 900000000"))
        answer = line.answer()
        assert_problem(answer, 413, "too_large")
        assert answer.headers["connection"] == "close"
        assert line.has_ended()


@pytest.mark.parametrize("more", [(), (b"connection: keep-alive",)])
def test_http_1_0_gets_a_length_and_the_end(patient: GatewayProcess, more: tuple[bytes, ...]) -> None:
    with connected(patient) as line:
        line.send(request("GET", "/livez", b"", *more, version="1.0"))
        answer = line.answer()
        assert (answer.status, answer.json()) == (200, {"status": "ok"})
        assert answer.headers["connection"] == "close"
        assert line.has_ended()


@pytest.mark.parametrize("path", ["/livez", "/openapi.json", "/nowhere"])
def test_head_is_get_without_the_body(patient: GatewayProcess, path: str) -> None:
    with connected(patient) as line:
        line.send(request("GET", path), request("HEAD", path), LIVE)
        got, head = line.answer(), line.answer("HEAD")
        assert line.answer().json() == {"status": "ok"}
    assert (head.status, head.body) == (got.status, b"")
    assert {**head.headers, "date": ""} == {**got.headers, "date": ""}
    assert int(head.headers["content-length"]) == len(got.body) > 0


def test_no_content_has_no_length_either(patient: GatewayProcess) -> None:
    put_route(patient, "brief", event="x", target="t")
    with connected(patient) as line:
        line.send(request("DELETE", "/v1/routes/brief"), LIVE)
        answer = line.answer()
        assert answer.status == 204
        assert not {"content-length", "transfer-encoding"} & set(answer.headers)
        assert line.answer().json() == {"status": "ok"}


def test_who_asks_first_is_told_to_go_on(patient: GatewayProcess) -> None:
    head, body = publishing("asked-first").split(b"\r\n\r\n")
    with connected(patient) as line:
        line.send(head + b"\r\nexpect: 100-continue\r\n\r\n")
        assert line.answer().status == 100
        line.send(body)
        assert line.answer().json()["status"] == "accepted"


def with_header(size: int, pieces: int = 1) -> bytes:
    headers = [b"x-%d: " % n + b"x" * (size // pieces) for n in range(pieces)]
    return request("GET", "/livez", b"", *headers)


TOO_LARGE = [
    pytest.param((with_header(HEADER_MAX + 1000),), id="whole"),
    pytest.param((with_header(2 * HEADER_MAX, pieces=200),), id="many"),
    pytest.param((with_header(10 * HEADER_MAX)[: 2 * HEADER_MAX],), id="broken off"),
    pytest.param(tuple(with_header(HEADER_MAX + 1000)[n : n + 999] for n in range(0, 32_967, 999)), id="in parts"),
    pytest.param((request("GET", "/livez?" + "x" * (HEADER_MAX + 1000)),), id="path"),
    pytest.param((LIVE + with_header(HEADER_MAX + 1000),), id="pipelined"),
    pytest.param((publishing("large").replace(HOST, HOST + b"x: " + b"x" * HEADER_MAX + b"\r\n"),), id="body"),
]  # fmt: skip


@pytest.mark.parametrize("parts", TOO_LARGE)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_head_that_is_too_large_is_refused(
    patient: GatewayProcess, parts: tuple[bytes, ...], is_first: bool
) -> None:
    with connected(patient) as line:
        if not is_first:
            line.send(LIVE)
            assert line.answer().status == 200
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was all out
            line.send(*parts)
        first = line.answer()
        refusal = line.answer() if first.status == 200 else first  # what came before it may be answered
        problem = assert_problem(refusal, 431, "too_large")
        assert str(HEADER_MAX) in problem["detail"]


def test_a_head_within_the_bound_is_taken_and_a_body_does_not_count(patient: GatewayProcess) -> None:
    with connected(patient) as line:
        for number in range(3):
            line.send(with_header(HEADER_MAX - 1000) + publishing(f"large-body-{number}", 5 * HEADER_MAX))
            assert line.answer().status == 200
            assert line.answer().json()["status"] == "accepted"


def test_heads_that_come_together_are_measured_one_by_one(patient: GatewayProcess) -> None:
    with connected(patient) as line:
        line.send(with_header(HEADER_MAX // 2) * 4)
        assert [line.answer().status for _ in range(4)] == [200] * 4


@pytest.mark.parametrize(
    "raw", [b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
def test_what_is_no_http_gets_a_problem(patient: GatewayProcess, raw: bytes) -> None:
    with connected(patient) as line:
        line.send(raw)
        assert_problem(line.answer(), 400, "bad_request")
        assert line.has_ended()


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (b"", "header"),
        (b"GET /livez HTTP/1.1\r\nhost: 127", "header"),
        (publishing("late")[:-5], "body"),
        (request("POST", "/v1/events", b"", b"transfer-encoding: chunked") + b"5\r\n[{", "body"),
    ],
    ids=["nothing", "header", "body", "chunk"],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_does_not_come_in_time_is_given_up(
    hurried: GatewayProcess, raw: bytes, part: str, is_first: bool
) -> None:
    with connected(hurried) as idle, connected(hurried) as line:
        idle.send(LIVE)
        assert idle.answer().status == 200
        if not is_first:
            line.send(LIVE)
            assert line.answer().status == 200
        if raw or is_first:
            line.send(raw)
            problem = assert_problem(line.answer(), 408, "request_timeout")
            assert f"the request's {part} did not arrive within 0.5 s" in problem["detail"]
            assert line.has_ended()
        idle.send(LIVE)  # whoever owes nothing may be silent for longer
        assert idle.answer().status == 200


def test_bytes_that_trickle_in_buy_no_time(hurried: GatewayProcess) -> None:
    head, body = publishing("trickling", 10**6).split(b"\r\n\r\n")
    with connected(hurried) as line:
        line.send(head + b"\r\n\r\n")
        line.sock.settimeout(0.05)
        for byte in body:
            line.send(bytes([byte]))
            try:
                first = line.sock.recv(13)
                break
            except TimeoutError:
                pass
    assert first == b"HTTP/1.1 408 "
