"""File changes over the rate: collected into one `files.changed` a second instead of being lost.

Pure: `now` is monotonic seconds.
"""

from dataclasses import dataclass

PATHS_MAX = 1000  # what a reader can still use; beyond it "many files changed" is the message
IDS_MAX = 1000
CHARS_MAX = 256 * 1024  # of paths: at most 1 MiB of UTF-8, the default limit of an event's data
GROUPS_MAX = 64  # pairs of tool and workspace over the rate within one second


@dataclass(frozen=True, slots=True)
class Collected:
    """What one (source, workspace) changed over the rate in one interval."""

    source: str
    workspace: str
    paths: tuple[str, ...]
    """Each path once, in the order of its first change; at most 1,000 and 256 Ki characters in all."""

    ids: tuple[str, ...]
    """Ids of the events that joined; at most 1,000."""

    count: int
    """All events that joined, also those whose path or id found no room."""

    truncated: bool
    """Whether some path found no room."""


class _Group:
    __slots__ = ("chars", "count", "due_at", "ids", "paths", "truncated")

    def __init__(self, due_at: float) -> None:
        self.due_at = due_at
        self.count = 0
        self.truncated = False
        self.chars = 0
        self.paths: dict[str, None] = {}
        self.ids: dict[str, None] = {}

    def add(self, path: str, event_id: str) -> None:
        if event_id in self.ids:
            return
        self.count += 1
        if len(self.ids) < IDS_MAX:
            self.ids[event_id] = None
        if path in self.paths:
            return
        if len(self.paths) >= PATHS_MAX or self.chars + len(path) > CHARS_MAX:
            self.truncated = True
            return
        self.paths[path] = None
        self.chars += len(path)


class Overflow:
    """Collects refused file changes by (source, workspace); each pair comes due `interval_s` after its first.

    So a pair yields at most one event per interval, and all of them together `GROUPS_MAX`: a further pair is
    not taken, and its event is dropped like any other that is over the rate.
    """

    __slots__ = ("_groups", "_interval_s")

    def __init__(self, interval_s: float = 1.0) -> None:
        self._interval_s = interval_s
        self._groups: dict[
            tuple[str, str], _Group
        ] = {}  # all wait equally long: insertion order is due order

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, source: str, workspace: str, path: str, event_id: str, now: float) -> bool:
        """Let one file change join its pair's event; False when there is no room for another pair.

        An id that has joined already changes nothing.
        """
        key = (source, workspace)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= GROUPS_MAX:
                return False
            group = self._groups[key] = _Group(now + self._interval_s)
        group.add(path, event_id)
        return True

    def next_due(self) -> float | None:
        """Return when the next pair comes due, in the caller's clock; None when nothing is held."""
        for group in self._groups.values():
            return group.due_at
        return None

    def due(self, now: float) -> list[Collected]:
        """Remove and return what has come due, in that order."""
        collected = []
        while (at := self.next_due()) is not None and at <= now:
            source, workspace = key = next(iter(self._groups))
            group = self._groups.pop(key)
            paths, ids = tuple(group.paths), tuple(group.ids)
            collected.append(Collected(source, workspace, paths, ids, group.count, group.truncated))
        return collected

    def flush(self) -> list[Collected]:
        """Remove and return everything; for a clean stop."""
        return self.due(float("inf"))
