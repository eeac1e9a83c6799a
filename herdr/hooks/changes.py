"""Pure: what has changed lately, for tools that ask what others did since they last looked."""

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

UNREPORTED = "a write that no tool reported"
CHANGES_MAX = 500  # of one workspace; a branch switch is more than anybody wants to be told
WORKSPACES_MAX = 64


class Change(msgspec.Struct, frozen=True):
    """One change of a file, or of what is defined in some."""

    seq: int
    path: str
    by: str | None
    """Who reported it; None where only definitions are told of."""
    session: str | None = None
    signatures: tuple[Mapping[str, Any], ...] = ()
    paths: tuple[str, ...] = ()
    """Of definitions: the files they are in."""
    hash: str | None = None
    """Of what nobody reported: the content, as watchers write it."""


class Changes:
    """The newest changes of each workspace."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, deque[Change]] = OrderedDict()

    def add(self, workspace: str, change: Change) -> None:
        """Note a change; `seq`s rise."""
        kept = self._kept.setdefault(workspace, deque(maxlen=CHANGES_MAX))
        kept.append(change)
        self._kept.move_to_end(workspace)
        if len(self._kept) > WORKSPACES_MAX:
            self._kept.popitem(last=False)

    def since(self, workspace: str, seq: int, name: str, own: Sequence[str]) -> list[Change]:
        """Return what others changed after `seq`, oldest first; `own`: files that `name` changed itself.

        Nobody says whose definitions they are. In files of its own they are taken for its own, unless another was the
        last one to report a change of the file.
        """
        kept = self._kept.get(workspace, ())
        last = {change.path: change.by for change in kept if change.by is not None}
        mine = {path for path in own if last.get(path, name) in (name, UNREPORTED)}
        found: list[Change] = []
        for change in reversed(kept):
            if change.seq <= seq:
                break
            if change.by is None:
                if not set(change.paths) <= mine:
                    found.append(change)
            elif change.by != name:
                found.append(change)
        return found[::-1]
