"""Connections that mean harm, or are merely broken: bounded memory, honest answers, and a clean stop in any case."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from gateway import GatewayProcess
from wire import call, health, post

UPGRADE = (
    b"GET /v1/connect HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
LIVE = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
MEMORY_MAX_MIB = 200  # a fresh gateway has about 45


@contextmanager
def connected(gateway: GatewayProcess) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=20) as sock:
        yield sock


def publishing(id_: str) -> bytes:
    body = b'{"type":"tool.result","id":"%s"}' % id_.encode()
    head = b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


def everything(sock: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    received = b""
    with suppress(ConnectionResetError):
        while part := sock.recv(65_536):
            received += part
    return received


def memory_mib(gateway: GatewayProcess) -> float:
    status = Path(f"/proc/{gateway.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def assert_sound(gateway: GatewayProcess) -> None:
    assert health(gateway)["status"] == "ok"
    assert memory_mib(gateway) < MEMORY_MAX_MIB
    assert not [line for line in gateway.log if "Traceback" in line]
    assert gateway.stop() == 0


def test_a_flood_of_pipelined_requests_is_not_read_ahead(gateway: GatewayProcess) -> None:
    with connected(gateway) as sock:
        sock.settimeout(1)  # the kernel's buffers fill up, and then nothing more is taken
        with suppress(OSError):
            for _ in range(600):
                sock.sendall(LIVE * 1000)
        assert memory_mib(gateway) < MEMORY_MAX_MIB
    assert_sound(gateway)


def test_pipelined_requests_within_the_bound_are_all_answered(gateway: GatewayProcess) -> None:
    with connected(gateway) as sock:
        sock.sendall(LIVE * 500 + LIVE.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert everything(sock).count(b'{"status":"ok"}') == 501
    assert_sound(gateway)


def test_fields_after_a_body_are_bounded_and_change_nothing(gateway: GatewayProcess) -> None:
    head = b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    chunked = head + b'transfer-encoding: chunked\r\n\r\n16\r\n{"type":"tool.result"}\r\n0\r\n'
    with connected(gateway) as sock:
        sock.sendall(chunked + b"content-type: text/plain\r\nce-id: 1\r\ncontent-encoding: gzip\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 200 OK")
    with connected(gateway) as sock, suppress(OSError):
        sock.sendall(chunked)
        for _ in range(2000):
            sock.sendall(b"x-a: b\r\n" * 500)
    assert_sound(gateway)


@pytest.mark.parametrize(
    ("handshake", "status"),
    [
        pytest.param(UPGRADE + b"cookie: " + b"a" * 9000 + b"\r\n\r\n", 431, id="long line"),
        pytest.param(UPGRADE + b"x: y\r\n" * 200 + b"\r\n", 431, id="many lines"),
        pytest.param(UPGRADE + b"content-length: 3\r\n\r\nabc", 400, id="body"),
        pytest.param(UPGRADE + b"transfer-encoding: chunked\r\n\r\n", 400, id="chunked"),
    ],
)
def test_a_handshake_that_cannot_be_is_refused(
    gateway: GatewayProcess, handshake: bytes, status: int
) -> None:
    with connected(gateway) as sock:
        sock.sendall(handshake)
        answer = everything(sock)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"application/problem+json" in answer
    assert_sound(gateway)


def test_a_handshake_behind_a_publish_waits_for_nothing(gateway: GatewayProcess) -> None:
    with connected(gateway) as sock:
        sock.sendall(publishing("first") + UPGRADE + b"\r\n")
        answer = everything(sock)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b'"id":"first"' in answer and b"101 Switching" not in answer
    assert_sound(gateway)


def test_rubbish_behind_publishes_does_not_take_their_answers(gateway: GatewayProcess) -> None:
    with connected(gateway) as sock:
        sock.sendall(publishing("one") + publishing("two") + b"GARBAGE\r\n\r\n")
        answers = everything(sock)
    statuses = re.findall(rb"HTTP/1\.1 (\d+) ", answers)
    assert statuses == [b"200", b"200", b"400"]
    assert b'"title":"Bad Request"' in answers
    assert_sound(gateway)


def test_many_quotes_in_a_header_are_read_once(gateway: GatewayProcess) -> None:
    """It took seconds when each quote was tried as a beginning; now the answer is there before the next request's."""
    named = {"ce-specversion": "1.0", "ce-type": "a.b", "ce-source": "s", "ce-id": "1"}
    answer = post(gateway, {}, **named, **{"ce-x": '"' + '\\"' * 15_000})
    assert answer.status in (200, 400)
    assert call(gateway, "GET", "/livez").status == 200
    assert_sound(gateway)
