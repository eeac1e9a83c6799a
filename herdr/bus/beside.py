"""What rules want beside an event: its session's window, its file's outline. Looked up when it is delivered.

Followers that want the same at the same time share one look-up; nothing is kept for later, so that everybody
gets what is true then. What has not come within LOOK_S, or before a P0 event that would have to wait for it,
is missing, with the reason.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, Protocol

import msgspec

from herdr.bus.follow import Follower
from herdr.bus.page import Item, Page
from herdr.errors import HerdrError
from herdr.event import Lane

LOOK_S = 1.0  # all look-ups of a page run at the same time, so this is how long the page waits
AT_ONCE_MAX = 16  # look-ups of all followers together; the index answers one after another anyway
BYTES_MAX = (
    1024 * 1024
)  # of contexts beside one page's events (or one larger), as much as one payload may have

NOT_SERVED = "not_served"
TIMEOUT = "timeout"
OVERTAKEN = "overtaken"
TOO_LARGE = "too_large"
FAILED = "failed"

_log = logging.getLogger("herdr.bus")
_encode = msgspec.json.Encoder().encode


class Excerpt(Protocol):
    """A text cut to a budget of tokens."""

    @property
    def text(self) -> str:
        """The text itself."""
        ...

    @property
    def tokens(self) -> int:
        """How many it has."""
        ...

    @property
    def tokenizer(self) -> str:
        """Who counted them."""
        ...

    @property
    def ref(self) -> str:
        """SHA-256 of the text, in hex."""
        ...


class Contexts(Protocol):
    """What the bus needs of the shared context. Both raise HerdrError, whose code says what is missing."""

    async def session(self, session: str, tokens: int) -> Excerpt:
        """Return a session's window within a budget of tokens."""
        ...

    async def outline(self, workspace: str, path: str) -> Excerpt:
        """Return the outline of one file."""
        ...


class Look(NamedTuple):
    """One thing to look up."""

    part: Literal["session", "graph"]
    of: str
    """The session, or the workspace."""
    detail: int | str
    """Its tokens, or the path."""


class Found(NamedTuple):
    """What a look-up gave, as JSON objects."""

    whole: bytes
    short: bytes
    """Without the text, for a page that has too much already."""


class _UnderWay:
    """A look-up under way, and how many pages wait for it."""

    def __init__(self, task: "asyncio.Task[Found]") -> None:
        self.task = task
        self.pages = 0


class Beside:
    """Looks up what pages want beside their events. One for all followers, so that they share what is under way."""

    def __init__(self, contexts: Contexts | None = None) -> None:
        """Without `contexts` everything is missing, as not served."""
        self._contexts = contexts
        self._under_way: dict[Look, _UnderWay] = {}
        self._room = asyncio.Semaphore(AT_ONCE_MAX)

    @contextlib.contextmanager
    def looking(self, page: Page) -> "Iterator[Looking]":
        """Look up whatever a page wants for as long as the context lasts."""
        joined = {look: self._join(look) for look in dict.fromkeys(_all_looks(page.items))}
        try:
            yield Looking({look: one.task for look, one in joined.items()})
        finally:
            for look, one in joined.items():
                self._leave(look, one)

    def _join(self, look: Look) -> _UnderWay:
        one = self._under_way.get(look)
        if one is None or one.task.done():
            one = self._under_way[look] = _UnderWay(asyncio.create_task(self._find(look)))
        one.pages += 1
        return one

    def _leave(self, look: Look, one: _UnderWay) -> None:
        one.pages -= 1
        if one.pages == 0:
            one.task.cancel()
            if self._under_way.get(look) is one:
                del self._under_way[look]

    async def _find(self, look: Look) -> Found:
        try:
            async with asyncio.timeout(LOOK_S), self._room:
                return _found(await self._ask(look))
        except TimeoutError:
            return _missing(TIMEOUT)
        except HerdrError as error:
            return _missing(error.code)
        except Exception:  # noqa: BLE001 - the event is delivered all the same
            _log.exception("the %s beside an event could not be looked up", look.part)
            return _missing(FAILED)

    async def _ask(self, look: Look) -> Excerpt:
        if self._contexts is None:
            raise HerdrError("this gateway serves no context", NOT_SERVED)
        if isinstance(look.detail, int):
            return await self._contexts.session(look.of, look.detail)
        return await self._contexts.outline(look.of, look.detail)


class Looking:
    """The look-ups of one page."""

    def __init__(self, tasks: "Mapping[Look, asyncio.Task[Found]]") -> None:
        self._tasks = tasks
        self._left = BYTES_MAX

    async def beside(self, piece: Page, follower: Follower | None = None) -> Page:
        """Return the page, or a piece of it, with what was found.

        Given a follower that is near the head, P1 and P2 events wait only until a P0 event is there for it.
        """
        tasks = {self._tasks[look] for look in _all_looks(piece.items)}
        waits_for_p0 = any(item.wanted is not None and item.event.lane == Lane.P0 for item in piece.items)
        if follower is None or not piece.reached_head or waits_for_p0:
            await _all(tasks)
        else:
            await _all_unless(tasks, follower)
        return Page([self._with_context(item) for item in piece.items], piece.end, piece.reached_head)

    def _with_context(self, item: Item) -> Item:
        looks = tuple(_looks(item))
        if not looks:
            return item
        parts = [b'"%s":%s' % (look.part.encode(), self._bounded(look)) for look in looks]
        return item._replace(context=b"{%s}" % b",".join(parts))

    def _bounded(self, look: Look) -> bytes:
        task = self._tasks[look]
        found = task.result() if task.done() else _missing(OVERTAKEN)
        fits = len(found.whole) <= self._left or self._left == BYTES_MAX
        said = found.whole if fits else found.short
        self._left -= len(said)
        return said


def _looks(item: Item) -> Iterator[Look]:
    wanted, event = item.wanted, item.event
    if wanted is None:
        return
    if wanted.session_tokens and event.session is not None:
        yield Look("session", event.session, wanted.session_tokens)
    if wanted.graph and event.subject is not None:
        yield Look("graph", event.workspace, event.subject)


def _all_looks(items: Iterable[Item]) -> Iterator[Look]:
    for item in items:
        yield from _looks(item)


def _found(excerpt: Excerpt) -> Found:
    about = {"tokens": excerpt.tokens, "tokenizer": excerpt.tokenizer, "ref": excerpt.ref}
    return Found(_encode({"text": excerpt.text, **about}), _encode({"unavailable": TOO_LARGE, **about}))


def _missing(why: str) -> Found:
    said = _encode({"unavailable": why})
    return Found(said, said)


async def _all(tasks: "set[asyncio.Task[Found]]") -> None:
    if tasks:
        await asyncio.wait(tasks)


async def _all_unless(tasks: "set[asyncio.Task[Found]]", follower: Follower) -> None:
    """Wait for all of them, or until a P0 event is there for the follower."""
    pending = {task for task in tasks if not task.done()}
    if not pending:
        return
    overtaken = asyncio.create_task(follower.overtaken())
    try:
        while pending and not overtaken.done():
            done, _ = await asyncio.wait({*pending, overtaken}, return_when=asyncio.FIRST_COMPLETED)
            pending -= done
    finally:
        overtaken.cancel()
