"""A stand-in for the gateway's lock endpoints, for what a real one does only when it is in trouble."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

from json_server import Answer, Call, json_server

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


Script = Callable[[Call], Answer | None]
"""What to answer; None closes the connection without an answer."""


class LockAnswers:
    """What it answers, and what it was asked. Grants everything until `script` says otherwise."""

    def __init__(self) -> None:
        self.url = ""
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

    def answer(self, call: Call) -> Answer | None:
        self.asked.append(call)
        return self.script(call)

    def answered(self, call: Call) -> None:
        if call.method == "PUT":
            self.renewals.put(call)

    def calls(self, method: str, path: str) -> list[Any]:
        """Return the bodies of the requests to a path."""
        return [call.body for call in self.asked if (call.method, call.path) == (method, path)]


@contextmanager
def lock_answers() -> Iterator[LockAnswers]:
    """Run the stand-in on a free port of loopback."""
    state = LockAnswers()
    with json_server(state.answer, state.answered) as state.url:
        yield state
