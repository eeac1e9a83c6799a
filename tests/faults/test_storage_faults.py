"""Faults under the log: rotten bytes, killed processes, full and read-only disks, killed migrations."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from storage.samples import make_event, open_sqlite, text

from herdr.bus.log import Batch
from herdr.clock import SystemClock
from herdr.errors import LogUnavailable, StartupError
from herdr.event import Event
from herdr.storage.sqlite.backup import verify
from herdr.storage.sqlite.log import SqliteLog
from herdr.storage.sqlite.schema import MIGRATIONS, migrate

Opener = Callable[..., Awaitable[SqliteLog]]
MIB = 1024**2


def event(seq: int, data: bytes = b"null") -> Event:
    return make_event(seq, seq % 3, data, SystemClock().wall_us())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "events.db"


@pytest.fixture
async def open_log(path: Path) -> AsyncIterator[Opener]:
    opened: list[SqliteLog] = []

    async def open_(at: Path = path) -> SqliteLog:
        log = await open_sqlite(at, SystemClock(), durability="full")
        opened.append(log)
        return log

    yield open_
    for log in opened:
        await log.close()


async def read_all(log: SqliteLog) -> list[Event]:
    events: list[Event] = []
    while page := await log.read((len(events),) * 3, 70, MIB):
        events += page
    return events


async def filled(open_log: Opener, count: int = 300) -> list[Event]:
    log = await open_log()
    events = [event(n + 1, b'"mark-%03d"' % (n + 1)) for n in range(count)]
    await log.append(Batch(events))
    await log.close()
    return events


async def test_a_flipped_bit_is_never_served_as_good(open_log, path):
    events = await filled(open_log)
    content = bytearray(path.read_bytes())
    content[content.index(b"mark-150")] ^= 0x04
    path.write_bytes(content)

    log = await open_log()
    read = await read_all(log)
    assert [e.seq for e in read] == list(range(1, 301))
    assert [e.seq for e in read if e.corrupt] == [150]
    assert [e for e in read if not e.corrupt] == [e for e in events if e.seq != 150]
    assert (await log.get(150)).corrupt
    assert verify(path).damaged_seqs == (150,)


async def test_every_single_bit_flip_in_a_row_is_noticed_or_harmless(open_log, path):
    events = await filled(open_log, 40)
    good = path.read_bytes()
    row = range(good.index(b"mark-020") - 120, good.index(b"mark-020") + 12)
    for offset in row:
        content = bytearray(good)
        content[offset] ^= 1 << (offset % 8)
        path.write_bytes(content)
        log = await open_log()
        for one in await log.read((0, 0, 0), 100, MIB):
            assert one.corrupt or one == events[one.seq - 1], f"byte {offset}"
        await log.close()


async def test_a_destroyed_page_costs_only_its_own_rows(open_log, path):
    events = await filled(open_log)
    content = bytearray(path.read_bytes())
    page = content.index(b"mark-150") // 4096 * 4096
    lost = [e.seq for e in events if b"mark-%03d" % e.seq in content[page : page + 4096]]
    content[page : page + 4096] = bytes(4096)
    path.write_bytes(content)

    log = await open_log()
    read = await read_all(log)
    assert [e.seq for e in read] == list(range(1, 301))
    assert [e.seq for e in read if e.corrupt] == lost
    assert 5 < len(lost) < 100


WRITE_FOR_EVER = """
import asyncio, pathlib, sys
sys.path[:0] = [sys.argv[2], sys.argv[2] + "/faults"]
from test_storage_faults import *

async def main():
    log = await open_sqlite(pathlib.Path(sys.argv[1]), SystemClock(), durability="full")
    print(log.head, flush=True)
    while True:
        await log.append(Batch([event(log.head + 1 + n) for n in range(1 + log.head % 40)]))
        print(log.head, flush=True)
        await log.tidy(calm=True)

