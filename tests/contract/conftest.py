"""One suite for every log: the fixtures that open a fresh one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from storage.samples import EPOCH, FakeClock, open_sqlite

from herdr.bus.log import Log
from herdr.storage.memory import MemoryLog
from herdr.storage.retention import Retention

Opener = Callable[..., Awaitable[Log]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
async def open_log(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Opener]:
    """Open a fresh log; whatever was opened is closed after the test."""
    opened: list[Log] = []

    async def open_(retention: Retention | None = None) -> Log:
        log: Log
        if request.param == "memory":
            log = MemoryLog(EPOCH, retention, clock)
        else:
            log = await open_sqlite(tmp_path / "events.db", clock, retention=retention or Retention())
        opened.append(log)
        return log

    yield open_
    for log in opened:
        await log.close()
