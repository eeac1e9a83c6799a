"""Prompts of the configuration, evaluated at start, so that the first agent finds its long beginning warm."""

import asyncio
import logging
from collections.abc import Mapping

import msgspec

from herdr.errors import HerdrError, InvalidInput
from herdr.pool.canonical import canonical
from herdr.pool.failures import ModelError
from herdr.pool.identity import Caller
from herdr.pool.pool import Pool
from herdr.pool.protocols import anthropic, herdr
from herdr.pool.protocols.backend.tokens import estimate_tokens
from herdr.pool.request import ChatRequest, Message, Text
from herdr.pool.run import Inquiry

RETRY_FIRST_S, RETRY_MAX_S = 5.0, 60.0  # while the backend is away
_CALLER = Caller("prewarm", None, "prewarm", 9, side=False, sub_agent=False, retry=False)
_SAYS_NOTHING = Message("user", (Text("."),))

_log = logging.getLogger("herdr.pool")


class _Shape(msgspec.Struct, frozen=True):
    system: msgspec.Raw = msgspec.Raw()
    messages: msgspec.Raw = msgspec.Raw()


def prompt_of(data: bytes) -> ChatRequest:
    """Return what a prewarm file holds: a request in Anthropic's or `/v1/chat`'s form, or a system prompt.

    Raises InvalidInput.
    """
    try:
        shape = msgspec.json.decode(data, type=_Shape)
    except (msgspec.DecodeError, RecursionError):
        shape = _Shape()
    if bytes(shape.messages):
        return anthropic.parse(data) if bytes(shape.system) else herdr.parse(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidInput("the file is neither JSON nor text in UTF-8") from None
    return ChatRequest("", (Message("system", (Text(text),)), _SAYS_NOTHING))


async def prewarm(pool: Pool, prompts: Mapping[str, ChatRequest]) -> None:
    """Evaluate the prompts one after the other; each is tried until a backend takes it or refuses it."""
    for name, request in prompts.items():
        pause_s = RETRY_FIRST_S
        while (error := await _evaluate(pool, request)) is not None:
            if not isinstance(error, ModelError) or error.status < 500:
                _log.error("the prompt %s was not evaluated: %s", name, error.detail)
                break
            await asyncio.sleep(pause_s)  # nothing tells us when a server comes up
            pause_s = min(RETRY_MAX_S, 2 * pause_s)
        else:
            _log.info("the prompt %s is warm", name)


async def _evaluate(pool: Pool, request: ChatRequest) -> HerdrError | None:
    try:
        asked = canonical(msgspec.structs.replace(request, max_tokens=0))
        inquiry = Inquiry(asked, _CALLER, estimate_tokens(asked.request), is_prewarm=True)
        with pool.open(inquiry) as reader:
            while not reader.generation.ended:
                await reader.moved()
    except HerdrError as error:
        return error
    return reader.generation.failure
