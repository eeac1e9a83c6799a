"""Pure: what is known about writes under locks, for `herdr.locks.unlocked`, which draws the conclusions.

Reports by those who may write, what is not decided yet, and what was found; each is bounded.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import NamedTuple

from herdr.locks.lock import Lock

WINDOW_S = 5.0  # how long a holder has to report what it wrote; the protocol's number
STEP_S = 1.0  # between two steps of one save: format-on-save is the slow one; notices come 0.05 s apart
EPISODE_S = 15.0  # something writes without pause: say so after three windows at the latest
FOUND_S = 600.0  # how late a report still tells who wrote; an agent's turn takes minutes

REPORTS = 8  # kept per path: more than one undo or redo goes back
HELD_PATHS_MAX = 10_000  # with reports of their holders; as many as there can be locks, 17 MB at worst
FREE_PATHS_MAX = 4_096  # with reports of the last 5 s under no lock; the bus passes 20 a second per source
PENDING_PER_PATH = 8  # episodes, and as many claims; one path changes hands less often than that in 15 s
STATES = 8  # kept of one episode, the newest; steps of a save are two or three
FOUND_PATHS_MAX = 10_000  # as many as can be found in one window; 10 MB at worst
FOUND_PER_PATH = 16  # two episodes' states; the oldest is forgotten
TOLD_MAX = 8  # sources that are told of one write; it had one author, the others only repeat it

GONE = ""
State = str | None
"""A content's hash, `GONE`, or None: changed to something that cannot be told."""

Key = tuple[str, str]


class Report(NamedTuple):
    """What somebody who was entitled to write said."""

    state: State
    at: float
    locks: frozenset[str]
    """The holder's locks over the path then; empty when nobody held it."""


class Reports:
    """Reports by those who were entitled to write, the newest of each path."""

    def __init__(self) -> None:
        self._held: OrderedDict[Key, deque[Report]] = OrderedDict()
        self._free: OrderedDict[Key, deque[Report]] = OrderedDict()

    def add(self, key: Key, report: Report) -> None:
        """Remember one. Under no lock it matters for `WINDOW_S` only, as whoever wrote then owes no report."""
        kept, bound = (self._held, HELD_PATHS_MAX) if report.locks else (self._free, FREE_PATHS_MAX)
        kept.setdefault(key, deque(maxlen=REPORTS)).append(report)
        kept.move_to_end(key)
        while self._free and next(iter(self._free.values()))[-1].at < report.at - WINDOW_S:
            self._free.popitem(last=False)
        if len(kept) > bound:
            kept.popitem(last=False)

    def know(self, key: Key, state: State, locks: frozenset[str], now: float) -> bool:
        """Tell whether `state` was reported by who was entitled to make it.

        Only the holder's newest report counts for a deletion, since all deletions are alike.
        """
        held = [*self._held.get(key, ())]
        for report in [*held, *self._free.get(key, ())]:
            if report.at >= now - WINDOW_S and _settles(report.state, state):
                return True
            same = state is not None and report.state == state and not report.locks.isdisjoint(locks)
            if same and (state != GONE or report is held[-1]):
                return True
        return False


class Episode:
    """What was seen of one path under one owner's lock without a longer pause, and is not settled."""

    __slots__ = ("created", "first", "last", "lock", "states")

    def __init__(self, lock: Lock, created: bool, now: float) -> None:
        self.lock = lock
        self.created = created
        """Whether it began with a file that was not there before."""
        self.first = self.last = now
        self.states: deque[State] = deque(maxlen=STATES)

    @property
    def due(self) -> float:
        """Return until when the holder may report its last state."""
        return min(self.last + WINDOW_S, self.first + EPISODE_S)


class Claim(NamedTuple):
    """A report by somebody who does not hold the lock; the holder may still say that it was its own write."""

    source: str
    state: State
    lock: Lock
    due: float


