"""Which paths git would ignore: nested `.gitignore` files, `info/exclude`, and the user's own ignore file.

https://git-scm.com/docs/gitignore: the deepest file decides, within a file the last pattern that matches,
and nothing below an ignored folder comes back.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from herdr.context.watch.files import read_small
from herdr.context.watch.repository import Repository

RULES_BYTES_MAX = 1024 * 1024  # real ones hold a few KiB; the rest of a longer file is not read
FOLDERS_MAX = 50_000  # remembered decisions, some MiB; beyond it they are worked out again


class _Rules(NamedTuple):
    base: str
    """The folder that the patterns are relative to, itself relative to `top`."""
    spec: GitIgnoreSpec


class _Folder(NamedTuple):
    ignored: bool
    rules: tuple[_Rules, ...]
    """Outermost first."""


class Ignore:
    """The rules as they are now; made anew when they may have changed. Not shared between threads at once."""

    def __init__(
        self,
        root: str,
        repository: Repository | None,
        exclude: Sequence[str] = (),
        user_rules: str | None = None,
    ) -> None:
        """`exclude`: absolute paths that are left out with all below them, whatever the rules say.

        `user_rules`: the user's own ignore file, for repositories.
        """
        self._top = repository.top if repository else root
        prefix = os.path.relpath(root, self._top)
        self._prefix = "" if prefix == "." else prefix.replace(os.sep, "/") + "/"
        self._exclude = tuple(_below(root, exclude))
        self._outer = tuple(_outer_rules(repository, user_rules))
        self._folders: dict[str, _Folder] = {}

    def ignored(self, path: str, is_folder: bool = False) -> bool:
        """Tell whether a path relative to the root is left out."""
        if ".git" in path.split("/") or self.excluded(path):
            return True
        return self._ignored(self._prefix + path, is_folder)

    def root_is_ignored(self) -> bool:
        """Tell whether the whole root is something that the repository around it leaves out."""
        return bool(self._prefix) and self._folder(self._prefix.rstrip("/")).ignored

    def excluded(self, path: str) -> bool:
        """Tell whether a path is below one that was excluded by hand."""
        return any(path == out or path.startswith(f"{out}/") or not out for out in self._exclude)

    def _ignored(self, path: str, is_folder: bool) -> bool:
        folder = self._folder(path.rpartition("/")[0])
        return folder.ignored or _decide(folder.rules, path, is_folder)

    def _folder(self, path: str) -> _Folder:
        known = self._folders.get(path)
        if known is None:
            known = self._work_out(path)
            if len(self._folders) >= FOLDERS_MAX:
                self._folders.clear()
            self._folders[path] = known
        return known

    def _work_out(self, path: str) -> _Folder:
        if not path:
            return _Folder(False, (*self._outer, *self._own_rules("")))
        parent = self._folder(path.rpartition("/")[0])
        if parent.ignored or _decide(parent.rules, path, is_folder=True):
            return _Folder(True, ())
        return _Folder(False, (*parent.rules, *self._own_rules(path)))

    def _own_rules(self, path: str) -> Iterator[_Rules]:
        base = f"{path}/" if path else ""
        if spec := read_rules(f"{self._top}/{base}.gitignore"):
            yield _Rules(base, spec)


def _below(root: str, exclude: Sequence[str]) -> Iterator[str]:
    for path in exclude:
        relative = os.path.relpath(os.path.realpath(path), root)
        if relative == ".":
            yield ""
        elif relative != ".." and not relative.startswith("../"):
            yield relative


def _outer_rules(repository: Repository | None, user_rules: str | None) -> Iterator[_Rules]:
    """Yield the weakest rules first; a folder that is no repository has only its `.gitignore` files."""
    if repository is None:
        return
    for full in (user_rules, f"{repository.common_dir}/info/exclude"):
        if full is not None and (spec := read_rules(full)):
            yield _Rules("", spec)


def _decide(rules: tuple[_Rules, ...], path: str, is_folder: bool) -> bool:
    for base, spec in reversed(rules):
        relative = path[len(base) :]
        found = spec.check_file(f"{relative}/" if is_folder else relative).include
        if found is not None:
            return found
    return False


def read_rules(full: str) -> GitIgnoreSpec | None:
    """Return a file's rules; None when there are none. A pattern that makes no sense matches nothing."""
    raw = read_small(full, RULES_BYTES_MAX)
    if not raw:
        return None
    text = raw.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    lines = [_plain(line) for line in text.split("\n")]
    return _compile(lines) or _compile([line for line in lines if _compile([line])])


def _plain(line: str) -> str:
    """`dir/**` means all that is in the folder, not the folder, which pathspec takes it for as well."""
    line = line.removesuffix("\r")
    return f"{line}/*" if line.endswith("/**") else line


def _compile(lines: Sequence[str]) -> GitIgnoreSpec | None:
    try:
        return GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):  # "!", "[z-a]": git, too, passes over what cannot be a pattern
        return None
