"""`python -m bench.readers`: followers over raw sockets, in a process of their own, that do next to nothing.

Says `ready` once every follower has its first block, and at the end one line of JSON.
"""

import argparse
import re
import selectors
import socket
import sys
import time
from typing import Protocol

import msgspec

from bench.process import Child
from bench.timing import spread_ms

NEEDLE = b"\ndata: "
BUFFER = 1024 * 1024
SAMPLE_NS = 20_000_000  # how often the count is noted
_STAMP = re.compile(rb'"t":(\d+)')


class Reader(Protocol):
    """What one follower does with what it has received."""

    seen: int
    """Events so far."""

    def read(self, connection: socket.socket) -> None:
        """Take what is there."""


class CountingReader:
    """Counts events where they are in the buffer, also one whose mark was cut in two."""

    def __init__(self) -> None:
        self.seen = 0
        self._buffer = bytearray(BUFFER)
        self._kept = len(NEEDLE) - 1
        self._room = memoryview(self._buffer)[self._kept :]

    def read(self, connection: socket.socket) -> None:
        """Count, and keep the last bytes for the next time."""
        size = connection.recv_into(self._room) or _ended()
        end = self._kept + size
        self.seen += self._buffer.count(NEEDLE, 0, end)
        self._buffer[: self._kept] = self._buffer[end - self._kept : end]


class TimingReader:
    """Notes how old each event is by the time stamp in its payload."""

    def __init__(self) -> None:
        self.seen = 0
        self.ages_s: list[float] = []
        self._rest = b""

    def read(self, connection: socket.socket) -> None:
        """Look at the events that are whole."""
        received = connection.recv(BUFFER) or bytes(_ended())
        now = time.monotonic_ns()
        whole, mark, rest = (self._rest + received).rpartition(b"\n\n")
        self._rest = rest if mark else whole + rest
        stamps = _STAMP.findall(whole)
        self.seen += len(stamps)
        self.ages_s += [(now - int(stamp)) / 1e9 for stamp in stamps]


def _ended() -> int:
    raise RuntimeError("the gateway has ended a stream")


class Result(msgspec.Struct):
    """What the followers of one process saw."""

    seen: int
    """Events, over all followers."""
    complete: bool
    """Whether each follower got what it expected."""
    ended_ns: int
    samples: list[tuple[int, int]]
    """Monotonic nanoseconds, and events seen until then."""
    ages_ms: dict[str, float] = {}

    def seen_at(self, when_ns: int) -> int:
        """Return how many events had been seen at a moment."""
        return max((seen for at, seen in self.samples if at <= when_ns), default=0)


def readers(port: int, followers: int, expect: int, *, times: bool = False, query: str = "") -> Child:
    """Return a process with `followers`, which ends when each has `expect` events (0: once it is stopped)."""
    numbers = ["--port", str(port), "--followers", str(followers), "--expect", str(expect)]
    options = [*numbers, f"--query={query}", *(["--times"] if times else [])]
    return Child([sys.executable, "-m", "bench.readers", *options], lambda line: line == "ready")


def result_of(child: Child, timeout_s: float = 120.0) -> Result:
    """Wait for the process, and return what it saw."""
    return msgspec.json.decode(child.wait(timeout_s), type=Result)


def connect(port: int, query: str) -> socket.socket:
    """Open one stream; returns once its first block is here, which says that it follows."""
    connection = socket.create_connection(("127.0.0.1", port))
    head = f"GET /v1/events?{query} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: text/event-stream\r\n\r\n"
    connection.sendall(head.encode())
    received = b""
    while b"retry:" not in received or not received.endswith(b"\n\n\r\n"):  # a chunk ends in CR LF
        part = connection.recv(65_536)
        if not part or b"event: herdr.busy" in received:
            raise RuntimeError(f"no stream: {received!r}")
        received += part
    return connection


def follow(connections: dict[socket.socket, Reader], expect: int) -> Result:
    """Read from all connections until each has what it expects."""
    selector = selectors.DefaultSelector()
    for connection, reader in connections.items():
        selector.register(connection, selectors.EVENT_READ, (connection, reader))
    everyone = list(connections.values())
    samples: list[tuple[int, int]] = []
    goal = expect * len(everyone) or sys.maxsize
    seen = noted = now = 0
    while seen < goal:
        for key, _ in selector.select():
            connection, reader = key.data
            before = reader.seen
            reader.read(connection)
            seen += reader.seen - before
        now = time.monotonic_ns()
        if now - noted >= SAMPLE_NS:
            samples.append((now, seen))
            noted = now
    return Result(seen, all(reader.seen == expect for reader in everyone), now, [*samples, (now, seen)])


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    for name in ("--port", "--followers", "--expect"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--query", default="")
    parser.add_argument("--times", action="store_true")
    given = parser.parse_args()
    kind = TimingReader if given.times else CountingReader
    connections: dict[socket.socket, Reader] = {
        connect(given.port, given.query): kind() for _ in range(given.followers)
    }
    print("ready", flush=True)
    result = follow(connections, given.expect)
    ages = [age for r in connections.values() if isinstance(r, TimingReader) for age in r.ages_s]
    result.ages_ms = spread_ms(ages) if ages else {}
    print(msgspec.json.encode(result).decode(), flush=True)


if __name__ == "__main__":
    main()
