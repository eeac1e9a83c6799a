"""Writes under somebody else's lock, found on the disk or in what tools report, become `conflict.detected`."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from herdr.bus.publish import Publisher
from herdr.clock import Clock
from herdr.context.watch.changes import Change
from herdr.event import Draft, Lane
from herdr.locks.lock import Lock, Name
from herdr.locks.unlocked import Finding, Unlocked

UNKNOWN = "unknown"
PATHS_MAX = 1000  # named in one event; as many as a `files.changed` names

_log = logging.getLogger("herdr.locks")

Find = Callable[[tuple[Name, ...]], Iterable[Lock]]


class _Payload(msgspec.Struct, gc=False):
    change: Any = None


_decode = msgspec.json.Decoder(_Payload).decode


class UnlockedWrites:
    """Feeds `herdr.locks.unlocked` with what is seen and reported, and tells who has to know."""

    def __init__(self, find: Find, publisher: Publisher, clock: Clock, watcher: str) -> None:
        """`find`: the held locks that cover a name. `watcher`: the source of what the watchers report."""
        self._find = find
        self._watcher = watcher
        self._publisher = publisher
        self._clock = clock
        self._unlocked = Unlocked(self._holders, watcher)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to tell."""
        self._task = asyncio.create_task(self._run(), name="unlocked writes")
        self._task.add_done_callback(_report_crash)

    async def stop(self) -> None:
        """Stop; what is not certain yet is not told any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def saw(self, workspace: str, changes: Iterable[Change]) -> None:
        """Take note of what a watcher saw on the disk."""
        now = self._clock.monotonic()
        for change in changes:
            if change.old_path is not None:
                self._unlocked.saw(workspace, change.old_path, None, True, now)
            hash_ = None if change.after is None else change.after.hash
            created = change.before is None or change.old_path is not None
            self._unlocked.saw(workspace, change.path, hash_, change.after is None, now, created)
        self._wake.set()

    def reported(self, draft: Draft, source: str, hash_: str | None) -> None:
        """Take note of what a tool says that it changed."""
        if draft.subject is None or source == self._watcher:
            return
        now, deleted = self._clock.monotonic(), _is_deletion(draft)
        for path in self._names_of(draft.workspace, draft.subject, source):
            self._unlocked.reported(draft.workspace, path, source, hash_, deleted, now)
        self._wake.set()

    def _names_of(self, workspace: str, path: str, source: str) -> list[str]:
        """Return the path, and what else the source locked with it: who writes through a link changes its target."""
        names = dict.fromkeys([path])
        for lock in self._holders(workspace, path):
            if lock.owner == source:
                shown = {name.shown for name in lock.names if not name.rest and _path(name) == path}
                twins = (n for n in lock.names if n.shown in shown and n.space == workspace and not n.rest)
                names.update(dict.fromkeys(map(_path, twins)))
        return list(names)

    def _holders(self, workspace: str, path: str) -> Sequence[Lock]:
        """Return the write locks over a path that were taken in this workspace, the oldest first.

        Where workspaces lie within each other, the one that a lock was taken in is where its holder reports.
        A branch switch changes many files, and its holder reports none of them.
        """
        name = Name(workspace, tuple(path.split("/")))
        found = [lock for lock in self._find((name,)) if _counts(lock, workspace)]
        return sorted(found, key=lambda lock: lock.token)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            now = self._clock.monotonic()
            self._tell(self._unlocked.due(now))
            at = self._unlocked.next_due()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if at is None else max(0.0, at - now)):
                    await self._wake.wait()

    def _tell(self, findings: Sequence[Finding]) -> None:
        for _, alike in groupby(findings, key=lambda f: (f.workspace, f.lock, f.by)):
            self._announce(list(alike)[:PATHS_MAX])

    def _announce(self, findings: Sequence[Finding]) -> None:
        """Tell of the writes of one author under one lock, in one event."""
        first = findings[0]
        single = first.path if len(findings) == 1 else None
        data = {
            "workspace": first.workspace,
            "subject": single,
            "paths": [finding.path for finding in findings],
            "status": "unlocked",
            "by": first.by or UNKNOWN,
            "hash": first.hash if single else None,
            "holder": {"owner": first.owner, "lock": first.lock, "purpose": first.purpose},
        }
        self._publisher.announce(
            "conflict.detected", data, to=first.to, lane=Lane.P0, subject=single, workspace=first.workspace
        )


def _path(name: Name) -> str:
    return "/".join(name.literal)


def _counts(lock: Lock, workspace: str) -> bool:
    held = lock.mode == "write" and not lock.expired
    return held and lock.workspace == workspace and "git:HEAD" not in lock.paths


def _is_deletion(draft: Draft) -> bool:
    try:
        return bool(_decode(draft.data).change == "deleted")
    except (msgspec.DecodeError, RecursionError):
        return False


def _report_crash(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.critical("writes under others' locks are not noticed any more", exc_info=task.exception())
