"""Stores of the context that are closed after the test."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from storage.samples import FakeClock

from herdr.storage.sqlite.context.store import ContextStore

Opener = Callable[..., Awaitable[ContextStore]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "context.db"


@pytest.fixture
async def open_store(path: Path, clock: FakeClock) -> AsyncIterator[Opener]:
    """Open the store at `path`, or at another."""
    opened: list[ContextStore] = []

    async def open_(at: Path = path, **options: Any) -> ContextStore:
        options = {"clock": clock, "artifact_bytes": 1000, "durability": "os"} | options
        store = await ContextStore.open(at, **options)
        opened.append(store)
        return store

    yield open_
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: Opener) -> ContextStore:
    return await open_store()


@pytest.fixture
def looking(path: Path) -> Callable[[], Any]:
    """Look at, or tamper with, the file through a connection of one's own."""

    @contextmanager
    def connected() -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(path, isolation_level=None)
        try:
            yield db
        finally:
            db.close()

    return connected
