"""The errors of the lock endpoints; `herdr.web.problems` gives each its status and its members."""

from collections.abc import Sequence
from typing import Any

from herdr.errors import HerdrError


class Locked(HerdrError):
    """Somebody else holds what was asked for (409)."""

    code = "locked"

    def __init__(self, detail: str, conflicts: Sequence[dict[str, Any]], retry_after_s: int) -> None:
        super().__init__(detail)
        self.conflicts = list(conflicts)
        self.retry_after_s = retry_after_s


class Deadlock(HerdrError):
    """Waiting would close a cycle of owners who wait for each other (409)."""

    code = "deadlock"

    def __init__(self, detail: str, cycle: Sequence[str]) -> None:
        super().__init__(detail)
        self.cycle = list(cycle)


class Fenced(HerdrError):
    """The token is not the one of the lock as it is held now (409)."""

    code = "fenced"


class TooMany(HerdrError):
    """A bound of the lock table was reached (503): `too_many_locks` or `too_many_waiters`."""

    code = "too_many_locks"
