"""Pure: the calls that wait for a slot, and in which order they are looked at."""

from collections.abc import Iterator

import msgspec

URGENT = 2  # priorities 0 to 2: nobody of them waits for a slot's content to be saved


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A call that wants a slot. Times are monotonic seconds."""

    call: str
    """Unique among the calls that wait or run."""
    route: str
    priority: int
    """0 to 9, 0 first."""
    agent: str | None
    """Who asks; None: a client without any identity, told apart by the prompt that it continues."""
    prefix: str
    """Fingerprint of the system prompt and the tools."""
    chain: tuple[bytes, ...]
    """The prompt as a chain of hashes, see `herdr.pool.chain`."""
    arrived: float
    """For the order and the ageing; a retry has the arrival of its first attempt."""
    deadline: float
    """When it gives up waiting."""
    side: bool
    """A title, a summary, a probe: its slot is the first to give way."""
    parent: str | None = None
    """The agent whose sub-agent asks; its main conversation's slot is the last one to be taken."""


class Waiting:
    """A call in the queue."""

    __slots__ = ("ask", "order", "priority", "queued_at")

    def __init__(self, ask: Ask, queued_at: float, order: int) -> None:
        self.ask = ask
        self.priority = ask.priority
        self.queued_at = queued_at
        self.order = order


def effective(priority: int, waited_s: float, ageing_s: float) -> int:
    """Return the priority after a wait: one level better for each `ageing_s`, but never above 1.

    Only what was asked for at 0 is ever 0, so that an urgent call never queues behind patient ones.
    """
    if priority == 0:
        return 0
    return max(1, priority - max(0, int(waited_s // ageing_s)))


class Queue:
    """Calls that wait, each until it is started, expires or leaves. The caller bounds how many there are."""

    def __init__(self, ageing_s: float) -> None:
        self._ageing_s = ageing_s
        self._waiting: dict[str, Waiting] = {}
        self._arrivals = 0
        self.urgent: set[str] = set()
        """The calls of priority 0 to 2 that wait (as asked for; ageing makes nothing urgent)."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting.values())

    def __contains__(self, call: str) -> bool:
        return call in self._waiting

    def add(self, ask: Ask, now: float) -> None:
        """Queue a call. Raises ValueError if it waits already."""
        if ask.call in self._waiting:
            raise ValueError(f"call {ask.call} waits already")
        self._arrivals += 1
        self._waiting[ask.call] = Waiting(ask, now, self._arrivals)
        self._note_urgency(ask.call, ask.priority)

    def remove(self, call: str) -> bool:
        """Take a call out; False if it does not wait."""
        self.urgent.discard(call)
        return self._waiting.pop(call, None) is not None

    def promote(self, call: str, priority: int) -> None:
        """Raise a waiting call to a better priority; a worse one changes nothing."""
        waiting = self._waiting.get(call)
        if waiting is not None:
            waiting.priority = min(waiting.priority, priority)
            self._note_urgency(call, waiting.priority)

    def _note_urgency(self, call: str, priority: int) -> None:
        if priority <= URGENT:
            self.urgent.add(call)

    def in_order(self, now: float) -> list[Waiting]:
        """Return the calls by effective priority, then arrival."""
        ageing_s = self._ageing_s
        return sorted(
            self._waiting.values(),
            key=lambda one: (
                effective(one.priority, now - one.ask.arrived, ageing_s),
                one.ask.arrived,
                one.order,
            ),
        )

    def take_expired(self, now: float) -> list[str]:
        """Remove and return the calls whose deadline has come, in the order of their arrival."""
        late = [one for one in self._waiting.values() if one.ask.deadline <= now]
        for one in late:
            self.remove(one.ask.call)
        return [one.ask.call for one in late]

    def by_priority(self) -> dict[int, int]:
        """Return how many calls wait at each priority that they asked for or were raised to."""
        counts: dict[int, int] = {}
        for one in self._waiting.values():
            counts[one.priority] = counts.get(one.priority, 0) + 1
        return dict(sorted(counts.items()))
