"""What was told a moment ago is no news: whoever is refused may well try again at once."""

from collections.abc import Hashable

NEWS_MAX = 100  # in the quiet time; a project has a handful of tools, and fewer cycles between them


class News:
    """Remembers what was told lately."""

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._told: dict[Hashable, float] = {}

    def is_news(self, what: Hashable, now: float) -> bool:
        """Tell whether to tell it. Past the bound nothing new is, until it is quiet again."""
        self._told = {known: at for known, at in self._told.items() if now - at < self._quiet_s}
        return what not in self._told and len(self._told) < NEWS_MAX

    def tell(self, what: Hashable, now: float) -> None:
        """Take it as told now, unless it was told lately."""
        self._told.setdefault(what, now)
