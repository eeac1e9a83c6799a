"""How long the disk takes to make a small write durable: every durable figure depends on it."""

import os
import tempfile
import time
from pathlib import Path

from bench.timing import spread_ms

WRITES = 200
SIZE = 4096


def fsync_ms(folder: Path) -> dict[str, float]:
    """Append `WRITES` times 4 KiB to a file, each with an fsync; returns the percentiles of one."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(WRITES):
            began = time.perf_counter()
            file.write(bytes(SIZE))
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return spread_ms(times)
