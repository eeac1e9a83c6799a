"""The tools `lock`, `unlock` and `check_paths`."""

from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

import msgspec

from herdr.errors import FieldError, HerdrError
from herdr.locks.lock import Wanted
from herdr.locks.refusals import Locked
from herdr.locks.views import Taken
from herdr.web.bodies import wrong
from herdr.web.lock_desk import Desk, Register
from herdr.web.mcp import arguments, words
from herdr.web.mcp.agents import Who
from herdr.web.mcp.around import Said, Tool, Workspaces, stays, without_nothing
from herdr.web.mcp.freed import Freed
from herdr.web.standing import stand_in_line
from herdr.web.streams import Streams

LISTED_MAX = 10  # locks that an error names

T = TypeVar("T")


async def until_stop(asking: Coroutine[Any, Any, T], streams: Streams, give_back: Callable[[T], None]) -> T:
    """Wait for something until the gateway stops; whoever is cancelled gives back what came in that moment."""
    return await stand_in_line(
        asking, stays, streams, give_back
    )  # whoever watches the client cancels the call


class LockTools:
    """Write locks."""

    def __init__(
        self, desk: Desk, register: Register, workspaces: Workspaces, freed: Freed, streams: Streams
    ) -> None:
        self._desk = desk
        self._register = register
        self._workspaces = workspaces
        self._freed = freed
        self._streams = streams

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            Tool("lock", arguments.Lock, words.LOCK, "locks", False, self.lock),
            Tool("unlock", arguments.Unlock, words.UNLOCK, "locks", False, self.unlock),
            Tool("check_paths", arguments.CheckPaths, words.CHECK_PATHS, "locks", True, self.check),
        ]

    async def lock(self, who: Who, asked: arguments.Lock) -> Said:
        """Lock all paths, or none."""
        workspace, paths = self._workspaces.spots(asked.workspace, who, asked.paths)
        wanted = Wanted(
            paths=tuple(paths),
            owner=who.named(),
            workspace=workspace,
            ttl_s=asked.ttl_s,
            wait_s=asked.wait_s,
            purpose=asked.purpose,
            session=asked.session or who.session,
            reports=False,  # nobody can be sure that a model tells of each change
        )
        try:
            taken = await until_stop(self._desk.lock(wanted), self._streams, self._give_back)
        except Locked as error:
            self._freed.refused(who.named(), error.conflicts)
            raise
        leased = taken.leased
        names = ("lock", "paths", "token", "expires", "workspace")
        data = {name: getattr(leased, name) for name in names}
        text = (
            f"{'Locked' if taken.is_new else 'Still yours'} until {leased.expires}: {', '.join(leased.paths)}"
        )
        return Said(f"{text} (lock {leased.lock})", msgspec.to_builtins(data))

    async def unlock(self, who: Who, asked: arguments.Unlock) -> Said:
        """Give back one lock, or those of some paths."""
        name = who.named()
        if asked.lock is not None:
            chosen = [lock for lock in await self._held(name) if lock["lock"] == asked.lock]
            what = f"the lock {asked.lock}"
        else:
            chosen = await self._covering(who, asked)
            what = ", ".join(asked.paths)
        if not chosen:
            await self._nothing_held(name, what)
        for lock in chosen:
            await self._desk.release(lock["lock"], lock["token"])
        released = list(dict.fromkeys(path for lock in chosen for path in lock["paths"]))
        return Said(f"Released: {', '.join(released)}", {"released": released})

    async def check(self, who: Who, asked: arguments.CheckPaths) -> Said:
        """Return who is in the way; nothing is locked."""
        workspace, paths = self._workspaces.spots(asked.workspace, who, asked.paths)
        found = await self._register.check(workspace, paths, who.name, "write")
        conflicts = [without_nothing(conflict) for conflict in found]
        lines = [_conflict_line(conflict) for conflict in conflicts]
        return Said("\n".join(lines) or "Free: nobody else holds them.", {"conflicts": conflicts})

    async def _held(self, name: str) -> list[dict[str, Any]]:
        return list((await self._register.listed(None, None, name))["locks"])

    async def _covering(self, who: Who, asked: arguments.Unlock) -> list[dict[str, Any]]:
        if not asked.paths:
            raise wrong(FieldError("paths", f"required, or lock: {words.UNLOCK['lock']}"))
        workspace, paths = self._workspaces.spots(asked.workspace, who, asked.paths)
        found = {}
        for path in paths:
            listed = await self._register.listed(workspace, path, who.named())
            found.update({lock["lock"]: lock for lock in listed["locks"]})
        return list(found.values())

    async def _nothing_held(self, name: str, what: str) -> NoReturn:
        held = [", ".join(lock["paths"]) for lock in (await self._held(name))[:LISTED_MAX]]
        raise HerdrError(
            f"you ({name}) do not hold {what[:500]}: it ended, or is not yours. You hold: "
            f"{'; '.join(held) or 'nothing'}",
            "unknown_lock",
        )

    def _give_back(self, taken: Taken) -> None:
        if taken.is_new:
            self._desk.give_back(taken.leased.lock)


def _conflict_line(conflict: dict[str, Any]) -> str:
    why = f" ({conflict['purpose']})" if "purpose" in conflict else ""
    state = (
        "waits for it"
        if conflict["state"] == "waiting"
        else f"holds it until {conflict['expires']} if not longer"
    )
    return f"{conflict['asked']}: {conflict['owner']}{why} {state}"
