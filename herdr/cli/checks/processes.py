"""Which process does what, as far as Linux's /proc tells us: it shows other users' processes to root only."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp
_NAME_MAX = 60  # characters of a command line that are shown


class Process(NamedTuple):
    """A process, as a person would look for it."""

    pid: int
    name: str

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.name})" if self.name else f"pid {self.pid}"


def process(pid: int, proc: Path = PROC) -> Process:
    """Return a process with the beginning of its command line."""
    with suppress(OSError):
        words = (
            (proc / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        )
        return Process(pid, words if len(words) <= _NAME_MAX else words[: _NAME_MAX - 1] + "…")
    return Process(pid, "")


def listener(port: int, proc: Path = PROC) -> Process | None:
    """Return the process that listens on a TCP port; None when there is none that we may see."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port, proc)}
    if not sockets:
        return None
    return next((process(pid, proc) for pid in _pids(proc) if sockets & set(_open(pid, proc))), None)


def is_listening(port: int, proc: Path = PROC) -> bool:
    """Tell whether anything listens on a TCP port of this machine (or container)."""
    return any(_listening(port, proc))


def open_file(pid: int, name: str, proc: Path = PROC) -> Path | None:
    """Return a file of this name that a process has open."""
    return next((Path(target) for target in _open(pid, proc) if os.path.basename(target) == name), None)


def lock_holder(file: Path, proc: Path = PROC) -> Process | None:
    """Return who holds the `flock` on a file; None when nobody does whom we can see.

    Asked of /proc/locks: trying to take the lock could keep a gateway from it that starts at that moment.
    """
    with suppress(OSError):
        status = file.stat()
        wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        for line in (proc / "locks").read_text().splitlines():
            fields = line.split()
            if fields[1:2] == ["FLOCK"] and fields[5:6] == [wanted]:
                return process(int(fields[4]), proc)
    return None


def open_files_max(pid: int, proc: Path = PROC) -> int | None:
    """Return how many files a process may have open."""
    with suppress(OSError, ValueError):
        for line in (proc / str(pid) / "limits").read_text().splitlines():
            if line.startswith("Max open files"):
                return int(line.split()[3])
    return None


def _listening(port: int, proc: Path) -> Iterator[str]:
    """Yield the inodes of listening sockets (`man 5 proc_net`: local address, state and inode are 1, 3, 9)."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (proc / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def _pids(proc: Path) -> Iterator[int]:
    with suppress(OSError):
        yield from (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())


def _open(pid: int, proc: Path) -> Iterator[str]:
    with suppress(OSError):
        for entry in (proc / str(pid) / "fd").iterdir():
            with suppress(OSError):
                yield os.readlink(entry)
