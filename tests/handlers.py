"""Ask one handler, without a server."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from herdr.web.asgi import Message, Reply, Scope
from herdr.web.auth import ANYONE, Caller
from herdr.web.surface import Handler


class Given(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def scope_of(method: str = "GET", headers: Mapping[str, str] | None = None, **more: Any) -> Scope:
    sent = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return {"type": "http", "method": method, "scheme": "http", "path": "/", "headers": sent, **more}


async def ask(handler: Handler, scope: Scope, body: Any = None, caller: Caller = ANYONE) -> Given:
    """Return the whole answer of a handler; what it raises is raised."""
    sent: list[Message] = []

    async def receive() -> Message:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return {"type": "http.request", "body": b"" if body is None else content}

    async def send(message: Message) -> None:
        sent.append(message)

    await handler(scope, receive, Reply(scope, send), caller)
    start, *rest = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return Given(start["status"], headers, b"".join(message["body"] for message in rest))
