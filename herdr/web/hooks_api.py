"""The handler of `/hooks/{client}`: a tool's own payload in, an answer in the tool's own form out."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from herdr.errors import InvalidInput, NotFound
from herdr.hooks.call import Call
from herdr.hooks.call import Reply as HookReply
from herdr.hooks.clients import CLIENTS
from herdr.web.asgi import Receive, Reply, Scope, read_body, respond_json
from herdr.web.auth import Caller
from herdr.web.drafts import check_text

ADVICE = "lower the tool's own limit on what it sends to hooks, or raise server.body_max_bytes"
SEND = "send what the tool gave to its hook"


class Hooks(Protocol):
    """Does what hooks ask for."""

    async def handle(self, call: Call, may: Callable[[str], bool]) -> HookReply:
        """Handle one call; raises nothing of its own."""
        ...


class HooksApi:
    """Everything but an odd request is answered 200: tools take any other status for a broken hook, and go on."""

    def __init__(
        self, hooks: Hooks, decoding_turn: Callable[[bytes], Awaitable[None]], body_max: int
    ) -> None:
        """`decoding_turn` waits for the turn to decode a body: a large one must not hold up a user's instruction.

        `body_max`: bytes of a request.
        """
        self._hooks = hooks
        self._decoding_turn = decoding_turn
        self._body_max = body_max

    async def call(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer one hook."""
        client = CLIENTS.get(scope["path_params"]["client"])
        if client is None:
            raise NotFound(f"no such client; there are {', '.join(sorted(CLIENTS))}", "unknown_client")
        body = await read_body(scope, receive, self._body_max, ADVICE)
        await self._decoding_turn(body)
        call = client.decode(_payload(body))
        reply = await self._hooks.handle(call, caller.may)
        await respond_json(send, 200, client.encode(call, reply))


def _payload(body: bytes) -> dict[str, Any]:
    check_text(body)
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not JSON ({error}): {SEND}", "invalid_json") from None
    if not isinstance(payload, dict):
        raise InvalidInput(f"the body is not an object: {SEND}", "invalid_request")
    return payload