class Pending:
    """What is not decided yet about one path."""

    __slots__ = ("claims", "episodes", "latest")

    def __init__(self) -> None:
        self.latest: State = None
        """What was heard of the path last, from anybody."""
        self.episodes: list[Episode] = []
        self.claims: list[Claim] = []

    def due(self) -> float | None:
        """Return when the first of it has to be decided; None when nothing is left."""
        return min([c.due for c in self.claims] + [e.due for e in self.episodes], default=None)

    def see(self, state: State, lock: Lock, created: bool, now: float) -> bool:
        """Take note of a sighting; tell whether there was room for it."""
        last = next((e for e in reversed(self.episodes) if e.lock.owner == lock.owner), None)
        if last is not None and state == last.states[-1]:
            if state is None:
                last.last = now  # still being written
            return True
        if last is None or now - last.last > STEP_S:
            if len(self.episodes) >= PENDING_PER_PATH:
                return False
            last = Episode(lock, created, now)
            self.episodes.append(last)
        last.states.append(state)
        last.last = now
        return True

    def claim(self, state: State, source: str, lock: Lock, now: float) -> bool:
        """Take note of a report by another than the holder; tell whether there was room for it."""
        if any(c.source == source and c.state == state for c in self.claims):
            return True
        if len(self.claims) >= PENDING_PER_PATH:
            return False
        seen = [e.due for e in self.episodes if e.lock.owner == lock.owner and state in e.states]
        self.claims.append(Claim(source, state, lock, min([now + WINDOW_S, *seen])))
        return True

    def take(self, owner: str, source: str) -> list[State]:
        """Remove what was seen under a lock and what `source` claims, as it has said that it wrote."""
        mine = [e for e in self.episodes if e.lock.owner == owner]
        claimed = [c for c in self.claims if c.lock.owner == owner and c.source == source]
        self.episodes = [e for e in self.episodes if e not in mine]
        self.claims = [c for c in self.claims if c not in claimed]
        return [c.state for c in claimed] + [state for e in mine for state in e.states]

    def take_claims(self, now: float) -> list[Claim]:
        """Remove the claims that are due."""
        due = [c for c in self.claims if c.due <= now]
        self.claims = [c for c in self.claims if c.due > now]
        return due

    def attribute(self, claim: Claim) -> list[State]:
        """Remove what was seen and ended in what is claimed; return what of it was seen."""
        mine = [e for e in self.episodes if e.lock.owner == claim.lock.owner and claim.state in e.states]
        self.episodes = [e for e in self.episodes if e not in mine or e.states[-1] != claim.state]
        return [state for e in mine for state in e.states if e not in self.episodes or state == claim.state]

    def take_episodes(self, now: float) -> list[Episode]:
        """Remove those that are due; what is claimed is left to the claim."""
        due = [e for e in self.episodes if e.due <= now]
        self.episodes = [e for e in self.episodes if e.due > now]
        claimed = {(c.lock.owner, c.state) for c in self.claims}
        return [e for e in due if (e.lock.owner, e.states[-1]) not in claimed]

    def drop_steps(self, owner: str, now: float) -> None:
        """What was seen a moment ago was on the way to what is settled now."""
        self.episodes = [e for e in self.episodes if e.lock.owner != owner or now - e.last > STEP_S]

    def drop_passing(self, owner: str) -> bool:
        """Forget a file that came and went; tell whether there was one."""
        mine = [e for e in self.episodes if e.lock.owner == owner]
        start = next((i for i, e in enumerate(mine) if e.created), None)
        if start is None:
            return False
        self.episodes = [e for e in self.episodes if e not in mine[start:]]
        return True

    def settle(self, owner: str, state: State) -> bool:
        """Take note that a holder reports `state`; tell whether anything waited for it."""
        claims = [c for c in self.claims if c.lock.owner != owner or c.state != state]
        episodes = []
        for episode in self.episodes:
            if episode.lock.owner == owner:
                if _settles(state, episode.states[-1]):
                    continue
                while state is not None and state in episode.states:  # what came after it is still open
                    episode.states.popleft()
            episodes.append(episode)
        settled = len(claims) < len(self.claims) or len(episodes) < len(self.episodes)
        self.claims, self.episodes = claims, episodes
        return settled


class Found:
    """A state that was found; whoever reports it later wrote it."""

    __slots__ = ("at", "current", "lock", "seen", "told")

    def __init__(self, lock: Lock, told: Iterable[str], now: float, seen: bool) -> None:
        self.lock = lock
        self.told = set(told)
        self.at = now
        self.seen = seen
        """Whether the watcher saw it; before, it is expected to."""
        self.current = True
        """Whether nothing has followed; while so, hearing of it once more is not another write."""


class Finds:
    """What was found in the last `FOUND_S`."""

    def __init__(self) -> None:
        self._paths: OrderedDict[Key, OrderedDict[State, Found]] = OrderedDict()

    def get(self, key: Key, state: State, now: float, within: float = FOUND_S) -> Found | None:
        """Return what was found there, unless it is too old."""
        states = self._paths.get(key)
        found = states.get(state) if states else None
        return found if found is not None and now - found.at <= within else None

    def put(self, key: Key, state: State, found: Found) -> None:
        """Remember one."""
        states = self._paths.setdefault(key, OrderedDict())
        states[state] = found
        states.move_to_end(state)
        self._paths.move_to_end(key)
        if len(states) > FOUND_PER_PATH:
            states.popitem(last=False)
        if len(self._paths) > FOUND_PATHS_MAX:
            self._paths.popitem(last=False)

    def forget(self, key: Key, state: State) -> None:
        """Its holder has reported it after all."""
        if key in self._paths:
            self._paths[key].pop(state, None)

    def move_on(self, key: Key, state: State) -> None:
        """The path has this state now, and no other that was found."""
        states = self._paths.get(key)
        for other, found in states.items() if states else ():
            found.current = found.current and other == state


def _settles(said: State, seen: State) -> bool:
    """Tell whether a report explains what was seen, as far as either can be told."""
    if seen is None:
        return True
    return said == seen or (said is None and seen == GONE)
