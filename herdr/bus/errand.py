"""What the writer decides in `seq` order beside publishers' events: write locks and tasks are such things.

An errand waits in a lane like an event. While the writer forms a batch it lets the errand rule, knowing all
earlier members of the batch; what comes of it is committed in the same transaction.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from herdr.bus.log import Put
from herdr.errors import HerdrError
from herdr.event import Event

T = TypeVar("T")

ERRAND_BYTES = 512
"""What one counts in a lane unless it says otherwise; a lock on one file leads to about as much."""


class Ruled(NamedTuple):
    """What an errand comes to."""

    events: Sequence[Event] = ()
    """They get consecutive `seq`s, the first the one that `rule` was told."""
    puts: Sequence[Put] = ()
    answer: Any = None
    """For whoever waits for the errand."""
    committed: Callable[[], None] | None = None
    """Called once all of it is in the log."""


Rule = Callable[[int, int], Ruled]
"""Called with the next `seq` and the batch's wall clock in microseconds. It may change its own state, which
`Tentative.undo` takes back when the batch cannot be committed; a HerdrError that it raises is its answer."""


class Tentative(Protocol):
    """State that errands change while a batch is formed."""

    kind: str
    """Of its stored values (`herdr.bus.log.Put`)."""

    def keep(self) -> None:
        """Make what was changed since the last `keep` or `undo` final: it is committed."""
        ...

    def undo(self) -> None:
        """Take back what was changed since then: it was not committed."""
        ...

    def reload(self, stored: Mapping[str, bytes]) -> None:
        """Take over what the log holds: a commit that reported an error has happened after all."""
        ...


class Errand:
    """One errand in a lane, and whoever waits for its outcome."""

    __slots__ = ("_refusal", "_ruled", "done", "rule")

    def __init__(self, rule: Rule, done: "asyncio.Future[Any]") -> None:
        self.rule = rule
        self.done = done
        self._ruled = Ruled()
        self._refusal: HerdrError | None = None

    def decide(self, seq: int, accepted_us: int) -> Ruled:
        """Let the errand rule, unless nobody waits for it any more."""
        if not self.done.done():
            try:
                self._ruled = self.rule(seq, accepted_us)
            except HerdrError as refusal:  # it may rest on an earlier member: told after the commit, too
                self._refusal = refusal
        return self._ruled

    def settle(self) -> None:
        """Tell of the outcome, which is committed."""
        if self._ruled.committed is not None:
            self._ruled.committed()
        if self.done.done():
            return
        if self._refusal is not None:
            self.done.set_exception(self._refusal)
        else:
            self.done.set_result(self._ruled.answer)

    def fail(self, error: Exception) -> None:
        """Tell that nothing of it was committed."""
        if not self.done.done():
            self.done.set_exception(error)


class Undoable(Protocol):
    """A table whose changes can be taken back one decision at a time."""

    def mark(self) -> int:
        """Return a place that `undo` can go back to."""
        ...

    def undo(self, to: int = 0) -> None:
        """Take back what was changed since a mark."""
        ...


def attempt(table: Undoable, decide: Callable[[], T], log: logging.Logger) -> T:
    """Return what a table decides; a refusal, or a mistake of its own, leaves it as it was.

    Raises the refusal, and HerdrError in place of a mistake: the batch's other members have nothing to do with it.
    """
    mark = table.mark()
    try:
        return decide()
    except HerdrError:
        table.undo(mark)
        raise
    except Exception:
        table.undo(mark)
        log.exception("a table made a mistake")
        raise HerdrError("the gateway made a mistake and did nothing of this; its log says which") from None
