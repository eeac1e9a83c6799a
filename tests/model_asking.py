"""One request to a model endpoint, for tests: sent at once, and read only when the test wants to."""

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gateway import GatewayProcess
from wire import PATIENCE_S, Answer


class Event(NamedTuple):
    """One event of a stream that has data."""

    name: str
    data: str
    id: str

    def json(self) -> Any:
        return json.loads(self.data)


class Called(NamedTuple):
    """One tool call in an answer."""

    id: str
    name: str
    input: Any


class Asking:
    """One request on a connection of its own."""

    def __init__(
        self, gateway: GatewayProcess, path: str, body: Any, headers: Mapping[str, str] | None = None
    ) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.socket = socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE_S)
        sent = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
        lines = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{gateway.port}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in sent.items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + data)
        self._response: http.client.HTTPResponse | None = None
        self.broken = False
        """Whether the stream broke off instead of ending."""

    def __enter__(self) -> "Asking":
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Hang up, wherever the answer is."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        if self._response is not None:
            self._response.close()  # until then the socket stays open

    def is_silent(self) -> bool:
        """Whether not a byte has come; of use only once something else says that it could have come."""
        self.socket.setblocking(False)
        try:
            return not self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(PATIENCE_S)

    def head(self) -> http.client.HTTPResponse:
        """Wait for status and headers."""
        if self._response is None:
            self._response = http.client.HTTPResponse(self.socket)
            self._response.begin()
        return self._response

    @property
    def status(self) -> int:
        return self.head().status

    def header(self, name: str) -> str | None:
        return self.head().headers.get(name)

    def answer(self) -> Answer:
        """Read to the end."""
        response = self.head()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())

    def events(self) -> Iterator[Event]:
        """Yield the events of a stream as they come, until it ends."""
        assert self.status == 200, self.answer()
        assert str(self.header("content-type")).startswith("text/event-stream")
        fields: dict[str, str] = {}
        data: list[str] = []
        for line in self._lines():
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
                if name == "data":
                    data.append(fields[name])
                continue
            if data:
                yield Event(fields.get("event", ""), "\n".join(data), fields.get("id", ""))
            fields, data = {}, []
        assert not data, "the stream ended inside an event"

    def _lines(self) -> Iterator[str]:
        response = self.head()
        while True:
            try:
                line = response.readline()
            except (http.client.IncompleteRead, ConnectionResetError):
                self.broken = True
                return
            if not line:
                return
            yield line.rstrip(b"\n").decode()
