"""SQLite logs that are closed after the test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from storage.samples import FakeClock, open_sqlite

from herdr.storage.sqlite.log import SqliteLog

Opener = Callable[..., Awaitable[SqliteLog]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "events.db"


@pytest.fixture
async def open_log(path: Path, clock: FakeClock) -> AsyncIterator[Opener]:
    """Open the log at `path`, or at another."""
    opened: list[SqliteLog] = []

    async def open_(at: Path = path, **options: Any) -> SqliteLog:
        log = await open_sqlite(at, clock, **options)
        opened.append(log)
        return log

    yield open_
    for log in opened:
        await log.close()
