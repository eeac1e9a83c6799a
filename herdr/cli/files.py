"""Files that are there when they are whole, or not at all."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def write_whole(
    path: Path, blocks: Iterable[bytes], mode: int | None = None, owner: tuple[int, int] | None = None
) -> int:
    """Write blocks to a file in place of what is there, once all have come; returns its size in bytes.

    `mode`: its permissions, which it has before anything is in it. `owner`: its user and group, if not ours.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    size = 0
    try:
        with beside.open("xb") as file:
            _prepare(file.fileno(), mode, owner)
            for block in blocks:
                size += file.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return size


def _prepare(handle: int, mode: int | None, owner: tuple[int, int] | None) -> None:
    made = os.fstat(handle)
    if owner is not None and owner != (made.st_uid, made.st_gid):
        os.fchown(handle, *owner)
    if mode is not None:
        os.fchmod(handle, mode)
