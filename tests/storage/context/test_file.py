"""context.db as a file: who may have it, what is said of one that cannot be used, and failures half way."""

import asyncio
import os
import sqlite3

import pytest
from storage.context.artifact_parts import draft
from storage.samples import open_sqlite

from herdr.context.blobs import ContextUnavailable
from herdr.context.histories import Batch, Message
from herdr.errors import StartupError
from herdr.storage.sqlite.context.schema import MIGRATIONS, OWNER
from herdr.storage.sqlite.upkeep import CHECKPOINT_FORCED_AT


def message(seq: int, body: bytes = b"body") -> Message:
    return Message(
        session="s", workspace="w", seq=seq, id=str(seq), role="user", source="x", time_us=seq, body=body
    )


async def refusal(open_store, at) -> str:
    with pytest.raises(StartupError) as caught:
        await open_store(at)
    assert "\n" not in caught.value.detail
    assert str(at) in caught.value.detail
    return caught.value.detail


async def test_the_file_says_whose_it_is(store, looking):
    with looking() as db:
        assert db.execute("PRAGMA application_id").fetchone() == (OWNER.application_id,)
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_it_lies_beside_the_log(open_store, clock, path):
    log = await open_sqlite(path.with_name("events.db"), clock)
    store = await open_store()
    await store.blobs.put(b"x", "a/b")
    await store.close()
    await log.close()
    left = {one.name for one in path.parent.iterdir()}
    assert left == {"events.db", "context.db", "herdr.lock"}, "closing leaves no write-ahead log behind"


async def test_a_file_that_is_no_database_is_told(open_store, path):
    path.write_bytes(b"not a database at all, " * 100)
    said = await refusal(open_store, path)
    assert "the file is damaged" in said
    assert "move it out of the data folder" in said
    assert path.read_bytes() == b"not a database at all, " * 100, "nothing is deleted"


async def test_a_damaged_schema_is_told(open_store, store, path):
    await store.close()
    raw = bytearray(path.read_bytes())
    raw[100:4096] = b"\xa5" * 3996
    path.write_bytes(raw)
    assert "the file is damaged" in await refusal(open_store, path)


async def test_a_database_of_another_program_is_told(open_store, path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE songs (title)")
    db.close()
    said = await refusal(open_store, path)
    assert "another program" in said
    assert "move it out of the data folder" in said


async def test_the_event_log_is_not_taken_for_the_context(open_store, clock, tmp_path):
    log = await open_sqlite(tmp_path / "events.db", clock)
    await log.close()
    assert "another program" in await refusal(open_store, tmp_path / "events.db")


async def test_a_file_of_a_newer_program_is_told(open_store, store, path, looking):
    await store.close()
    with looking() as db:
        db.execute("PRAGMA user_version = 99")
    said = await refusal(open_store, path)
    assert "has schema 99" in said
    assert "start the newer Herdr again" in said


async def test_a_folder_in_its_place_is_told(open_store, path):
    path.mkdir()
    assert "is a folder" in await refusal(open_store, path)


async def test_a_missing_folder_is_told(open_store, tmp_path):
    assert f"uid {os.getuid()}" in await refusal(open_store, tmp_path / "nowhere" / "context.db")


async def test_after_closing_everything_is_refused_politely(store):
    await store.close()
    await store.close()
    for call in (
        store.blobs.put(b"x", "a/b"),
        store.blobs.get("0" * 64),
        store.artifacts.put(draft("a"), b"x"),
        store.artifacts.shelf("default"),
        store.histories.append(Batch(1)),
        store.histories.state("s"),
    ):
        with pytest.raises(ContextUnavailable, match="the context is closed") as caught:
            await call
        assert caught.value.code == "context_unavailable"


async def test_nothing_due_costs_no_work(store, monkeypatch):
    monkeypatch.setattr(store._database, "write", None)
    assert not await store.tidy()


async def test_the_write_ahead_log_is_moved_before_it_grows_large(open_store, path):
    store = await open_store(artifact_bytes=1 << 30)
    for n in range(60):
        await store.artifacts.put(draft(str(n)), os.urandom(500_000))
    assert path.with_name("context.db-wal").stat().st_size < 2 * CHECKPOINT_FORCED_AT
    assert len((await store.artifacts.shelf("default")).artifacts) == 60


async def test_whoever_goes_away_does_not_undo_or_halve_what_has_begun(store):
    await store.histories.adopt("epoch", 0)
    going = [
        asyncio.create_task(store.artifacts.put(draft("a"), b"content")),
        asyncio.create_task(store.histories.append(Batch(2, [message(1), message(2)], {"s": b"state"}))),
    ]
    await asyncio.sleep(0)
    for task in going:
        task.cancel()
    await asyncio.gather(*going, return_exceptions=True)
    await store.artifacts.put(draft("b"), b"after")
    found = await store.histories.state("s")
    assert (found is None) == (store.histories.folded == 0)
    await store.histories.append(Batch(3, [message(1), message(2), message(3)]))
    assert [one.seq for one in await store.histories.page("s", 0, 9)] == [1, 2, 3]
    assert (await store.artifacts.get("default", "b"))[1] == b"after"


async def test_a_failed_write_is_told_and_the_next_one_goes_on(store, path):
    """Another program holds the file for longer than a write waits."""
    await store.artifacts.put(draft("a"), b"before")
    rival = sqlite3.connect(path, isolation_level=None)
    rival.execute("BEGIN IMMEDIATE")
    with pytest.raises(ContextUnavailable, match="another program holds a lock") as caught:
        await store.artifacts.put(draft("a"), b"during")
    assert str(path) not in caught.value.detail
    assert (await store.artifacts.get("default", "a"))[1] == b"before"
    rival.execute("ROLLBACK")
    rival.close()
    assert (await store.artifacts.put(draft("a"), b"after")).replaced
    assert (await store.artifacts.get("default", "a"))[1] == b"after"


async def test_after_a_failure_that_nobody_saw_the_connection_is_made_anew(store):
    """The caller is gone when its work fails: what comes next must not run on that connection."""
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def fail(db: sqlite3.Connection) -> None:
        loop.call_soon_threadsafe(began.set)
        raise sqlite3.OperationalError("disk I/O error")

    task = asyncio.create_task(store._database.write(0, fail))
    await began.wait()
    task.cancel()
    with pytest.raises((asyncio.CancelledError, ContextUnavailable)):
        await task
    first = store._database._writer._connection
    await store.artifacts.put(draft("a"), b"content")
    assert store._database._writer._connection is not first or first is None


async def test_reading_goes_on_while_a_large_artifact_is_written(open_store):
    store = await open_store(artifact_bytes=1 << 30)
    ref = await store.blobs.put(b"small", "a/b")
    writing = asyncio.create_task(store.artifacts.put(draft("large"), os.urandom(64 * 1024**2)))
    reads = 0
    while not writing.done():
        assert (await store.blobs.get(ref)).content == b"small"
        reads += 1
    assert (await writing).artifact.bytes == 64 * 1024**2
    assert reads > 1
