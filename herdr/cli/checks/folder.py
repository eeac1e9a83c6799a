"""The data folder: where it lies, whose it is, how full and how fast the disk is, who uses it."""

import os
import shutil
import stat
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from herdr.cli.checks.finding import Finding, fail, ok, skip, warn
from herdr.cli.checks.processes import lock_holder
from herdr.cli.listing import size
from herdr.storage.sqlite.folder import LOCK_NAME, MOUNTS, UNSUITABLE, filesystem_of

FREE_MIN, FREE_LOW = (
    64 * 1024**2,
    1024**3,
)  # a commit needs its place twice; a busy day writes a few hundred MB
FSYNCS, FSYNC_BYTES = 11, 4096  # enough for a median; one page of SQLite
FSYNC_SLOW_S = 0.03  # each receipt waits for one; a disk takes 0.1 to 10 ms
IN_MEMORY = ("tmpfs", "ramfs")
PRIVATE = ("events.db", "context.db")


def folder(path: Path, mounts: Path = MOUNTS) -> Iterator[Finding]:
    """Look at all that concerns the data folder."""
    if not path.exists():
        parent = next(p for p in path.absolute().parents if p.exists())
        yield _writable("data folder", parent, f"{path} is not there yet")
        return
    yield _kind(path, mounts)
    yield _writable("data folder", path, str(path))
    yield _private(path)
    yield _space(path)
    yield _fsync(path)
    yield _holder(path)


def _kind(path: Path, mounts: Path) -> Finding:
    kind = filesystem_of(path, mounts)
    if not kind:
        return skip("file system", "this system does not tell its type")
    if kind.startswith(UNSUITABLE):
        return fail(
            "file system",
            f"{path} lies on {kind}, where SQLite's log gets corrupted",
            "put it on a local disk, or in Docker on a named volume instead of a bind mount",
        )
    if kind in IN_MEMORY:
        return warn("file system", f"{path} lies on {kind}: all is gone when the machine stops", "use a disk")
    return ok("file system", kind)


def _writable(check: str, path: Path, what: str) -> Finding:
    status, uid = path.stat(), os.getuid()
    whose = f"owner {status.st_uid}:{status.st_gid}, mode {stat.S_IMODE(status.st_mode):04o}"
    if not os.access(path, os.W_OK | os.X_OK):
        return fail(
            check,
            f"{what}; uid {uid} may not write in {path} ({whose})",
            f"run `chown -R {uid}:{os.getgid()} {path}`, or run the gateway as its owner",
        )
    return ok(check, f"{what} ({whose})")


def _private(path: Path) -> Finding:
    files = [file for name in PRIVATE if (file := path / name).exists()]
    seen = [str(file) for file in (path, *files) if file.stat().st_mode & 0o077]
    if path.stat().st_mode & 0o077 == 0 or len(seen) < 2:
        return ok("privacy", "only its owner can read what tools have said")
    return warn("privacy", f"others may read {', '.join(seen)}", f"run `chmod -R go= {path}`")


def _space(path: Path) -> Finding:
    usage = shutil.disk_usage(path)
    said = f"{size(usage.free)} of {size(usage.total)} free"
    fix = "free some space, or lower bus.retention.max_bytes and context.artifact_cache_size"
    if usage.free < FREE_MIN:
        return fail("disk space", said, fix)
    return warn("disk space", said, fix) if usage.free < FREE_LOW else ok("disk space", said)


def _fsync(path: Path) -> Finding:
    try:
        times = sorted(_synced(path))
    except OSError as error:
        return skip("fsync", error.strerror or str(error))
    median = statistics.median(times)
    said = f"median {median * 1000:.1f} ms, slowest {times[-1] * 1000:.1f} ms of {FSYNCS}"
    if median > FSYNC_SLOW_S:
        return warn(
            "fsync",
            f"{said}: every receipt waits for one",
            "use a faster disk, or publish several events at once",
        )
    return ok("fsync", said)


def _synced(path: Path) -> Iterator[float]:
    with TemporaryFile(dir=path) as file:
        for _ in range(FSYNCS):
            file.write(os.urandom(FSYNC_BYTES))
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            yield time.perf_counter() - begun


def _holder(path: Path) -> Finding:
    holder = lock_holder(path / LOCK_NAME)
    if holder is None:
        return ok("lock", "no gateway uses the folder, as far as can be seen from here")
    with suppress(OSError):
        signed = (path / LOCK_NAME).read_text(errors="replace").strip()
        return ok("lock", f"a gateway uses it: {signed or holder}")
    return ok("lock", f"a gateway uses it: {holder}")


class Mount(NamedTuple):
    """What is mounted where a folder lies."""

    point: str
    root: str
    """Which part of the mounted file system it is."""


def volume(path: Path, mounts: Path = MOUNTS) -> Finding:
    """In a container: look whether the folder outlives it."""
    mount = mount_of(path, mounts)
    if mount is None:
        return skip("volume", "this system does not tell what is mounted")
    if mount.point == "/":
        return warn(
            "volume",
            f"{path} lies in the container itself, and goes with it",
            "mount a named volume there: `docker run -v herdr-data:/data …`",
        )
    if mount.root.endswith("/_data"):
        return ok("volume", f"a named volume at {mount.point}")
    return ok("volume", f"mounted at {mount.point}")


def mount_of(path: Path, mounts: Path = MOUNTS) -> Mount | None:
    """Return the mount that holds a path (`man 5 proc_pid_mountinfo`: root and mount point are fields 4 and 5)."""
    where, best = os.path.realpath(path), None
    with suppress(OSError):
        for line in mounts.read_text(errors="replace").splitlines():
            fields = line.split()
            root, point = fields[3], fields[4]
            inside = where == point or where.startswith(point.rstrip("/") + "/")
            if inside and (best is None or len(point) >= len(best.point)):
                best = Mount(point, root)
    return best
