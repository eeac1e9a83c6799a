"""A stand-in for the gateway's lock endpoints, for what a real one does only when it is in trouble."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any, NamedTuple

LOCK = "01M8P532BP53ND5G61AVK3QGY7"
SINCE, EXPIRES = "2026-01-01T12:00:00.000Z", "2026-01-01T12:01:00.000Z"
HELD = {
    "path": "src/a.py",
    "asked": "src/a.py",
    "owner": "cursor",
    "purpose": "a new cart",
    "since": SINCE,
    "expires": EXPIRES,
    "state": "held",
    "lock": LOCK,
}
GONE = (404, {"code": "unknown_lock", "detail": "no such lock is held: its lease ran out"})
FENCED = (409, {"code": "fenced", "detail": "the lock has another token by now"})


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    body: Any


Answer = tuple[int, Any]
Script = Callable[[Call], Answer | None]
"""What to answer; None closes the connection without an answer."""


class LockAnswers:
    """What it answers, and what it was asked. Grants everything until `script` says otherwise."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: Script = self.grant
        self.workspaces: list[dict[str, Any]] = []
        self.asked: list[Call] = []
        self.renewals: Queue[Call] = Queue()

    def grant(self, call: Call) -> Answer | None:
        """Answer as a gateway without other clients does."""
        if call.path == "/v1/workspaces":
            return 200, {"workspaces": self.workspaces}
        if call.path == "/v1/locks/check":
            return 200, {"conflicts": []}
        if call.method == "POST":
            return 201, {"lock": LOCK, "token": 17, "expires": EXPIRES, "since": SINCE, **call.body}
        return (204, None) if call.method == "DELETE" else (200, {"lock": LOCK, "token": 17})

    def calls(self, method: str, path: str) -> list[Any]:
        """Return the bodies of the requests to a path."""
        return [call.body for call in self.asked if (call.method, call.path) == (method, path)]


@contextmanager
def lock_answers() -> Iterator[LockAnswers]:
    """Run the stand-in on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            call = Call(self.command, self.path, json.loads(raw) if raw else None)
            state.asked.append(call)
            answer = state.script(call)
            if answer is not None:
                body = b"" if answer[1] is None else json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            if call.method == "PUT":
                state.renewals.put(call)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state = LockAnswers(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
