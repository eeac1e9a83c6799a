"""Which files and folders a workspace consists of: git's own list where there is one, else a walk."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator

from herdr.context.watch.files import Absent, presentable
from herdr.context.watch.ignore import Ignore
from herdr.context.watch.repository import list_files


class Listing:
    """One pass over the workspace. The counts and folders are complete once `paths` is exhausted."""

    def __init__(self, root: str, ignore: Ignore) -> None:
        self.folders: dict[str, int] = {}
        """Folders to watch, with their inodes: a folder made anew needs a new watch."""
        self.skipped: Counter[str] = Counter()
        """Entries that are not followed, by reason."""
        self.ignored = 0
        """Entries that the rules leave out; a folder counts once, with all that is below."""
        self._root = root
        self._ignore = ignore

    def git_paths(self) -> Iterator[str]:
        """Yield what git lists; the folders come from a walk, because git knows no empty ones.

        Raises GitFailed, possibly after some paths.
        """
        for _path in self._walk("", folders_only=True):
            pass
        for raw in list_files(self._root):
            path = self._decode(raw)
            if path is None or path.endswith("/"):  # git shows a repository within as a folder
                continue
            if ".git" in path.split("/") or self._ignore.excluded(path):
                continue
            self._add_parents(path)
            yield path

    def walked_paths(self) -> Iterator[str]:
        """Yield the regular files that the rules leave in."""
        return self._walk("", folders_only=False)

    def paths_below(self, folder: str) -> Iterator[str]:
        """Yield the same for one folder, itself relative to the root and known to be one."""
        return self._walk(folder, folders_only=False)

    def _decode(self, raw: bytes) -> str | None:
        path = raw.decode(errors="surrogateescape")
        if presentable(path):
            return path
        self.skipped["name"] += 1
        return None

    def _add_parents(self, path: str) -> None:
        """Watch the folders of tracked files too when a rule would leave the folder out."""
        folder = path.rpartition("/")[0]
        while folder not in self.folders:
            try:
                self.folders[folder] = os.lstat(f"{self._root}/{folder}").st_ino
            except OSError:
                return
            folder = folder.rpartition("/")[0]

    def _walk(self, start: str, folders_only: bool) -> Iterator[str]:
        waiting = [(start, os.stat(f"{self._root}/{start}").st_ino)]
        while waiting:
            folder, inode = waiting.pop()
            entries = self._entries(folder)
            if entries is None:
                continue
            self.folders[folder] = inode
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                kind = _kind(entry)
                is_folder = kind is Absent.FOLDER
                if (folders_only and not is_folder) or not self._wanted(path, is_folder):
                    continue
                if is_folder:
                    waiting.append((path, entry.inode()))
                elif kind is None:
                    yield path
                else:
                    self.skipped[kind.value] += 1

    def _entries(self, folder: str) -> "list[os.DirEntry[str]] | None":
        """Return a folder's entries; None when it cannot be read or belongs to another repository."""
        try:
            with os.scandir(f"{self._root}/{folder}") as scan:
                entries = list(scan)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            self.skipped[Absent.UNKNOWN.value] += 1
            return None
        if folder and any(entry.name == ".git" for entry in entries):
            self.skipped["nested_repository"] += 1
            return None
        return entries

    def _wanted(self, path: str, is_folder: bool) -> bool:
        if not presentable(path):
            self.skipped["name"] += 1
            return False
        if self._ignore.ignored(path, is_folder):
            self.ignored += 1
            return False
        return True


def _kind(entry: "os.DirEntry[str]") -> Absent | None:
    """Return what an entry is instead of a regular file, or None when it is one."""
    try:
        if entry.is_dir(follow_symlinks=False):
            return Absent.FOLDER
        if entry.is_file(follow_symlinks=False):
            return None
        return Absent.SYMLINK if entry.is_symlink() else Absent.SPECIAL
    except OSError:  # only where the file system does not tell the kind along with the name
        return Absent.UNKNOWN


def batched(paths: Iterable[str], size: int) -> Iterator[list[str]]:
    """Cut into lists of `size` (itertools has it from Python 3.12)."""
    batch: list[str] = []
    for path in paths:
        batch.append(path)
        if len(batch) >= size:
            yield batch
            batch = []
    yield batch
