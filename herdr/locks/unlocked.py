"""Pure: writes that nobody was entitled to, told from what a watcher saw and from what tools reported.

A watcher cannot see who wrote. So a change under a write lock counts as the holder's when the holder reports
the same content: before (since the lock began) or within `WINDOW_S` after. Otherwise it is a `Finding`, by
whoever else reports that content, or by nobody known.

What is settled without a finding, beside that:

- a state that another one followed within `STEP_S`, when that one is settled: files are saved in steps;
- a file that came and went within the window: editors put temporary files beside what they save;
- a state that somebody reported at most `WINDOW_S` before the lock began, when it was theirs to write: the
  watcher only saw it late. A write from before the lock that nobody reported is found, on purpose: the holder
  may have read the file before it.

Where a file has several names (links, workspaces within each other), a holder's report of one of them counts
for all that its lock knows of, and a sighting only in the workspace that the lock was taken in.

A source is the holder when it is equal to the lock's `owner`. Whoever reports only after giving the lock back
cannot be told from one who wrote after it; so report first.
"""

import heapq
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from herdr.locks.evidence import GONE, TOLD_MAX, WINDOW_S, Finds, Found, Key, Pending, Report, Reports, State
from herdr.locks.lock import Lock

PENDING_PATHS_MAX = 10_000  # within one window: a branch switch of a large tree; 10 MB at worst
LOCKS = 8  # looked at of one owner's locks over one path; together they only bridge a change of locks

Holders = Callable[[str, str], Sequence[Lock]]


class Finding(NamedTuple):
    """One write under somebody else's lock."""

    workspace: str
    path: str
    hash: str | None
    """None when it is not known, or the file was deleted."""
    deleted: bool
    by: str | None
    """Who reported this content; None: nobody has so far."""
    lock: str
    owner: str
    purpose: str | None
    to: tuple[str, ...]
    """Who has to know: the holder, and `by`."""