asyncio.run(main())
"""


def run_child(script: str, *arguments: object) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def test_a_killed_process_loses_nothing_acknowledged(open_log, path):
    chance = random.Random(7)
    acknowledged = 0
    for _ in range(8):
        with run_child(WRITE_FOR_EVER, path, Path(__file__).parent.parent) as child:
            assert int(child.stdout.readline()) >= acknowledged
            for _ in range(chance.randrange(1, 40)):
                acknowledged = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            acknowledged = int((child.stdout.read().splitlines() or [acknowledged])[-1])
            assert child.wait() == -signal.SIGKILL, child.stderr.read()
        log = await open_log()
        assert (log.epoch, log.first) == ("0a0b0c0d", 1)
        assert log.head >= acknowledged
        read = await read_all(log)
        assert [e.seq for e in read] == list(range(1, log.head + 1))
        assert not any(e.corrupt for e in read)
        await log.close()
    assert verify(path).problems == ()


DIE_IN_MIGRATION = """
import os, pathlib, signal, sqlite3, sys
from herdr.storage.sqlite.schema import MIGRATIONS, migrate
path = pathlib.Path(sys.argv[1])
db = sqlite3.connect(path, isolation_level=None)
db.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
migrate(db, path, (*MIGRATIONS, "ALTER TABLE ids ADD COLUMN note TEXT; CREATE TABLE extra (a); SELECT die();"))
"""


async def test_a_migration_killed_half_way_leaves_the_old_schema(open_log, path):
    events = await filled(open_log)
    with run_child(DIE_IN_MIGRATION, path) as child:
        assert child.wait() == -signal.SIGKILL, child.stderr.read()
    log = await open_log()
    assert await read_all(log) == events
    await log.close()
    db = sqlite3.connect(path, isolation_level=None)
    tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'extra'"
    assert db.execute(tables).fetchone() == (0,)
    migrate(db, path, (*MIGRATIONS, "CREATE TABLE extra (a)"))
    assert db.execute(tables).fetchone() == (1,)
    assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
    db.close()


async def test_a_migration_that_fails_leaves_the_old_schema(open_log, path):
    await filled(open_log)
    db = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(sqlite3.Error, match="nothing"):
        migrate(db, path, (*MIGRATIONS, "CREATE TABLE extra (a); INSERT INTO nothing VALUES (1)"))
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'").fetchone() == (0,)
    assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    db.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB; needs the right to mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True, text=True
    )
    if mount.returncode:
        pytest.skip(
            f"this user may not mount a file system; scripts/test runs it as root: {mount.stderr.strip()}"
        )
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


async def fill_until_it_fails(log: SqliteLog) -> str:
    with pytest.raises(LogUnavailable) as caught:
        for _ in range(5000):
            await log.append(Batch([event(log.head + 1 + n, text(2000)) for n in range(20)]))
    return caught.value.detail


async def test_a_full_disk_stops_writes_only_and_only_while_it_is_full(open_log, small_disk):
    path = small_disk / "data" / "events.db"
    log = await open_log(path)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(MIB))
    detail = await fill_until_it_fails(log)
    assert "disk is full" in detail
    assert str(small_disk) not in detail
    acknowledged = log.head
    for _ in range(3):
        with pytest.raises(LogUnavailable, match="disk is full"):
            await log.append(Batch([event(acknowledged + 1 + n, text(9000)) for n in range(20)]))
        assert log.head == acknowledged
        assert len(await read_all(log)) == acknowledged
    ballast.unlink()
    await log.append(Batch([event(acknowledged + 1)]))
    assert [e.seq for e in await read_all(log)] == list(range(1, acknowledged + 2))
    await log.close()
    assert verify(path).problems == ()


async def test_a_full_disk_at_start_is_said_in_one_line(open_log, small_disk):
    (small_disk / "ballast").write_bytes(bytes(4 * MIB - 16 * 1024))
    with pytest.raises(StartupError) as caught:
        await open_log(small_disk / "data" / "events.db")
    assert "full" in caught.value.detail or "No space left" in caught.value.detail
    assert "\n" not in caught.value.detail
    (small_disk / "ballast").unlink()
    await open_log(small_disk / "data" / "events.db")


LIMITED = """
import asyncio, pathlib, resource, sys
sys.path[:0] = [sys.argv[2], sys.argv[2] + "/faults"]
from test_storage_faults import *

async def main():
    log = await open_sqlite(pathlib.Path(sys.argv[1]), SystemClock(), durability="full")
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MIB, resource.RLIM_INFINITY))
    detail = await fill_until_it_fails(log)
    acknowledged = log.head
    assert acknowledged > 100, acknowledged
    assert len(await read_all(log)) == acknowledged
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await log.append(Batch([event(acknowledged + 1)]))
    assert [e.seq for e in await read_all(log)] == list(range(1, acknowledged + 2))
    await log.close()
    print(detail)

asyncio.run(main())
"""


def test_a_file_that_may_not_grow_stops_writes_only(path):
    """The same without the right to mount: the process's limit on file sizes."""
    with run_child(LIMITED, path, Path(__file__).parent.parent) as child:
        output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert "I/O error" in output or "disk is full" in output
    assert "events.db" not in output, (
        "clients hear this text, and the server's paths are none of their business"
    )
    assert verify(path).problems == ()


def remount_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


async def test_a_read_only_file_system_is_said_in_one_line(open_log, small_disk):
    path = small_disk / "data" / "events.db"
    log = await open_log(path)
    await log.close()
    remount_read_only(small_disk)
    with pytest.raises(StartupError) as caught:
        await open_log(path)
    assert "read-only" in caught.value.detail
    assert f"uid {os.getuid()}" in caught.value.detail
    assert "\n" not in caught.value.detail


OPEN_ONCE = """
import asyncio, os, pathlib, sys
from herdr.clock import SystemClock
from herdr.errors import StartupError
from herdr.storage.retention import Retention
from herdr.storage.sqlite.log import SqliteLog

if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

async def main():
    try:
        await SqliteLog.open(pathlib.Path(sys.argv[1]), clock=SystemClock(), durability="full",
                             retention=Retention(), new_epoch=lambda: "0a0b0c0d")
    except StartupError as error:
        print(error.detail)

asyncio.run(main())
"""


@pytest.fixture
def closed_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that its user may enter and read, not write; reachable also for `nobody`."""
    folder = Path("/tmp") / f"herdr-closed-{os.getpid()}"
    folder.mkdir(mode=0o755)
    folder.chmod(0o555)
    yield folder
    for left in folder.iterdir():
        left.unlink()
    folder.rmdir()


@pytest.mark.parametrize("below", ["events.db", "data/events.db"])
def test_a_folder_of_somebody_else_is_said_in_one_line(closed_folder, below):
    """As root permission bits do not bite, so the child becomes `nobody` first."""
    with run_child(OPEN_ONCE, closed_folder / below) as child:
        output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert output.count("\n") == 1
    for part in (str(closed_folder), "uid ", "Permission denied", "chown -R", "named volume"):
        assert part in output


def test_a_database_file_of_somebody_else_is_said_in_one_line(closed_folder):
    if os.getuid():
        pytest.skip(
            "only root can leave a file that another user may not write; scripts/test runs it as root"
        )
    closed_folder.chmod(0o777)
    (closed_folder / "events.db").write_bytes(b"")
    (closed_folder / "events.db").chmod(0o444)
    with run_child(OPEN_ONCE, closed_folder / "events.db") as child:
        output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert output.count("\n") == 1
    for part in (str(closed_folder / "events.db"), "uid 65534", "owner 0:0, mode 0444", "chown"):
        assert part in output
