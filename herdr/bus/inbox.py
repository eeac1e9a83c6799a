"""What waits for a name: for tools that cannot listen, and hear of it in the answer to their next call.

A follower would have to read everything since its last call to find the few events that are addressed to it.
So their `seq`s are noted with each commit, for the names that have asked before.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from herdr.bus.bus import Bus
from herdr.bus.page import EVENTS_MAX
from herdr.bus.select import Selection
from herdr.errors import NotFound
from herdr.event import Event

NAMES_MAX = 1000  # tools that were seen last; another one begins anew
WAITING_MAX = 100  # events of one name; the oldest go, and that some have gone is told
LOOKED_BACK = 4096  # events: after a restart what was not yet taken is looked for in so many


class Waiting(NamedTuple):
    """What was addressed to a name since it was last taken, oldest first."""

    events: Sequence[Event] = ()
    more: int = 0
    """How many are left for the next time."""
    lost: int = 0
    """How many were too many to be kept."""


class _Box:
    """The `seq`s of what waits for one name."""

    __slots__ = ("lost", "seqs")

    def __init__(self) -> None:
        self.seqs: deque[int] = deque()
        self.lost = 0

    def add(self, seq: int) -> None:
        if len(self.seqs) >= WAITING_MAX:
            self.seqs.popleft()
            self.lost += 1
        self.seqs.append(seq)


class Inbox:
    """The events addressed to each name that has taken from it before."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._boxes: OrderedDict[str, _Box] = OrderedDict()
        bus.tell_commits(self._committed)

    def _committed(self, events: Sequence[Event]) -> None:
        """Note what is for a known name."""
        for event in events:
            for delivery in event.deliveries:
                box = self._boxes.get(delivery.target)
                if box is not None and not delivery.attrs:  # a name that listens to nothing has no attributes
                    box.add(event.seq)

    def waiting(self) -> Mapping[str, int]:
        """Return how many events wait for each known name."""
        return {name: len(box.seqs) for name, box in self._boxes.items()}

    async def take(self, name: str, limit: int = 10) -> Waiting:
        """Return what waits for a name, and remember that it was taken: committed before this returns.

        Nothing that is older than a name's first call is for it. Raises LogUnavailable.
        """
        box = self._boxes.get(name)
        if box is None:
            box = await self._open(name)
        else:
            self._boxes.move_to_end(name)
        if not box.seqs:
            return Waiting()
        taken = [box.seqs.popleft() for _ in range(min(limit, len(box.seqs)))]
        lost, box.lost = box.lost, 0
        try:
            events = [event for seq in taken if (event := await self._event(seq)) is not None]
            await self._bus.subscriptions.took(name, events, taken[-1])
        except BaseException:  # whoever asked was not given them
            box.seqs.extendleft(reversed(taken))
            box.lost += lost
            raise
        return Waiting(events, len(box.seqs), lost)

    async def _open(self, name: str) -> _Box:
        """Begin a box; one that cannot be filled is none, and the next call begins it again."""
        box = self._boxes[name] = _Box()
        if len(self._boxes) > NAMES_MAX:
            self._boxes.popitem(last=False)
        try:
            await self._look_back(name, box)
        except BaseException:
            self._boxes.pop(name, None)
            raise
        return box

    async def _look_back(self, name: str, box: _Box) -> None:
        """Put in what the name has not taken before a restart, as far as the newest events have it."""
        subscriptions, head = self._bus.subscriptions, self._bus.head
        place = subscriptions.taken(name)
        if place is None:
            await subscriptions.took(name, (), head)
            return
        after = max(place, head - LOOKED_BACK)
        follower = await subscriptions.open(Selection(target=name), str(after))
        found: list[int] = []
        while min(follower.positions) < head:
            _gap, page = await follower.read(EVENTS_MAX)
            found.extend(item.event.seq for item in page.items if item.event.seq <= head)
        late, box.seqs = box.seqs, deque()
        for seq in [*sorted(found), *late]:
            box.add(seq)

    async def _event(self, seq: int) -> Event | None:
        try:
            return await self._bus.event(seq)
        except NotFound:
            return None  # the retention was faster
