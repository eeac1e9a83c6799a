"""How long events are kept, and what stays of an age rule when the wall clock cannot be trusted."""

from typing import NamedTuple

IDS_KEPT_US = 24 * 3600 * 1_000_000
"""Publishers may repeat an event with its own id for at least this long (PROTOCOL section 8)."""


class Retention(NamedTuple):
    """The bounds of the log; whichever is passed first removes the oldest events.

    The defaults (7 days, 5,000,000 events, 4 GiB) are those of PROTOCOL section 8.
    """

    max_age_s: int = 7 * 24 * 3600
    max_events: int = 5_000_000
    max_bytes: int = 4 * 1024**3

    @property
    def aged_per_s(self) -> float:
        """The fastest removal by age alone, in events a second.

        A log that is bounded by its age takes in at most `max_events` in `max_age_s`; four times that
        mean keeps up with it and works off a burst. A wall clock that jumps ahead, by a day or by ten
        years, therefore needs a quarter of `max_age_s` (42 hours by default) to empty a full log, long
        enough to be noticed. The bounds on count and bytes look at no clock and know no such limit.
        """
        return 4 * self.max_events / self.max_age_s

    @property
    def max_ids(self) -> int:
        """Bound of the id index: every retained event's own id and as many of replaced or trimmed ones."""
        return 2 * self.max_events
