"""Killed processes, full and read-only disks under context.db."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from storage.context.artifact_parts import draft

from herdr.clock import SystemClock
from herdr.context.blobs import ContextUnavailable
from herdr.context.histories import Batch, Message
from herdr.errors import StartupError
from herdr.storage.sqlite.context.store import ContextStore

MIB = 1024**2
TESTS = Path(__file__).parent.parent.parent


async def opened(path: Path) -> ContextStore:
    return await ContextStore.open(path, clock=SystemClock(), artifact_bytes=64 * MIB)


def body(seq: int) -> bytes:
    return b"%d," % seq * (1 + seq * 7919 % 3000)


def message(seq: int) -> Message:
    return Message(
        session=f"s{seq % 3}", workspace="w", seq=seq, id=str(seq), role="user", source="x", time_us=seq,
        body=body(seq),
    )  # fmt: skip


WRITE_FOR_EVER = """
import asyncio, pathlib, sys
sys.path[:0] = [sys.argv[2]]
from storage.context.test_faults import *

async def main():
    store = await opened(pathlib.Path(sys.argv[1]))
    await store.histories.adopt("epoch", 0)
    print(store.histories.folded, flush=True)
    while True:
        first = store.histories.folded + 1
        last = first + first % 5
        await store.histories.append(Batch(last, [message(n) for n in range(first, last + 1)], {"s0": b"%d" % last}))
        await store.artifacts.put(draft(f"a{last % 40}", ttl_s=1000), body(last))
        print(last, flush=True)
        await store.blobs.put(body(last) + b"cached", "a/b")

asyncio.run(main())
"""


def run_child(script: str, *arguments: object) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def test_a_killed_process_loses_nothing_acknowledged(tmp_path):
    path = tmp_path / "context.db"
    chance = random.Random(7)
    acknowledged = 0
    for _ in range(6):
        with run_child(WRITE_FOR_EVER, path, TESTS) as child:
            assert int(child.stdout.readline()) >= acknowledged
            for _ in range(chance.randrange(1, 30)):
                acknowledged = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            acknowledged = int((child.stdout.read().splitlines() or [acknowledged])[-1])
            assert child.wait() == -signal.SIGKILL, child.stderr.read()
        await check(path, acknowledged)
    assert acknowledged > 100


async def check(path: Path, acknowledged: int) -> None:
    store = await opened(path)
    try:
        assert store.histories.folded >= acknowledged
        seen = []
        for session in ("s0", "s1", "s2"):
            after = 0
            while page := await store.histories.page(session, after, 50):
                assert all(one.body == body(one.seq) for one in page)
                seen += [one.seq for one in page]
                after = page[-1].seq
        assert sorted(seen) == list(range(1, store.histories.folded + 1)), "each message once"
        _, content = await store.artifacts.get("default", f"a{acknowledged % 40}")
        assert content == body(acknowledged) or store.histories.folded > acknowledged
        assert (await store._database.read(lambda db: db.execute("PRAGMA quick_check").fetchall())) == [
            ("ok",)
        ]
    finally:
        await store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB; needs the right to mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    mount = subprocess.run(words, capture_output=True, text=True)
    if mount.returncode:
        pytest.skip(
            f"this user may not mount a file system; scripts/test runs it as root: {mount.stderr.strip()}"
        )
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def noise(seed: int, size: int = 100_000) -> bytes:
    return random.Random(seed).randbytes(size)


async def fill_until_it_fails(store: ContextStore) -> tuple[int, str]:
    """Store artifacts until the disk is full; return how many were acknowledged and what was said."""
    for n in range(1000):
        try:
            await store.artifacts.put(draft(str(n)), noise(n))
        except ContextUnavailable as error:
            return n, error.detail
    raise AssertionError("the disk never got full")


async def still_whole(store: ContextStore, count: int) -> None:
    assert len((await store.artifacts.shelf("default")).artifacts) == count
    for n in range(count):
        _, content = await store.artifacts.get("default", str(n))
        assert content == noise(n)


async def test_a_full_disk_stops_writes_only_and_only_while_it_is_full(small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(MIB))
    store = await opened(small_disk / "context.db")
    try:
        await store.histories.adopt("epoch", 0)
        await store.histories.append(Batch(2, [message(1), message(2)]))
        count, detail = await fill_until_it_fails(store)
        assert count > 3
        assert "disk is full" in detail
        assert str(small_disk) not in detail
        for _ in range(3):
            with pytest.raises(ContextUnavailable, match="disk is full"):
                await store.artifacts.put(draft("x"), noise(1000, 900_000))
            with pytest.raises(ContextUnavailable, match="disk is full"):
                await store.histories.append(Batch(500, [message(n) for n in range(3, 501)]))
            assert store.histories.folded == 2
            assert [one.seq for one in await store.histories.page("s1", 0, 9)] == [1]
            await still_whole(store, count)
        ballast.unlink()
        assert await store.histories.append(Batch(3, [message(3)])) == []
        await store.artifacts.put(draft(str(count)), noise(count))
        await still_whole(store, count + 1)
    finally:
        await store.close()
    again = await opened(small_disk / "context.db")
    await still_whole(again, count + 1)
    await again.close()


async def test_a_full_disk_at_start_is_said_in_one_line(small_disk):
    (small_disk / "ballast").write_bytes(bytes(4 * MIB - 16 * 1024))
    with pytest.raises(StartupError, match="full") as caught:
        await opened(small_disk / "context.db")
    assert "\n" not in caught.value.detail


def remount_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


async def test_a_read_only_file_system_is_said_in_one_line(small_disk):
    store = await opened(small_disk / "context.db")
    await store.close()
    remount_read_only(small_disk)
    with pytest.raises(StartupError, match="its file system is read-only") as caught:
        await opened(small_disk / "context.db")
    assert "\n" not in caught.value.detail


LIMITED = """
import asyncio, pathlib, resource, sys
sys.path[:0] = [sys.argv[2]]
from storage.context.test_faults import *

async def main():
    store = await opened(pathlib.Path(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MIB, resource.RLIM_INFINITY))
    count, detail = await fill_until_it_fails(store)
    assert count > 3, count
    await still_whole(store, count)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.artifacts.put(draft(str(count)), noise(count))
    await still_whole(store, count + 1)
    await store.close()
    print(detail)

asyncio.run(main())
"""


def test_a_file_that_may_not_grow_stops_writes_only(tmp_path):
    """The same without the right to mount: the process's limit on file sizes."""
    with run_child(LIMITED, tmp_path / "context.db", TESTS) as child:
        output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert "I/O error" in output or "disk is full" in output
    assert "context.db" not in output
