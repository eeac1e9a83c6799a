"""A disk whose fsync fails: nothing is acknowledged, and the log goes on once the disk does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from herdr.storage.sqlite.backup import verify

SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int broken(void) { const char *flag = getenv("BROKEN_DISK"); return flag && access(flag, F_OK) == 0; }

#define WRAP(name) int name(int fd) { \\
    if (broken()) { errno = EIO; return -1; } \\
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name); \\
    return real(fd); }
WRAP(fsync)
WRAP(fdatasync)
"""

CHILD = """
import asyncio, os, pathlib, sys
sys.path.insert(0, sys.argv[2])
import pytest
from herdr.bus.log import Batch
from herdr.clock import SystemClock
from herdr.errors import LogUnavailable
from storage.samples import make_event, open_sqlite

flag = pathlib.Path(os.environ["BROKEN_DISK"])

async def check(log):
    await log.append(Batch([make_event(1)]))
    for _ in range(3):
        flag.touch()
        failed = log._writer._connection
        with pytest.raises(LogUnavailable, match="I/O error"):
            await log.append(Batch([make_event(log.head + 1)]))
        assert log._writer._connection is None
        head = log.head
        seen = [e.seq for e in await log.read((0, 0, 0), 99, 9999)]
        assert seen == list(range(1, head + 1)), (seen, head)
        flag.unlink()
        await log.append(Batch([make_event(head + 1)]))
        assert log._writer._connection is not failed
        assert log.head == head + 1
    print(log.head)

async def main():
    log = await open_sqlite(pathlib.Path(sys.argv[1]), SystemClock(), durability="full")
    try:
        await check(log)
    finally:
        await log.close()

asyncio.run(main())
"""


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and Linux's LD_PRELOAD; scripts/test runs it where gcc is installed")
    source, library = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library


def test_a_failed_fsync_is_never_acknowledged(tmp_path, shim):
    path = tmp_path / "data" / "events.db"
    environment = os.environ | {"LD_PRELOAD": str(shim), "BROKEN_DISK": str(tmp_path / "broken")}
    tests = Path(__file__).parent.parent
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(tests)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout == "4\n"
    assert (verify(path).head, verify(path).problems) == (4, ())
