"""The machine: interpreter, SQLite, limits, the proxy environment, other programs of our name, the container."""

import os
import resource
import socket
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from herdr.cli.checks.finding import Finding, fail, ok, skip, warn
from herdr.cli.checks.processes import PROC, open_files_max

PYTHON_MIN = (3, 11)
WAL_RESET_BUG = ((3, 7, 0), (3, 51, 2))
"""SQLite's versions in which two connections that write and checkpoint at one moment may corrupt a database
(https://sqlite.org/wal.html)."""
SOCKETS_BESIDE = 256  # files and sockets of the gateway beside its followers: databases, watchers, requests
WATCHES_MIN, INSTANCES_MIN = (
    65_536,
    128,
)  # a large repository has 50,000 folders; 128 is what Linux gives a user
HOST_NAME = "host.docker.internal"
OURS = b"herdr.cli.main"  # in the launcher that an installer writes for our command
LAUNCHER_MAX = 64 * 1024  # bytes that are read of a program: a launcher is far smaller


def interpreter(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Look at Python's version."""
    said = ".".join(map(str, version))
    if version < PYTHON_MIN:
        return fail("python", said, "install Python 3.11 or newer, and Herdr with it")
    return ok("python", said)


def sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Finding:
    """Look at SQLite's version."""
    said, (first, last) = ".".join(map(str, version)), WAL_RESET_BUG
    if first <= version <= last:
        said += (
            ". Versions 3.7.0 to 3.51.2 can corrupt a log that two connections write at once; Herdr is clear of "
            "that, as one connection does all writing and all checkpoints"
        )
    return ok("sqlite", said)


def open_files(pid: int | None, connections: int) -> Finding:
    """Look at the limit of open files, of the gateway if we may see it, else of what we start."""
    needed = connections + SOCKETS_BESIDE
    limit = open_files_max(pid) if pid is not None else None
    whose = f"the gateway may open {limit}"
    if limit is None:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # `herdr serve` raises its own to this one
        whose = f"a gateway that is started here may open {limit}"
    if limit != resource.RLIM_INFINITY and limit < needed:
        return warn(
            "open files",
            f"{whose}, and {connections} connections need {needed}",
            f"start it with `ulimit -n {needed}` or more (systemd: LimitNOFILE), or lower server.max_connections",
        )
    return ok("open files", whose if limit != resource.RLIM_INFINITY else "no limit")


def inotify(workspaces: int, proc: Path = PROC) -> Finding:
    """Look at the kernel's limits for watching folders."""
    found = {}
    for name in ("max_user_watches", "max_user_instances"):
        with suppress(OSError, ValueError):
            found[name] = int((proc / "sys/fs/inotify" / name).read_text())
    if len(found) < 2:
        return skip("inotify", "this system does not tell its limits")
    watches, instances = found.values()
    said = f"{watches} watches, {instances} instances for each user"
    low = [
        f"fs.inotify.{name}={wanted}"
        for name, wanted in (("max_user_watches", 524_288), ("max_user_instances", 1024))
        if found[name] < {"max_user_watches": WATCHES_MIN, "max_user_instances": INSTANCES_MIN}[name]
    ]
    if low and workspaces:
        return warn(
            "inotify", f"{said}: large repositories need more", f"run `sysctl {' '.join(low)}` as root"
        )
    return ok("inotify", said)


def proxies(environ: Mapping[str, str]) -> Finding:
    """Look whether clients would send what is for this machine to a proxy."""
    names = sorted(name for name in environ if name.lower() in ("http_proxy", "https_proxy", "all_proxy"))
    if not any(environ[name] for name in names):
        return ok("proxy", "none is set")
    said = ",".join(value for name, value in environ.items() if name.lower() == "no_proxy")
    spared = {host.strip().lower() for host in said.split(",")}
    sent = [host for host in ("127.0.0.1", "localhost") if not spared & {host, "*"}]
    if sent:
        return warn(
            "proxy",
            f"{', '.join(names)} is set and NO_PROXY lacks {', '.join(sent)}: some tools would send the "
            "gateway's requests, tokens included, to the proxy",
            "set NO_PROXY=localhost,127.0.0.1,::1 where tools are started",
        )
    return ok("proxy", f"{', '.join(names)} is set; NO_PROXY leaves this machine out")


def commands(path: str) -> Finding:
    """Look for other programs called `herdr`."""
    found = [Path(folder, "herdr") for folder in path.split(os.pathsep) if folder]
    strangers = list(dict.fromkeys(str(file) for file in found if _is_program(file) and not _is_ours(file)))
    first = next((file for file in found if _is_program(file)), None)
    if strangers:
        wins = "comes first" if str(first) in strangers else "comes after ours"
        return warn(
            "command",
            f"another program is called herdr: {', '.join(strangers)} ({wins} on PATH)",
            "call ours herdr-gateway, which is the same command, or put its folder first on PATH",
        )
    return ok(
        "command", str(first) if first is not None else f"{sys.executable} -m herdr (no herdr is on PATH)"
    )


def _is_program(file: Path) -> bool:
    return file.is_file() and os.access(file, os.X_OK)


def _is_ours(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return OURS in opened.read(LAUNCHER_MAX)
    except OSError:
        return False


def container(inside: bool, loopback_backends: list[str]) -> Iterator[Finding]:
    """Look at what is different in a container. `loopback_backends`: those at this machine's own address."""
    if not inside:
        yield ok("container", "not in one")
        return
    host = _resolved(HOST_NAME)
    yield ok("container", f"in one; {HOST_NAME} is {host or 'not known here'}")
    if loopback_backends:
        how = f"use http://{HOST_NAME}:PORT"
        yield warn(
            "container",
            f"{', '.join(loopback_backends)} is configured at localhost, which is the container itself",
            how if host else f"{how}, and start with --add-host={HOST_NAME}:host-gateway",
        )


def _resolved(name: str) -> str | None:
    try:
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return None
