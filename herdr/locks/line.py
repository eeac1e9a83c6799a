"""Those who stand in line for locks, and what stands in the way of each. Pure; changes go through a journal.

In the way of a waiter stand the keys of locks and of other waiters. A waiter whose lock is granted keeps its
key, so whoever stands behind it still does.

Of two waiters that collide one stands behind the other: the later behind the earlier, unless the earlier one's
owner waits for the later one's anyway. Then the later one *passes* it, or both would wait forever.
"""

from collections.abc import Iterable, Set
from functools import partial
from typing import NamedTuple

from herdr.journal import Journal
from herdr.locks.claims import Claims
from herdr.locks.lock import Ask, Mode, Name
from herdr.locks.relation import Relation


class Waiter(NamedTuple):
    """A request that stands in line."""

    ask: Ask
    since_us: int
    order: int
    """Whoever came earlier has the smaller number."""

    @property
    def key(self) -> str:
        """The id of the lock that it waits for."""
        return self.ask.lock

    @property
    def owner(self) -> str:
        """Who waits."""
        return self.ask.owner

    @property
    def names(self) -> tuple[Name, ...]:
        """What is wanted."""
        return self.ask.names

    @property
    def mode(self) -> Mode:
        """How it is wanted."""
        return self.ask.mode

    @property
    def purpose(self) -> str | None:
        """What for."""
        return self.ask.purpose


class Line(Claims[Waiter]):
    """The waiters, and what stands in whose way."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self.in_way = Relation(journal)
        """A waiter, and the locks and waiters that it stands behind."""
        self.passing = Relation(journal)
        """A waiter, and the earlier ones that it passes: they stand behind it."""
        self._free: set[str] = set()

    def sort(self, waiters: Iterable[str]) -> list[Waiter]:
        """Return waiters as they came."""
        return sorted((self[key] for key in waiters), key=lambda waiter: waiter.order)

    def free(self) -> list[Waiter]:
        """Return those whose way is clear: they are to be given what they wait for. They do not collide."""
        return self.sort(self._free)

    def join(self, waiter: Waiter, in_way: Set[str], passed: Set[str]) -> None:
        """Let a waiter stand in line, behind some and passing others."""
        self.put(waiter.key, waiter)
        self.block(waiter.key, in_way)
        for other in passed:
            self.block(other, {waiter.key})
        self.passing.add(waiter.key, passed)
        self._look(waiter.key)

    def leave(self, waiter: str) -> None:
        """Take a waiter out; those behind it move up."""
        self.clear(waiter)
        self.promote(waiter)

    def promote(self, waiter: str) -> None:
        """Take a waiter out whose lock is granted: that stays in the way of those behind."""
        self.passing.remove(waiter, [*self.passing.rights(waiter)])
        for other in [*self.passing.lefts(waiter)]:
            self.passing.remove(other, {waiter})
        self.in_way.remove(waiter, [*self.in_way.rights(waiter)])
        self.drop(waiter)
        self._look(waiter)

    def clear(self, key: str) -> None:
        """Take the lock or the waiter out of everybody's way."""
        for waiter in [*self.in_way.lefts(key)]:
            self._unblock(waiter, {key})

    def block(self, waiter: str, keys: Set[str]) -> None:
        """Put locks or waiters in the way of a waiter."""
        self.in_way.add(waiter, keys)
        self._look(waiter)

    def let_pass(self, later: str, earlier: str) -> None:
        """Put the earlier one of two that collide behind the later one."""
        if later not in self.in_way.rights(earlier):
            self._unblock(later, {earlier})
            self.block(earlier, {later})
            self.passing.add(later, {earlier})

    def hold_back(self, later: str, earlier: str) -> None:
        """Put the later one of two that collide behind the earlier one."""
        if earlier not in self.in_way.rights(later):
            self.passing.remove(later, {earlier})
            self._unblock(earlier, {later})
            self.block(later, {earlier})

    def _unblock(self, waiter: str, keys: Set[str]) -> None:
        self.in_way.remove(waiter, keys)
        self._look(waiter)

    def _look(self, waiter: str) -> None:
        """Note whether the way of a waiter has become clear or blocked."""
        is_free = waiter in self and not self.in_way.rights(waiter)
        if is_free != (waiter in self._free):
            self._toggle(waiter)
            self._journal.note(partial(self._toggle, waiter))

    def _toggle(self, waiter: str) -> None:
        self._free ^= {waiter}
