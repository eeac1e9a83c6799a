"""A stand-in for the gateway's context endpoints: answers are objects, or content, or broken off on purpose."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Cut(NamedTuple):
    """Content that ends too early."""

    content: bytes
    said: int


Answer = tuple[int, Any]
"""The status, and an object for JSON, bytes as they are, a `Cut`, or None for nothing."""


class ContextAnswers:
    """What it answers, and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.workspaces: list[dict[str, Any]] = []
        self.asked: list[Call] = []
        self.answers: dict[str, Answer | list[Answer]] = {}
        """By address without its query, with or without the method before it; of a list, one after the other."""
        self.body_max = 64 * 1024**2
        """A larger body is not read before the answer."""

    def answer(self, call: Call) -> Answer:
        self.asked.append(call)
        path = call.path.partition("?")[0]
        if path == "/v1/workspaces":
            return 200, {"workspaces": self.workspaces}
        unknown = (404, {"code": "not_found", "detail": "no such path"})
        found = self.answers.get(f"{call.method} {path}") or self.answers.get(path) or unknown
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found

    def addresses(self) -> list[str]:
        """Return what was asked for, without the look at the workspaces."""
        return [call.path for call in self.asked if call.path != "/v1/workspaces"]


@contextmanager
def context_answers() -> Iterator[ContextAnswers]:
    """Run the stand-in on a free port of loopback."""
    state = ContextAnswers()
    with _server(state.answer, lambda: state.body_max) as state.url:
        yield state


@contextmanager
def _server(answer: Callable[[Call], Answer], body_max: Callable[[], int]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(size) if size <= body_max() else b""
            self.close_connection = True
            self._send(*answer(Call(self.command, self.path, headers, body)))

        def _send(self, status: int, value: Any) -> None:
            said, body = value.said if isinstance(value, Cut) else None, _bytes(value)
            self.send_response(status)
            self.send_header("content-length", str(len(body) if said is None else said))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _bytes(value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, Cut):
        return value.content
    return value if isinstance(value, bytes) else json.dumps(value).encode()
