"""Copies of a live log, their verification, and restoring them."""

import shutil
import sqlite3

import pytest
from storage.samples import make_event

from herdr.bus.log import Batch, Put, RememberedId
from herdr.errors import HerdrError, StartupError
from herdr.storage.sqlite.backup import backup, restore, verify


async def filled(open_log, count=500):
    log = await open_log()
    await log.append(Batch([make_event(n + 1, n % 3) for n in range(count)], [Put("a", "x", b"1")]))
    await log.append(Batch(ids=[RememberedId(5, 1, 1)]))
    return log


async def test_a_backup_beside_a_running_gateway_is_whole(open_log, path, tmp_path, clock):
    log = await filled(open_log)
    copy = tmp_path / "copy.db"
    summary = backup(path, copy)
    assert (summary.path, summary.epoch, summary.first, summary.head) == (str(copy), log.epoch, 1, 500)
    assert (summary.events, summary.damaged, summary.problems) == (500, 0, ())
    await log.append(Batch([make_event(501)]))
    assert verify(copy).head == 500
    expected = await log.read((0, 0, 0), 500, 1 << 30)
    await log.close()

    restored = restore(copy, path, clock=clock, new_epoch=lambda: "feedf00d", force=True)
    assert (restored.path, restored.epoch, restored.head) == (str(path), "feedf00d", 500)
    log = await open_log()
    assert (log.epoch, log.first, log.head) == ("feedf00d", 1, 500)
    assert await log.read((0, 0, 0), 500, 1 << 30) == expected
    assert (await log.load("a"), await log.find_ids([5])) == ({"x": b"1"}, {5: 1})
    assert verify(copy).epoch == "0a0b0c0d", "the backup itself stays as it is"


async def test_a_backup_of_what_a_killed_gateway_left(open_log, path, tmp_path):
    await filled(open_log)
    left = tmp_path / "left"
    left.mkdir()
    for name in ("events.db", "events.db-wal"):
        shutil.copy(path.with_name(name), left / name)
    assert backup(left / "events.db", tmp_path / "copy.db").events == 500


async def test_a_backup_of_a_stopped_gateway(open_log, path, tmp_path):
    log = await filled(open_log)
    await log.close()
    assert backup(path, tmp_path / "copy.db").events == 500


async def test_an_existing_file_is_never_overwritten(open_log, path, tmp_path):
    await filled(open_log)
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(HerdrError, match="never overwritten"):
        backup(path, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


@pytest.mark.parametrize("content", [None, b"", b"no database at all" * 99])
def test_a_backup_of_no_log_leaves_no_file(tmp_path, content):
    source, target = tmp_path / "source.db", tmp_path / "copy.db"
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(HerdrError, match=r"source\.db|not a log"):
        backup(source, target)
    assert not target.exists()
    assert not list(tmp_path.glob("*.partial"))


def damage(file, seq: int, sql: str) -> None:
    db = sqlite3.connect(file, isolation_level=None)
    db.execute(sql, (seq,))
    db.close()


async def test_damage_is_found(open_log, path, tmp_path):
    log = await filled(open_log)
    await log.close()
    damage(path, 7, "UPDATE events SET body = CAST(replace(body, 'editor', 'edjtor') AS BLOB) WHERE seq = ?")
    damage(path, 70, "DELETE FROM events WHERE seq = ?")
    damage(path, 71, "DELETE FROM events WHERE seq = ?")
    damage(path, 90, "UPDATE events SET accepted_us = accepted_us + 1 WHERE seq = ?")
    summary = backup(path, tmp_path / "copy.db")
    assert summary.damaged_seqs == (7, 70, 71, 90)
    assert summary.problems == ("4 damaged events, the first at seq 7",)


async def test_restore_refuses_while_a_gateway_runs(open_log, path, tmp_path, clock):
    await filled(open_log)
    backup(path, tmp_path / "copy.db")
    with pytest.raises(StartupError, match="another gateway"):
        restore(tmp_path / "copy.db", path, clock=clock, new_epoch=lambda: "feedf00d", force=True)


async def test_restore_refuses_to_replace_events_unless_forced(open_log, path, tmp_path, clock):
    log = await filled(open_log)
    backup(path, tmp_path / "copy.db")
    await log.close()
    with pytest.raises(HerdrError, match="holds events"):
        restore(tmp_path / "copy.db", path, clock=clock, new_epoch=lambda: "feedf00d")
    assert verify(path).epoch == "0a0b0c0d"


async def test_restore_into_an_empty_or_missing_log_needs_no_force(open_log, path, tmp_path, clock):
    log = await filled(open_log)
    backup(path, tmp_path / "copy.db")
    await log.close()
    for place in (tmp_path / "new" / "events.db", tmp_path / "empty" / "events.db"):
        if place.parent.name == "empty":
            await (await open_log(place)).close()
        assert restore(tmp_path / "copy.db", place, clock=clock, new_epoch=lambda: "feedf00d").events == 500


async def test_restore_verifies_first(open_log, path, tmp_path, clock):
    log = await filled(open_log)
    backup(path, tmp_path / "copy.db")
    await log.close()
    damage(tmp_path / "copy.db", 7, "DELETE FROM events WHERE seq = ?")
    place = tmp_path / "new" / "events.db"
    with pytest.raises(HerdrError, match="1 damaged events, the first at seq 7"):
        restore(tmp_path / "copy.db", place, clock=clock, new_epoch=lambda: "feedf00d")
    assert not place.exists()
    assert (
        restore(tmp_path / "copy.db", place, clock=clock, new_epoch=lambda: "feedf00d", force=True).damaged
        == 1
    )


async def test_restore_leaves_no_stale_write_ahead_log(open_log, path, tmp_path, clock):
    await filled(open_log)
    backup(path, tmp_path / "copy.db")
    place = tmp_path / "crashed" / "events.db"
    place.parent.mkdir()
    for name in ("events.db", "events.db-wal"):
        shutil.copy(path.with_name(name), place.with_name(name))
    restore(tmp_path / "copy.db", place, clock=clock, new_epoch=lambda: "feedf00d", force=True)
    assert sorted(file.name for file in place.parent.iterdir()) == ["events.db", "herdr.lock"]
    assert verify(place).epoch == "feedf00d"


async def test_restore_over_a_wreck_needs_force(open_log, path, tmp_path, clock):
    log = await filled(open_log)
    backup(path, tmp_path / "copy.db")
    await log._writer.run(log._wal.scrub)
    await log.append(Batch([make_event(501)]))
    stale = path.with_name("events.db-wal").read_bytes()
    await log.close()
    path.write_bytes(b"wreck" * 1000)
    path.with_name("events.db-wal").write_bytes(stale)
    with pytest.raises(HerdrError, match="--force"):
        restore(tmp_path / "copy.db", path, clock=clock, new_epoch=lambda: "feedf00d")
    assert path.read_bytes().startswith(b"wreck")
    restored = restore(tmp_path / "copy.db", path, clock=clock, new_epoch=lambda: "feedf00d", force=True)
    assert restored.events == 500
    assert sorted(file.name for file in path.parent.iterdir()) == ["events.db", "herdr.lock"]
