"""Upkeep between batches: bounded files, bounded removal, and no work when none is due."""

import asyncio
import sqlite3

from storage.samples import make_event, text

from herdr.bus.log import Batch, RememberedId
from herdr.storage.retention import Retention
from herdr.storage.sqlite.connection import address
from herdr.storage.sqlite.upkeep import CHECKPOINT_AT, CHECKPOINT_FORCED_AT

MIB = 1024**2
YEAR_S = 365 * 24 * 3600


async def fill(log, count, data=b"null") -> None:
    for _ in range(0, count, 200):
        await log.append(Batch([make_event(log.head + 1 + n, 1, data) for n in range(200)]))


async def tidy_until_done(log) -> int:
    slices = 0
    while await log.tidy(calm=True):
        slices += 1
    return slices


def wal_size(path) -> int:
    return path.with_name(path.name + "-wal").stat().st_size


async def test_nothing_due_runs_no_statement(open_log):
    log = await open_log()
    await fill(log, 200)
    await tidy_until_done(log)
    seen: list[str] = []
    await log._writer.run(lambda db: db.set_trace_callback(seen.append))
    for _ in range(50):
        assert not await log.tidy(calm=True)
    assert seen == []


async def test_the_write_ahead_log_starts_over_when_calm(open_log, path):
    log = await open_log()
    for _ in range(40):
        await fill(log, 400, text(1000))
        await tidy_until_done(log)
    assert log.head == 16_000
    assert CHECKPOINT_AT < wal_size(path) < 3 * MIB


async def test_without_calm_the_write_ahead_log_is_bounded_all_the_same(open_log, path):
    log = await open_log()
    for _ in range(150):
        await fill(log, 200, text(1000))
        await log.tidy(calm=False)
    assert CHECKPOINT_FORCED_AT / 2 < wal_size(path) < CHECKPOINT_FORCED_AT + 2 * MIB


async def test_a_long_reader_lets_it_grow_only_while_it_reads(open_log, path):
    log = await open_log()
    await fill(log, 200)
    reader = sqlite3.connect(address(path, "ro"), uri=True, isolation_level=None)
    reader.execute("BEGIN").execute("SELECT count(*) FROM events").fetchone()
    for _ in range(100):
        await fill(log, 200, text(1000))
        await tidy_until_done(log)
    grown = wal_size(path)
    assert grown > 20 * MIB
    reader.close()
    for _ in range(10):
        await fill(log, 200, text(1000))
        await tidy_until_done(log)
    assert wal_size(path) <= 17 * MIB


SLOW_READ = """
WITH RECURSIVE steps (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM steps WHERE n < 20000)
SELECT (SELECT max(seq) FROM events), (SELECT count(*) FROM steps)
"""


async def test_short_readers_that_never_pause_do_not_let_it_grow(open_log, path):
    """Each starts before the last one ends, so the log never finds itself without a reader."""
    log = await open_log()
    writing = True

    async def read_on() -> None:
        while writing:
            await log._readers.run(lambda db: db.execute(SLOW_READ).fetchone())

    readers = [asyncio.create_task(read_on()) for _ in range(2)]
    for _ in range(200):
        await fill(log, 200, text(1000))
        await log.tidy(calm=True)
    writing = False
    await asyncio.gather(*readers)
    assert log.head == 40_000
    assert wal_size(path) < 17 * MIB


async def test_retention_by_bytes(open_log, clock):
    log = await open_log(retention=Retention(max_bytes=2 * MIB))
    await fill(log, 6000, text(1000))
    await tidy_until_done(log)
    kept = log.head - log.first + 1
    assert 1000 < kept < 2000
    assert len(await log.read((0, 0, 0), 10_000, 1 << 30)) == kept


async def test_trimming_goes_in_slices(open_log, clock):
    log = await open_log(retention=Retention(max_events=200))
    await fill(log, 2000)
    assert await log.tidy(calm=True)
    assert log.first == 513
    await tidy_until_done(log)
    assert log.first == 1801


async def test_nothing_is_trimmed_while_p0_waits(open_log, clock):
    log = await open_log(retention=Retention(max_events=200))
    await fill(log, 1000)
    assert not await log.tidy(calm=False)
    assert log.first == 1


async def test_a_clock_that_jumps_ahead_empties_the_log_slowly(open_log, clock):
    bounds = Retention(max_age_s=1000, max_events=10_000)
    log = await open_log(retention=bounds)
    await fill(log, 10_000)
    await tidy_until_done(log)
    clock.wall += YEAR_S * 1_000_000
    for _ in range(25):
        clock.advance(1)
        await tidy_until_done(log)
    # A burst of one slice, then 40 a second: four times what a log bounded by its age can take in.
    assert 1000 < log.first - 1 <= 512 + 25 * 40


async def test_ids_are_bounded_by_count_too_and_the_oldest_go(open_log, clock):
    log = await open_log(retention=Retention(max_events=2000))
    for seq in range(0, 12_000, 250):
        now = clock.wall_us()
        await log.append(
            Batch(ids=[RememberedId((n * 2**40) % 2**62, n, now) for n in range(seq, seq + 250)])
        )
        await tidy_until_done(log)
        clock.advance(2)
    await tidy_until_done(log)
    left = [known async for part in log.id_hashes() for known in part]
    assert 3000 < len(left) <= log._sweep._max == 4000
    newest = [(n * 2**40) % 2**62 for n in range(11_000, 12_000)]
    assert len(await log.find_ids(newest)) > 900


async def test_ids_of_an_earlier_run_count_too(open_log, clock):
    log = await open_log(retention=Retention(max_events=2000))
    await log.append(Batch(ids=[RememberedId(n * 7919, n, clock.wall_us()) for n in range(6000)]))
    await log.close()
    log = await open_log(retention=Retention(max_events=2000))
    await tidy_until_done(log)
    assert len([known async for part in log.id_hashes() for known in part]) <= 4000


async def test_a_redacted_body_is_in_no_file(open_log, path):
    log = await open_log()
    secrets = {2: b"s3cret-short", 3: b"s3cret-long-" * 3000}
    for seq in range(1, 6):
        await log.append(Batch([make_event(seq, 1, b'"' + secrets.get(seq, b"x") + b'"')]))
    assert b"s3cret" in path.with_name("events.db-wal").read_bytes()
    for seq in secrets:
        assert await log.redact(seq, make_event(seq).body)
    for file in path.parent.iterdir():
        assert b"s3cret" not in file.read_bytes(), file


async def test_a_redacted_body_leaves_once_a_long_reader_ends(open_log, path, clock):
    log = await open_log()
    await log.append(Batch([make_event(1, 1, b'"s3cret"')]))
    reader = sqlite3.connect(address(path, "ro"), uri=True, isolation_level=None)
    reader.execute("BEGIN").execute("SELECT count(*) FROM events").fetchone()
    assert await log.redact(1, make_event(1).body)
    assert b"s3cret" in path.with_name("events.db-wal").read_bytes()
    reader.close()
    clock.advance(2)
    await tidy_until_done(log)
    for file in path.parent.iterdir():
        assert b"s3cret" not in file.read_bytes(), file
