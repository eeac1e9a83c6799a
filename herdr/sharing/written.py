"""Summaries written by a model of the pool, in the background; the rules' own window never waits for one."""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from herdr.errors import HerdrError
from herdr.pool.canonical import canonical
from herdr.pool.chunk import TextDelta
from herdr.pool.identity import PRIORITY_LAST, Caller
from herdr.pool.pool import Pool
from herdr.pool.protocols.backend.tokens import estimate_tokens
from herdr.pool.request import ChatRequest, Message, Text
from herdr.pool.run import Inquiry

SOURCE_MAX = 60_000  # characters of what the model reads; it has the rules' summary, not the whole session
ANSWER_TOKENS = 300
ANSWER_MAX = 4_000  # characters that are kept of what it writes
STALE_MESSAGES = 20  # so many messages after it was written, a summary is written anew
KEPT_MAX = 256  # sessions with a written summary
WRITING_MAX = 32  # that wait for their turn; others are asked for again with their next window
AT_ONCE = 1  # background work must not fill the slots
WITHIN_S = 120.0

_CALLER = Caller("summariser", None, "background", PRIORITY_LAST, side=True, sub_agent=False, retry=False)
_SYSTEM = (
    "You write the summary of a programming session for another assistant that continues the work. "
    "From the notes below, say in at most 150 words what the goal is, what was done, what state the work is in, and "
    "what comes next. Use the language of the notes. Invent nothing; give no instructions."
)

_log = logging.getLogger("herdr.context")


class Written(NamedTuple):
    """One summary, and the message up to which it knows the session."""

    text: str
    messages: int


Session = tuple[str, int]
"""A session's name and when it began: one that is deleted and begun anew is another one."""


class Summariser:
    """Keeps written summaries; asks the pool for those that are missing or old, one at a time."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._kept: dict[Session, Written] = {}
        self._writing: dict[Session, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def stop(self) -> None:
        """Give up what is being written."""
        for task in self._writing.values():
            task.cancel()
        await asyncio.gather(*self._writing.values(), return_exceptions=True)

    def find(self, session: Session, messages: int, source: Callable[[], str]) -> str | None:
        """Return a session's summary if there is one; have it written, from `source`, if it is missing or old."""
        written = self._kept.get(session)
        is_old = written is None or messages - written.messages >= STALE_MESSAGES
        if is_old and session not in self._writing and len(self._writing) < WRITING_MAX:
            work = self._write(session, messages, source())
            task = asyncio.create_task(work, name=f"summarise {session[0]}")
            self._writing[session] = task
            task.add_done_callback(lambda _: self._writing.pop(session, None))
        return (written.text or None) if written is not None else None

    async def _write(self, session: Session, messages: int, source: str) -> None:
        before = self._kept.get(session)
        text = (
            "" if before is None else before.text
        )  # after a failure the next try is as far away as after a success
        try:
            async with self._turn, asyncio.timeout(WITHIN_S):
                text = await self._ask(source[-SOURCE_MAX:])
        except (HerdrError, TimeoutError) as error:
            _log.info(
                "no model wrote the summary of %s: %s",
                session[0],
                getattr(error, "detail", "it took too long"),
            )
        self._kept.pop(session, None)
        self._kept[session] = Written(text[:ANSWER_MAX], messages)
        while len(self._kept) > KEPT_MAX:
            del self._kept[next(iter(self._kept))]

    async def _ask(self, source: str) -> str:
        messages = (Message("system", (Text(_SYSTEM),)), Message("user", (Text(source),)))
        asked = canonical(ChatRequest("", messages, max_tokens=ANSWER_TOKENS, thinking=False))
        inquiry = Inquiry(asked, _CALLER, estimate_tokens(asked.request), is_own=True)
        said: list[str] = []
        with self._pool.open(inquiry) as reader:
            while not reader.finished:
                said += [chunk.text for chunk in reader.take() if isinstance(chunk, TextDelta)]
                if not reader.finished:
                    await reader.moved()
        return "".join(said).strip()
