"""Following, as the consumer sees it: an async iterator that survives lost connections."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Self, TypedDict, TypeVar

from herdr_sdk.connection import Connection
from herdr_sdk.errors import ConnectionFailed, HerdrError
from herdr_sdk.event import GAP, Event
from herdr_sdk.subscription import Subscription
from herdr_sdk.versions import Versions

AckMode = Literal["auto", "manual"]
CLOSE_ACK_S = 2.0  # how long leaving waits for the last acknowledgement

_T = TypeVar("_T")


class Filters(TypedDict, total=False):
    """What to follow: each an exact value or a glob, or several of them. All named ones must match."""

    type: str | Sequence[str]
    class_: str | Sequence[str]
    priority: str | Sequence[str]
    source: str | Sequence[str]
    workspace: str | Sequence[str]
    session: str | Sequence[str]
    subject: str | Sequence[str]


class Follow:
    """One follow; made by `Hub.follow`. Iterate over it, best inside `async with`.

    Without `async with`, following begins when the first event is asked for.
    """

    def __init__(
        self,
        connection: Connection,
        query: Mapping[str, Any],
        ack: AckMode | None,
        gaps: bool,
        versions: Versions | None = None,
    ) -> None:
        self._named = "as" in query
        if ack is not None:
            self._check_named()
        self._auto_ack = ack == "auto"
        self._gaps = gaps
        self._versions = versions
        self._subscription = Subscription(connection, query)

    @property
    def cursor(self) -> str | None:
        """The newest position before which every event was handed out; give it as `after` to go on there.

        The gateway gives one position a frame, so within a frame this is still the frame's start.
        """
        return self._subscription.inbox.cursor

    async def __aenter__(self) -> Self:
        """Follow, and return once the gateway has said where it begins: what is published now is seen."""
        self._subscription.begin()
        try:
            while not self._subscription.started:
                await self._wait_for_news()
        except BaseException:
            self._end()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            event = self._hand_out(self._subscription.inbox.next)
            if event is None:
                await self._wait_for_news()
                continue
            self.saw(event)
            if self._gaps or event.type != GAP:
                return event

    async def next_batch(self) -> list[Event]:
        """Wait for events and return a whole frame of them: less work per event than iterating.

        Raises StopAsyncIteration once the follow has been closed.
        """
        events = await self.next_unseen()
        for event in events:
            self.saw(event)
        return events

    async def next_unseen(self) -> list[Event]:
        """Do as `next_batch`, except that whoever hands the events on tells by `saw` what has been seen."""
        while True:
            events = self._hand_out(self._subscription.inbox.next_batch)
            if not events:
                await self._wait_for_news()
            elif self._gaps or events[0].type != GAP:  # a gap is a batch of its own
                return events
            else:
                self.saw(events[0])

    def saw(self, event: Event) -> None:
        """Take note that an event of `next_unseen` is handed on: publishing is based on what was seen."""
        if self._versions is not None:
            self._versions.saw(event)

    async def ack(self, cursor: str | None = None) -> None:
        """Have the gateway remember a position for the target: the given one, or else `cursor`.

        Returns once it does; a lost connection only delays that. Raises ValueError without `as_`.
        """
        self._check_named()
        if self._subscription.error is not None:
            raise self._subscription.error
        position = cursor or self.cursor
        if position is not None:
            self._subscription.acknowledge(position)
            await self._subscription.acks.wait()

    async def aclose(self) -> None:
        """End the follow, waiting shortly for an acknowledgement on its way. Safe to call twice."""
        with suppress(TimeoutError, HerdrError):
            async with asyncio.timeout(CLOSE_ACK_S):
                await self._subscription.acks.wait()
        self._end()

    def _hand_out(self, take: Callable[[], _T]) -> _T:
        """Take from the inbox. Asking for more says that what was handed out before has been dealt with."""
        subscription = self._subscription
        if self._auto_ack and (cursor := subscription.inbox.cursor) is not None:
            subscription.acknowledge(cursor)
        taken = take()
        subscription.refill()
        return taken

    async def _wait_for_news(self) -> None:
        subscription = self._subscription
        subscription.begin()
        if subscription.error is not None:
            raise subscription.error
        if subscription.over:
            raise StopAsyncIteration
        subscription.news.clear()
        await subscription.news.wait()

    def _end(self) -> None:
        self._subscription.end(ConnectionFailed("The follow has been closed."))

    def _check_named(self) -> None:
        if not self._named:
            raise ValueError("ack needs as_: the gateway remembers positions of named targets only")
