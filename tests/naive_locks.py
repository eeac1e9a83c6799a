"""Write locks so plainly that one can see they are right: everything is looked up by going through everything.

Paths are a handful that are written out; a pattern is the set of those it matches. Who stands behind whom in
line is the one thing taken from the table under test, and it is checked against the rules each time.
"""

from dataclasses import dataclass, field
from functools import cache

from herdr.glob import compile_glob
from herdr.locks.lock import Ask

UNIVERSE = ("a", "b", "d", "d/x", "d/y", "d/e", "d/e/x", "d/e/y", "f", "f/x", "x")
PATHS = ("a", "b", "d/x", "d/e/x", "f/x", "d/", "d/e/", "f/", "**", "d/*", "**/x", "?")
Edge = tuple[str, str]


@cache
def matched(paths: tuple[str, ...]) -> frozenset[str]:
    """The paths of the universe that any of these patterns match."""
    found = set()
    for path in paths:
        matches = compile_glob(path + "**" if path.endswith("/") else path)
        found |= {one for one in UNIVERSE if matches(one)}
    return frozenset(found)


@dataclass
class Claimed:
    """A lock, held or expired, or a waiter."""

    key: str
    owner: str
    paths: tuple[str, ...]
    mode: str
    token: int = 0
    renewed: int = 0
    ttl_s: float = 0
    expired: bool = False
    came: int = 0

    def excludes(self, other: "Claimed") -> bool:
        return (
            self.owner != other.owner
            and "write" in (self.mode, other.mode)
            and bool(matched(self.paths) & matched(other.paths))
        )

    def holds(self, other: "Claimed") -> bool:
        """Whether the other would get nothing that this one does not hold for certain."""
        return (
            self.owner == other.owner
            and not self.expired
            and (self.mode == "write" or other.mode == "intent")
            and all(any(_certain(held, asked) for held in self.paths) for asked in other.paths)
        )


def _certain(held: str, asked: str) -> bool:
    is_one = "*" not in asked and "?" not in asked and not asked.endswith("/")
    if held == "**" or held.endswith("/") or is_one:
        return matched((asked,)) <= matched((held,))
    return held == asked


@dataclass
class Naive:
    """All that there is."""

    locks: dict[str, Claimed] = field(default_factory=dict)
    line: dict[str, Claimed] = field(default_factory=dict)
    waits: dict[str, Edge] = field(default_factory=dict)
    came: int = 0

    def claim(self, ask: Ask) -> Claimed:
        self.came += 1
        return Claimed(ask.lock, ask.owner, ask.paths, ask.mode, ttl_s=ask.ttl_s, came=self.came)

    def own(self, claim: Claimed) -> Claimed | None:
        """The oldest lock of the owner that holds all of it."""
        found = [lock for lock in self.locks.values() if lock.holds(claim)]
        return min(found, key=lambda lock: lock.token, default=None)

    def locks_against(self, claim: Claimed) -> list[Claimed]:
        return [lock for lock in self.locks.values() if lock.excludes(claim)]

    def firm(self) -> set[Edge]:
        """Who waits for whom whatever the order of the line is."""
        edges = set(self.waits.values())
        for waiter in self.line.values():
            edges |= {(waiter.owner, lock.owner) for lock in self.locks_against(waiter) if not lock.expired}
        return edges

    def standing(self, in_way: dict[str, frozenset[str]], *, passed: bool) -> set[Edge]:
        """Who waits for whom in line; without or with those who let a later one pass."""
        edges = set()
        for key, others in in_way.items():
            waiter = self.line[key]
            for other in [self.line[other] for other in others if other in self.line]:
                if passed or other.came < waiter.came:
                    edges.add((waiter.owner, other.owner))
        return edges


def reached(start: str, edges: set[Edge]) -> set[str]:
    """Where the edges lead from the start in one step or more."""
    found: set[str] = set()
    while True:
        new = {to for at, to in edges if (at == start or at in found)} - found
        if not new:
            return found
        found |= new


def has_cycle(edges: set[Edge]) -> bool:
    return any(start in reached(start, edges) for start, _ in edges)


def steps(start: str, edges: set[Edge], goal: str) -> int:
    """How many steps it takes at least from the start to the goal, at least one."""
    at, count = {start}, 0
    while True:
        at, count = {to for frm, to in edges if frm in at}, count + 1
        if goal in at:
            return count
        assert count <= len(edges), "there is no way"
