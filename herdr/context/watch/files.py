"""Looking at single files: not through a symbolic link, not into a pipe or device, not without bound."""

import os
import re
import stat
from collections import Counter
from enum import Enum
from hashlib import sha256

from herdr.clock import Clock
from herdr.context.watch.changes import FileState, same_numbers

HASH_BYTES_MAX = 32 * 1024 * 1024  # sources are far smaller; a growing log or database would cost a core
SETTLE_NS = 100_000_000  # kernels stamp files with a clock of up to 10 ms a tick, and two clocks are compared
_CHUNK = 256 * 1024
# Without O_NONBLOCK, opening a pipe that took a file's place would wait for its writer for ever.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_ODD = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class Absent(Enum):
    """Why there is no regular file at a path."""

    GONE = "gone"
    FOLDER = "folder"
    SYMLINK = "symlink"
    SPECIAL = "special"
    UNKNOWN = "unreadable"
    """It cannot be told (no permission, I/O error): whatever was known stays."""


Found = FileState | Absent


def presentable(path: str) -> bool:
    """Tell whether an event can carry this path: UTF-8 (else it has surrogates), no control characters."""
    return _ODD.search(path) is None


class Files:
    """Reads states below one root. Cheap to make: one per sweep or round, as it remembers folders."""

    def __init__(self, root: str, clock: Clock, skipped: Counter[str], hash_bytes_max: int) -> None:
        self._root = root
        self._clock = clock
        self._skipped = skipped
        self._hash_bytes_max = hash_bytes_max
        self._real: dict[str, bool] = {"": True}

    def look(self, path: str, hashing: bool = True) -> Found:
        """Return the file's state now. A file that changes while it is read is read once more."""
        if not self._folder_is_real(path.rpartition("/")[0]):
            return Absent.GONE
        full = f"{self._root}/{path}"
        found = _lstat(full)
        if isinstance(found, Absent):
            if found is Absent.UNKNOWN:
                self._skipped[found.value] += 1
            return found
        if not hashing or found.st_size > self._hash_bytes_max:
            return self._state(found, None)
        return self._hashed(full, found)

    def check(self, path: str, known: FileState | None, hashing: bool) -> Found | None:
        """Return the state when it is news, reading the content only when the numbers differ; else None."""
        found = self.look(path, hashing=False)
        if isinstance(found, Absent):
            if found in (Absent.SYMLINK, Absent.SPECIAL):
                self._skipped[found.value] += 1
            return found if known is not None else None
        if known is not None and known.settled and same_numbers(known, found):
            return None
        return self.look(path) if hashing else found

    def _folder_is_real(self, folder: str) -> bool:
        """Tell whether every part of the way is a folder itself and not a link to one."""
        known = self._real.get(folder)
        if known is None:
            parent = folder.rpartition("/")[0]
            known = self._folder_is_real(parent) and _lstat(f"{self._root}/{folder}") is Absent.FOLDER
            self._real[folder] = known
        return known

    def _hashed(self, full: str, seen: os.stat_result) -> Found:
        for _attempt in range(2):
            try:
                digest, seen, steady = _read(full, self._hash_bytes_max)
            except (FileNotFoundError, NotADirectoryError):
                return Absent.GONE
            except (
                OSError
            ):  # no permission, a link or a socket in its place, a failing disk: keep the numbers
                self._skipped[Absent.UNKNOWN.value] += 1
                return self._state(seen, None)
            if not stat.S_ISREG(seen.st_mode):
                return Absent.SPECIAL
            if steady:
                return self._state(seen, digest)
        return self._state(seen, None, unsteady=True)

    def _state(self, seen: os.stat_result, digest: str | None, unsteady: bool = False) -> FileState:
        age_ns = self._clock.wall_us() * 1000 - seen.st_mtime_ns
        settled = not unsteady and abs(age_ns) > SETTLE_NS
        return FileState(seen.st_size, seen.st_mtime_ns, seen.st_ino, digest, settled)


def _lstat(full: str) -> os.stat_result | Absent:
    try:
        seen = os.lstat(full)
    except (FileNotFoundError, NotADirectoryError):
        return Absent.GONE
    except (OSError, ValueError):
        return Absent.UNKNOWN
    if stat.S_ISREG(seen.st_mode):
        return seen
    if stat.S_ISDIR(seen.st_mode):
        return Absent.FOLDER
    return Absent.SYMLINK if stat.S_ISLNK(seen.st_mode) else Absent.SPECIAL


def _read(full: str, bytes_max: int) -> tuple[str | None, os.stat_result, bool]:
    """Return the hash (None beyond the bound), the numbers after reading, and whether they held still."""
    fd = os.open(full, _FLAGS)
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            return None, before, True
        digest = _digest(fd, bytes_max)
        after = os.fstat(fd)
    finally:
        os.close(fd)
    steady = before.st_size == after.st_size and before.st_mtime_ns == after.st_mtime_ns
    return digest, after, steady


def _digest(fd: int, bytes_max: int) -> str | None:
    digest, length = sha256(), 0
    while chunk := os.read(fd, _CHUNK):
        length += len(chunk)
        if length > bytes_max:
            return None
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def read_small(full: str, bytes_max: int) -> bytes | None:
    """Return a small regular file's content, at most `bytes_max` bytes of it; None when there is none."""
    try:
        fd = os.open(full, _FLAGS)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return os.read(fd, bytes_max)
    except OSError:
        return None
    finally:
        os.close(fd)
