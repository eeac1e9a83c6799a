"""Turning changes into the events that the bus carries. Pure; `herdr.app` makes drafts of them."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from herdr.context.watch.changes import Change, Kind

Cause = Literal["burst", "sweep", "head"]

BURST_PATHS = 20
"""Above it, one `files.changed` stands for all: the bus passes 20 P2 events a second and saves up one
second's worth, so this many single events go through whole and more would be cut off somewhere."""

LISTED_PATHS_MAX = 1000  # enough for a reader to act path by path; beyond it, it looks at the folder itself
LISTED_BYTES_MAX = 256 * 1024  # a quarter of the 1 MiB that an event's data may have, whatever the escapes


class FileChanged(msgspec.Struct, frozen=True, omit_defaults=True):
    """Data of `file.changed`; the path is the event's subject."""

    change: Kind
    size: int | None
    """Bytes; null when deleted."""
    hash: str | None
    """`sha256:<hex>`; null when deleted, too large to hash, unreadable, or still being written."""
    from_: str | None = msgspec.field(default=None, name="from")
    """The old path of a renamed file."""


class FilesChanged(msgspec.Struct, frozen=True):
    """Data of `files.changed`: many at once."""

    count: int
    """Paths concerned, the old ones of renames included."""
    paths: tuple[str, ...]
    truncated: bool
    """Whether `paths` leaves some out."""
    cause: Cause
    """`head`: the branch or commit moved; `sweep`: found by looking, not told by the kernel; else `burst`."""


class HeadMoved(msgspec.Struct, frozen=True):
    """Data of `git.head`."""

    from_: str | None = msgspec.field(name="from")
    """Commit id before; null on an unborn branch."""
    to: str | None
    branch: str | None
    """The branch checked out now; null when detached."""


class WorkspaceEvent(NamedTuple):
    """One event for the bus, without the fields that only the application knows."""

    type: Literal["file.changed", "files.changed", "git.head"]
    subject: str | None
    data: FileChanged | FilesChanged | HeadMoved


def report(
    changes: Sequence[Change], cause: Cause, moved: HeadMoved | None = None, more: bool = False
) -> list[WorkspaceEvent]:
    """Return what to publish about these changes: each by itself when they are few, else all as one.

    A moved HEAD comes first, so that a reader knows why the files changed. `more`: other paths changed too
    and are not among the changes, so `count` is a lower bound and `truncated` is set.
    """
    events = [] if moved is None else [WorkspaceEvent("git.head", None, moved)]
    if more or len(changes) > BURST_PATHS:
        events.append(WorkspaceEvent("files.changed", None, summarise(changes, cause, more)))
    else:
        events.extend(WorkspaceEvent("file.changed", change.path, single(change)) for change in changes)
    return events


def single(change: Change) -> FileChanged:
    """Describe one change."""
    after = change.after
    if after is None:
        return FileChanged(change.kind, None, None)
    return FileChanged(change.kind, after.size, after.hash, change.old_path)


def summarise(changes: Iterable[Change], cause: Cause, more: bool = False) -> FilesChanged:
    """Describe many changes by their paths, as many as fit."""
    paths = sorted(
        {path for change in changes for path in (change.path, change.old_path) if path is not None}
    )
    listed = tuple(_fitting(paths))
    return FilesChanged(len(paths), listed, more or len(listed) < len(paths), cause)


def _fitting(paths: Sequence[str]) -> Iterable[str]:
    room = LISTED_BYTES_MAX
    for path in paths[:LISTED_PATHS_MAX]:
        room -= len(path.encode())
        if room < 0:
            return
        yield path
