"""Hooks over a real bus, real locks and a log in memory; what tools send is a `Call`, as their decoders make it."""

import contextlib
from collections.abc import AsyncIterator, Collection
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from buses import FaultyLog

from herdr.app.bus import build_bus
from herdr.bus.bus import Bus
from herdr.bus.inbox import Inbox
from herdr.clock import SystemClock
from herdr.config import BusSection
from herdr.event import Draft
from herdr.hooking.build import build_hooks
from herdr.hooking.hooks import Hooks
from herdr.hooks.call import Call, Kind, Reply
from herdr.locking.desk import Desk
from herdr.locking.held import HeldLocks
from herdr.locking.names import Names
from herdr.locking.register import Register
from herdr.locks.lock import Wanted
from herdr.locks.naming import Naming

WATCHER = "watcher"
ALL = ("locks", "events:publish", "events:follow")
ONE, OTHER = "claude-code/00000001", "claude-code/00000002"


class World:
    """Two workspaces, `shop` and `lib`, and the hooks of tools that work in them."""

    def __init__(
        self, bus: Bus, log: FaultyLog, desk: Desk, register: Register, hooks: Hooks, at: Path
    ) -> None:
        self.bus, self.log, self.desk, self.register, self.hooks = bus, log, desk, register, hooks
        self.shop, self.lib = at / "shop", at / "lib"

    def call(self, kind: Kind, *paths: str, session: str = "session-00000001", **more: Any) -> Call:
        """A call of Claude Code in `shop`; paths are relative to it."""
        about = {
            "client": "claude-code",
            "event": kind,
            "cwd": str(self.shop),
            "tool": "Edit",
            "use": "toolu_1",
        }
        return Call(kind=kind, session=session, paths=paths, **(about | more))

    async def tell(
        self,
        kind: Kind,
        *paths: str,
        scopes: Collection[str] = ALL,
        session: str = "session-00000001",
        **more: Any,
    ) -> Reply:
        return await self.hooks.handle(self.call(kind, *paths, session=session, **more), scopes.__contains__)

    async def locked(self) -> dict[str, list[str]]:
        """Who has locked what."""
        listed = await self.register.listed(None, None, None)
        found: dict[str, list[str]] = {}
        for lock in listed["locks"]:
            found.setdefault(lock["owner"], []).extend(lock["paths"])
        return {owner: sorted(paths) for owner, paths in found.items()}

    async def hold(self, owner: str, path: str, workspace: str = "shop") -> None:
        await self.desk.lock(Wanted(paths=(path,), owner=owner, workspace=workspace, purpose="on its own"))

    async def publish(self, type_: str, source: str, subject: str | None = None, **data: Any) -> None:
        """Publish at once: as P1, which nothing holds up."""
        draft = Draft(type_, source=source, subject=subject, workspace="shop", priority="P0")
        draft.data = msgspec.Raw(msgspec.json.encode(data))
        await self.bus.publisher.publish([draft], source)

    async def announce(self, type_: str, *to: str, **data: Any) -> None:
        """Have the gateway tell of something, and wait until it is in the log."""
        await self.bus.publisher.record([self.bus.publisher.own_event(type_, data, to=to, workspace="shop")])

    def events(self, type_: str) -> list[dict[str, Any]]:
        """What is in the log of one type, oldest first."""
        self.bus.publisher.flush()
        return [msgspec.json.decode(e.body) for e in self.log._events.values() if e.type == type_]


@contextlib.asynccontextmanager
async def hooks_over(log: FaultyLog, at: Path) -> AsyncIterator[World]:
    """The hooks as a process would start them over this log, with the workspaces' folders below `at`."""
    roots = {name: str(at / name) for name in ("shop", "lib")}
    for root in roots.values():
        Path(root).mkdir(exist_ok=True)
    clock, ids = SystemClock(), count(log.head * 1000)
    held = HeldLocks(await log.load("lock"), clock, 0.0)
    bus = await build_bus(log, BusSection(p2_per_s=0, debounce_ms=0), (), clock, held)
    await bus.start()
    held.start(bus.publisher)
    names = Names(Naming(lambda: roots, lambda folder: False))
    desk, register = Desk(held, names, lambda: f"L{next(ids)}"), Register(held, names)
    hooks = build_hooks(
        bus,
        Inbox(bus),
        desk,
        register,
        lambda: roots,
        lambda: {n: (r,) for n, r in roots.items()},
        clock,
        WATCHER,
    )
    try:
        yield World(bus, log, desk, register, hooks, at)
    finally:
        log.fails = lambda: False
        await held.stop()
        await bus.stop()
