"""Whether a data folder can be used is found out, and said in one line, before anything else."""

import asyncio
import os
import sqlite3
import sys
from pathlib import Path

import pytest

from herdr.errors import StartupError
from herdr.storage.sqlite.folder import claim, filesystem_of
from herdr.storage.sqlite.schema import MIGRATIONS


async def refusal(open_log, at: Path) -> str:
    with pytest.raises(StartupError) as caught:
        await open_log(at)
    assert "\n" not in caught.value.detail
    return caught.value.detail


async def test_the_folder_is_made_and_private(open_log, path):
    await open_log()
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_a_second_log_on_the_folder_is_refused(open_log, path):
    log = await open_log()
    text = await refusal(open_log, path)
    assert f"pid {os.getpid()} on " in text
    assert "stop it first" in text
    await log.close()
    await open_log()


async def test_the_lock_ends_with_its_process(open_log, path):
    script = (
        "import sys, pathlib; from herdr.storage.sqlite.folder import claim; "
        "from herdr.clock import SystemClock; lock = claim(pathlib.Path(sys.argv[1]), SystemClock()); "
        "print('held', flush=True); sys.stdin.read()"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(path.parent), stdin=-1, stdout=-1
    )
    assert await child.stdout.readline() == b"held\n"
    assert f"pid {child.pid} on " in await refusal(open_log, path)
    child.kill()
    await child.wait()
    await open_log()


async def test_a_path_that_is_a_folder(open_log, tmp_path):
    assert "is a folder" in await refusal(open_log, tmp_path)


async def test_a_folder_that_is_a_file(open_log, tmp_path):
    (tmp_path / "data").write_text("")
    assert "a part of this path is a file" in await refusal(open_log, tmp_path / "data" / "events.db")
    assert "a part of this path is a file" in await refusal(open_log, tmp_path / "data" / "x" / "events.db")


async def test_a_file_that_is_no_database(open_log, path):
    path.parent.mkdir()
    path.write_bytes(b"hello, this is no database" * 100)
    assert "not a database" in await refusal(open_log, path)
    assert path.read_bytes().startswith(b"hello"), "what we do not understand we leave alone"


async def test_another_programs_database(open_log, path):
    path.parent.mkdir()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE bookmarks (url)")
    db.close()
    assert "another program" in await refusal(open_log, path)


async def test_a_newer_schema(open_log, path):
    log = await open_log()
    await log.close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    text = await refusal(open_log, path)
    assert f"schema 99, and this version of Herdr knows schemas up to {len(MIGRATIONS)}" in text


MOUNTINFO = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:33 / /data rw,relatime shared:1 - {kind} source rw
"""


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "virtiofs", "fuse.sshfs", "fuseblk", "fakeowner"])
def test_network_and_virtual_file_systems_are_refused(tmp_path, clock, kind):
    mounts = tmp_path / "mountinfo"
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts.write_text(MOUNTINFO.format(kind=kind).replace("254:0", "9999:9").replace("0:33", number))
    with pytest.raises(StartupError, match=f"{kind}.*named volume"):
        claim(tmp_path, clock, mounts)


def test_the_file_system_is_told_by_its_device(tmp_path):
    assert filesystem_of(Path("/proc"), Path("/proc/self/mountinfo")) == "proc"
    assert filesystem_of(tmp_path, tmp_path / "missing") == ""
