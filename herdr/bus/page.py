"""Pure: one page of a follower's reading: what matches, in which order, and the place after each event."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from herdr.bus.select import Selection
from herdr.event import Delivery, Event, Lane, Positions, WantedContext
from herdr.glob import compile_glob

EVENTS_MAX = 256  # a page; how far lanes may overtake each other, and how much a slow reader holds in memory
BYTES_MAX = 256 * 1024


class Item(NamedTuple):
    """One event of a page, the follower's positions after it, and how its target wants it."""

    event: Event
    after: Positions
    delivery: Delivery | None
    context: bytes | None = None
    """What stands beside the event, as a JSON object, once that was looked up (`herdr.bus.beside`)."""

    @property
    def form(self) -> str:
        """The form that the event's rule asks for."""
        return "full" if self.delivery is None else self.delivery.format

    @property
    def wanted(self) -> WantedContext | None:
        """What the event's rule wants beside it."""
        return None if self.delivery is None else self.delivery.context


class Page:
    """What one read gave. Shared by all followers at the same place, so its encodings are kept with it.

    One that wants context is not shared: what stands beside its events is looked up when they are delivered.
    """

    __slots__ = ("encodings", "end", "expired", "items", "reached_head", "wants_context")

    def __init__(
        self,
        items: list[Item],
        end: Positions,
        reached_head: bool,
        expired: int = 0,
        wants_context: bool = False,
    ) -> None:
        self.items = items
        self.end = end
        self.reached_head = reached_head
        self.expired = expired
        self.encodings: dict[str, bytes] = {}
        self.wants_context = wants_context

    def pieces(self) -> "list[Page]":
        """Return the page in the pieces in which it is written when some of it waits for context.

        First what wants none, then the P0 events up to the first of another lane, then the rest: no P0 event
        that comes before others waits for what is looked up for them.
        """
        first = next((n for n, item in enumerate(self.items) if item.wanted is not None), len(self.items))
        rest = self.items[first:]
        second = first + next((n for n, item in enumerate(rest) if item.event.lane != Lane.P0), len(rest))
        cut = [self.items[:first], self.items[first:second], self.items[second:]]
        found = [items for items in cut if items]
        ends = [*(items[-1].after for items in found[:-1]), self.end]
        return [Page(items, end, self.reached_head) for items, end in zip(found, ends, strict=True)]


def arrange(events: Sequence[Event], start: Positions, reached_head: bool) -> list[tuple[Event, Positions]]:
    """Order a page and give the positions after each event.

    Near the head P0 overtakes P1 and P2 (within this page only); further behind, `seq` order. In the first
    case a lane's position jumps to the page's end once all its events of the page are out.
    """
    if not events:
        return []
    end = events[-1].seq
    if not reached_head or all(event.lane == events[0].lane for event in events):
        return [(e, (max(start[0], e.seq), max(start[1], e.seq), max(start[2], e.seq))) for e in events]
    arranged = []
    for event in sorted(events, key=lambda e: e.lane):  # stable: `seq` order within a lane
        place = [max(start[lane], end) if lane < event.lane else start[lane] for lane in Lane]
        place[event.lane] = event.seq
        arranged.append((event, (place[0], place[1], place[2])))
    last, _ = arranged[-1]
    arranged[-1] = (last, page_end(events, start))
    return arranged


def page_end(events: Sequence[Event], start: Positions) -> Positions:
    """Return the positions after a whole page."""
    if not events:
        return start
    end = events[-1].seq
    return (max(start[0], end), max(start[1], end), max(start[2], end))


class Chooser:
    """Judges events for one selection: filters, target, attributes, and (for a target) the age."""

    def __init__(self, selection: Selection, matches: Callable[[Event], bool]) -> None:
        self._target = selection.target
        self._attrs = dict(selection.attrs)
        self._matches = matches
        self._verdicts: dict[tuple[tuple[str, tuple[str, ...]], ...], bool] = {}

    def delivery(self, event: Event) -> Delivery | None:
        """Return how the routing table wants this target to get the event, or None when it is not for it."""
        for delivery in event.deliveries:
            if delivery.target == self._target and (
                not delivery.attrs or self._attributes_fit(delivery.attrs)
            ):
                return delivery
        return None

    def wants(self, event: Event) -> tuple[bool, Delivery | None]:
        """Tell whether the event is for this follower, and how it wants it."""
        if event.corrupt:
            return True, None  # whoever might have been meant must hear that something is missing
        if self._target is None:
            return self._matches(event), None
        delivery = self.delivery(event)
        return delivery is not None and self._matches(event), delivery

    def _attributes_fit(self, conditions: tuple[tuple[str, tuple[str, ...]], ...]) -> bool:
        verdict = self._verdicts.get(conditions)
        if verdict is None:
            if len(self._verdicts) >= 256:  # as many rules as a table may sensibly have
                self._verdicts.clear()
            verdict = self._verdicts[conditions] = all(
                (value := self._attrs.get(name)) is not None and any(compile_glob(g)(value) for g in globs)
                for name, globs in conditions
            )
        return verdict
