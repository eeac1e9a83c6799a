"""What the watcher asks of git: where it keeps its things, which files it lists, where HEAD is."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from herdr.context.watch.files import read_small
from herdr.errors import HerdrError

_LINK_BYTES_MAX = 8192  # `.git`, `HEAD` and refs are one short line
_PACKED_BYTES_MAX = 64 * 1024 * 1024  # 600,000 refs; a truncated file only makes HEAD's commit unknown
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
_ASK_TIMEOUT_S = 10
_LIST_TIMEOUT_S = 120  # a cold listing of 500,000 files on a slow disk; longer means that the disk hangs
# A repository's own configuration may name a program as fsmonitor; looking at a folder must not run it.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotepath=false")


class GitFailed(HerdrError):
    """git is not installed or refused the repository; the folder is walked instead."""

    code = "git_failed"


class Head(NamedTuple):
    """Where HEAD is. Both None when it cannot be read."""

    branch: str | None
    """Short name; None when detached."""
    commit: str | None
    """None on a branch without commits."""


class Repository(NamedTuple):
    """One work tree's paths, absolute."""

    top: str
    git_dir: str
    common_dir: str
    """Differs from `git_dir` in a linked work tree."""


def find_repository(root: str) -> Repository | None:
    """Return the repository whose work tree holds this folder, found without running git."""
    for folder in (Path(root), *Path(root).parents):
        git_dir = _git_dir(folder / ".git")
        if git_dir is not None:
            return Repository(str(folder), git_dir, _common_dir(git_dir))
    return None


def _git_dir(entry: Path) -> str | None:
    if os.path.isdir(entry):  # unlike Path.is_dir, says no when permission is missing
        return str(entry) if os.path.isfile(entry / "HEAD") else None
    text = _line(str(entry))
    if text is None or not text.startswith("gitdir:"):
        return None
    target = os.path.normpath(entry.parent / text.removeprefix("gitdir:").strip())
    return target if os.path.isfile(f"{target}/HEAD") else None


def _common_dir(git_dir: str) -> str:
    text = _line(f"{git_dir}/commondir")
    return git_dir if not text else os.path.normpath(Path(git_dir, text))


def _line(full: str) -> str | None:
    raw = read_small(full, _LINK_BYTES_MAX)
    return None if raw is None else raw.decode(errors="replace").strip()


def read_head(repository: Repository) -> Head:
    """Return the branch and commit, from the files; git itself is asked only about reftables."""
    if os.path.isdir(f"{repository.common_dir}/reftable"):
        return _ask_head(repository)
    text = _line(f"{repository.git_dir}/HEAD")
    if text is None:
        return Head(None, None)
    if not text.startswith("ref:"):
        return Head(None, _commit(text))
    ref = text.removeprefix("ref:").strip()
    return Head(ref.removeprefix("refs/heads/"), _resolve(repository, ref))


def _resolve(repository: Repository, ref: str) -> str | None:
    if ".." in ref.split("/"):
        return None
    for folder in (repository.git_dir, repository.common_dir):
        if commit := _commit(_line(f"{folder}/{ref}")):
            return commit
    packed = read_small(f"{repository.common_dir}/packed-refs", _PACKED_BYTES_MAX) or b""
    found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(ref.encode()) + rb"$", packed, re.MULTILINE)
    return _commit(found[1].decode()) if found else None


def _commit(text: str | None) -> str | None:
    return text if text is not None and _COMMIT.match(text) else None


def _ask_head(repository: Repository) -> Head:
    branch = _ask(repository.top, "symbolic-ref", "--quiet", "--short", "HEAD")
    return Head(branch, _commit(_ask(repository.top, "rev-parse", "--quiet", "--verify", "HEAD")))


def excludes_file(root: str) -> str | None:
    """Return the user's own ignore file (`core.excludesFile`), by git's defaults when git is not there."""
    if configured := _ask(root, "config", "--type=path", "core.excludesFile"):
        return configured
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return f"{base}/git/ignore"


def list_files(root: str) -> Iterator[bytes]:
    """Yield the paths that git tracks or would add, relative to `root`; raises GitFailed, also half-way."""
    command = (*_GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        process = subprocess.Popen(
            command, cwd=root, env=_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise GitFailed(f"git cannot be started: {error.strerror}") from error
    watchdog = threading.Timer(_LIST_TIMEOUT_S, process.kill)
    watchdog.start()
    try:
        yield from _records(process)
        if process.wait() != 0:
            raise GitFailed(_reason(root))
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _records(process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """Cut the output at its NULs, in pieces: the list of a large tree is tens of megabytes."""
    rest = b""
    while process.stdout is not None and (piece := process.stdout.read(65536)):
        *whole, rest = (rest + piece).split(b"\0")
        yield from whole


def _reason(root: str) -> str:
    """Say why git refuses, in one line and without the server's paths."""
    try:
        done = _run(root, "rev-parse", "--git-dir")
    except (OSError, subprocess.TimeoutExpired):
        return "git does not answer"
    if b"dubious ownership" in done.stderr:
        return "git refuses the folder because another user owns it (see git's safe.directory)"
    return "git could not list the files"


def _ask(root: str, *arguments: str) -> str | None:
    try:
        done = _run(root, *arguments)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace").strip() or None if done.returncode == 0 else None


def _run(root: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        (*_GIT, *arguments), cwd=root, env=_environment(), stdin=subprocess.DEVNULL,
        capture_output=True, timeout=_ASK_TIMEOUT_S, check=False,
    )  # fmt: skip


def _environment() -> dict[str, str]:
    """The gateway may itself run under git (a hook), whose variables would point at another repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
