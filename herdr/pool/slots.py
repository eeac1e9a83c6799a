"""Pure: the slots of one backend, who holds each of them, and which one a call gets.

A slot is busy (a call runs in it), warm (a conversation holds it) or free. A free slot may still have content:
of a conversation that was idle for too long, or whose call ended badly. Numbers are always 0 to total - 1,
because llama.cpp takes an `id_slot` beyond them modulo their number and puts two conversations into one slot.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from herdr.pool import chain as chains
from herdr.pool.shares import may_evict
from herdr.pool.waiting import Ask

K = TypeVar("K")

NEVER = float("-inf")
"""When a slot was used that never was."""


class Conversation(NamedTuple):
    """What one slot is kept warm for."""

    agent: str | None
    prefix: str
    side: bool = False
    """A side call's conversation is its own even when it shares the main conversation's prefix."""
    number: int = 0
    """Tells conversations without an agent apart; 0 for those that have one."""


class Slot:
    """One KV slot: who holds it and what is in it."""

    __slots__ = ("call", "chain", "content_of", "held_by", "number", "route", "since", "tokens", "used_at")

    def __init__(self, number: int) -> None:
        self.number = number
        self.call: str | None = None
        """The call that runs in it."""
        self.held_by: Conversation | None = None
        self.route = ""
        """The route of the holder's last call."""
        self.since = 0.0
        """When the holder got it."""
        self.used_at = NEVER
        """When a call last started or ended in it."""
        self.clear()

    def clear(self) -> None:
        """Forget the content."""
        self.content_of: Conversation | None = None
        self.chain: tuple[bytes, ...] = ()
        self.tokens = 0

    @property
    def is_light(self) -> bool:
        """Whether a side call's conversation holds it."""
        return self.held_by is not None and self.held_by.side


class Slots:
    """The table of all slots. Time and shares come in as arguments."""

    def __init__(self, total: int) -> None:
        self._holders: dict[Conversation, list[Slot]] = {}
        self._agents: dict[str, list[Slot]] = {}
        self.held: dict[str, int] = {}
        """Route → slots that its conversations hold, busy and warm; a route without any is left out."""
        self.all: list[Slot] = []
        self.resize(total)

    def resize(self, total: int) -> None:
        """Start again with `total` cold slots."""
        self.all = [Slot(number) for number in range(total)]
        self.idle = total
        """How many have no call."""
        self._holders.clear()
        self._agents.clear()
        self.held.clear()

    def held_by(self, conversation: Conversation) -> list[Slot]:
        """Return the conversation's slots, busy and warm."""
        return self._holders.get(conversation, [])

    def of_agent(self, agent: str) -> list[Slot]:
        """Return all slots of the agent's conversations, busy and warm."""
        return self._agents.get(agent, [])

    def hold(self, slot: Slot, conversation: Conversation, route: str, now: float) -> None:
        """Give the slot to a conversation for a call of the route; whoever else held it loses it."""
        since = slot.since if slot.held_by == conversation else now
        self.let_go(slot)
        slot.held_by = conversation
        slot.route = route
        slot.since = since
        self.held[route] = self.held.get(route, 0) + 1
        self._holders.setdefault(conversation, []).append(slot)
        if conversation.agent is not None:
            self._agents.setdefault(conversation.agent, []).append(slot)

    def let_go(self, slot: Slot) -> None:
        """Make the slot free; its content stays until another call overwrites it."""
        held_by, slot.held_by = slot.held_by, None
        if held_by is None:
            return
        self.held[slot.route] -= 1
        if not self.held[slot.route]:
            del self.held[slot.route]
        _drop(self._holders, held_by, slot)
        if held_by.agent is not None:
            _drop(self._agents, held_by.agent, slot)

    def start(self, slot: Slot, call: str, now: float) -> None:
        """Note that a call runs in the slot. Raises ValueError if one does already."""
        if slot.call is not None:
            raise ValueError(f"slot {slot.number} runs {slot.call} and cannot take {call}")
        slot.call = call
        slot.used_at = now
        self.idle -= 1

    def end(self, slot: Slot, now: float) -> None:
        """Note that the slot's call ended."""
        slot.call = None
        slot.used_at = now
        self.idle += 1

    def free_idle(self, moment: float) -> None:
        """Make the warm slots free in which nothing ran after `moment`."""
        for slot in self.all:
            if slot.call is None and slot.used_at <= moment:
                self.let_go(slot)

    def own(self, conversation: Conversation, chain: tuple[bytes, ...]) -> Slot | None:
        """Return the conversation's idle slot, the one with the most of the prompt if it has several."""
        return _closest((s for s in self.held_by(conversation) if s.call is None), chain)

    def continued(self, chain: tuple[bytes, ...]) -> Slot | None:
        """Return the idle slot of a client without identity whose conversation the prompt continues."""
        return _closest(
            (
                slot
                for slot in self.all
                if slot.call is None
                and slot.held_by is not None
                and slot.held_by.agent is None
                and chains.continues(slot.chain, chain)
            ),
            chain,
        )

    def other(self, ask: Ask, per_agent: int, parts: Mapping[str, int]) -> Slot | None:
        """Return the slot for a call whose conversation holds none that is idle; None: it has to wait.

        An agent at its bound gives up one of its own; this is the only case in which the share of a route
        does not protect a conversation, as nobody but its own agent takes the slot.
        """
        mine = self.of_agent(ask.agent) if ask.agent is not None else []
        if len(mine) >= per_agent and ask.agent is not None:
            return self._least_missed((s for s in mine if s.call is None), ask, spare_main=ask.side)
        idle = [slot for slot in self.all if slot.call is None]
        free = [slot for slot in idle if slot.held_by is None]
        if free:
            return min(free, key=lambda s: (-chains.shared(s.chain, ask.chain), bool(s.chain), s.used_at))
        evictable = (s for s in idle if may_evict(ask.route, s.route, parts, self.held))
        return self._least_missed(evictable, ask, spare_main=True)

    def _least_missed(self, slots: Iterable[Slot], ask: Ask, *, spare_main: bool) -> Slot | None:
        """Return the slot to evict: a side call's first, a main conversation's of the same family last."""
        family = {self._main(agent) for agent in (ask.agent, ask.parent)} if spare_main else set()
        return min(slots, key=lambda s: (s in family, not s.is_light, s.used_at, s.number), default=None)

    def _main(self, agent: str | None) -> Slot | None:
        """Return the slot of the agent's main conversation: of those that it holds, the one held longest."""
        mine = self.of_agent(agent) if agent is not None else []
        return min((s for s in mine if not s.is_light), key=lambda s: (s.since, s.number), default=None)


def _closest(slots: Iterable[Slot], chain: tuple[bytes, ...]) -> Slot | None:
    return max(slots, key=lambda s: (chains.shared(s.chain, chain), s.used_at, -s.number), default=None)


def _drop(index: dict[K, list[Slot]], key: K, slot: Slot) -> None:
    index[key].remove(slot)
    if not index[key]:
        del index[key]
