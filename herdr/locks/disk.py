"""What the file system says about a path: where links lead, which letters are alike, whose work tree it is.

Nothing here follows a link, opens a pipe or reads on without a bound. What cannot be read counts as a plain
file or folder with the name that was asked for.
"""

import os
import stat
import unicodedata
from collections import deque
from pathlib import Path
from typing import NamedTuple

from herdr.errors import InvalidInput

LINKS_MAX = 40  # what Linux itself follows in one path, and then says ELOOP
PROBED_MAX = 200  # entries of a folder; nearly every name has letters, so that the first few decide
_GIT_FILE_BYTES_MAX = 8192  # one line with one path
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class LinkLoop(InvalidInput):
    """The links of a path lead round in circles, or on and on."""


class Trail(NamedTuple):
    """All the names that one path has on the way to what it stands for, absolute."""

    names: tuple[str, ...]
    """As asked for, then with each link replaced; the last one is the real path."""
    is_folder: bool
    shared: tuple[int, int] | None
    """Device and inode of a file that has several names (hard links)."""


class Disk:
    """Looks, and remembers what it saw: make one for each request."""

    def __init__(self) -> None:
        self._targets: dict[str, str | None] = {}
        self._spelled: dict[tuple[str, str], str] = {}

    def follow(self, root: str, segments: tuple[str, ...]) -> Trail:
        """Return a path's names; `root` is a real path. Raises LinkLoop."""
        names = [os.path.join(root, *segments)]
        done, rest, links = root, deque(segments), 0
        while rest:
            part = rest.popleft()
            if part == "..":  # in a link's target; where we are has no links, so the folder above is the one
                done = os.path.dirname(done)
                continue
            full = os.path.join(done, self._spelling(done, part))
            target = self._target(full)
            if target is None:
                done = full
                continue
            links += 1
            if links > LINKS_MAX:
                raise LinkLoop("leads round in circles through symbolic links; mend them", "bad_path")
            if ".." not in rest:
                names.append(os.path.join(full, *rest))
            done, parts = _beginning(done, target)
            rest.extendleft(reversed(parts))
        return Trail(tuple(dict.fromkeys((*names, done))), *_kind(done))

    def _target(self, full: str) -> str | None:
        if full not in self._targets:
            try:
                self._targets[full] = os.readlink(full)
            except (OSError, ValueError):  # not a link, not there, or not to be read
                self._targets[full] = None
        return self._targets[full]

    def _spelling(self, folder: str, part: str) -> str:
        """Return the name as the disk has it: on Linux it may be decomposed Unicode, which is another name."""
        if part.isascii():
            return part
        if (folder, part) not in self._spelled:
            other = unicodedata.normalize("NFD", part)
            known = not os.path.lexists(os.path.join(folder, part))
            self._spelled[folder, part] = (
                other if known and os.path.lexists(os.path.join(folder, other)) else part
            )
        return self._spelled[folder, part]


def _beginning(folder: str, target: str) -> tuple[str, list[str]]:
    """Return where a link's target begins, and the segments from there on."""
    target = target.removeprefix("\\\\?\\")  # how Windows gives it
    drive, tail = os.path.splitdrive(target)
    if os.path.isabs(target):
        folder = drive + os.sep
    return folder, [part for part in tail.replace(os.sep, "/").split("/") if part not in ("", ".")]


def _kind(full: str) -> tuple[bool, tuple[int, int] | None]:
    try:
        seen = os.lstat(full)
    except (OSError, ValueError):
        return False, None
    shared = stat.S_ISREG(seen.st_mode) and seen.st_nlink > 1 and seen.st_ino != 0
    return stat.S_ISDIR(seen.st_mode), (seen.st_dev, seen.st_ino) if shared else None


def is_case_blind(folder: str) -> bool | None:
    """Tell whether a folder's volume takes `A` and `a` for one name; None when there is nothing to tell by.

    An entry decides whose name in the other case is the same file and is not another entry: two hard links
    `a` and `A` are one file too. The folder's own name is tried last, as that may be on another volume.
    """
    try:
        with os.scandir(folder) as entries:
            names = {entry.name for entry, _ in zip(entries, range(PROBED_MAX), strict=False)}
    except OSError:
        return None
    for name in sorted(names):
        other = name.swapcase()
        if other != name and other not in names:
            return _is_same(os.path.join(folder, name), os.path.join(folder, other))
    parent, own = os.path.split(folder)
    other = own.swapcase()
    return None if other == own else _is_same(folder, os.path.join(parent, other))


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


class WorkTree(NamedTuple):
    """A git work tree."""

    top: str
    git_dir: str
    """Its own: linked work trees and submodules have one each."""


def find_work_tree(folder: str) -> WorkTree | None:
    """Return the work tree that holds a folder (a real path, which need not exist), without running git."""
    for above in (Path(folder), *Path(folder).parents):
        git_dir = _git_dir(str(above / ".git"))
        if git_dir is not None:
            return WorkTree(str(above), os.path.realpath(git_dir))
    return None


def _git_dir(entry: str) -> str | None:
    if not os.path.isdir(entry):
        text = _line(entry)
        if not text.startswith("gitdir:"):
            return None
        entry = os.path.join(os.path.dirname(entry), text.removeprefix("gitdir:").strip())
    return entry if os.path.isfile(os.path.join(entry, "HEAD")) else None


def _line(full: str) -> str:
    """Return the beginning of a small regular file; nothing when it is none."""
    try:
        fd = os.open(full, _FLAGS)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return os.read(fd, _GIT_FILE_BYTES_MAX).decode(errors="surrogateescape").strip()
    except OSError:
        return ""
    finally:
        os.close(fd)
