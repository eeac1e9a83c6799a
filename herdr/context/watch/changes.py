"""What the watcher knows about a file, and what it means when two such pictures differ. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

Kind = Literal["created", "modified", "deleted", "renamed"]


class FileState(msgspec.Struct, frozen=True, gc=False):
    """One regular file as it was last seen."""

    size: int
    """Bytes."""
    mtime_ns: int
    inode: int
    hash: str | None = None
    """`sha256:<hex>` of the content; None when it was never needed, is too large, or could not be read."""
    settled: bool = True
    """False when the content may have changed after the look without changing the numbers above."""


class Change(NamedTuple):
    """One difference; `before` is None for a created file, `after` for a deleted one."""

    kind: Kind
    path: str
    """Relative to the workspace, with `/`; the new one of a rename."""
    before: FileState | None
    after: FileState | None
    old_path: str | None = None
    """Where a renamed file was."""


Table = Mapping[str, FileState]
Before = Mapping[str, FileState | None]
Identity = Callable[[str, FileState], object | None]
"""What must be equal for two names to be one file; None when this file cannot be told by it."""


def same_numbers(old: FileState, new: FileState) -> bool:
    """Tell whether nothing suggests reading the file again."""
    return old.size == new.size and old.mtime_ns == new.mtime_ns and old.inode == new.inode


def differs(old: FileState, new: FileState) -> bool:
    """Tell whether the content changed; a touched or rewritten file with the same content did not.

    Without both hashes size and time decide. The inode does not: some network and FUSE file systems
    number the same file anew at every look.
    """
    if old.hash is not None and new.hash is not None:
        return old.hash != new.hash
    return old.size != new.size or old.mtime_ns != new.mtime_ns


def diff(before: Before, table: Table) -> list[Change]:
    """Return how the paths of `before` changed on the way to `table`, renames paired, sorted by path."""
    changes = [change for path, old in before.items() if (change := _change(path, old, table.get(path)))]
    return sorted(pair_renames(changes), key=lambda change: change.path)


def _change(path: str, old: FileState | None, new: FileState | None) -> Change | None:
    if old is None:
        return None if new is None else Change("created", path, None, new)
    if new is None:
        return Change("deleted", path, old, None)
    return Change("modified", path, old, new) if differs(old, new) else None


def pair_renames(changes: Sequence[Change]) -> list[Change]:
    """Join deleted and created files that are the same file, or else have the same content.

    An inode alone proves nothing, because ext4 gives the number of a deleted file to the next one: size
    and time must be the same too. Equal content counts only when there is some; all empty files are alike.
    """
    kept = [change for change in changes if change.kind not in ("deleted", "created")]
    gone = sorted((c for c in changes if c.kind == "deleted"), key=_by_path)
    new = sorted((c for c in changes if c.kind == "created"), key=_by_path)
    for identity in (_same_file, _same_name_and_content, _same_content):
        renamed, gone, new = _pair(gone, new, identity)
        kept += renamed
    return kept + gone + new


def _pair(
    gone: list[Change], new: list[Change], identity: Identity
) -> tuple[list[Change], list[Change], list[Change]]:
    waiting: dict[object, list[Change]] = {}
    for change in reversed(gone):
        if change.before is not None and (key := identity(change.path, change.before)) is not None:
            waiting.setdefault(key, []).append(change)
    renamed, rest = [], []
    for change in new:
        key = identity(change.path, change.after) if change.after is not None else None
        candidates = waiting.get(key) if key is not None else None
        if not candidates:
            rest.append(change)
            continue
        old = candidates.pop()
        renamed.append(Change("renamed", change.path, old.before, change.after, old.path))
    paired = {change.old_path for change in renamed}
    return renamed, [change for change in gone if change.path not in paired], rest


def _by_path(change: Change) -> str:
    return change.path


def _same_file(_path: str, state: FileState) -> object | None:
    return (state.inode, state.size, state.mtime_ns) if state.inode else None


def _same_name_and_content(path: str, state: FileState) -> object | None:
    return (path.rpartition("/")[2], state.hash) if state.size and state.hash else None


def _same_content(_path: str, state: FileState) -> object | None:
    return state.hash if state.size else None
