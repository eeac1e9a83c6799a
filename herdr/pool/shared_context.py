"""The shared context in the prompts of `/v1/chat`: looked up once, and put back on every later turn."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from functools import partial
from typing import Protocol

import msgspec

from herdr.errors import HerdrError
from herdr.pool.canonical import Canonical
from herdr.pool.inset import (
    EMPTY,
    NO_SESSION,
    Asking,
    Block,
    Excerpt,
    Got,
    Report,
    asking,
    compose,
    inset,
    is_first_turn,
    places,
    report,
)
from herdr.pool.inset_memory import Memory
from herdr.pool.protocols.backend.tokens import estimate_tokens
from herdr.pool.request import ContextWish
from herdr.pool.run import Inquiry

FIRST_LOOK_S = 5.0  # what a conversation begins without, it stays without; a map of a large tree takes time
LATER_LOOK_S = 1.0  # what is missing now comes with the next turn
AT_ONCE_MAX = 16  # look-ups of all calls together; the index answers one after another anyway
LARGE_TOKENS = 100_000  # putting a prompt together and hashing it takes milliseconds from here on
SESSION_TOKENS = 2048

NOT_SERVED = "not_served"
TIMEOUT = "timeout"
FAILED = "failed"

_log = logging.getLogger("herdr.pool")


Ask = Callable[[], Awaitable[Excerpt]]


class Contexts(Protocol):
    """What the pool needs of the shared context. All raise HerdrError, whose code says what is missing."""

    async def session(self, session: str, tokens: int) -> Excerpt:
        """Return a session's window within a budget of tokens."""
        ...

    async def map(self, workspace: str, tokens: int, focus: tuple[str, ...]) -> Excerpt:
        """Return the outline of a whole project within a budget of tokens; files in focus weigh more."""
        ...

    async def outline(self, workspace: str, path: str) -> Excerpt:
        """Return the outline of one file."""
        ...


class SharedContext:
    """Puts blocks into prompts, and remembers where they stand. The memory does not survive the process."""

    def __init__(self, contexts: Contexts | None = None, session_tokens: int = SESSION_TOKENS) -> None:
        """Without `contexts` everything is missing, as not served. `session_tokens`: of a session's window."""
        self._contexts = contexts
        self._session_tokens = session_tokens
        self._memory = Memory()
        self._room = asyncio.Semaphore(AT_ONCE_MAX)

    async def put_in(self, inquiry: Inquiry, wish: ContextWish | None) -> tuple[Inquiry, Report | None]:
        """Return the inquiry with its blocks, and what the answer says about them; never fails for want of them."""
        own = inquiry.canonical
        there = places(own)
        beginning = there[0].key if there else b""
        conversation = (inquiry.caller.agent, inquiry.caller.session, beginning)
        known = None if is_first_turn(own) else self._memory.find(conversation)
        if wish is None:
            if known is None:
                self._memory.forget(conversation)
                self._memory.note_plain(beginning)
                return inquiry, None
            return await _with_blocks(inquiry, known), None
        was_plain = not is_first_turn(own) and self._memory.was_plain(beginning)
        asked = asking(own, known, wish, was_plain=was_plain)
        got = await self._look_up(asked, wish, inquiry.caller.session)
        composed = compose(asked, wish, inquiry.caller.session, got)
        if asked.place is not None and (known is None or composed.block != EMPTY):
            known = self._kept(conversation, known, asked.place.key, composed.block)
        return await _with_blocks(inquiry, known or {}), report(wish, asked, composed)

    def _kept(
        self, conversation: Hashable, known: Mapping[bytes, Block] | None, key: bytes, block: Block
    ) -> Mapping[bytes, Block]:
        """Remember a new block, and return it with the conversation's others.

        One that begins as another did takes its place, unless it begins with the same block, too.
        """
        meanwhile = self._memory.find(conversation) or {}
        goes_on = known is not None or meanwhile.get(key) == block
        known = {**(meanwhile if goes_on else {}), **(known or {}), key: block}
        self._memory.keep(conversation, known)
        return known

    async def _look_up(self, asked: Asking, wish: ContextWish, session: str | None) -> Mapping[str, Got]:
        contexts = self._contexts
        names = [f"file {path}" for path in asked.files]
        names += ["map"] if asked.map else []
        names += ["session"] if asked.session else []
        if contexts is None:
            return dict.fromkeys(names, NOT_SERVED)
        wanted: dict[str, Ask] = {
            f"file {path}": partial(contexts.outline, wish.workspace, path) for path in asked.files
        }
        if asked.map:
            wanted["map"] = partial(contexts.map, wish.workspace, wish.map_tokens or 0, wish.files)
        if asked.session and session is not None:
            wanted["session"] = partial(contexts.session, session, self._session_tokens)
        within_s = FIRST_LOOK_S if asked.is_first else LATER_LOOK_S
        found = await asyncio.gather(*(self._look(one, within_s) for one in wanted.values()))
        return {**dict.fromkeys(names, NO_SESSION), **dict(zip(wanted, found, strict=True))}

    async def _look(self, ask: Ask, within_s: float) -> Got:
        try:
            async with asyncio.timeout(within_s), self._room:
                excerpt = await ask()
            excerpt.text.encode()  # half a surrogate pair would fail the call later
            return excerpt
        except TimeoutError:
            return TIMEOUT
        except HerdrError as error:
            return error.code
        except Exception:  # noqa: BLE001 - the call goes on without it
            _log.exception("a part of the context of a prompt could not be looked up")
            return FAILED


async def _with_blocks(inquiry: Inquiry, known: Mapping[bytes, Block]) -> Inquiry:
    own = inquiry.canonical
    if inquiry.prompt_estimate > LARGE_TOKENS:
        asked = await asyncio.to_thread(inset, own, known)
    else:
        asked = inset(own, known)
    return inquiry if asked is own else _replaced(inquiry, asked)


def _replaced(inquiry: Inquiry, asked: Canonical) -> Inquiry:
    return msgspec.structs.replace(inquiry, canonical=asked, prompt_estimate=estimate_tokens(asked.request))
