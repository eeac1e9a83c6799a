"""A stand-in for the gateway's model endpoints: what is set as the answer to a path is what it says."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from json_server import Answer, Call, json_server

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

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, tuple[int, Any]] = {"/v1/pool": (200, POOL)}
        self.asked: list[str] = []
        self.tokens: list[str | None] = []

    def answer(self, call: Call) -> Answer:
        self.asked.append(call.path)
        self.tokens.append(call.authorization)
        unknown = (404, {"code": "not_found", "detail": "no such path"})
        return self.answers.get(call.path.partition("?")[0], unknown)


@contextmanager
def pool_answers() -> Iterator[PoolAnswers]:
    """Run the stand-in on a free port of loopback."""
    state = PoolAnswers()
    with json_server(state.answer) as state.url:
        yield state
