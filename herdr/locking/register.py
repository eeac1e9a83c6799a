"""What is held and waited for, to look at. Nothing here changes anything."""

import asyncio
from collections.abc import Sequence
from typing import Any

from herdr.errors import NotFound
from herdr.locking.held import HeldLocks
from herdr.locking.names import Names
from herdr.locks.line import Waiter
from herdr.locks.lock import Ask, Blocker, Lock, Mode
from herdr.locks.naming import DEFAULT
from herdr.locks.views import conflicts, line_view, lock_view, wait_view

SLICE = 256  # locks that are shown between two turns of the event loop: about 1 ms


class Register:
    """Answers between two commits, so that no crash can take back what was shown."""

    def __init__(self, held: HeldLocks, naming: Names) -> None:
        self._held = held
        self._table = held.table
        self._naming = naming

    async def check(
        self, workspace: str, paths: Sequence[str], owner: str | None, mode: Mode = "write"
    ) -> list[dict[str, Any]]:
        """Return what keeps `owner` (None: anybody) from locking the paths now; grants nothing."""
        shown, names = await self._naming.names(workspace, paths, mode)
        ask = Ask("", owner or "", names, shown, 1.0, mode, workspace)
        return await self._held.look(lambda: conflicts(self._table.conflicts(ask), self._held.expires_us))

    async def listed(self, workspace: str | None, path: str | None, owner: str | None) -> dict[str, Any]:
        """Return the locks, who stands in line, and the declared waits.

        `path`: only locks that overlap it. Raises NotFound, InvalidInput.
        """
        names = None
        if workspace is not None or path is not None:  # an unknown workspace is told either way
            _, names = await self._naming.names(workspace or DEFAULT, [path or "./"], "write")
            names = None if path is None else names
        locks, waiting, waits = await self._held.look(
            lambda: (
                self._table.held() if names is None else self._table.find(names),
                self._line(),
                self._waits(),
            )
        )
        shown = []
        for place, lock in enumerate(locks):
            if not place % SLICE:
                await asyncio.sleep(0)  # thousands must not keep a user's instruction waiting
            if self._fits(lock, None if names is not None else workspace, owner):
                shown.append(self._shown(lock))
        return {
            "locks": shown,
            "waiting": [
                line_view(waiter, blockers)
                for waiter, blockers in waiting
                if workspace in (None, waiter.ask.workspace) and owner in (None, waiter.owner)
            ],
            "waits": waits,
        }

    async def one(self, lock: str) -> dict[str, Any]:
        """Return one lock. Raises NotFound."""

        def look() -> dict[str, Any]:
            found = self._table.get(lock)
            if found is None or found.expired:
                raise NotFound(f"no lock {lock[:64]!r} is held: it ended, or never was", "unknown_lock")
            return self._shown(found)

        return await self._held.look(look)

    async def waits(self) -> list[dict[str, Any]]:
        """Return the declared waits."""
        return await self._held.look(self._waits)

    @staticmethod
    def _fits(lock: Lock, workspace: str | None, owner: str | None) -> bool:
        return not lock.expired and workspace in (None, lock.workspace) and owner in (None, lock.owner)

    def _line(self) -> list[tuple[Waiter, tuple[Blocker, ...]]]:
        return [(waiter, self._table.blockers_of(waiter.key)) for waiter in self._table.waiters()]

    def _waits(self) -> list[dict[str, Any]]:
        return [wait_view(wait, self._held.expires_us(wait.wait)) for wait in self._table.waits()]

    def _shown(self, lock: Lock) -> dict[str, Any]:
        return lock_view(lock, self._table.waiters_of(lock.lock), self._held.expires_us(lock.lock))
