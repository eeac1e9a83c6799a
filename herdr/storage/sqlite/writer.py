"""The one connection that writes: commits batches, and starts afresh after any failure."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from herdr.bus.log import Batch, Put
from herdr.storage.sqlite.connection import (
    Connection,
    Fault,
    connect,
    log_fault,
    prepare_writer,
    transaction,
)
from herdr.storage.sqlite.rows import DELETE_STATE, INSERT_EVENTS, INSERT_IDS, INSERT_STATE, Value, row_of

P = ParamSpec("P")
T = TypeVar("T")


class Writer:
    """Runs work on the writing connection; a connection that failed once is never used again.

    After a failed fsync the kernel may hold pages that are neither on the disk nor marked dirty, and the
    next fsync succeeds without them (https://wiki.postgresql.org/wiki/Fsync_Errors).
    """

    def __init__(self, path: Path, durability: str, fault: Fault = log_fault) -> None:
        self._path = path
        self._durability = durability
        self._fault = fault
        self._connection: Connection | None = None

    @property
    def is_open(self) -> bool:
        """False before `open`, after `close` and after a failure."""
        return self._connection is not None

    async def open(self) -> None:
        """Connect; raises sqlite3.Error."""
        connection = await connect(self._path, "rwc")
        try:
            await connection.run(prepare_writer, self._durability)
        except BaseException:
            await connection.close()
            raise
        self._connection = connection

    async def run(
        self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` on the connection's thread; raises the fault, and then the connection is gone."""
        if self._connection is None:
            raise self._fault(None)
        try:
            return await self._connection.run(work, *args, **kwargs)
        except sqlite3.Error as error:
            await self.close()
            raise self._fault(error) from error

    async def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def store(db: sqlite3.Connection, batch: Batch) -> None:
    """Commit a batch, or nothing of it."""
    statements = [*INSERT_EVENTS.split([row_of(event) for event in batch.events]), *_puts(batch.puts)]
    # In the index's order each of its pages is touched once.
    statements += INSERT_IDS.split(sorted({known.hash: known for known in batch.ids}.values()))
    if len(statements) == 1:
        db.execute(*statements[0])  # a statement is a transaction of its own
        return
    with transaction(db):
        for sql, values in statements:
            db.execute(sql, values)


def _puts(puts: Sequence[Put]) -> Iterator[tuple[str, list[Value]]]:
    last = {(kind, key): value for kind, key, value in puts}
    yield from INSERT_STATE.split([(*place, value) for place, value in last.items() if value is not None])
    yield from DELETE_STATE.split([place for place, value in last.items() if value is None])
