"""Collecting changes until a save, a build or a checkout is over. Pure: the time is an argument."""

from collections.abc import Iterable

from herdr.context.watch.changes import Before, FileState

QUIET_S = 0.15  # an editor's save is several operations within a few milliseconds; notices come 0.05 s apart
HOLD_S = 2.0  # something writes without pause: say what is known so far
HOLD_BUSY_S = 10.0  # git holds its index lock: a checkout of a large tree; longer means a stale lock
PATHS_MAX = 50_000  # of a storm; beyond it the report says only how many, and nobody lists them all anyway


class Window:
    """Remembers how each touched path was when the window opened; the report compares that with the end.

    So a file that is deleted and made anew within one window is a modified one, and a temporary file that
    came and went is nothing at all.
    """

    def __init__(self) -> None:
        self.before: dict[str, FileState | None] = {}
        self.hints = 0
        """Notices since it opened."""
        self.overflowed = False
        """More paths changed than are remembered."""
        self._opened: float | None = None
        self._touched = 0.0

    def __bool__(self) -> bool:
        return self._opened is not None

    def touch(self, now: float, hints: int = 0) -> None:
        """Something happened: open the window, or wait for quiet anew."""
        if self._opened is None:
            self._opened = now
        self._touched = now
        self.hints += hints

    def note(self, before: Before) -> None:
        """Remember the state of paths that are about to change, unless an older one is remembered."""
        for path, state in before.items():
            if path in self.before:
                continue
            if len(self.before) >= PATHS_MAX:
                self.overflowed = True
                return
            self.before[path] = state

    def forget(self, paths: Iterable[str]) -> None:
        """These paths left the workspace without changing: nothing is to be said about them."""
        for path in paths:
            self.before.pop(path, None)

    def due_at(self, busy: bool) -> float | None:
        """Return when to report, on the clock of `touch`; None while the window is closed."""
        if self._opened is None:
            return None
        if busy:
            return self._opened + HOLD_BUSY_S
        return min(self._touched + QUIET_S, self._opened + HOLD_S)
