"""Pure: which workspace a client's path lies in, and what it is called there."""

import re
from collections.abc import Mapping, Sequence
from posixpath import normpath
from typing import NamedTuple

_DRIVE = re.compile(r"[A-Za-z]:(?=/|$)")


class Spot(NamedTuple):
    """A path of a workspace."""

    workspace: str
    path: str
    """Relative, with slashes; empty for the folder itself."""


class Places:
    """The workspaces' folders, each under every path that clients know it by."""

    def __init__(self, folders: Mapping[str, Sequence[str]]) -> None:
        self._folders = [
            (_key(folder), name) for name, known in folders.items() for folder in known if folder
        ]

    def find(self, path: str, cwd: str = "") -> Spot | None:
        """Return where a path lies: in the innermost folder that holds it, or in none (None).

        `path` may be relative to `cwd`, and have backslashes and a drive's letter in either case.
        """
        whole = _absolute(path, cwd)
        if whole is None:
            return None
        key = _key(whole)
        best: tuple[int, Spot] | None = None
        for folder, name in self._folders:
            prefix = folder.rstrip("/") + "/"
            if (key == folder or key.startswith(prefix)) and (best is None or len(folder) > best[0]):
                rest = whole.split("/")[prefix.count("/") :]  # a path without case may be a longer one
                best = len(folder), Spot(name, "/".join(rest))
        return None if best is None else best[1]


def _absolute(path: str, cwd: str) -> str | None:
    """Return a normal absolute path with slashes; None when there is no telling."""
    is_windows = "\\" in (cwd if not _is_absolute(path) else path) or _DRIVE.match(path or cwd) is not None
    text, base = (path.replace("\\", "/"), cwd.replace("\\", "/")) if is_windows else (path, cwd)
    if not _is_absolute(text):
        if not _is_absolute(base):
            return None
        text = f"{base}/{text}"
    if "\0" in text:
        return None
    return normpath(text)


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "\\\\")) or _DRIVE.match(path.replace("\\", "/")) is not None


def _key(path: str) -> str:
    """Return what paths are compared by: those of Windows, on a drive or a share, count without case."""
    slashed = path.replace("\\", "/")
    if _DRIVE.match(slashed) or slashed.startswith("//"):
        return normpath(slashed).casefold()
    return normpath(path)
