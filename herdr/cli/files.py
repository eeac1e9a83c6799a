"""Files that are there when they are whole, or not at all."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, blocks: Iterable[bytes]) -> int:
    """Write blocks to a file in place of what is there, once all have come; returns its size in bytes."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    size = 0
    try:
        with beside.open("xb") as file:
            for block in blocks:
                size += file.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return size