class Unlocked:
    """Finds them. Times are seconds of one monotonic clock; they never go back.

    `holders` gives the write locks over a path, the oldest first, all of one owner; leave out those that cover
    it only through `git:HEAD`, whose holder changes many files and reports none of them one by one.
    """

    def __init__(self, holders: Holders, watcher: str = "watcher") -> None:
        """`watcher`: the source whose reports repeat what was seen; they say nothing about who wrote."""
        self._holders = holders
        self._watcher = watcher
        self._reports = Reports()
        self._finds = Finds()
        self._pending: dict[Key, Pending] = {}
        self._timers: list[tuple[float, Key]] = []
        """One for each pending path, never later than the path's `due`."""
        self._ready: list[Finding] = []
        self.dropped = 0
        """Writes that were not followed because a bound was reached."""

    def saw(
        self, workspace: str, path: str, hash: str | None, deleted: bool, now: float, created: bool = False
    ) -> None:
        """The watcher saw a change. A rename is a deletion there and a creation here."""
        key, state = _key(workspace, path), GONE if deleted else hash or None
        found = self._finds.get(key, state, now)
        expected = found is not None and (found.current or not found.seen)
        pending = self._move_on(key, state)
        holders = [lock for lock in self._holders(workspace, path) if lock.workspace == workspace]
        if not holders:
            return
        lock = holders[0]
        if deleted and pending.drop_passing(lock.owner):
            return
        if found is not None and expected:
            found.seen = found.current = True
            pending.drop_steps(lock.owner, now)
        elif self._reports.know(key, state, _ids(holders), now):
            pending.drop_steps(lock.owner, now)
        elif not self._is_blamed(key, state, lock, None, now):
            self._follow(key, pending, pending.see(state, lock, created, now))

    def reported(
        self, workspace: str, path: str, source: str, hash: str | None, deleted: bool, now: float
    ) -> None:
        """A tool published that it changed a path. A rename is reported of both ends."""
        if source == self._watcher:
            return
        key, state = _key(workspace, path), GONE if deleted else hash or None
        late = self._tell_late(key, state, source, now)
        holders = self._holders(workspace, path)
        pending = self._pending.get(key)
        settled = pending is not None and pending.settle(source, state)
        if not holders or any(lock.owner == source for lock in holders):
            for same in (key, *_other_names(key, holders[:LOCKS])):
                self._move_on(same, state).settle(source, state)
                self._reports.add(same, Report(state, now, _ids(holders)))
        elif late or settled:
            return
        elif state is None:
            self._blame(key, source, holders[0], now)
        else:
            self._claim(key, state, source, holders, now)

    def due(self, now: float) -> list[Finding]:
        """Return what is certain by now, each finding once."""
        while self._timers and self._timers[0][0] <= now:
            key = heapq.heappop(self._timers)[1]
            self._decide(key, now)
            self._schedule(key)
        findings, self._ready = self._ready, []
        return findings

    def next_due(self) -> float | None:
        """Return when to call `due`, at once if it is in the past; None when nothing waits."""
        if self._ready:
            return float("-inf")
        while self._timers:
            at, key = self._timers[0]
            if self._pending[key].due() == at:
                return at
            heapq.heappop(self._timers)  # what it was for is settled, or goes on
            self._schedule(key)
        return None

    def _move_on(self, key: Key, state: State) -> Pending:
        """The path has this state now. Returns what is pending there, or something to begin with."""
        self._finds.move_on(key, state)
        pending = self._pending.get(key) or Pending()
        pending.latest = state
        return pending

    def _tell_late(self, key: Key, state: State, source: str, now: float) -> bool:
        """Tell whether the report is about what was found before; add a finding if it says who wrote that."""
        found = None if state is None else self._finds.get(key, state, now)
        if found is None:
            return False
        if source == found.lock.owner:
            self._finds.forget(key, state)
            return False
        if source in found.told or len(found.told) >= TOLD_MAX:
            return found.current
        found.told.add(source)
        self._ready.append(_finding(key, state, source, found.lock))
        return True

    def _claim(self, key: Key, state: State, source: str, holders: Sequence[Lock], now: float) -> None:
        lock = holders[0]
        if self._reports.know(key, state, _ids(holders), now):
            return
        pending = self._move_on(key, state)
        if not self._is_blamed(key, state, lock, source, now):
            self._follow(key, pending, pending.claim(state, source, lock, now))

    def _blame(self, key: Key, source: str, lock: Lock, now: float) -> None:
        """Somebody says that it wrote, and not what: nothing that the holder reports can explain that."""
        blamed = self._finds.get(key, None, now, within=WINDOW_S)
        told = {source}
        if blamed is not None and blamed.lock.owner == lock.owner:
            if source in blamed.told or len(blamed.told) >= TOLD_MAX:
                return
            told |= blamed.told
        pending = self._pending.get(key) or Pending()
        states = pending.take(lock.owner, source)
        for state in states:
            self._finds.put(key, state, Found(lock, told, now, seen=True))
        self._finds.move_on(key, pending.latest)
        self._finds.put(key, None, Found(lock, told, now, seen=bool(states)))
        self._ready.append(_finding(key, states[-1] if states else None, source, lock))

    def _is_blamed(self, key: Key, state: State, lock: Lock, source: str | None, now: float) -> bool:
        """Tell whether this is the write that somebody reported a moment ago without saying what it wrote."""
        blamed = self._finds.get(key, None, now, within=WINDOW_S)
        if blamed is None or not blamed.told or blamed.lock.owner != lock.owner:
            return False
        if source is not None and source not in blamed.told:
            return False
        self._finds.put(key, state, Found(lock, blamed.told, now, seen=source is None))
        return True

    def _follow(self, key: Key, pending: Pending, room: bool) -> None:
        if not room:
            self.dropped += 1
        elif key not in self._pending:
            if len(self._pending) >= PENDING_PATHS_MAX:
                self.dropped += 1
                return
            self._pending[key] = pending
            self._schedule(key)

    def _schedule(self, key: Key) -> None:
        due = self._pending[key].due()
        if due is None:
            del self._pending[key]
        else:
            heapq.heappush(self._timers, (due, key))

    def _decide(self, key: Key, now: float) -> None:
        pending = self._pending[key]
        for claim in pending.take_claims(now):
            states = pending.attribute(claim)
            known = self._finds.get(key, claim.state, now)
            told = {claim.source} | (known.told if known is not None and known.current else set())
            for state in (*states, claim.state):
                self._finds.put(key, state, Found(claim.lock, told, now, seen=state in states))
            self._ready.append(_finding(key, claim.state, claim.source, claim.lock))
        for episode in pending.take_episodes(now):
            for state in episode.states:
                self._finds.put(key, state, Found(episode.lock, (), now, seen=True))
            self._ready.append(_finding(key, episode.states[-1], None, episode.lock))
        self._finds.move_on(key, pending.latest)


def _key(workspace: str, path: str) -> Key:
    return workspace, path if path.isascii() else unicodedata.normalize("NFC", path)


def _other_names(key: Key, holders: Sequence[Lock]) -> Iterator[Key]:
    """Yield what else the path is called, as far as locks over it know."""
    path = tuple(key[1].split("/"))
    for lock in holders:
        for name in lock.names:
            beyond = path[len(name.literal) :]
            if name.space == key[0] and name.literal + beyond == path and (name.rest or not beyond):
                for other in lock.names:
                    if other.shown == name.shown and other.rest == name.rest and other != name:
                        yield other.space, "/".join(other.literal + beyond)


def _ids(holders: Sequence[Lock]) -> frozenset[str]:
    return frozenset(lock.lock for lock in holders[:LOCKS])


def _finding(key: Key, state: State, by: str | None, lock: Lock) -> Finding:
    to = (lock.owner,) if by is None else (lock.owner, by)
    return Finding(*key, state or None, state == GONE, by, lock.lock, lock.owner, lock.purpose, to)
