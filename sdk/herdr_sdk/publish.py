"""Publishing: names each event, queues it, and turns the outcome into a receipt or a raised error."""

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import UNSET

from herdr_sdk.connection import Connection
from herdr_sdk.errors import FieldError, HerdrError, InvalidEvent, OutcomeUnknown
from herdr_sdk.event import Draft, Receipt, as_draft, encode_draft
from herdr_sdk.ids import IdFactory
from herdr_sdk.outbox import Entry, Outbox, Settle
from herdr_sdk.versions import Versions

Many = Iterable[Draft | Mapping[str, Any]] | AsyncIterable[Draft | Mapping[str, Any]]


class Publisher:
    """Two queues, so that what a user says does not wait behind thousands of file changes."""

    def __init__(
        self,
        connection: Connection,
        source: str | None,
        timeout_s: float,
        versions: Versions | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self._source = source
        self._versions = versions
        self._new_id = new_id or IdFactory()
        self._urgent = Outbox(connection, timeout_s)
        self._usual = Outbox(connection, timeout_s)

    async def submit(self, draft: Draft) -> asyncio.Future[Receipt]:
        """Queue the event, waiting while too many are unanswered; the future gets its receipt."""
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        await self._put(draft, partial(_resolve, future))
        return future

    async def publish_many(self, events: Many) -> list[Receipt]:
        """Publish all, and return their receipts in order; see `Hub.publish_many`."""
        outcomes = _Outcomes()
        if isinstance(events, AsyncIterable):
            async for event in events:
                await self._put_one(event, outcomes)
        else:
            for event in events:
                await self._put_one(event, outcomes)
        return await outcomes.all()

    async def drain(self) -> None:
        """Wait until every event has its outcome."""
        await self._urgent.drain()
        await self._usual.drain()

    async def _put_one(self, event: Draft | Mapping[str, Any], outcomes: "_Outcomes") -> None:
        settle = outcomes.expect()
        try:
            await self._put(as_draft(event), settle)
        except HerdrError as error:
            settle(error)

    async def _put(self, draft: Draft, settle: Settle) -> None:
        if draft.id is None:
            draft.id = self._new_id()
        if draft.source is None:
            draft.source = self._source
        if draft.subject is not None and self._versions is not None:
            settle = self._versions.base(draft, settle)
        if draft.based_on is None:
            draft.based_on = UNSET  # nothing is sent for it
        urgent = draft.priority == "P0" or str(draft.type).startswith("user.")
        outbox = self._urgent if urgent else self._usual
        await outbox.put(Entry(draft.id, encode_draft(draft), settle))


class _Outcomes:
    """Collects the outcomes of many events with one wait for all of them."""

    def __init__(self) -> None:
        self._outcomes: list[Receipt | HerdrError | None] = []
        self._missing = 0
        self._complete = asyncio.Event()

    def expect(self) -> Settle:
        """Make place for one more, and return what fills it."""
        self._missing += 1
        self._outcomes.append(None)
        return partial(self._fill, len(self._outcomes) - 1)

    async def all(self) -> list[Receipt]:
        """Wait for the last; raises the first error, with all outcomes as its `results`."""
        while self._missing:
            self._complete.clear()
            await self._complete.wait()
        receipts = [outcome for outcome in self._outcomes if isinstance(outcome, Receipt)]
        if len(receipts) == len(self._outcomes):
            return receipts
        raise self._error()

    def _fill(self, index: int, outcome: Receipt | HerdrError) -> None:
        self._outcomes[index] = outcome
        self._missing -= 1
        if not self._missing:
            self._complete.set()

    def _error(self) -> HerdrError:
        """Merge what went wrong: all wrong fields by event, or all ids of unknown outcome."""
        errors = [(i, outcome) for i, outcome in enumerate(self._outcomes) if isinstance(outcome, HerdrError)]
        first = errors[0][1]
        if isinstance(first, InvalidEvent):
            invalid = [(i, error) for i, error in errors if isinstance(error, InvalidEvent)]
            fields = [
                FieldError(f.field, f.message, i)
                for i, error in invalid
                for f in error.errors or [FieldError(message=error.detail)]
            ]
            first = InvalidEvent(f"{len(invalid)} of {len(self._outcomes)} events were refused.", fields)
        elif isinstance(first, OutcomeUnknown):
            ids = [id_ for _, error in errors if isinstance(error, OutcomeUnknown) for id_ in error.ids]
            first = OutcomeUnknown(first.detail, ids)
        first.results = list(self._outcomes)
        return first


def _resolve(future: asyncio.Future[Receipt], outcome: Receipt | HerdrError) -> None:
    if future.done():
        return  # the caller cancelled it; the event goes its way all the same
    if isinstance(outcome, HerdrError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
