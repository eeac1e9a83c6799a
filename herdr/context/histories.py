"""Pure: session histories, a fold of the log's `session.message` events, and what is needed of their storage.

The storage knows nothing of what a message says: `body` is whatever its maker encoded, and `state` is the
summariser's own memory of the session. Both are opaque here.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

INLINE_MAX = 4096
"""Bytes of a body that stay in the message's row; a longer one is a blob, stored once for all that have it."""

SESSIONS_MAX = 10_000
BYTES_MAX = 1024**3
"""Of all messages as `size_of` counts them: a year of a busy team."""

MESSAGE_OVERHEAD = 256  # bytes of the row, its index and its names: many empty messages fill a disk too

SOURCES_MAX = 64  # names of the tools that wrote to a session; a list for people, not an index
STATE_MAX = 4 * 1024**2
"""Bytes of a summariser's state: it is written anew with each append, so it must be kept small by its maker."""

PAGE_BYTES_MAX = 8 * 1024**2  # as one request's body


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a session. Going in, `seq` is the log's; coming out, see `Histories.offset`."""

    session: str
    workspace: str
    seq: int
    id: str
    role: str
    source: str
    time_us: int
    body: bytes
    about: bytes = b""
    """Small opaque extras (files, tool, task); stays in the row."""
    tokens: int = 0
    ref: str | None = None
    """Where a long body is kept; set by the storage."""
    damaged: bool = False
    """The stored body cannot be trusted: `body` is empty."""


def size_of(message: Message) -> int:
    """Return what a message counts for: bytes before compression, a shared body for each that has it."""
    return MESSAGE_OVERHEAD + len(message.body) + len(message.about)


class Deletion(NamedTuple):
    """A session ends here: its messages go. Later messages of that name begin a new one."""

    session: str
    seq: int


class Batch(msgspec.Struct, frozen=True):
    """What one transaction folds: events in the log's order, the states after them, and how far that is."""

    folded: int
    """The log's `seq` up to which all is folded now; at least that of the last entry."""
    entries: Sequence[Message | Deletion] = ()
    states: Mapping[str, bytes] = {}
    """The summariser's state of sessions after the batch; one that is not named keeps its own."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session beside its messages."""

    session: str
    workspace: str
    """That of its first message."""
    messages: int
    full_tokens: int
    """Sum over all messages, also those that had to go."""
    size: int
    """What its messages count for; see `size_of`."""
    first_us: int
    updated_us: int
    sources: Sequence[str]
    state: bytes = b""
    """Only `Histories.state` and `Histories.restore` carry it."""


class SessionList(NamedTuple):
    """Sessions, most recently updated first; `more` were left off."""

    sessions: Sequence[Session]
    more: int


class Histories(Protocol):
    """Sessions and their messages.

    Bounds: at most `SESSIONS_MAX` sessions and `BYTES_MAX` of messages. Over either, the sessions that were
    updated longest ago go whole; when only the one just written is left, its oldest messages go.
    One task calls `adopt`, `append` and `restore`; any number of tasks read and delete.
    Every method raises ContextUnavailable when the storage fails; nothing of the call has happened then.
    """

    folded: int
    """The log's `seq` up to which all is folded."""

    offset: int
    """What was added to the log's `seq` to get a message's: 0 until the log is replaced or a session is
    imported. Messages' `seq`s rise through both, so pages and windows keep their order.
    """

    async def adopt(self, epoch: str, head: int) -> None:
        """Say which log is folded, at each start; sets `folded` and `offset`.

        A log of another epoch was restored from a backup or is new: what lies after its head was folded from
        events that it has not; the messages stay, and the new log's are put behind them.
        """
        ...

    async def append(self, batch: Batch) -> Sequence[str]:
        """Fold a batch, and return the names of the sessions that had to go.

        Entries at or below `folded` are passed over, and a whole batch is that ends there: so folding again
        after a crash changes nothing. What it costs does not hang on the length of the session.
        """
        ...

    async def restore(self, session: Session, messages: Sequence[Message]) -> bool:
        """Put in a session from elsewhere; False, changing nothing, when one of that name is here.

        The messages get `seq`s of their own, in the order given.
        """
        ...

    async def state(self, session: str) -> Session | None:
        """Return a session with the summariser's state; None when it is unknown."""
        ...

    async def newest(self, session: str, count: int, bytes_max: int = PAGE_BYTES_MAX) -> Sequence[Message]:
        """Return the last messages in the order in which they were written."""
        ...

    async def page(
        self, session: str, after: int, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> Sequence[Message]:
        """Return messages whose `seq` is greater than `after`. Stops before `bytes_max` bytes (see
        `size_of`) are exceeded, but returns at least one where there is one.
        """
        ...

    async def sessions(self, workspace: str | None, limit: int) -> SessionList:
        """List the sessions of a workspace, or of all, without states."""
        ...

    async def delete(self, session: str) -> bool:
        """Remove a session; False when it is unknown. It is gone at once, its pages are cleared by `tidy`."""
        ...
