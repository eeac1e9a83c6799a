"""The watcher of one workspace: hints in, changes out, and a sweep wherever hints cannot be believed."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from herdr.clock import Clock
from herdr.context.watch.changes import Before, Change, Table, diff
from herdr.context.watch.pace import Pace
from herdr.context.watch.report import BURST_PATHS, Cause, HeadMoved, WorkspaceEvent, report
from herdr.context.watch.repository import Head
from herdr.context.watch.status import Settings, WatchState, status_of
from herdr.context.watch.sweep import Update
from herdr.context.watch.tree import RootLost, Tree
from herdr.context.watch.watches import Watches
from herdr.context.watch.window import Window
from herdr.errors import HerdrError

Emit = Callable[[Sequence[WorkspaceEvent]], Awaitable[None]]
Tap = Callable[[Sequence[Change]], Awaitable[None]]
Left = Callable[[Sequence[str]], None]

HINTS_MAX = 20_000  # paths not yet looked at; the kernel's queue holds some 5,000 new files by default
SUSPECT_HINTS = 4_000  # a rewritten file takes four of that queue's 16,384 places: notices may have been lost
LOST_RETRY_S = 0.5  # first look for a folder that went away; doubles
LOST_RETRY_MAX_S = 30.0
ROUNDS_MAX = 3  # folders that appear faster than they can be watched are left to the next sweep

_log = logging.getLogger("herdr.watch")


class Watcher:
    """Follows one workspace until stopped.

    `emit` gets what the bus should carry, gathered until a save or checkout is over, few or one for many.
    `tap` gets every change of every path at once; a file saved in two steps is two changes there, and a
    rename that is not seen as one piece is a deletion and a creation.
    Both are awaited in order by one task, so a slow one delays the watcher and loses nothing.
    `left` gets the files that are still there and no longer belong to the workspace: a rule now ignores them.
    """

    def __init__(
        self,
        name: str,
        root: Path,
        emit: Emit,
        clock: Clock,
        settings: Settings = Settings(),  # noqa: B008 (immutable)
        tap: Tap | None = None,
        baseline: Table | None = None,
        left: Left | None = None,
    ) -> None:
        """`baseline`: the table of an earlier run; without it, what is there at the start is not reported."""
        self.name = name
        self.root = os.path.realpath(root)
        """Without links; where the folder was when the watcher was made."""
        self._emit = emit
        self._tap = tap
        self._left = left
        self._clock = clock
        self._pace = Pace(settings.sweep_every_s)
        self._tree = Tree(root, clock, settings.exclude, settings.files_max, settings.hash_bytes_max)
        self._tree.table.update(baseline or {})
        self.table: Table = self._tree.table
        """Every followed file as it was last seen; live, not to be changed."""
        self.head = self._tree.head
        """Returns the branch and commit that the work tree is at."""
        self._based = baseline is not None
        self._watches = Watches(name, clock, self.hint, settings.force_polling)
        self._window = Window()
        self._head = self._reported_head = Head(None, None)
        self._hints: set[str] = set()
        self._wake = asyncio.Event()
        self._ready = asyncio.Event()
        self._stopping = self._lost = self._git_busy = self._forgot_hints = False
        self._lost_retry_s = LOST_RETRY_S
        self._undelivered = 0
        self._verifying: list[tuple[float, asyncio.Future[None]]] = []

    def hint(self, paths: Iterable[str]) -> None:
        """Look at these absolute paths soon; also for others who know of a change (an editor's hook)."""
        self._hints.update(paths)
        if len(self._hints) > HINTS_MAX:
            self._hints.clear()
            self._forgot_hints = True
            self._pace.want(distrust=True)
        self._wake.set()

    async def verify(self, paths: Iterable[str], max_age_s: float) -> None:
        """Return once these absolute paths were looked at, and all were within `max_age_s`, and it was told.

        While the folder is missing this waits until it is back.
        """
        verified: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._verifying.append((max_age_s, verified))
        self.hint(paths)
        await verified

    @property
    def verified_at(self) -> float:
        """Monotonic seconds of the last look at everything."""
        return self._pace.swept_at

    def stop(self) -> None:
        """Let `run` report what it holds and return."""
        self._stopping = True
        self._wake.set()

    async def ready(self) -> None:
        """Wait until the first table is complete and the watches are in place."""
        await self._ready.wait()

    def state(self) -> WatchState:
        """Return the counts for `/healthz`."""
        tree, watches = self._tree, self._watches
        status = status_of(self._lost, self._ready.is_set(), watches.failing)
        skipped = dict(tree.skipped)
        if tree.over_limit:
            skipped["limit"] = tree.over_limit
        return WatchState(
            status, len(tree.table), len(tree.folders), tree.ignored, skipped, tree.listing,
            self._pace.count, round(self._pace.last_s, 3), watches.restarts, self._undelivered,
            watches.note or tree.listing_note,
        )  # fmt: skip

    async def run(self) -> None:
        """Follow the workspace until `stop`. A folder that is missing, now or later, is waited for."""
        try:
            while not self._stopping:
                try:
                    await self._tree.open()
                    await self._follow()
                except RootLost as loss:
                    if not self._lost:
                        _log.warning("workspace %s: %s", self.name, loss.detail)
                    self._lost = True
                    await self._watches.remove()
                    await self._sleep_until(self._clock.monotonic() + self._lost_retry_s)
                    self._lost_retry_s = min(self._lost_retry_s * 2, LOST_RETRY_MAX_S)
        finally:
            await self._watches.remove()
            for _, verified in self._verifying:
                verified.cancel()

    async def _follow(self) -> None:
        if not self._based:
            await self._sweep(baseline=True)
            self._based = True
        if not self._ready.is_set():
            self._head = self._reported_head = await self._tree.head()
        await self._reconcile(anew=True)
        if self._lost:
            _log.warning("workspace %s: the folder is back", self.name)
        self._lost, self._lost_retry_s = False, LOST_RETRY_S
        self._ready.set()
        if self._verifying:
            self._wake.set()  # somebody waited while the folder was missing
        while not self._stopping:
            await self._sleep_until(self._next_at())
            await self._round()
        await self._flush()

    async def _round(self) -> None:
        verifying = list(self._verifying)  # they stay until it is done: the folder may go away meanwhile
        forgot, self._forgot_hints = self._forgot_hints, False
        await self._take_hints()
        now = self._clock.monotonic()
        if (verifying and forgot) or any(self._pace.swept_at + age_s < now for age_s, _ in verifying):
            await self._reconcile(self._pace.distrust)
        for _, verified in verifying:
            if not verified.done():
                verified.set_result(None)
        del self._verifying[: len(verifying)]
        if self._watches.take_retry(now):
            self._pace.want(distrust=True)
        due = self._window.due_at(busy=False)
        if due is None:
            await self._sweep_if_due(now)
        elif now >= due and not await self._is_held(now):
            await self._sweep_if_due(now)
            await self._flush()

    async def _sweep_if_due(self, now: float) -> None:
        if not self._pace.is_due(now):
            return
        unasked = not self._pace.wanted and not self._window
        await self._reconcile(self._pace.distrust)
        if unasked and self._window:  # nobody had hinted at what it found: some watch does not work any more
            self._pace.want(distrust=True)

    def _next_at(self) -> float:
        """Return when something is due though nobody hints."""
        window = self._window.due_at(self._git_busy)
        if window is not None:
            return window
        retry = self._watches.retry_at
        return self._pace.next_at() if retry is None else min(retry, self._pace.next_at())

    async def _is_held(self, now: float) -> bool:
        """Tell whether to wait for git to finish; its notices wake us, and the window's bound ends it."""
        held = self._window.due_at(busy=True)
        self._git_busy = held is not None and now < held and await self._tree.git_is_busy()
        return self._git_busy

    async def _sleep_until(self, at: float) -> None:
        if not self._stopping and (left := at - self._clock.monotonic()) > 0:
            try:
                await asyncio.wait_for(self._wake.wait(), left)
            except TimeoutError:
                return
        self._wake.clear()

    async def _take_hints(self) -> None:
        hints, self._hints = self._hints, set()
        if any(map(self._tree.is_git_hint, hints)):
            self._git_busy = False
            await self._check_head()
        structural = False
        async for seen in self._tree.look(hints):
            await self._apply(seen.updates, hinted=True)
            self._watches.forget(seen.lost_folders)
            structural = structural or seen.structural
        hinted = max(len(hints), self._window.hints)
        if structural or self._window.hints > BURST_PATHS or hinted > SUSPECT_HINTS:
            self._pace.want(distrust=hinted > SUSPECT_HINTS)
        if structural:
            self._window.touch(self._clock.monotonic())

    async def _check_head(self) -> None:
        """Look where HEAD is; where it moved, files may have changed after they were looked at."""
        head = await self._tree.head()
        if head != self._head:
            self._head = head
            self._pace.want()
            self._window.touch(self._clock.monotonic())

    async def _reconcile(self, anew: bool) -> None:
        """Sweep; and since a sweep sees new folders before they are watched, watch them and sweep again."""
        self._pace.begin()
        if anew:
            await _place(self._tree, self._watches, anew=True)
        for _round in range(ROUNDS_MAX):
            await self._sweep()
            if self._watches.cover(self._tree.folders):
                break
            await _place(self._tree, self._watches, anew=False)
        await self._check_head()
        if not self._watches.cover(self._tree.folders):
            self._pace.want()

    async def _sweep(self, baseline: bool = False) -> None:
        started = self._clock.monotonic()
        async for updates in self._tree.sweep(hashing=not baseline):
            await self._apply(updates, silent=baseline)
        self._pace.swept(started, self._clock.monotonic())

    async def _apply(self, updates: Sequence[Update], hinted: bool = False, silent: bool = False) -> None:
        table = self._tree.table
        told = [update.path for update in updates if update.report and not silent]
        before = {path: table.get(path) for path in told}
        self._window.forget(update.path for update in updates if not update.report)
        self._window.note(before)
        self._tree.apply(updates)
        if self._left is not None and (gone := [update.path for update in updates if not update.report]):
            self._left(gone)
        if changes := diff(before, table):
            self._window.touch(self._clock.monotonic(), len(changes) if hinted else 0)
            if self._tap is not None:
                await self._tap(changes)

    async def _flush(self) -> None:
        """Report the window and close it. What looks deleted is looked at once more."""
        table = self._tree.table
        async for seen in self._tree.look_again([path for path in self._window.before if path not in table]):
            await self._apply(seen.updates)
        window, self._window = self._window, Window()
        moved, self._reported_head = _moved(self._reported_head, self._head), self._head
        cause: Cause = "head" if moved else "burst" if window.hints else "sweep"
        events = await asyncio.to_thread(_compose, window.before, table, cause, moved, window.overflowed)
        if not events:
            return
        try:
            await self._emit(events)
        except HerdrError as refusal:
            self._undelivered += 1
            _log.warning("workspace %s: changes could not be published: %s", self.name, refusal)


async def _place(tree: Tree, watches: Watches, anew: bool) -> None:
    if tree.folders:
        await watches.place(tree.root, tree.folders, await tree.git_folders(), anew)


def _moved(old: Head, new: Head) -> HeadMoved | None:
    return None if old == new else HeadMoved(old.commit, new.commit, new.branch)


def _compose(
    before: Before, table: Table, cause: Cause, moved: HeadMoved | None, overflowed: bool
) -> list[WorkspaceEvent]:
    return report(diff(before, table), cause, moved, overflowed)
