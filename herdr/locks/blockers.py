"""What is in the way of a request, as its owner is told. Pure."""

from collections.abc import Container, Iterator
from typing import Literal

from herdr.locks.claims import Claim, Claims
from herdr.locks.line import Line, Waiter
from herdr.locks.lock import Blocker, Lock, Name

Kind = Literal["held", "expired", "waiting"]
BLOCKERS_MAX = 20  # enough to see what is going on; a request for ** can collide with thousands


def blockers(held: Claims[Lock], line: Line, claim: Claim, waiters: Container[str]) -> tuple[Blocker, ...]:
    """Return what is in the way of a claim: locks, then these waiters; once for each path that was asked for.

    `BLOCKERS_MAX` at most; it stops looking there.
    """
    found: dict[tuple[str, str], Blocker] = {}
    for blocker in _in_way(held, line, claim, waiters):
        found.setdefault((blocker.lock, blocker.asked), blocker)
        if len(found) == BLOCKERS_MAX:
            break
    return tuple(found.values())


def _in_way(held: Claims[Lock], line: Line, claim: Claim, waiters: Container[str]) -> Iterator[Blocker]:
    for key, lock, has, asked in held.against(claim):
        yield _blocker(key, lock, has, asked, "expired" if lock.expired else "held")
    for key, waiter, has, asked in line.against(claim):
        if key in waiters:
            yield _blocker(key, waiter, has, asked, "waiting")


def _blocker(key: str, who: Lock | Waiter, has: Name, asked: Name, kind: Kind) -> Blocker:
    return Blocker(key, has.shown, asked.shown, who.owner, who.purpose, who.since_us, kind)
