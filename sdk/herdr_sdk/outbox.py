"""The queue to the gateway: events leave in frames and are answered; what a lost socket left open goes again.

Everything that happens to one event ends in one call of its `settle`, with a receipt or an error.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from herdr_sdk.connection import Connection
from herdr_sdk.errors import (
    ConnectionFailed,
    FieldError,
    HerdrError,
    InvalidEvent,
    OutcomeUnknown,
    Unauthorized,
)
from herdr_sdk.event import Receipt
from herdr_sdk.frames import Answer, Failure, Receipts, publish_frame
from herdr_sdk.room import Room

FRAME_EVENTS = 256  # what the gateway commits at once
FRAME_BYTES = 256 * 1024
FRAMES_OPEN = 16  # unanswered frames: enough to keep the gateway busy; what waits meanwhile shares a frame
EVENTS_OPEN = FRAME_EVENTS * FRAMES_OPEN
BYTES_OPEN = 16 * 1024 * 1024  # bounds the memory when events are large
MESSAGE_TOO_BIG = 1009  # https://www.rfc-editor.org/rfc/rfc6455#section-7.4.1

_TOO_BIG = "The gateway refuses the event for its size. Store large content elsewhere and refer to it."
_UNKNOWN = (
    "The event was sent, but no answer came in time: it may be stored or not. "
    "Publish it again with the same id and source; if it is there already, the receipt says duplicate."
)
_UNSENT = "The event was not sent: there was no connection to the gateway for"
_UNSENT_NEXT = "Is the gateway running? Publish it again later."

Settle = Callable[[Receipt | HerdrError], None]


class Entry(msgspec.Struct, gc=False):
    """One event on its way: its id, its JSON, and whom to tell."""

    id: str
    body: bytes
    settle: Settle


class Batch:
    """The events of one frame, in order. `ref` is set while the frame is unanswered on the present socket."""

    timer: asyncio.TimerHandle

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.size = sum(len(entry.body) for entry in entries)
        self.ever_sent = False
        self.ref: int | None = None

    def add(self, entry: Entry) -> None:
        """Let one more event join."""
        self.entries.append(entry)
        self.size += len(entry.body)

    def has_room(self, size: int) -> bool:
        """Tell whether one more event may join; never once it was sent, so that a resend is the same."""
        return not self.ever_sent and len(self.entries) < FRAME_EVENTS and self.size + size <= FRAME_BYTES


class Outbox:
    """One queue of events to the gateway. It keeps their order, resends included.

    Bounds: `EVENTS_OPEN` events and `BYTES_OPEN` bytes from `put` to the answer; beyond them `put` waits.
    """

    def __init__(self, connection: Connection, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._room = Room(EVENTS_OPEN, BYTES_OPEN)
        self._waiting: deque[Batch] = deque()
        self._sent: dict[int, Batch] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        connection.pull_from(self._next_frame)
        connection.listen(self)

    async def put(self, entry: Entry) -> None:
        """Queue an event; waits while too many are unanswered. Raises when the connection is over."""
        size = len(entry.body)
        if not self._room.try_take(size):
            await self._room.take(size)
        if self._waiting and not self._waiting[-1].has_room(size):
            await asyncio.sleep(0)  # a full frame waits: let it leave before a tight loop fills the next
        if self._connection.failure is not None:
            self._room.give(1, size)
            raise self._connection.failure
        if self._waiting and self._waiting[-1].has_room(size):
            self._waiting[-1].add(entry)
            return
        self._waiting.append(self._new_batch([entry], asyncio.get_running_loop().time() + self._timeout_s))
        self._idle.clear()
        self._connection.wake()

    async def drain(self) -> None:
        """Wait until every event is settled."""
        await self._idle.wait()

    def opened(self) -> None:
        """See `Listener`: the frames come from `_next_frame`."""
        self._connection.wake()

    def lost(self, close_code: int | None) -> None:
        """Put back, in order, what was sent and not answered: the ids make sending it again safe."""
        unanswered = list(self._sent.values())
        for batch in unanswered:
            self._forget(batch)
        if close_code == MESSAGE_TOO_BIG:
            # A frame exceeds FRAME_BYTES only when one event does, so it is such an event that was refused.
            refused = [batch for batch in unanswered if batch.size > FRAME_BYTES]
            unanswered = [batch for batch in unanswered if batch.size <= FRAME_BYTES]
            for batch in refused:
                self._settle(batch, [InvalidEvent(_TOO_BIG) for _ in batch.entries])
        self._waiting.extendleft(reversed(unanswered))

    def failed(self, error: HerdrError) -> None:
        """Settle everything: what was sent has an unknown outcome, the rest was not sent."""
        for batch in [*self._sent.values(), *self._waiting]:
            self._give_up(batch, error)

    def _new_batch(self, entries: list[Entry], deadline: float) -> Batch:
        loop = asyncio.get_running_loop()
        batch = Batch(entries)
        batch.timer = loop.call_at(deadline, self._give_up, batch, None)
        return batch

    def _next_frame(self) -> bytes | None:
        if not self._waiting or len(self._sent) >= FRAMES_OPEN:
            return None
        batch = self._waiting.popleft()
        batch.ever_sent = True
        ref = batch.ref = self._connection.claim(partial(self._on_answer, batch))
        self._sent[ref] = batch
        return publish_frame(ref, [entry.body for entry in batch.entries])

    def _forget(self, batch: Batch) -> None:
        if batch.ref is not None:
            self._connection.release(batch.ref)
            del self._sent[batch.ref]
            batch.ref = None

    def _on_answer(self, batch: Batch, frame: Answer, size: int) -> None:
        self._forget(batch)
        if isinstance(frame, Receipts) and len(frame.results) == len(batch.entries):
            self._settle(batch, frame.results)
        elif isinstance(frame, Failure) and frame.code != "bad_frame":
            self._refused(batch, frame)
        else:
            self._give_up(batch, None)
        self._connection.wake()

    def _refused(self, batch: Batch, failure: Failure) -> None:
        """Nothing of the frame was stored: fail the events that are to blame, send the others again."""
        whole = len(batch.entries) == 1 or not failure.errors
        blamed = {error.index for error in failure.errors if error.index is not None}
        rest = [entry for index, entry in enumerate(batch.entries) if index not in blamed]
        if whole:
            self._settle(
                batch, [failure.as_event_error(_without_index(failure.errors)) for _ in batch.entries]
            )
        elif len(rest) < len(batch.entries):
            self._settle_blamed(batch, failure)
            self._requeue(batch, rest)
        else:  # wrong, but it does not say which: halve until it does
            middle = len(rest) // 2
            self._requeue(batch, rest[:middle], rest[middle:])

    def _settle_blamed(self, batch: Batch, failure: Failure) -> None:
        for index, entry in enumerate(batch.entries):
            errors = [error for error in failure.errors if error.index == index]
            if errors:
                entry.settle(failure.as_event_error(_without_index(errors)))
                self._room.give(1, len(entry.body))

    def _requeue(self, batch: Batch, *parts: list[Entry]) -> None:
        batch.timer.cancel()
        deadline = batch.timer.when()
        self._waiting.extendleft(self._new_batch(part, deadline) for part in reversed(parts) if part)
        self._rest_when_empty()

    def _give_up(self, batch: Batch, reason: HerdrError | None) -> None:
        """Settle without an answer, at the deadline or because of a final error."""
        self._forget(batch)
        if batch in self._waiting:
            self._waiting.remove(batch)
        if batch.ever_sent:
            outcomes: list[HerdrError] = [OutcomeUnknown(_UNKNOWN, [entry.id]) for entry in batch.entries]
        else:
            detail = reason.detail if reason else f"{_UNSENT} {self._timeout_s:g} s. {_UNSENT_NEXT}"
            kind = type(reason) if isinstance(reason, Unauthorized) else ConnectionFailed
            outcomes = [kind(detail) for _ in batch.entries]
        self._settle(batch, outcomes)

    def _settle(self, batch: Batch, outcomes: Sequence[Receipt | HerdrError]) -> None:
        batch.timer.cancel()
        for entry, outcome in zip(batch.entries, outcomes, strict=True):
            entry.settle(outcome)
        self._room.give(len(batch.entries), batch.size)
        self._rest_when_empty()

    def _rest_when_empty(self) -> None:
        if not self._sent and not self._waiting:
            self._idle.set()


def _without_index(errors: Sequence[FieldError]) -> list[FieldError]:
    return [FieldError(error.field, error.message) for error in errors]
