"""A real overflow of the kernel's queue: the watching process is stopped while thousands of files appear."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from herdr.clock import SystemClock
from herdr.context.watch.watcher import Watcher

async def main():
    async def emit(events):
        for event in events:
            print(json.dumps([event.type, getattr(event.data, "count", 1), len(watcher.table)]), flush=True)
    watcher = Watcher("w", Path(sys.argv[1]), emit, SystemClock())
    task = asyncio.create_task(watcher.run())
    await watcher.ready()
    print(json.dumps("ready"), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    watcher.stop()
    await task

asyncio.run(main())
"""
FILES = 6000  # the queue's 16,384 places are full after 5,461 new files, at three notices each


async def test_an_overflowing_queue_loses_nothing(root: Path, scan: Any) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        str(root),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdin is not None
    try:
        assert json.loads(await asyncio.wait_for(process.stdout.readline(), 30)) == "ready"
        process.send_signal(signal.SIGSTOP)
        for number in range(FILES):
            os.close(os.open(root / "src" / str(number), os.O_CREAT | os.O_WRONLY))
        process.send_signal(signal.SIGCONT)
        reported, known = 0, 0
        while reported < FILES:
            kind, count, known = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
            assert kind == "files.changed"
            reported += count
        assert reported == FILES
        assert known == len(await scan(root)) == FILES + 3
        process.stdin.write(b"\n")
        assert await asyncio.wait_for(process.wait(), 30) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
