"""What the bus needs of a log. `herdr.storage` has the implementations: `memory` (the model) and `sqlite`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from herdr.event import Event, Positions


class Put(NamedTuple):
    """One small named value that is committed together with a batch; None removes it.

    The kinds in use: `route` (rules set over the API), `target` (acknowledged positions), `version`
    (newest `seq` of each subject), `lock` (those that are held), `task` (the open ones, and the last that ended),
    `workspace`, `call`. They are folds of the
    log or settings, never a second truth.
    """

    kind: str
    key: str
    value: bytes | None


class RememberedId(NamedTuple):
    """A publisher's (`source`, `id`), by hash, that left the in-memory map and moves to the id index."""

    hash: int
    seq: int
    accepted_us: int


class Batch(msgspec.Struct, gc=False):
    """What one transaction holds. `events` carry consecutive `seq`s that begin at `head + 1`."""

    events: Sequence[Event] = ()
    puts: Sequence[Put] = ()
    ids: Sequence[RememberedId] = ()


class Log(Protocol):
    """A durable, gap-free sequence of events, with a few named values beside it.

    One task (the bus's writer) calls `append`, `tidy` and `redact`, one call at a time; any number of tasks
    read. Every method raises `LogUnavailable` when the storage fails; after that failure nothing of the
    call has happened.
    """

    epoch: str
    """Identity of this log: 8 hex digits, new for every new or restored one."""

    first: int
    """Oldest retained `seq`; `head + 1` when no event is retained."""

    head: int
    """Newest committed `seq`; 0 before the first."""

    async def append(self, batch: Batch) -> None:
        """Commit the whole batch or nothing, and return only once it is as durable as configured."""
        ...

    async def read(self, after: Positions, limit: int, bytes_max: int) -> list[Event]:
        """Return, in `seq` order, up to `limit` events that lie after their own lane's position.

        Stops before the event that would exceed `bytes_max` bytes of bodies, but returns at least one. An
        event whose checksum does not fit comes back with `corrupt` set.
        """
        ...

    async def get(self, seq: int) -> Event | None:
        """Return one event, or None when it was never written or is no longer retained."""
        ...

    async def seq_at(self, accepted_us: int) -> int:
        """Return the smallest retained `seq` accepted at or after this wall-clock time, else `head + 1`."""
        ...

    async def load(self, kind: str) -> Mapping[str, bytes]:
        """Return the named values of one kind."""
        ...

    async def find_ids(self, hashes: Sequence[int]) -> Mapping[int, int]:
        """Return the `seq` of each hash that the id index holds."""
        ...

    def id_hashes(self) -> AsyncIterator[Sequence[int]]:
        """Yield every hash of the id index, in slices."""
        ...

    async def redact(self, seq: int, body: bytes) -> bool:
        """Overwrite one event's body for good, also in free pages; False when it is not retained."""
        ...

    async def tidy(self, calm: bool) -> bool:
        """Do one short slice of upkeep (checkpoint, retention); True when more is due.

        `calm` says that no P0 event waits: only then may the slice cost an fsync, unless the write-ahead
        log has grown past its bound.
        """
        ...

    async def close(self) -> None:
        """Release the storage; safe to call twice."""
        ...
