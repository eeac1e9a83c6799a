"""What waits in the lanes: an event on its way to the log, and whoever waits for its receipt."""

import asyncio

from herdr.event import Event, Receipt


class Submission:
    """The receipts of one publish call, in order; one future for all of them keeps batches cheap."""

    __slots__ = ("_left", "done", "receipts")

    def __init__(self, size: int, done: "asyncio.Future[list[Receipt]]") -> None:
        self.receipts: list[Receipt | None] = [None] * size
        self.done = done
        self._left = size

    def settle(self, index: int, receipt: Receipt) -> None:
        """Fill in one receipt; the last one wakes the publisher."""
        self.receipts[index] = receipt
        self._left -= 1
        if self._left == 0 and not self.done.done():
            self.done.set_result([r for r in self.receipts if r is not None])

    def fail(self, error: Exception) -> None:
        """Give up on the whole call: nothing of what is still open was acknowledged."""
        if not self.done.done():
            self.done.set_exception(error)


class Pending:
    """One event in a lane, with what the writer needs to decide about it."""

    __slots__ = ("based_on", "event", "hash", "index", "made_id", "makes_version", "rejects", "submission")

    def __init__(
        self,
        event: Event,
        *,
        based_on: int | None = None,
        rejects: bool = False,
        makes_version: bool = False,
        hash: str | None = None,
        submission: Submission | None = None,
        index: int = 0,
        made_id: bool = False,
    ) -> None:
        """`made_id`: the gateway made the event's id, so nobody can have used it before."""
        self.event = event
        self.based_on = based_on
        self.rejects = rejects
        self.makes_version = makes_version
        self.hash = hash
        self.submission = submission
        self.index = index
        self.made_id = made_id

    @property
    def id(self) -> str:
        """The event's id: what a debounce window remembers."""
        return self.event.id

    @property
    def source(self) -> str:
        """The event's source."""
        return self.event.source

    def settle(self, receipt: Receipt) -> None:
        """Answer the publisher, if it still waits (a deferred event's has been answered before)."""
        if self.submission is not None:
            self.submission.settle(self.index, receipt)
            self.submission = None

    def fail(self, error: Exception) -> None:
        """Tell the publisher that the event was not stored."""
        if self.submission is not None:
            self.submission.fail(error)
            self.submission = None
