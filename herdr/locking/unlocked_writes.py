"""Writes under somebody else's lock, found on the disk or in what tools report, become `conflict.detected`."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice

import msgspec

from herdr.bus.publish import Publisher
from herdr.clock import Clock
from herdr.context.watch.changes import Change, FileState
from herdr.event import Draft, Lane
from herdr.locks.lock import Lock, Name
from herdr.locks.overlap import overlaps
from herdr.locks.unlocked import Finding, Unlocked

UNKNOWN = "unknown"
GATHER_S = (
    0.1  # from the first finding until they are told, together: each event is a P0, and a storm has thousands
)
PATHS_MAX = 1000  # named in one event; as many as a `files.changed` names

_log = logging.getLogger("herdr.locks")

Find = Callable[[tuple[Name, ...]], Iterable[Lock]]


class _Payload(msgspec.Struct, gc=False):
    change: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")


_decode = msgspec.json.Decoder(_Payload).decode


class UnlockedWrites:
    """Feeds `herdr.locks.unlocked` with what is seen and reported, and tells who has to know."""

    def __init__(
        self,
        find: Find,
        name: Callable[[str, str], Name],
        publisher: Publisher,
        clock: Clock,
        watcher: str,
    ) -> None:
        """`find`: the locks over a name. `watcher`: the source of what the watchers report."""
        self._name = name
        self._find = find
        self._watcher = watcher
        self._publisher = publisher
        self._clock = clock
        self._unlocked = Unlocked(self._holders, watcher)
        self._failed = False
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
        for change in changes:
            if change.old_path is not None:
                self._saw(workspace, change.old_path, None)
            self._saw(
                workspace, change.path, change.after, change.before is None or change.old_path is not None
            )
        self._wake.set()

    def _saw(self, workspace: str, path: str, state: FileState | None, created: bool = False) -> None:
        hash_, now = None if state is None else state.hash, self._clock.monotonic()
        self._unlocked.saw(workspace, path, hash_, state is None, now, created)

    def reported(self, draft: Draft, source: str, hash_: str | None) -> None:
        """Take note of what a tool says that it changed. Never raises: this is part of taking its event in."""
        try:
            self._reported(draft, source, hash_)
        except Exception:  # noqa: BLE001 - logged; the event has nothing to do with it
            if not self._failed:  # once: it may be so for every event from now on
                _log.exception("a report of a change was not compared with the locks over it")
            self._failed = True

    def _reported(self, draft: Draft, source: str, hash_: str | None) -> None:
        if draft.subject is None or source == self._watcher:
            return
        now, told = self._clock.monotonic(), _told(draft)
        deleted = told.change == "deleted"
        self._unlocked.reported(draft.workspace, draft.subject, source, hash_, deleted, now)
        if told.from_ is not None and told.change == "renamed":
            self._unlocked.reported(draft.workspace, told.from_, source, None, True, now)
        self._wake.set()

    def _holders(self, workspace: str, path: str) -> Sequence[Lock]:
        """Return the write locks over a path, the oldest first.

        Not those of whoever may switch the branch: that changes many files, and nobody reports each of them.
        """
        name = self._name(workspace, path)
        found = (lock for lock in self._find((name,)) if lock.mode == "write" and not lock.expired)
        return sorted((lock for lock in found if _names_it(lock, name)), key=lambda lock: lock.token)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            now, at = self._clock.monotonic(), self._unlocked.next_due()
            if at is not None and at <= now:
                await asyncio.sleep(GATHER_S)
                self._tell(self._unlocked.due(self._clock.monotonic()))
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if at is None else at - now):
                    await self._wake.wait()

    def _tell(self, findings: Sequence[Finding]) -> None:
        for _, alike in groupby(sorted(findings, key=_author), key=_author):
            for some in batched(alike):
                self._announce(some)

    def _announce(self, findings: Sequence[Finding]) -> None:
        """Tell of the writes of one author under one lock, in one event."""
        first = findings[0]
        lock, by = first.lock, first.by
        single = first.path if len(findings) == 1 else None
        data = {
            "workspace": first.workspace,
            "subject": single,
            "paths": [finding.path for finding in findings],
            "status": "unlocked",
            "by": by or UNKNOWN,
            "hash": first.hash if single else None,
            "holder": {"owner": lock.owner, "lock": lock.lock, "purpose": lock.purpose},
        }
        to = (lock.owner,) if by is None else (lock.owner, by)
        self._publisher.announce(
            "conflict.detected", data, to=to, lane=Lane.P0, subject=single, workspace=first.workspace
        )


def batched(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Yield the findings in parts that fit into one event each."""
    rest = iter(findings)
    while some := list(islice(rest, PATHS_MAX)):
        yield some


def _author(finding: Finding) -> tuple[str, str, str]:
    return finding.workspace, finding.lock.lock, finding.by or ""


def _names_it(lock: Lock, name: Name) -> bool:
    return any(own.shown != "git:HEAD" and overlaps(own, name) for own in lock.names)


def _told(draft: Draft) -> _Payload:
    try:
        return _decode(draft.data)
    except (msgspec.DecodeError, RecursionError):
        return _Payload()


def _report_crash(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.critical("writes under others' locks are not noticed any more", exc_info=task.exception())
