"""The surface of the tools' hooks."""

from collections.abc import Awaitable, Callable

from herdr.web.auth import SIGNED_IN
from herdr.web.hooks_api import Hooks, HooksApi
from herdr.web.surface import Endpoint

ANSWERS = {404: "no client has this name"}


def hook_endpoints(
    hooks: Hooks, decoding_turn: Callable[[bytes], Awaitable[None]], body_max: int
) -> list[Endpoint]:
    """Return the endpoint of the hooks. Any token may call it; what it lacks is told in the answer."""
    api = HooksApi(hooks, decoding_turn, body_max)
    return [
        Endpoint("POST", "/hooks/{client}", SIGNED_IN, api.call, "What a tool's hook sends", answers=ANSWERS)
    ]
