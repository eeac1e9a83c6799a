"""How much of everything a run does."""

from dataclasses import dataclass
from pathlib import Path

FILL = 200_000  # the map of recent ids and the groups behind it hold this many: from then on ids leave it


@dataclass(frozen=True)
class Plan:
    """`folder` holds every store of the run, so that all of them share one disk."""

    folder: Path
    repeats: int
    share: float
    """1 for a full run, less for a quick one."""

    @property
    def fill(self) -> int:
        """Events in a log before publishing is measured; a quick run starts with an almost empty one."""
        return FILL if self.share >= 1 else 5000

    def sized(self, full: int) -> int:
        """Scale a number of events or seconds."""
        return max(1, round(full * self.share))
