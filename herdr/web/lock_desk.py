"""What the API needs of the write locks."""

from collections.abc import Sequence
from typing import Any, Protocol

from herdr.locks.lock import Mode, Wanted
from herdr.locks.views import Leased, Taken

CLOSED = "connection_closed"
"""The reason of a release because whoever asked has gone."""


class Desk(Protocol):
    """Takes requests about locks and waits. Everything may raise LogUnavailable."""

    async def lock(self, wanted: Wanted) -> Taken:
        """Lock all paths, or none; extends what the owner holds. Raises Locked, Deadlock, TooMany, NotFound.

        A caller that is cancelled leaves the line; a lock that it was granted in that moment is released.
        """
        ...

    async def renew(self, lock: str, token: int, ttl_s: float | None) -> Leased:
        """Begin a lease anew; `ttl_s` None: for as long as before. Raises NotFound, Fenced."""
        ...

    async def release(self, lock: str, token: int, reason: str = "released") -> None:
        """Give a lock back; raises NotFound, Fenced."""
        ...

    def give_back(self, lock: str) -> None:
        """Release, soon, a new lock whose asker has gone; not if its owner has asked for it again since."""
        ...

    async def force(self, lock: str, reason: str, by: str) -> None:
        """Take a lock from its holder; raises NotFound."""
        ...

    async def carried(self, tokens: Sequence[int]) -> None:
        """Renew the leases with these tokens; raises Fenced when one of them is not held any more."""
        ...

    async def declare(self, owner: str, on: str, purpose: str | None, ttl_s: float) -> dict[str, Any]:
        """Note that an owner waits for another's result; raises Deadlock, TooMany."""
        ...

    async def end_wait(self, wait: str) -> None:
        """End a declared wait; raises NotFound."""
        ...

    async def end_wait_of(self, owner: str, on: str) -> None:
        """End the declared wait of an owner for another; raises NotFound."""
        ...


class Register(Protocol):
    """Shows the locks and waits. Everything may raise LogUnavailable."""

    async def check(
        self, workspace: str, paths: Sequence[str], owner: str | None, mode: Mode
    ) -> list[dict[str, Any]]:
        """Return what is in the way of a lock, without asking for it."""
        ...

    async def listed(self, workspace: str | None, path: str | None, owner: str | None) -> dict[str, Any]:
        """Return `locks`, `waiting` and `waits`, ready to encode; None: all of them."""
        ...

    async def one(self, lock: str) -> dict[str, Any]:
        """Return one lock; raises NotFound."""
        ...

    async def waits(self) -> list[dict[str, Any]]:
        """Return the declared waits."""
        ...
