"""Changes that can be taken back until they are known to be committed. Pure."""

from collections.abc import Callable


class Journal:
    """How to take back everything that was changed since the last `keep`; as long as one batch of the log."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def note(self, undo: Callable[[], object]) -> None:
        """Remember how to take back one change that was just made."""
        self._undo.append(undo)

    def keep(self) -> None:
        """Make the changes final."""
        self._undo.clear()

    def mark(self) -> int:
        """Return a place that `undo` can go back to."""
        return len(self._undo)

    def undo(self, to: int = 0) -> None:
        """Take changes back, the newest first: all, or those since a mark."""
        while len(self._undo) > to:
            self._undo.pop()()


class Revocable:
    """State whose changes can be taken back, and which knows what of it is to be stored anew."""

    def __init__(self) -> None:
        self._journal = Journal()
        self._changed: dict[str, None] = {}
        """Ids, in the order in which they changed."""

    def keep(self) -> None:
        """Make the changes final: they are committed."""
        self._journal.keep()
        self._changed.clear()

    def mark(self) -> int:
        """Return a place that `undo` can go back to."""
        return self._journal.mark()

    def undo(self, to: int = 0) -> None:
        """Take back everything since the last `keep`, or since a mark."""
        self._journal.undo(to)
        if not to:
            self._changed.clear()

    def changed(self) -> tuple[str, ...]:
        """Return the ids of what changed since this was last asked, or since `keep` or `undo`."""
        changed = tuple(self._changed)
        self._changed.clear()
        return changed
