"""Which owner waits for which, and who of those in line goes first because of it. Pure.

An owner waits for the holder of a lock that is in the way of one of its requests, for whoever stands in line
before that, and for whom it said that it waits. All are kept as the table has them; nothing is stored here.

*Firm* are the waits on holders and the declared ones. A cycle of firm waits can never end, so a request or a
declaration that would close one is refused. A place in line is not firm: where one is part of a cycle, one of
the two waiters passes the other, so the graph as a whole has no cycle either.
"""

from collections.abc import Callable, Iterable, Set

from herdr.locks.claims import Claim, Claims
from herdr.locks.line import Line, Waiter
from herdr.locks.lock import Lock
from herdr.locks.waits import Waits


class Graph:
    """A view of the table: owners, and for whom they wait."""

    def __init__(self, held: Claims[Lock], line: Line, waits: Waits) -> None:
        self._held = held
        self._line = line
        self._waits = waits

    def upstream(self, owner: str, *, passing: bool = True) -> set[str]:
        """Return who waits for an owner, directly or through others, and the owner itself.

        Without `passing`, the waits of those who are passed do not count.
        """
        found = {owner}
        waiters: set[str] = set()
        todo = [owner]
        while todo:
            at = todo.pop()
            new = self._held_up_by(at, passing) - waiters
            waiters |= new
            owners = (self._owners(new) | self._waits.who(at)) - found
            found |= owners
            todo += owners
        return found

    def cycle(self, owner: str, targets: set[str]) -> tuple[str, ...] | None:
        """Return the shortest cycle of firm waits that would be there if the owner waited for the targets."""
        upstream = self.upstream(owner)
        if upstream.isdisjoint(targets):
            return None
        way = shortest_way(sorted(upstream & targets), owner, lambda one: self._firm(one) & upstream)
        return None if way is None else (owner, *way)

    def rivals(self, claim: Claim) -> tuple[set[str], set[str]]:
        """Return the waiters that a new request stands behind, and those it passes: they wait for its owner."""
        rivals = {overlap.key for overlap in self._line.against(claim)}
        if not rivals:
            return rivals, set()
        upstream = self.upstream(claim.owner)
        passed = {key for key in rivals if self._line[key].owner in upstream}
        return rivals - passed, passed

    def join(self, waiter: Waiter, locks: Set[str]) -> None:
        """Let a waiter stand in line for locks, and others pass each other where that would end in a cycle."""
        behind, passed = self.rivals(waiter)
        self._line.join(waiter, behind | locks, passed)
        self.untangle(waiter.owner)

    def untangle(self, owner: str) -> None:
        """Let those who stand in line pass each other until nothing through this owner is a cycle.

        In turn, as they came, each stands behind those before it, except behind whom waits for it by then.
        """
        ring = self._ring(owner)
        if len(ring) == 1:
            return
        line, placed = self._line, set[str]()
        firmly: dict[str, set[str]] = {one: set() for one in ring}
        for one in ring:
            for other in self._firm(one) & ring:
                firmly[other].add(one)

        def waiting_for(one: str) -> set[str]:
            keys = set().union(*(line.in_way.lefts(key) for key in line.of(one) & placed)) & placed
            return firmly[one] | self._owners(keys)

        for waiter in line.sort(key for one in ring for key in line.of(one)):
            upstream = reach([waiter.owner], waiting_for)
            if len(upstream) > 1:
                for earlier in line.sort(line.in_way.rights(waiter.key) & placed):
                    if earlier.owner in upstream:
                        line.let_pass(waiter.key, earlier.key)
            self._put_back(waiter, upstream, line.in_way.lefts(waiter.key) & placed)
            placed.add(waiter.key)

    def straighten(self) -> None:
        """Put those who pass an earlier waiter behind it again if that does not wait for them any more."""
        line = self._line
        for waiter in line.sort(line.passing.all_lefts()):
            upstream = self.upstream(waiter.owner, passing=False)
            self._put_back(waiter, upstream, line.passing.rights(waiter.key))

    def _put_back(self, waiter: Waiter, upstream: Set[str], passed: Set[str]) -> None:
        """Put a waiter behind those it passes, except who is upstream of it."""
        for earlier in self._line.sort(passed):
            if earlier.owner not in upstream:
                self._line.hold_back(waiter.key, earlier.key)

    def _held_up_by(self, owner: str, passing: bool) -> set[str]:
        """Return the waiters behind the owner's locks and requests."""
        line = self._line
        found: set[str] = set()
        for lock in self._held.of(owner):
            if not self._held[lock].expired:  # its owner can do nothing about it any more
                found |= line.in_way.lefts(lock)
        for waiter in self._line.of(owner):
            behind = line.in_way.lefts(waiter)
            found |= behind if passing else behind - line.passing.rights(waiter)
        return found

    def _firm(self, owner: str) -> set[str]:
        """Return for whom an owner waits firmly."""
        return self._owners(self._in_way_of(owner) - self._line.keys()) | self._waits.whom(owner)

    def _in_way_of(self, owner: str) -> set[str]:
        """Return what is in the way of the owner's requests."""
        return set().union(*(self._line.in_way.rights(waiter) for waiter in self._line.of(owner)))

    def _owners(self, keys: Iterable[str]) -> set[str]:
        """Return the owners of locks and waiters; of an expired lock there is none that one could wait for."""
        owners = set()
        for key in keys:
            claim = self._held.get(key) or self._line[key]
            if not (isinstance(claim, Lock) and claim.expired):
                owners.add(claim.owner)
        return owners

    def _ring(self, owner: str) -> set[str]:
        """Return the owners on any cycle through this one, and itself."""
        upstream = self.upstream(owner)
        if len(upstream) == 1:  # the usual case: nobody waits for whoever asks
            return upstream
        found, seen = {owner}, set[str]()
        todo = [owner]
        while todo:
            at = todo.pop()
            new = self._in_way_of(at) - seen
            seen |= new
            owners = (self._owners(new) | self._waits.whom(at)) & upstream - found
            found |= owners
            todo += owners
        return found


def reach(starts: Iterable[str], onward: Callable[[str], Set[str]]) -> set[str]:
    """Return what can be reached from the starts, themselves included."""
    found = set(starts)
    todo = [*found]
    while todo:
        new = onward(todo.pop()) - found
        found |= new
        todo += new
    return found


def shortest_way(
    starts: Iterable[str], goal: str, onward: Callable[[str], Set[str]]
) -> tuple[str, ...] | None:
    """Return a shortest way from one of the starts to the goal, both included; None if there is none.

    Breadth first; of equally short ways the first by name.
    """
    came_from: dict[str, str | None] = dict.fromkeys(starts)
    todo = [*came_from]
    for at in todo:
        if at == goal:
            return _way_back(at, came_from)
        for other in sorted(onward(at) - came_from.keys()):
            came_from[other] = at
            todo.append(other)
    return None


def _way_back(end: str, came_from: dict[str, str | None]) -> tuple[str, ...]:
    way = [end]
    while (before := came_from[way[-1]]) is not None:
        way.append(before)
    return tuple(reversed(way))
