"""Pure: how many things happened per second lately."""

WINDOW_S = 5  # long enough to be steady, short enough to see a storm


class Rate:
    """Counts by second over the last few whole seconds; `now` is monotonic seconds."""

    def __init__(self) -> None:
        self.total = 0
        self._counts = [0] * (WINDOW_S + 1)
        self._second = 0

    def add(self, count: int, now: float) -> None:
        """Note that `count` things happened."""
        self._advance(int(now))
        self._counts[self._second % (WINDOW_S + 1)] += count
        self.total += count

    def per_second(self, now: float) -> float:
        """Return the mean over the last five whole seconds."""
        self._advance(int(now))
        current = self._counts[self._second % (WINDOW_S + 1)]
        return (sum(self._counts) - current) / WINDOW_S

    def _advance(self, second: int) -> None:
        for passed in range(self._second + 1, min(second, self._second + WINDOW_S + 1) + 1):
            self._counts[passed % (WINDOW_S + 1)] = 0
        if second > self._second + WINDOW_S + 1:
            self._counts = [0] * (WINDOW_S + 1)
        self._second = max(self._second, second)
