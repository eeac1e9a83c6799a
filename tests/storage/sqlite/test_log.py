"""What only a durable log has: reopening, its own failures, and the price of a read."""

import asyncio
import sqlite3
import threading

import pytest
from storage.samples import make_event

from herdr.bus.log import Batch, Put, RememberedId
from herdr.errors import LogUnavailable
from herdr.storage.retention import Retention
from herdr.storage.sqlite.connection import transaction


async def test_reopening_keeps_everything(open_log, clock):
    log = await open_log(epoch="11111111")
    events = [make_event(n + 1, n % 3) for n in range(10)]
    await log.append(Batch(events, [Put("route", "r", b"1")], [RememberedId(7, 3, 1)]))
    await log.close()
    log = await open_log(epoch="22222222")
    assert (log.epoch, log.first, log.head) == ("11111111", 1, 10)
    assert await log.read((0, 0, 0), 100, 1 << 20) == events
    assert await log.load("route") == {"r": b"1"}
    assert await log.find_ids([7]) == {7: 3}


async def test_a_log_emptied_by_retention_counts_on_after_reopening(open_log, clock):
    log = await open_log(retention=Retention(max_age_s=10, max_events=1000))
    await log.append(Batch([make_event(n + 1) for n in range(100)]))
    clock.advance(60)
    while await log.tidy(calm=True):
        pass
    assert (log.first, log.head) == (101, 100)
    await log.close()
    log = await open_log()
    assert (log.first, log.head) == (101, 100)


async def test_p0_far_behind_is_read_through_its_index(open_log):
    log = await open_log()
    for _ in range(60):
        await log.append(Batch([make_event(log.head + 1 + n, 1 + n % 2) for n in range(1000)]))
    await log.append(Batch([make_event(log.head + 1, 0)]))
    steps: list[int] = []
    for reader in log._readers._connections:
        await reader.run(lambda db: db.set_progress_handler(lambda: steps.append(1), 100))
    page = await log.read((0, 60_000, 60_000), 100, 1 << 20)
    assert [event.seq for event in page] == [60_001]
    assert len(steps) < 20, "a scan of the 60,000 other rows takes thousands of hundreds of steps"


def deny(action: int, word: str | None):
    """An authorizer under which one kind of statement fails."""

    def authorize(asked: int, argument: str | None, *_: object) -> int:
        return sqlite3.SQLITE_DENY if asked == action and argument == word else sqlite3.SQLITE_OK

    return authorize


@pytest.mark.parametrize(
    ("action", "word"),
    [
        (sqlite3.SQLITE_TRANSACTION, "COMMIT"),
        (sqlite3.SQLITE_INSERT, "ids"),
        (sqlite3.SQLITE_INSERT, "events"),
    ],
)
async def test_a_failed_batch_leaves_nothing_and_the_connection_is_replaced(open_log, action, word):
    log = await open_log()
    await log.append(Batch([make_event(1)]))
    failed = log._writer._connection
    await failed.run(lambda db: db.set_authorizer(deny(action, word)))
    with pytest.raises(LogUnavailable, match="not authorized"):
        await log.append(Batch([make_event(2)], [Put("a", "x", b"1")], [RememberedId(1, 1, 1)]))
    assert (log.head, await log.load("a"), await log.find_ids([1])) == (1, {}, {})
    assert [event.seq for event in await log.read((0, 0, 0), 9, 1 << 20)] == [1]
    await log.append(Batch([make_event(2)]))
    assert log._writer._connection is not failed
    assert [event.seq for event in await log.read((0, 0, 0), 9, 1 << 20)] == [1, 2]


async def test_a_log_that_moved_while_it_was_away_says_so_once(open_log, path):
    log = await open_log()
    await log.append(Batch([make_event(1)]))
    await log._writer.close()
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO events SELECT 2, lane, accepted_us, crc, extra, body FROM events")
    db.close()
    with pytest.raises(LogUnavailable, match="seq 2 instead of 1"):
        await log.append(Batch([make_event(2)]))
    await log.append(Batch([make_event(3)]))
    assert log.head == 3


async def test_a_cancelled_append_is_committed_and_counted(open_log):
    log = await open_log()
    gate = threading.Event()
    blocked = asyncio.create_task(log._writer.run(lambda db: gate.wait(30)))
    append = asyncio.create_task(log.append(Batch([make_event(1)])))
    await asyncio.sleep(0)  # one turn of the loop: both are in the thread's queue now
    append.cancel()
    gate.set()
    assert await blocked
    with pytest.raises(asyncio.CancelledError):
        await append
    await log.append(Batch(puts=[Put("a", "x", b"1")]))  # behind it in the queue
    assert log.head == 1
    assert [event.seq for event in await log.read((0, 0, 0), 9, 1 << 20)] == [1]


async def test_a_closed_log_is_unavailable(open_log):
    log = await open_log()
    await log.close()
    with pytest.raises(LogUnavailable, match="closed"):
        await log.append(Batch([make_event(1)]))
    with pytest.raises(LogUnavailable, match="closed"):
        await log.read((0, 0, 0), 1, 1)


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("os", 1)])
async def test_durability_is_sqlites_synchronous(open_log, durability, level):
    log = await open_log(durability=durability)
    assert await log._writer.run(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (level,)


async def test_sqlite_never_checkpoints_by_itself(open_log):
    log = await open_log()
    pragmas = ("wal_autocheckpoint", "journal_mode", "secure_delete")
    found = [await log._writer.run(lambda db, p=p: db.execute(f"PRAGMA {p}").fetchone()[0]) for p in pragmas]
    assert found == [0, "wal", 1]


async def test_work_that_fails_in_our_own_code_leaves_no_open_transaction(open_log):
    log = await open_log()

    def work(db: sqlite3.Connection) -> None:
        with transaction(db):
            db.execute("INSERT INTO state VALUES ('a', 'x', x'00')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await log._writer.run(work)
    assert await log.load("a") == {}
    await log.append(Batch([make_event(1)], [Put("a", "y", b"1")]))
    assert await log.load("a") == {"y": b"1"}


async def test_concurrent_reads_and_writes_see_whole_batches(open_log, clock):
    log = await open_log()

    async def follow() -> int:
        seen = 0
        while seen < 3000:
            page = await log.read((seen, seen, seen), 100, 1 << 20)
            assert [event.seq for event in page] == list(range(seen + 1, seen + 1 + len(page)))
            seen += len(page)
        return seen

    followers = [asyncio.create_task(follow()) for _ in range(3)]
    for _ in range(100):
        await log.append(Batch([make_event(log.head + 1 + n, n % 3) for n in range(30)]))
        await log.tidy(calm=True)
    assert await asyncio.gather(*followers) == [3000] * 3
