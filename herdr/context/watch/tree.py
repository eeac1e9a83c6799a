"""One workspace's table of files, kept equal to the disk by looking; it tells nobody."""

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from herdr.clock import Clock
from herdr.context.watch.changes import FileState
from herdr.context.watch.files import Absent, Files, presentable
from herdr.context.watch.ignore import Ignore
from herdr.context.watch.listing import Listing
from herdr.context.watch.repository import (
    GitFailed,
    Head,
    Repository,
    excludes_file,
    find_repository,
    read_head,
)
from herdr.context.watch.sweep import SLICE_PATHS, Update, look_at, sweep
from herdr.errors import HerdrError

NEW_FOLDER_FILES_MAX = 200  # are reported at once; a larger folder (or a moved tree) is left to the sweep
_NO_HEAD = Head(None, None)


class RootLost(HerdrError):
    """The workspace's folder is not there."""

    code = "workspace_lost"


class Seen(NamedTuple):
    """What a round of looking at hinted paths found."""

    updates: list[Update]
    structural: bool
    """Folders came or went, or the ignore rules changed: only a sweep can tell what that means."""
    lost_folders: list[str]
    """Folders whose watch is gone: when they come again, even with the old inode, they need a new one."""


class Tree:
    """The table and how to refresh it. One task uses it; its reading runs in threads, slice by slice."""

    def __init__(
        self, root: Path, clock: Clock, exclude: Sequence[str], files_max: int, hash_bytes_max: int
    ) -> None:
        self.table: dict[str, FileState] = {}
        self.folders: dict[str, int] = {}
        """Folders as of the last sweep, with their inodes."""
        self.skipped: Counter[str] = Counter()
        self.ignored = 0
        self.listing: Literal["git", "walk"] = "walk"
        self.listing_note: str | None = None
        """Why a repository is walked instead of listed by git."""
        self.over_limit = 0
        """Files that are not followed because `files_max` are."""
        self._given_root = root
        self._clock = clock
        self._exclude = exclude
        self._files_max = files_max
        self._hash_bytes_max = hash_bytes_max
        self.root = ""
        """Absolute and without links, once opened."""
        self._repository: Repository | None = None
        self._ignore: Ignore | None = None
        self._user_rules: str | None = None
        self._hint_skips: Counter[str] = Counter()

    async def open(self) -> None:
        """Find the folder and its repository anew; raises RootLost."""
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        root = os.path.realpath(self._given_root)
        if not os.path.isdir(root):
            raise RootLost("the workspace's folder is not there; it is looked for again until it is back")
        repository = find_repository(root)
        if repository is not None and repository != self._repository:
            self._user_rules = excludes_file(root)  # runs git, so not at every sweep
        ignore = Ignore(root, repository, self._exclude, self._user_rules)
        if ignore.root_is_ignored():  # say, a scratch folder within a repository: it stands for itself
            repository, ignore = None, Ignore(root, None, self._exclude)
        self.root, self._repository, self._ignore = root, repository, ignore

    def apply(self, updates: Iterable[Update]) -> None:
        """Bring the table up to date; new files beyond the limit are counted and left out."""
        for path, state, _report in updates:
            if state is None:
                self.table.pop(path, None)
            elif path in self.table or len(self.table) < self._files_max:
                self.table[path] = state
            else:
                self.over_limit += 1

    async def sweep(self, hashing: bool) -> AsyncIterator[list[Update]]:
        """Look at everything; apply each yielded slice before asking for the next. Raises RootLost.

        `hashing`: read files that are new or differ; without, only their numbers are taken.
        """
        await self.open()
        if self._repository is not None:
            try:
                async for updates in self._pass("git", hashing):
                    yield updates
                self.listing_note = None
                return
            except GitFailed as failure:
                self.listing_note = failure.detail
        async for updates in self._pass("walk", hashing):
            yield updates

    async def _pass(self, how: Literal["git", "walk"], hashing: bool) -> AsyncIterator[list[Update]]:
        self.over_limit = 0
        listing = Listing(self.root, self._fresh_ignore())
        skipped: Counter[str] = Counter()
        files = Files(self.root, self._clock, skipped, self._hash_bytes_max)
        paths = listing.git_paths() if how == "git" else listing.walked_paths()
        slices = sweep(files, paths, self.table, hashing)
        while (updates := await asyncio.to_thread(self._next, slices)) is not None:
            yield updates
        self.folders = listing.folders
        self.skipped = listing.skipped + skipped
        self.ignored = listing.ignored
        self.listing = how

    def _next(self, slices: Iterator[list[Update]]) -> list[Update] | None:
        """Return the next slice, unless the whole folder went away and took the files' absence with it."""
        try:
            updates = next(slices, None)
        except OSError as error:  # only the root's own: everything below it is counted instead
            raise RootLost(f"the workspace's folder cannot be read: {error.strerror}") from error
        self._check_root(updates or ())
        return updates

    def _check_root(self, updates: Iterable[Update]) -> None:
        if any(update.state is None for update in updates) and not os.path.isdir(self.root):
            raise RootLost("the workspace's folder is gone; it is looked for again until it is back")

    def _fresh_ignore(self) -> Ignore:
        if self._ignore is None:
            raise RootLost("the workspace was never opened")
        return self._ignore

    async def look(self, hints: Iterable[str]) -> AsyncIterator[Seen]:
        """Look at these absolute paths, slice by slice; apply each before asking for the next."""
        waiting = list(hints)
        files = Files(self.root, self._clock, self._hint_skips, self._hash_bytes_max)
        for start in range(0, len(waiting), SLICE_PATHS):
            yield await asyncio.to_thread(self._look, files, waiting[start : start + SLICE_PATHS])

    def look_again(self, paths: Iterable[str]) -> AsyncIterator[Seen]:
        """Do the same for paths relative to the workspace."""
        return self.look([f"{self.root}/{path}" for path in paths])

    def _look(self, files: Files, hints: Sequence[str]) -> Seen:
        updates: list[Update] = []
        lost: list[str] = []
        structural = False
        for path in self._followed(hints):
            found = files.look(path)
            structural = structural or self._is_structural(path, found)
            if found is not Absent.FOLDER and path in self.folders:
                lost.append(path)
            if found is Absent.FOLDER and path and path not in self.folders:
                updates += look_at(files, self._files_below(path))
            elif isinstance(found, FileState):
                updates.append(Update(path, found))
            elif found is not Absent.UNKNOWN and path in self.table:
                updates.append(Update(path, None))
        self._check_root(updates)
        return Seen(updates, structural, lost)

    def _files_below(self, folder: str) -> list[str]:
        """Return the first files of a new folder, which nobody was watching when they were made."""
        if ".git" in folder.split("/"):
            return []
        paths = Listing(self.root, self._fresh_ignore()).paths_below(folder)
        try:
            return list(itertools.islice(paths, NEW_FOLDER_FILES_MAX))
        except FileNotFoundError:
            return []

    def _followed(self, hints: Iterable[str]) -> Iterator[str]:
        """Yield those that concern the workspace, relative to it. A known file does even when ignored."""
        ignore = self._fresh_ignore()
        base = f"{self.root}/"
        for hint in hints:
            path = "" if hint == self.root else hint.removeprefix(base)
            if path == hint or not presentable(path):
                continue
            known = path in ("", ".git") or path in self.table or path in self.folders
            if known or not ignore.ignored(path):
                yield path

    def _is_structural(self, path: str, found: FileState | Absent) -> bool:
        if path == ".git" or path == ".gitignore" or path.endswith("/.gitignore"):
            return True
        known = self.folders.get(path)
        if found is not Absent.FOLDER:
            return known is not None
        return known is None or known != _inode(f"{self.root}/{path}")

    async def git_folders(self) -> list[str]:
        """Return the absolute folders in which git leaves traces when HEAD moves."""
        return [] if self._repository is None else await asyncio.to_thread(_git_folders, self._repository)

    def is_git_hint(self, hint: str) -> bool:
        """Tell whether a notice is about git's own files."""
        if self._repository is None:
            return False
        git_dir, common_dir = self._repository.git_dir, self._repository.common_dir
        return hint.startswith((f"{git_dir}/", f"{common_dir}/"))

    async def head(self) -> Head:
        """Return where HEAD is now."""
        return _NO_HEAD if self._repository is None else await asyncio.to_thread(read_head, self._repository)

    async def git_is_busy(self) -> bool:
        """Tell whether git is in the middle of something: it holds its index lock."""
        if self._repository is None:
            return False
        return await asyncio.to_thread(os.path.exists, f"{self._repository.git_dir}/index.lock")


def _inode(full: str) -> int | None:
    try:
        return os.lstat(full).st_ino
    except OSError:
        return None


def _git_folders(repository: Repository) -> list[str]:
    git_dir, common_dir = repository.git_dir, repository.common_dir
    wanted = (git_dir, f"{git_dir}/logs", common_dir, f"{common_dir}/refs/heads")
    return [path for path in dict.fromkeys(wanted) if os.path.isdir(path)]
