"""Session histories on SQLite. See `herdr.context.histories.Histories` for what is promised."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from herdr.context.histories import (
    BYTES_MAX,
    INLINE_MAX,
    PAGE_BYTES_MAX,
    SESSIONS_MAX,
    STATE_MAX,
    Batch,
    Message,
    Session,
    SessionList,
    size_of,
)
from herdr.storage.sqlite.connection import transaction
from herdr.storage.sqlite.context import folding, session_rows
from herdr.storage.sqlite.context.database import Database
from herdr.storage.sqlite.context.packing import Packed, pack_all


class Bounds(NamedTuple):
    """How many sessions and bytes of bodies are kept."""

    sessions: int = SESSIONS_MAX
    bytes: int = BYTES_MAX


class SqliteHistories:
    """Implements `herdr.context.histories.Histories`.

    The methods that begin with `_on_thread` run on the writer's thread, and they, not their callers, move
    `folded` and `offset`: so a cancelled caller cannot leave these behind what is committed.
    """

    def __init__(self, database: Database, bounds: Bounds) -> None:
        self.folded = 0
        self.offset = 0
        self._database = database
        self._bounds = bounds
        self._is_sweep_due = False

    def on_thread_connect(self, db: sqlite3.Connection) -> None:
        """Read anew how far the log is folded: after a failure the file is believed."""
        self.folded, self.offset = session_rows.numbers(db)
        self._is_sweep_due = folding.is_sweep_due(db)

    async def adopt(self, epoch: str, head: int) -> None:
        """See `Histories.adopt`."""
        await self._database.write(0, lambda db: self._on_thread_adopt(db, epoch, head))

    def _on_thread_adopt(self, db: sqlite3.Connection, epoch: str, head: int) -> None:
        known = session_rows.epoch(db)
        folded, offset = self.folded, self.offset
        if known not in (None, epoch):
            folded = min(self.folded, head)
            offset += self.folded - folded
        with transaction(db):
            session_rows.set_meta(db, {"epoch": epoch, "folded": folded, "offset": offset})
        self.folded, self.offset = folded, offset

    async def append(self, batch: Batch) -> Sequence[str]:
        """See `Histories.append`."""
        if batch.folded <= self.folded:
            return []
        _check(batch)
        packs = await _pack_long([entry for entry in batch.entries if isinstance(entry, Message)])
        size = _size_of(batch.entries) + sum(map(len, batch.states.values()))
        return await self._database.write(size, lambda db: self._on_thread_append(db, batch, packs))

    def _on_thread_append(
        self, db: sqlite3.Connection, batch: Batch, packs: Mapping[bytes, Packed]
    ) -> Sequence[str]:
        if batch.folded <= self.folded:
            return []
        with transaction(db):
            folding.fold(db, batch, packs, self.folded, self.offset)
            went = folding.make_room(db, *self._bounds)
            session_rows.set_meta(db, {"folded": batch.folded})
            self._is_sweep_due = folding.is_sweep_due(db)
        self.folded = batch.folded
        return went

    async def restore(self, session: Session, messages: Sequence[Message]) -> bool:
        """See `Histories.restore`."""
        packs = await _pack_long(messages)
        size = _size_of(messages) + len(session.state)
        return await self._database.write(
            size, lambda db: self._on_thread_restore(db, session, messages, packs)
        )

    def _on_thread_restore(
        self,
        db: sqlite3.Connection,
        session: Session,
        messages: Sequence[Message],
        packs: Mapping[bytes, Packed],
    ) -> bool:
        with transaction(db):
            if session_rows.sid_of(db, session.session) is not None:
                return False
            folding.restore(db, session, messages, packs, self.folded + self.offset)
            folding.make_room(db, *self._bounds)
            session_rows.set_meta(db, {"offset": self.offset + len(messages)})
            self._is_sweep_due = folding.is_sweep_due(db)
        self.offset += len(messages)
        return True

    async def state(self, session: str) -> Session | None:
        """See `Histories.state`."""
        return await self._database.read(session_rows.state, session)

    async def newest(self, session: str, count: int, bytes_max: int = PAGE_BYTES_MAX) -> Sequence[Message]:
        """See `Histories.newest`."""
        return await self._database.read(session_rows.newest, session, count, bytes_max)

    async def page(
        self, session: str, after: int, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> Sequence[Message]:
        """See `Histories.page`."""
        return await self._database.read(session_rows.page, session, after, limit, bytes_max)

    async def sessions(self, workspace: str | None, limit: int) -> SessionList:
        """See `Histories.sessions`."""
        return await self._database.read(session_rows.list_some, workspace, limit)

    async def delete(self, session: str) -> bool:
        """See `Histories.delete`."""
        return await self._database.write(0, lambda db: self._on_thread_delete(db, session))

    def _on_thread_delete(self, db: sqlite3.Connection, session: str) -> bool:
        with transaction(db):
            gone = folding.doom(db, session)
        self._is_sweep_due |= gone
        return gone

    async def sweep(self) -> bool:
        """Clear a slice of what is left of sessions that are gone; True when there is more."""
        if self._is_sweep_due:
            await self._database.write(folding.SLICE_BYTES, self._on_thread_sweep)
        return self._is_sweep_due

    def _on_thread_sweep(self, db: sqlite3.Connection) -> None:
        with transaction(db):
            more = folding.sweep(db)
        self._is_sweep_due = more


def _check(batch: Batch) -> None:
    seqs = [entry.seq for entry in batch.entries]
    if seqs != sorted(set(seqs)) or (seqs and seqs[-1] > batch.folded):
        raise ValueError("the entries of a batch must have rising seqs, none beyond `folded`")
    if any(len(state) > STATE_MAX for state in batch.states.values()):
        raise ValueError(f"a session's state is larger than {STATE_MAX} bytes")


def _size_of(entries: Sequence[object]) -> int:
    return sum(size_of(entry) for entry in entries if isinstance(entry, Message))


async def _pack_long(messages: Sequence[Message]) -> Mapping[bytes, Packed]:
    """Pack the bodies that are too long for their rows."""
    bodies = list({one.body for one in messages if len(one.body) > INLINE_MAX})
    return dict(zip(bodies, await pack_all(bodies), strict=True))
