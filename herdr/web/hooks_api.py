"""The handler of `/hooks/{client}`: a tool's own payload in, an answer in the tool's own form out."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from herdr.errors import InvalidInput, NotFound
from herdr.hooks.call import Call
from herdr.hooks.call import Reply as HookReply
from herdr.hooks.clients import CLIENTS
from herdr.web.asgi import Receive, Reply, Scope, read_body, respond_json
from herdr.web.auth import Caller
from herdr.web.drafts import check_text

ADVICE = "the tool's own limit on what it sends to hooks may be lower, or raise server.body_max_bytes"


class Hooks(Protocol):
    """Does what hooks ask for."""

    async def handle(self, call: Call, may: Callable[[str], bool]) -> HookReply:
        """Handle one call; raises nothing of its own."""
        ...


class HooksApi:
    """Everything but an odd request is answered 200: tools take any other status for a broken hook, and go on."""

    def __init__(self, hooks: Hooks, body_max: int) -> None:
        self._hooks = hooks
        self._body_max = body_max

    async def call(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer one hook."""
        client = CLIENTS.get(scope["path_params"]["client"])
        if client is None:
            raise NotFound(f"no such client; there are {', '.join(sorted(CLIENTS))}", "unknown_client")
        payload = _payload(await read_body(scope, receive, self._body_max, ADVICE))
        call = client.decode(payload)
        reply = await self._hooks.handle(call, caller.may)
        await respond_json(send, 200, client.encode(call, reply))


def _payload(body: bytes) -> dict[str, Any]:
    check_text(body)
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not JSON: {error}", "invalid_json") from None
    if not isinstance(payload, dict):
        raise InvalidInput(
            "the body is not an object: send what the tool gave to its hook", "invalid_request"
        )
    return payload
