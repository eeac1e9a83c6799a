"""Reading files of a workspace: not through a link in the file's place, not from a pipe, not without bound."""

import os
import stat

from herdr.context.graph.files import Numbers, numbers_of

# Without O_NONBLOCK, opening a pipe that took a file's place would wait for its writer for ever.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def read_bytes(full: str, bytes_max: int) -> tuple[bytes | None, Numbers]:
    """Return a regular file's content (None beyond the bound) and its numbers; raises OSError.

    One that changes while it is read is read once more; if it still changes, its numbers are not settled.
    """
    data, numbers, steady = _read(full, bytes_max)
    if not steady:
        data, numbers, steady = _read(full, bytes_max)
    if steady:
        return data, numbers
    return data, Numbers(numbers.size, numbers.mtime_ns, numbers.inode, settled=False)


def _read(full: str, bytes_max: int) -> tuple[bytes | None, Numbers, bool]:
    fd = os.open(full, _FLAGS)
    with os.fdopen(fd, "rb") as file:
        before = _regular(os.fstat(fd), full)
        if before.size > bytes_max:
            return None, before, True
        data = file.read(bytes_max + 1)
        after = _regular(os.fstat(fd), full)
    return (data if len(data) <= bytes_max else None), after, before == after


def file_numbers(full: str) -> Numbers | None:
    """Return a regular file's numbers; None when there is none."""
    try:
        return _regular(os.lstat(full), full)
    except (OSError, ValueError):
        return None


def _regular(found: os.stat_result, full: str) -> Numbers:
    if not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError(full)
    return numbers_of(found.st_size, found.st_mtime_ns, found.st_ino)
