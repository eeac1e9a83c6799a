"""How much of everything a run does."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Plan:
    """`folder` holds every store of the run, so that all of them share one disk."""

    folder: Path
    repeats: int
    share: float
    """1 for a full run, less for a quick one."""

    def sized(self, full: int) -> int:
        """Scale a number of events or seconds."""
        return max(1, round(full * self.share))
