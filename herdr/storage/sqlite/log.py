"""The durable log. See `herdr.bus.log.Log` for what it promises, docs/explanation/durability.md for why."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from herdr.bus.log import Batch
from herdr.clock import Clock
from herdr.errors import LogUnavailable, StartupError
from herdr.event import Event, Positions
from herdr.storage.retention import Retention
from herdr.storage.sqlite import readers as ask
from herdr.storage.sqlite.connection import cause_of, explain, transaction
from herdr.storage.sqlite.folder import FolderLock, claim, unusable
from herdr.storage.sqlite.readers import Readers
from herdr.storage.sqlite.rows import row_crc
from herdr.storage.sqlite.schema import epoch_of, extent_of, migrate
from herdr.storage.sqlite.upkeep import PAUSE_S, IdSweep, Trimmer, WalGauge, pages_touched
from herdr.storage.sqlite.writer import Writer, store

_HASHES_A_SLICE = 10_000  # 80 kB a step while the bus fills its filter at start


class SqliteLog:
    """Implements `herdr.bus.log.Log` on one SQLite file.

    The methods that begin with `_on_thread` run on the writer's thread, and they, not their callers, move
    `first` and `head`: so a cancelled caller cannot leave these behind what is committed.
    """

    def __init__(self, path: Path, clock: Clock, retention: Retention, writer: Writer) -> None:
        """Use `open`."""
        self.epoch = ""
        self.first = 1
        self.head = 0
        self._path = path
        self._monotonic = clock.monotonic
        self._writer = writer
        self._readers = Readers(path)
        self._wal = WalGauge()
        self._trimmer = Trimmer(clock, retention)
        self._sweep = IdSweep(clock, retention.max_ids)
        self._upkeep_at = clock.monotonic()
        self._scrub_due = False
        self._lock: FolderLock | None = None

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        durability: Literal["full", "os"],
        retention: Retention,
        new_epoch: Callable[[], str],
    ) -> "SqliteLog":
        """Open the log, creating folder and file where they are missing; raises StartupError.

        `durability` `full` syncs each commit to the disk; `os` leaves that to the system, so that a power
        cut may take the last commits. `new_epoch` names a new log.
        """
        lock = claim(path.parent, clock)
        log = cls(path, clock, retention, Writer(path, durability))
        log._lock = lock
        try:
            await log._writer.open()
            await log._writer.run(log._on_thread_start, new_epoch)
            await log._readers.open()
        except sqlite3.Error as error:
            await log.close()
            raise StartupError(_cannot_open(path, error)) from error
        except LogUnavailable as error:
            await log.close()
            raise StartupError(f"{path}: {error.detail}") from error
        except BaseException:
            await log.close()
            raise
        return log

    def _on_thread_start(self, db: sqlite3.Connection, new_epoch: Callable[[], str]) -> None:
        migrate(db, self._path)
        self.epoch = epoch_of(db, new_epoch)
        self.first, self.head = extent_of(db)
        self._sweep.count = int(db.execute("SELECT count(*) FROM ids").fetchone()[0])
        self._wal.checkpoint(db)

    async def append(self, batch: Batch) -> None:
        """See `Log.append`."""
        await self._recover()
        if batch.events or batch.puts or batch.ids:
            await self._writer.run(self._on_thread_append, batch)

    def _on_thread_append(self, db: sqlite3.Connection, batch: Batch) -> None:
        events = batch.events
        if [event.seq for event in events] != list(range(self.head + 1, self.head + 1 + len(events))):
            raise ValueError(f"a batch must carry on at seq {self.head + 1} without gaps")
        store(db, batch)
        self.head += len(events)
        self._sweep.count += len(batch.ids)
        size = sum([len(event.body) for event in events]) + 32 * len(events)
        self._wal.add(
            size, pages_touched([known.hash for known in batch.ids], self._sweep.pages) + len(batch.puts)
        )

    async def _recover(self) -> None:
        """After a failure, connect anew and believe the file."""
        if self._writer.is_open or self._lock is None:
            return
        try:
            await self._writer.open()
        except sqlite3.Error as error:
            raise LogUnavailable(cause_of(error)) from error
        known = self.head
        await self._writer.run(self._on_thread_recover)
        if self.head != known:
            raise LogUnavailable(f"the log was reopened at seq {self.head} instead of {known}; try again")

    def _on_thread_recover(self, db: sqlite3.Connection) -> None:
        self.first, self.head = extent_of(db)

    async def read(self, after: Positions, limit: int, bytes_max: int) -> list[Event]:
        """See `Log.read`."""
        return await self._readers.run(ask.read_page, after, limit, bytes_max, self._retained)

    @property
    def _retained(self) -> range:
        return range(self.first, self.head + 1)

    async def get(self, seq: int) -> Event | None:
        """See `Log.get`."""
        return await self._readers.run(ask.read_one, seq) if seq in self._retained else None

    async def seq_at(self, accepted_us: int) -> int:
        """See `Log.seq_at`; finds it by halving, as accepted times never fall."""
        return await self._readers.run(ask.find_seq, accepted_us, self._retained)

    async def load(self, kind: str) -> Mapping[str, bytes]:
        """See `Log.load`."""
        return await self._readers.run(ask.load_state, kind)

    async def find_ids(self, hashes: Sequence[int]) -> Mapping[int, int]:
        """See `Log.find_ids`."""
        return await self._readers.run(ask.find_ids, hashes)

    async def id_hashes(self) -> AsyncIterator[Sequence[int]]:
        """See `Log.id_hashes`."""
        after: int | None = None
        while part := await self._readers.run(ask.hashes_after, after, _HASHES_A_SLICE):
            yield part
            after = part[-1]

    async def redact(self, seq: int, body: bytes) -> bool:
        """See `Log.redact`. Also empties the write-ahead log; `tidy` does when a reader is in the way."""
        await self._recover()
        return await self._writer.run(self._on_thread_redact, seq, body)

    def _on_thread_redact(self, db: sqlite3.Connection, seq: int, body: bytes) -> bool:
        with transaction(db):
            row = db.execute("SELECT lane, accepted_us, extra FROM events WHERE seq = ?", (seq,)).fetchone()
            if row is None:
                return False
            lane, accepted_us, extra = row
            crc = row_crc(seq, lane, accepted_us, extra, body)
            db.execute("UPDATE events SET body = ?, crc = ? WHERE seq = ?", (body, crc, seq))
        self._scrub_due = True
        self._scrub_due = not self._wal.scrub(db)
        return True

    async def tidy(self, calm: bool) -> bool:
        """See `Log.tidy`. Nothing due costs no SQL and no thread."""
        if not self._is_tidy_due(calm):
            return False
        await self._recover()
        return await self._writer.run(self._on_thread_tidy, calm)

    def _is_tidy_due(self, calm: bool) -> bool:
        return self._wal.is_due(calm) or (calm and self._monotonic() >= self._upkeep_at)

    def _on_thread_tidy(self, db: sqlite3.Connection, calm: bool) -> bool:
        if self._wal.is_due(calm):
            self._wal.checkpoint(db)
            return self._is_tidy_due(calm)
        self._upkeep_at = self._monotonic() + PAUSE_S
        if self._scrub_due:
            self._scrub_due = not self._wal.scrub(db)
        with transaction(db):
            first, more = self._trimmer.slice(db, self.first, self.head, self._wal)
            crowded = not more and self._sweep.slice(db, first, self._wal)
        self.first = first
        if more or crowded:
            self._upkeep_at = self._monotonic()
        return more or crowded

    async def close(self) -> None:
        """See `Log.close`. Moves the write-ahead log into the database."""
        await self._readers.close()
        try:
            if self._writer.is_open:
                # On a full disk it stays beside the database, and nothing of it is lost.
                with suppress(LogUnavailable):
                    await self._writer.run(self._wal.scrub)
        finally:
            await self._writer.close()
            lock, self._lock = self._lock, None
            if lock is not None:
                lock.release()


def _cannot_open(path: Path, error: sqlite3.Error) -> str:
    if path.is_dir():
        return f"{path} is a folder: set bus.persist_path to a file in it"
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
        return unusable(path, PermissionError(13, str(error)))
    return explain(path, error)
