"""A stand-in for the gateway's model endpoints: what is set as the answer to a path is what it says."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

POOL: dict[str, Any] = {
    "backends": [
        {
            "name": "local",
            "kind": "llamacpp",
            "url": "http://127.0.0.1:8080",
            "state": "ready",
            "detail": None,
            "paused_s": None,
            "context": 32768,
            "restores": True,
            "slots": [
                {
                    "slot": 0,
                    "state": "busy",
                    "agent": "reviewer",
                    "prefix": "0123456789abcdef",
                    "route": "primary_agent",
                    "call": "01M8",
                    "cached_tokens": 1812,
                    "idle_s": None,
                },
                {"slot": 1, "state": "free", "agent": None, "cached_tokens": 0, "idle_s": 12.4},
            ],
            "queue": {"total": 3, "by_priority": {"5": 2, "9": 1}},
            "shares": {"primary_agent": {"part": 1, "running": 1}},
            "running": 1,
        },
        {
            "name": "cloud",
            "kind": "openai",
            "url": "https://api.example.com",
            "state": "paused",
            "detail": "429: quota",
            "paused_s": 41.7,
            "context": None,
            "restores": None,
            "slots": [],
            "queue": {"total": 0, "by_priority": {}},
            "shares": {},
            "running": 0,
        },
    ],
    "names": {"gpt-*": "cloud", "*": "local"},
}


class PoolAnswers:
    """What it answers, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: dict[str, tuple[int, Any]] = {"/v1/pool": (200, POOL)}
        self.asked: list[str] = []
        self.tokens: list[str | None] = []


@contextmanager
def pool_answers() -> Iterator[PoolAnswers]:
    """Run the stand-in on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            state.tokens.append(self.headers.get("authorization"))
            unknown = (404, {"code": "not_found", "detail": "no such path"})
            status, value = state.answers.get(self.path.partition("?")[0], unknown)
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state = PoolAnswers(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
