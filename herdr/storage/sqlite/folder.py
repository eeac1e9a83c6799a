"""The data folder: that it exists and can be used, and that one gateway at a time does so."""

import fcntl
import os
import socket
from pathlib import Path

from herdr.clock import Clock, rfc3339
from herdr.errors import StartupError

LOCK_NAME = "herdr.lock"

# Over these, shared memory between processes or fsync is not what SQLite's write-ahead log needs, and files
# were seen to be corrupted within a minute. `fakeowner` is Docker Desktop's bind mount.
UNSUITABLE = ("nfs", "cifs", "smb", "9p", "virtiofs", "fuse", "fakeowner", "vboxsf", "prl_fs")

MOUNTS = Path("/proc/self/mountinfo")


class FolderLock:
    """Exclusive use of a data folder; ends with `release` or, whatever happens, with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Give the folder free; safe to call twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def claim(folder: Path, clock: Clock, mounts: Path = MOUNTS) -> FolderLock:
    """Create the folder where it is missing, check that a database may live there, and lock it.

    Raises StartupError. The lock is `flock`'s, so it cannot outlive its process as a pid file does.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_unsuitable(folder, mounts)
        lock_path = folder / LOCK_NAME
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartupError(unusable(folder, error)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(descriptor, 300, 0).decode(errors="replace").strip() or "an unknown process"
        os.close(descriptor)
        if not isinstance(error, BlockingIOError):
            raise StartupError(unusable(folder, error)) from error
        raise StartupError(
            f"another gateway ({holder}) uses the data folder {folder.absolute()}: stop it first, "
            "or give this one a folder of its own (--data DIR, or bus.persist_path)"
        ) from error
    _sign(descriptor, clock)
    return FolderLock(descriptor)


def _sign(descriptor: int, clock: Clock) -> None:
    """Leave word of who holds the lock; only the message for a second gateway reads it."""
    text = f"pid {os.getpid()} on {socket.gethostname()}, started {rfc3339(clock.wall_us())}\n"
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
    except OSError:
        # A full disk: the lock holds without it, and the log itself will say that the disk is full.
        return


def unusable(path: Path, error: OSError) -> str:
    """Say why a folder or file cannot be used, who we are, and how to mend it."""
    uid, gid = os.getuid(), os.getgid()
    fix = f"run `chown -R {uid}:{gid} {path}`, or mount a named volume that this user may write"
    if isinstance(error, FileExistsError | NotADirectoryError):
        fix = "a part of this path is a file: set bus.persist_path to a file in a folder"
    elif error.errno == 30:  # EROFS
        fix = "its file system is read-only: mount it writable, or set bus.persist_path elsewhere"
    elif error.errno == 28:  # ENOSPC
        fix = "free some space on that disk"
    return f"cannot use {path} as uid {uid}: {error.strerror or error}{_owner(path)}; {fix}"


def _owner(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return ""
    return f" (owner {status.st_uid}:{status.st_gid}, mode {status.st_mode & 0o7777:04o})"


def _refuse_unsuitable(folder: Path, mounts: Path) -> None:
    kind = filesystem_of(folder, mounts)
    if kind.startswith(UNSUITABLE):
        raise StartupError(
            f"{folder} lies on {kind}, where SQLite's write-ahead log gets corrupted: "
            "put it on a local disk, or in Docker on a named volume instead of a bind mount"
        )


def filesystem_of(folder: Path, mounts: Path) -> str:
    """Return the type of the file system that holds the folder; empty where the system does not tell.

    Reads Linux's mountinfo (`man 5 proc_pid_mountinfo`): field 3 is the device, the type follows ` - `.
    """
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        left, _, right = line.partition(" - ")
        if left.split()[2:3] == [number] and right:
            return right.split()[0]
    return ""
