"""Which paths git would ignore: nested `.gitignore` files, `info/exclude`, and the user's own ignore file.

https://git-scm.com/docs/gitignore: the deepest file decides, within a file the last pattern that matches,
and nothing below an ignored folder comes back.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pathspec import GitIgnoreSpec, RegexPattern

from herdr.context.watch.files import read_small
from herdr.context.watch.repository import Repository

RULES_BYTES_MAX = 1024 * 1024  # real ones hold a few KiB; the rest of a longer file is not read
FOLDERS_MAX = 50_000  # remembered decisions, some MiB; beyond it they are worked out again


class _Pattern(NamedTuple):
    regex: "re.Pattern[str]"
    ignore: bool


class _Rules(NamedTuple):
    base: str
    """The folder that the patterns are relative to, itself relative to `top`."""
    patterns: list[_Pattern]


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
        if patterns := read_rules(f"{self._top}/{base}.gitignore"):
            yield _Rules(base, patterns)


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
        if full is not None and (patterns := read_rules(full)):
            yield _Rules("", patterns)


def _decide(rules: tuple[_Rules, ...], path: str, is_folder: bool) -> bool:
    for base, patterns in reversed(rules):
        relative = path[len(base) :]
        subject = f"{relative}/" if is_folder else relative
        for regex, ignore in reversed(patterns):
            # Only the whole path: what lies in an ignored folder is settled at that folder.
            if regex.fullmatch(subject):
                return ignore
    return False


def read_rules(full: str) -> list[_Pattern]:
    """Return a file's patterns in order; what cannot be a pattern is passed over, as git does."""
    raw = read_small(full, RULES_BYTES_MAX)
    if not raw:
        return []
    text = raw.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    return [pattern for line in text.split("\n") if (pattern := _compile(line))]


def _compile(line: str) -> _Pattern | None:
    try:
        spec = GitIgnoreSpec.from_lines([_plain(line)])
    except (ValueError, re.error):  # "!", "[z-a]"
        return None
    for pattern in spec.patterns:
        if isinstance(pattern, RegexPattern) and pattern.regex is not None and pattern.include is not None:
            return _Pattern(_whole(pattern.regex), pattern.include)
    return None


def _plain(line: str) -> str:
    """`dir/**` means all that is in the folder; pathspec takes it for the folder itself as well."""
    line = line.removesuffix("\r")
    return f"{line}/*" if line.endswith("/**") else line


def _whole(regex: "re.Pattern[str]") -> "re.Pattern[str]":
    """Make a regex fit for `fullmatch`: pathspec leaves those of `*` and `*/` without a beginning."""
    return regex if regex.pattern.startswith("^") else re.compile(f".*{regex.pattern}", re.DOTALL)
