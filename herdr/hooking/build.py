"""Puts the hooks together."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from herdr.bus.bus import Bus
from herdr.bus.inbox import Inbox
from herdr.clock import Clock
from herdr.context.watch.changes import FileState
from herdr.context.watch.files import HASH_BYTES_MAX, Files
from herdr.hooking.desk import Locks, Register, Surroundings
from herdr.hooking.hooks import Hooks
from herdr.hooking.recent import Recent


def build_hooks(
    bus: Bus,
    inbox: Inbox,
    locks: Locks,
    register: Register,
    paths: Callable[[], Mapping[str, str]],
    folders: Callable[[], Mapping[str, Sequence[str]]],
    clock: Clock,
    watcher: str,
) -> Hooks:
    """Build the hooks of all tools.

    `paths`: each workspace's folder; `folders`: every path that clients know it by. `watcher`: the source of what
    watchers saw.
    """

    async def hash_of(workspace: str, path: str) -> str | None:
        root = paths().get(workspace)
        if root is None:
            return None
        found = await asyncio.to_thread(_look, root, path, clock)
        return found.hash if isinstance(found, FileState) else None

    recent = Recent(watcher)
    bus.tell_commits(recent.committed)

    def head() -> int:
        return bus.head

    return Hooks(Surroundings(locks, register, bus.publisher, inbox, folders, head, hash_of), recent)


def _look(root: str, path: str, clock: Clock) -> object:
    return Files(os.path.realpath(root), clock, Counter(), HASH_BYTES_MAX).look(path)
