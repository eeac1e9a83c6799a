"""Pure: writes that nobody was entitled to, told from what a watcher saw and from what tools reported.

A watcher cannot see who wrote. So a change under a write lock counts as the holder's when the holder reports
the same content: before (since the lock began) or within `WINDOW_S` after. Otherwise it is a `Finding`, by
whoever else reports that content, or by nobody known. A report by somebody else is itself such a change.

No finding either: a state that another one follows within `STEP_S`, as files are saved in steps; a file that
comes and goes within the window, as editors make them; and what was reported at most `WINDOW_S` ago by whoever
could write then, as the watcher may see it only under the next lock. A write from before a lock that nobody
reported is found, on purpose: the holder may have read the file before.

A source is the holder when it is equal to the lock's `owner`. Where a file has several names, a holder's report
of one counts for all that its lock knows of, and a sighting only in the workspace that the lock was taken in.
"""

import heapq
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from herdr.locks.lock import Lock

WINDOW_S = 5.0  # how long a holder has to report what it wrote; the protocol's number
STEP_S = 1.0  # between two steps of one save: format-on-save is the slow one; notices come 0.05 s apart
STEPS_S = 15.0  # something writes without pause: say so after three windows at the latest
FOUND_S = 600.0  # how late a report still tells who wrote; an agent's turn takes minutes

OPEN_MAX = 10_000  # changes within one window: a branch switch of a large tree; 10 MB at worst
PATHS_MAX = 10_000  # remembered, as many as there can be locks; the one last heard of longest ago goes; 60 MB
KEPT = 8  # of everything kept of one path: more than an undo goes back, or than authors claim one write

GONE = ""
State = str | None
"""A content's hash, `GONE`, or None: changed to something that cannot be told."""

Key = tuple[str, str]
Holders = Callable[[str, str], Sequence[Lock]]


class Finding(NamedTuple):
    """One write under somebody else's lock."""

    workspace: str
    path: str
    hash: str | None
    """None when it is not known, or the file was deleted."""
    by: str | None
    """Who reported this content; None: nobody has so far."""
    lock: Lock


class _Report(NamedTuple):
    state: State
    at: float
    locks: tuple[str, ...]


@dataclass(slots=True, eq=False)
class _Write:
    """A change under a lock that its holder has not reported. `by` names who else did."""

    state: State
    lock: Lock
    first: float
    last: float
    by: list[str]
    created: bool = False

    @property
    def due(self) -> float:
        return min(self.last + WINDOW_S, self.first + STEPS_S)


@dataclass(slots=True, eq=False)
class _Path:
    """What is remembered of a path, the newest last."""

    latest: State = None
    said: list[_Report] = field(default_factory=list)
    """By those who could write: the holder, or anybody when there was none."""
    open: list[_Write] = field(default_factory=list)
    found: dict[State, _Write] = field(default_factory=dict)
    vague: tuple[str, float] = ("", float("-inf"))
    """Who said last, and when, that it wrote under another's lock, and not what."""

    def move(self, state: State) -> bool:
        """Note what the path is like now; tell whether it was like that before."""
        before, self.latest = self.latest, state
        return before == state

    def find(self, state: State, now: float) -> _Write | None:
        write = self.found.get(state)
        return write if write is not None and now - write.due <= FOUND_S else None

    def put(self, write: _Write) -> None:
        self.found.pop(write.state, None)
        self.found[write.state] = write
        if len(self.found) > KEPT:
            del self.found[next(iter(self.found))]

    def settle(self, state: State, owner: str) -> bool:
        """The holder says that this is its own; tell whether anything waited for that."""
        before = self.open
        self.open = [w for w in before if w.lock.owner != owner or not _settles(state, w.state)]
        return len(self.open) < len(before)

    def explains(self, write: _Write, locks: tuple[str, ...]) -> bool:
        """Tell whether who could write has reported this, or its author that it wrote and not what."""
        if any(write.last - said.at <= WINDOW_S and _settles(said.state, write.state) for said in self.said):
            return True
        reports = self.said[-1:] if write.state == GONE else self.said  # all deletions are alike
        same = [lock for said in reports if said.state == write.state is not None for lock in said.locks]
        if not set(locks).isdisjoint(same):
            return True
        author, at = self.vague
        if write.last - at > WINDOW_S or write.by not in ([], [author]):
            return False
        write.by = [author]
        self.put(write)
        return True

    def joins(self, write: _Write) -> bool:
        """Drop what this sighting shows to have been on the way; tell whether it adds nothing itself."""
        mine = [w for w in self.open if w.lock.owner == write.lock.owner and not w.by]
        made = next((i for i, w in enumerate(mine) if w.created), None)
        if write.state == GONE and made is not None:
            self.open = [w for w in self.open if w not in mine[made:]]
            return True
        if mine and mine[-1].state != write.state and write.last - mine[-1].last <= STEP_S:
            self.open.remove(mine[-1])
            write.first, write.created = mine[-1].first, mine[-1].created
        same = [w for w in self.open if w.state == write.state and w.lock.owner == write.lock.owner]
        for other in same if write.state is None else ():
            other.last = write.last  # still being written
        return bool(same)


