"""When to sweep. Pure: the time is an argument, in seconds that only rise."""

SHARE = 10  # a sweep comes at least ten times as long after the last as that took: a tenth of a core at most


class Pace:
    """Knows the last sweep, whether anyone asked for the next, and how far the watches are trusted."""

    def __init__(self, every_s: float) -> None:
        self.wanted = False
        self.distrust = False
        """The watches themselves are to be placed anew before the next sweep."""
        self.count = 0
        self.last_s = 0.0
        """How long the last sweep took."""
        self._every_s = every_s
        self.swept_at = 0.0
        """When it was over, in seconds of the clock that the caller uses."""

    def want(self, distrust: bool = False) -> None:
        """Ask for a sweep as soon as the last one is long enough ago."""
        self.wanted = True
        self.distrust = self.distrust or distrust

    def swept(self, started: float, ended: float) -> None:
        """A sweep is over."""
        self.count += 1
        self.last_s = ended - started
        self.swept_at = ended

    def begin(self) -> None:
        """What was asked for until now is being done; what is asked from here on needs another sweep."""
        self.wanted = self.distrust = False

    def next_at(self) -> float:
        """Return when the next sweep is due."""
        regular = self.swept_at + self._every_s
        return min(regular, self.swept_at + SHARE * self.last_s) if self.wanted else regular

    def is_due(self, now: float) -> bool:
        """Tell whether to sweep now."""
        return now >= self.next_at()
