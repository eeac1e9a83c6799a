"""Artifacts on SQLite: who stays is decided in `herdr.context.artifacts`, here it is done in one transaction."""

import sqlite3
from collections.abc import Sequence

from msgspec.structs import replace

from herdr.clock import Clock
from herdr.context.artifacts import (
    COUNT_MAX,
    Artifact,
    ArtifactTooLarge,
    Draft,
    Gone,
    Shelf,
    Stored,
    Used,
    surplus,
)
from herdr.storage.sqlite.connection import transaction
from herdr.storage.sqlite.context import artifact_rows as rows
from herdr.storage.sqlite.context.artifact_rows import Row
from herdr.storage.sqlite.context.blobs import own
from herdr.storage.sqlite.context.database import Database
from herdr.storage.sqlite.context.packing import Packed, pack_all
from herdr.storage.sqlite.context.touches import Notes, Touches


class SqliteArtifacts:
    """Implements `herdr.context.artifacts.Artifacts`."""

    def __init__(
        self, database: Database, clock: Clock, limit_bytes: int, count_max: int = COUNT_MAX
    ) -> None:
        self.limit_bytes = limit_bytes
        self._database = database
        self._clock = clock
        self._count_max = count_max
        self.touches = Touches("artifacts", clock)

    async def put(self, draft: Draft, content: bytes) -> Stored:
        """See `Artifacts.put`."""
        if len(content) > self.limit_bytes:
            raise ArtifactTooLarge(len(content), self.limit_bytes)
        (packed,) = await pack_all([content])
        notes = self.touches.take()
        return await self._database.write(
            len(packed.body), lambda db: self._on_thread_put(db, draft, packed, notes)
        )

    def _on_thread_put(self, db: sqlite3.Connection, draft: Draft, packed: Packed, notes: Notes) -> Stored:
        now_us = self._clock.wall_us()
        with transaction(db):
            self.touches.flush(db, notes)
            gone = rows.remove_expired(db, now_us)
            old = rows.find(db, draft.workspace, draft.name)
            if old is not None:
                rows.remove(db, old)
            gone += self._make_room(db, packed.size, now_us)
            artifact = _artifact_of(draft, packed, now_us)
            rows.insert(db, artifact, own(db, packed, draft.content_type, now_us))
        return Stored(artifact, old is not None and _lives(old, now_us), gone)

    def _make_room(self, db: sqlite3.Connection, size: int, now_us: int) -> list[Gone]:
        count, taken = rows.totals(db)
        oldest_first = map(Used._make, db.execute("SELECT id, bytes FROM artifacts ORDER BY used_us, id"))
        going = surplus(oldest_first, taken + size, count + 1, self.limit_bytes, self._count_max)
        return [rows.see_off(db, row, now_us) for row in rows.by_ids(db, going)]

    async def get(self, workspace: str, name: str) -> tuple[Artifact, bytes] | None:
        """See `Artifacts.get`."""
        found = await self._database.read(rows.read, workspace, name, self._clock.wall_us())
        if found is None:
            return None
        row, content = found
        self.touches.note(row.id)
        return self._shown(row), content

    async def describe(self, workspace: str, name: str) -> Artifact | None:
        """See `Artifacts.describe`."""
        row = await self._database.read(rows.find, workspace, name)
        return self._shown(row) if row is not None and _lives(row, self._clock.wall_us()) else None

    def _shown(self, row: Row) -> Artifact:
        return replace(row.artifact, used_us=self.touches.used_us(row.id, row.artifact.used_us))

    async def shelf(
        self, workspace: str, kind: str | None = None, session: str | None = None, limit: int = 100
    ) -> Shelf:
        """See `Artifacts.shelf`."""
        found, more, taken = await self._database.read(
            rows.list_some, workspace, kind, session, limit, self._clock.wall_us()
        )
        return Shelf([self._shown(row) for row in found], more, taken)

    async def delete(self, workspace: str, name: str) -> Artifact | None:
        """See `Artifacts.delete`."""
        row = await self._database.write(0, lambda db: _on_thread_delete(db, workspace, name))
        return self._shown(row) if row is not None and _lives(row, self._clock.wall_us()) else None

    async def expire(self) -> Sequence[Gone]:
        """See `Artifacts.expire`."""
        ends_us = await self.next_expiry()
        if ends_us is None or ends_us > self._clock.wall_us():
            return []
        notes = self.touches.take()
        return await self._database.write(0, lambda db: self._on_thread_expire(db, notes))

    def _on_thread_expire(self, db: sqlite3.Connection, notes: Notes) -> list[Gone]:
        with transaction(db):
            self.touches.flush(db, notes)
            return rows.remove_expired(db, self._clock.wall_us())

    async def next_expiry(self) -> int | None:
        """See `Artifacts.next_expiry`."""
        return await self._database.read(rows.next_expiry)


def _on_thread_delete(db: sqlite3.Connection, workspace: str, name: str) -> Row | None:
    with transaction(db):
        row = rows.find(db, workspace, name)
        if row is not None:
            rows.remove(db, row)
        return row


def _lives(row: Row, now_us: int) -> bool:
    return row.artifact.expires_us > now_us


def _artifact_of(draft: Draft, packed: Packed, now_us: int) -> Artifact:
    return Artifact(
        workspace=draft.workspace,
        name=draft.name,
        kind=draft.kind,
        ref=packed.sha.hex(),
        bytes=packed.size,
        content_type=draft.content_type,
        created_us=now_us,
        expires_us=now_us + draft.ttl_s * 1_000_000,
        used_us=now_us,
        by=draft.by,
        session=draft.session,
        based_on=draft.based_on,
        redacted=draft.redacted,
    )
