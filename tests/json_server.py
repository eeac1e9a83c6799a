"""A server on loopback whose JSON answers a test decides: a stand-in for a gateway in a certain state."""

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
    body: Any
    authorization: str | None = None


Answer = tuple[int, Any]
"""The status, and what is written as JSON; nothing for None."""


@contextmanager
def json_server(
    answer: Callable[[Call], Answer | None], answered: Callable[[Call], None] = lambda call: None
) -> Iterator[str]:
    """Run the server on a free port and yield its address.

    When `answer` returns None, the connection is closed without one. `answered` is told of each request
    when its answer is on its way.
    """

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(raw) if raw else None
            call = Call(self.command, self.path, body, self.headers.get("authorization"))
            found = answer(call)
            if found is not None:
                self._send(*found)
            answered(call)

        def _send(self, status: int, value: Any) -> None:
            body = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
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
