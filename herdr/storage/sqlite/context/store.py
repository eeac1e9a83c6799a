"""context.db as a whole: opening it, its three parts, its upkeep."""

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Literal

from herdr.clock import Clock
from herdr.context.blobs import ContextUnavailable
from herdr.storage.sqlite.context.artifacts import SqliteArtifacts
from herdr.storage.sqlite.context.blobs import SqliteBlobs
from herdr.storage.sqlite.context.database import Database
from herdr.storage.sqlite.context.histories import Bounds, SqliteHistories


class ContextStore:
    """The three parts of the context's storage, on one file with one writer."""

    def __init__(
        self, path: Path, clock: Clock, artifact_bytes: int, durability: Literal["full", "os"]
    ) -> None:
        """Use `open`."""
        self._database = Database(path, durability, self._on_thread_connect)
        self.blobs = SqliteBlobs(self._database, clock)
        self.artifacts = SqliteArtifacts(self._database, clock, artifact_bytes)
        self.histories = SqliteHistories(self._database, Bounds())

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        artifact_bytes: int,
        durability: Literal["full", "os"] = "full",
    ) -> "ContextStore":
        """Open the file, creating it where it is missing; raises StartupError.

        Its folder exists and is locked for this process: the event log, which lies there too, did that.
        `artifact_bytes` is what all artifacts together may have before compression.
        """
        store = cls(path, clock, artifact_bytes, durability)
        await store._database.open()
        return store

    def _on_thread_connect(self, db: sqlite3.Connection) -> None:
        self.histories.on_thread_connect(db)

    async def tidy(self) -> bool:
        """Do a slice of upkeep, True when more is due; raises ContextUnavailable. Nothing due costs nothing."""
        for touches in (self.artifacts.touches, self.blobs.touches):
            if touches.is_due:
                await touches.write(self._database)
        return await self.histories.sweep()

    async def close(self) -> None:
        """Write down what is still in memory and release the file; safe to call twice."""
        with suppress(ContextUnavailable):
            await self.artifacts.touches.write(self._database)
            await self.blobs.touches.write(self._database)
        await self._database.close()
