"""Tells clients that a resource has changed: what the bus commits, as addresses, gathered for a moment."""

import asyncio
from collections.abc import Callable, Sequence

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)

from herdr.event import Event
from herdr.web.mcp.resources import LOCKS, SESSIONS, TASKS, map_uri, session_uri

GATHERED_S = 0.25  # of changes of one resource become one notice; whoever reads it reads all of them
GATHERED_MAX = 1000  # addresses; past that the sessions' own are left out, and their list says it
SAID = frozenset({"session.message", "session.deleted", "user.message", "assistant.message", "tool.result"})
MAPPED = frozenset({"context.changed", "context.indexed"})


def uris_of(event: Event) -> tuple[str, ...]:
    """Return the addresses of what an event changes."""
    if event.type.startswith("lock."):
        return (LOCKS,)
    if event.type.startswith("handoff."):
        return (TASKS,)
    if event.type in MAPPED:
        return (map_uri(event.workspace),)
    if event.type in SAID and event.session is not None:
        return (SESSIONS, session_uri(event.session))
    return ()


class Notices:
    """Publishes to the protocol's own bus, from which both eras' streams take."""

    def __init__(self, workspaces: Callable[[], list[str]]) -> None:
        """`workspaces` tells which are watched now: each has a map in the list of resources."""
        self.bus = InMemorySubscriptionBus()
        self._workspaces = workspaces
        self._listed: list[str] = workspaces()
        self._changed: dict[str, None] = {}
        self._wake = asyncio.Event()

    def committed(self, events: Sequence[Event]) -> None:
        """Note what a commit changes."""
        for event in events:
            for uri in uris_of(event):
                if len(self._changed) < GATHERED_MAX or uri in (LOCKS, TASKS, SESSIONS):
                    self._changed[uri] = None
        if self._changed:
            self._wake.set()

    async def run(self) -> None:
        """Publish what has changed, until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(GATHERED_S)
            self._wake.clear()
            changed, self._changed = list(self._changed), {}
            found: list[ServerEvent] = [ResourceUpdated(uri=uri) for uri in changed]
            if (listed := self._workspaces()) != self._listed:
                self._listed = listed
                found.append(ResourcesListChanged())
            for event in found:
                await self.bus.publish(event)
