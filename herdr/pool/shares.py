"""Pure: how many of the slots each route owns, and what the other routes may take.

A share is a fraction of the slots that a route owns. Its part is what that comes to in whole slots. The owner
may run more than its part while nobody else needs the rest; the others never run so much that an owner
could not fill its part at once.
"""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

BACKGROUND = "background"
"""The route whose calls are counted against `background_max`."""


def parts(total: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Return how many of `total` slots each route owns.

    A part is the share of the slots, rounded to the nearest (a half goes up), at least 1 and at most all but
    one. Together the parts leave one slot to the routes that own none, or, where the shares add up to 1, none:
    what is too much is taken from the largest part, and from the smaller share among equals. One slot is
    nobody's: there priority alone decides. A share of 0 is no share.
    """
    owners = {route: Fraction(str(share)) for route, share in shares.items() if share > 0}
    if total <= 1 or not owners:
        return {}
    limit = total if sum(owners.values()) >= 1 else total - 1
    found = {route: max(1, min(total - 1, _nearest(share * total))) for route, share in owners.items()}
    while sum(found.values()) > limit:
        found[min(found, key=lambda route: (-found[route], owners[route], route))] -= 1
    return found


def _nearest(value: Fraction) -> int:
    return int(value + Fraction(1, 2))


class Shares:
    """The limits of all routes for one number of slots, and what runs against them."""

    def __init__(self, total: int, shares: Mapping[str, float], background_max: int) -> None:
        self._shares = dict(shares)
        self._background_max = background_max
        self.running: dict[str, int] = {}
        """Route → calls that run. Routes without any are left out."""
        self.resize(total)

    def resize(self, total: int) -> None:
        """Set the number of slots; nothing runs any more."""
        self.total = total
        self.parts: Mapping[str, int] = MappingProxyType(parts(total, self._shares))
        self.running.clear()

    def allows(self, route: str) -> bool:
        """Tell whether one more call of the route may run now.

        Within its part an owner always may. Beyond it, and for routes that own nothing, every owner's part
        counts as taken, used or not.
        """
        running = self.running
        if route == BACKGROUND and running.get(route, 0) >= self._background_max:
            return False
        if running.get(route, 0) < self.parts.get(route, 0):
            return True
        kept = sum(max(0, part - running.get(owner, 0)) for owner, part in self.parts.items())
        return sum(running.values()) + 1 + kept <= self.total

    def count(self, route: str, by: int) -> None:
        """Note that `by` calls more (or less) run."""
        self.running[route] = self.running.get(route, 0) + by
        if not self.running[route]:
            del self.running[route]


def may_evict(route: str, holder: str, parts: Mapping[str, int], held: Mapping[str, int]) -> bool:
    """Tell whether a call of `route` may take a warm slot from a conversation of route `holder`.

    A route's own conversations it may; an owner's only while the owner holds more slots (busy and warm, in
    `held`) than its part.
    """
    return route == holder or held.get(holder, 0) > parts.get(holder, 0)
