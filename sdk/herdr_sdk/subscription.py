"""One follow as the gateway sees it: begun, resumed, paused for a slow consumer, acknowledged.

A frame arrives whole or not at all and carries the position after its events, so a resume asks for what
comes after the last frame received and can neither miss nor repeat an event.

A consumer that is slower than the bus must not keep the socket from being read, for receipts come over it
too. So a full inbox ends the follow at the gateway, and half empty it follows again from where it was:
the events wait in the gateway's log, not in anybody's memory. Each time it follows under a new ref;
frames for an old one, still on their way, are ignored.
"""

import asyncio
from collections.abc import Mapping

from herdr_sdk.ack import Acks
from herdr_sdk.backoff import Backoff
from herdr_sdk.connection import Connection
from herdr_sdk.errors import HerdrError
from herdr_sdk.event import GAP, Event
from herdr_sdk.frames import (
    PASSING,
    Acked,
    Answer,
    Busy,
    Events,
    Failure,
    Gap,
    ack_frame,
    follow_frame,
    unfollow_frame,
)
from herdr_sdk.inbox import Inbox


class Subscription:
    """Keeps the inbox filled and the acknowledgements sent until it is ended or fails."""

    def __init__(
        self, connection: Connection, query: Mapping[str, object], backoff: Backoff | None = None
    ) -> None:
        self.inbox = Inbox()
        self.acks = Acks()
        self.news = asyncio.Event()
        """Set when the inbox or the state has changed."""
        self.error: HerdrError | None = None
        self.over = False
        self._connection = connection
        self._query = dict(query)
        self._backoff = backoff or Backoff()
        self._received: str | None = None
        self._ref: int | None = None  # of the follow that the gateway has now; None while paused or away
        self._ack_ref: int | None = None  # of the follow that the unanswered acknowledgement went to
        self._begun = False
        self._retry: asyncio.TimerHandle | None = None

    @property
    def started(self) -> bool:
        """True once the gateway has said where the follow begins."""
        return self._received is not None

    def begin(self) -> None:
        """Follow as soon as there is a socket; does nothing the second time."""
        if not self._begun:
            self._begun = True
            self._connection.listen(self)
            if self._connection.failure is not None:
                self.failed(self._connection.failure)

    def end(self, error: HerdrError) -> None:
        """Stop for good; who still waits for an acknowledgement gets the error."""
        if not self.over:
            self.over = True
            self._connection.unlisten(self)
            self._cancel_retry()
            self._leave(self._ref)
            if self._ack_ref != self._ref:
                self._leave(self._ack_ref)
            self._ref = self._ack_ref = None
            self.acks.failed(error)
            self.news.set()

    def acknowledge(self, cursor: str) -> None:
        """Have the position remembered, now or when an earlier one is answered."""
        if self.acks.want(cursor):
            self._send_ack()

    def refill(self) -> None:
        """Follow again if it paused and the inbox has room again."""
        if self._ref is not None or not self._begun or self.over:
            return
        if self._connection.up and self._retry is None and self.inbox.half_empty:
            self._follow()

    def opened(self) -> None:
        """See `Listener`."""
        self.refill()
        self._send_ack()

    def lost(self, close_code: int | None) -> None:
        """See `Listener`: the gateway knows nothing of the follow any more."""
        for ref in (self._ref, self._ack_ref):
            if ref is not None:
                self._connection.release(ref)
        self._ref = self._ack_ref = None
        self._cancel_retry()
        self.acks.lost()

    def failed(self, error: HerdrError) -> None:
        """See `Listener`: what has arrived can still be handed out, then the error is raised."""
        self.error = error
        self.end(error)

    def _follow(self) -> None:
        self._ref = self._connection.claim(self._on_frame)
        self._connection.post(follow_frame(self._ref, self._resumed_query()))

    def _resumed_query(self) -> Mapping[str, object]:
        return self._query if self._received is None else {**self._query, "after": self._received}

    def _leave(self, ref: int | None) -> None:
        if ref is not None:
            self._connection.post(unfollow_frame(ref))
            self._connection.release(ref)

    def _on_frame(self, frame: Answer, size: int) -> None:
        if isinstance(frame, Acked):
            self._on_acked(frame.ref)
        elif isinstance(frame, Failure):
            self._on_failure(frame)
        elif isinstance(frame, Busy):
            self._ask_again_in(self._backoff.after_s(frame.retry_ms / 1000))
        elif frame.ref != self._ref:
            return  # of a follow that has been ended
        elif isinstance(frame, Events):
            self._receive(frame.events, frame.cursor, size)
        elif isinstance(frame, Gap):
            self._receive([Event(GAP, data=frame.gap)], frame.cursor, size)

    def _receive(self, events: list[Event], cursor: str, size: int) -> None:
        self._received = cursor
        self.inbox.put(events, cursor, size)
        self.news.set()
        self._backoff.reset()
        if self.inbox.full:  # pause; `refill` takes it up again
            if self._ref != self._ack_ref:  # else it is left when the acknowledgement has been answered
                self._leave(self._ref)
            self._ref = None

    def _send_ack(self) -> None:
        """Send what is wanted, one at a time; a paused follow is taken up just for that."""
        if not self._connection.up or (cursor := self.acks.take()) is None:
            return
        if self._ref is not None:
            self._ack_ref = self._ref
        else:
            self._ack_ref = self._connection.claim(self._on_frame)
            self._connection.post(follow_frame(self._ack_ref, self._resumed_query()))
        self._connection.post(ack_frame(self._ack_ref, cursor))

    def _on_acked(self, ref: int) -> None:
        self._ack_ref = None
        if ref != self._ref:
            self._leave(ref)
        self.acks.answered()
        self._send_ack()

    def _on_failure(self, frame: Failure) -> None:
        if frame.code in PASSING:
            for ref in (self._ref, self._ack_ref):  # it may have been an acknowledgement that failed
                self._leave(ref)
            self._ask_again_in(self._backoff.next_s())
        else:
            self.lost(None)
            self.failed(frame.as_error())

    def _ask_again_in(self, wait_s: float) -> None:
        self.lost(None)
        self._retry = asyncio.get_running_loop().call_later(wait_s, self._ask_again)

    def _ask_again(self) -> None:
        self._retry = None
        self.opened()

    def _cancel_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