class Unlocked:
    """Finds them. Times are seconds of one monotonic clock; they never go back.

    `holders` gives the write locks over a path, the oldest first, all of one owner; leave out those that cover
    it only through `git:HEAD`, whose holder changes many files and reports none of them one by one.
    """

    def __init__(self, holders: Holders, watcher: str = "watcher") -> None:
        """`watcher`: the source whose reports repeat what was seen; they say nothing about who wrote."""
        self._holders = holders
        self._watcher = watcher
        self._paths: OrderedDict[Key, _Path] = OrderedDict()
        self._timers: list[tuple[float, int, Key, _Path, _Write]] = []
        """One for each open write and some that were settled, never later than it is due."""
        self._number = count()
        self._ready: list[Finding] = []
        self.dropped = 0
        """Writes that were not followed because a bound was reached."""

    def saw(
        self, workspace: str, path: str, hash: str | None, deleted: bool, now: float, created: bool = False
    ) -> None:
        """The watcher saw a change. A rename is a deletion there and a creation here."""
        key, state = _key(workspace, path), GONE if deleted else hash or None
        holders = [lock for lock in self._holders(workspace, path) if lock.workspace == workspace]
        # Where a holder reports nothing, nothing tells its own writes from others'
        if not holders or not all(lock.reports for lock in holders):
            self._paths.get(key, _Path()).move(state)
            return
        known, write = self._path(key), _Write(state, holders[0], now, now, [], created)
        again = known.move(state) and known.find(state, now)
        if not (known.joins(write) or again or known.explains(write, _ids(holders))):
            self._follow(key, known, write)

    def reported(
        self, workspace: str, path: str, source: str, hash: str | None, deleted: bool, now: float
    ) -> None:
        """A tool published that it changed a path. A rename is reported of both ends."""
        if source == self._watcher:
            return
        key, state = _key(workspace, path), GONE if deleted else hash or None
        known, holders = self._path(key), self._holders(workspace, path)
        done = any([known.settle(state, source), self._attribute(key, known, state, source, now)])
        if not holders or any(lock.owner == source for lock in holders):
            for name in (known, *map(self._path, _other_names(key, holders[:KEPT]))):
                name.settle(state, source)
                name.said = [*name.said, _Report(state, now, _ids(holders))][-KEPT:]
                name.move(state)
        elif state is None:
            self._blame(key, known, source, holders[0], now)
        elif not done:
            write = _Write(state, holders[0], now, now, [source])
            if not known.explains(write, _ids(holders)):
                self._follow(key, known, write)

    def due(self, now: float) -> list[Finding]:
        """Return what is certain by now, each finding once."""
        while self._timers and self._timers[0][0] <= now:
            _, _, key, known, write = heapq.heappop(self._timers)
            if write not in known.open:
                continue
            known.open.remove(write)
            if write.due > now:
                self._follow(key, known, write)
                continue
            known.put(write)
            self._ready += [Finding(*key, write.state or None, by, write.lock) for by in write.by or (None,)]
        findings, self._ready = self._ready, []
        return findings

    def next_due(self) -> float | None:
        """Return when to call `due`, at once if it is in the past; None when nothing waits."""
        return float("-inf") if self._ready else self._timers[0][0] if self._timers else None

    def _path(self, key: Key) -> _Path:
        known = self._paths.setdefault(key, _Path())
        self._paths.move_to_end(key)
        if len(self._paths) > PATHS_MAX:
            self._paths.popitem(last=False)
        return known

    def _follow(self, key: Key, known: _Path, write: _Write) -> None:
        if len(known.open) >= KEPT or len(self._timers) >= OPEN_MAX:
            self.dropped += 1
            return
        known.open.append(write)
        heapq.heappush(self._timers, (write.due, next(self._number), key, known, write))

    def _attribute(self, key: Key, known: _Path, state: State, source: str, now: float) -> bool:
        """Tell whether a report is about a write that is open or found, of which it says who made it."""
        if state is None:
            return False
        again = known.move(state)
        opened = next((w for w in known.open if w.state == state), None)
        write = opened or known.find(state, now)
        if write is None:
            return False
        if write.lock.owner == source:
            known.found.pop(state, None)  # late, but its own
            return False
        if source in write.by or len(write.by) >= KEPT:
            return again or opened is not None
        write.by.append(source)
        if opened is None:
            self._ready.append(Finding(*key, state or None, source, write.lock))
        return True

    def _blame(self, key: Key, known: _Path, source: str, lock: Lock, now: float) -> None:
        """Somebody says that it wrote, and not what: nothing that the holder reports can explain that."""
        author, at = known.vague
        if author == source and now - at <= WINDOW_S:
            return
        known.vague = source, now
        taken = [w for w in known.open if w.lock.owner == lock.owner and w.by in ([], [source])]
        known.open = [w for w in known.open if w not in taken]
        for write in taken:
            write.by = [source]
            known.put(write)
        state = taken[-1].state if taken else None
        self._ready.append(Finding(*key, state or None, source, lock))


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


def _settles(said: State, seen: State) -> bool:
    """Tell whether a report explains what was seen, as far as either can be told."""
    return seen is None or said == seen or (said is None and seen == GONE)


def _ids(holders: Sequence[Lock]) -> tuple[str, ...]:
    return tuple(lock.lock for lock in holders[:KEPT])
