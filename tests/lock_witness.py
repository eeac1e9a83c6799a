"""The witness file of the fights for locks: what its lines say, and what must not be seen in them.

Each line is `LETTER AT NAME TOKEN PATHS`. AT is `time.monotonic()`, which the processes of one machine share.
NAME writes of itself that it

    W  is about to ask for the paths          G  was granted them, and is about to renew the lease
    N  was refused: others were in the way    A  has them: the renewal came in time
    R  is about to give them back             L  does not rely on them any more: the lease may be over
    F  has given them back                    X  was told that they were no longer its own

and whoever supervises the fight writes K when NAME was killed, D when the gateway is about to be killed and U
when it is back. A line is appended in one write, so their order in the file is that in which they happened.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

NEVER = float("inf")


class Line(NamedTuple):
    """One line of the file."""

    letter: str
    at: float
    name: str
    token: int = 0
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.letter} {self.at:.6f} {self.name} {self.token} {','.join(self.paths) or '-'}"


def read_line(text: str) -> Line:
    letter, at, name, token, paths = text.split()
    return Line(letter, float(at), name, int(token), () if paths == "-" else tuple(paths.split(",")))


class Times(NamedTuple):
    """What the gateway and the fighters were told, in seconds."""

    ttl_s: float
    delay_s: float
    """How long others are kept off after a lease ran out."""
    slack_s: float
    """How much later than it should something may happen on this machine."""

    @property
    def kept_s(self) -> float:
        """How long a lock stays in the way that nobody renews any more."""
        return self.ttl_s + self.delay_s


# Never two holders.


class Hold(NamedTuple):
    name: str
    token: int
    granted: float
    """Read when the grant had been answered and before the renewal was sent: not earlier than the one, and
    not later than the beginning of the lease."""


class Holders:
    """Who has what, by the order of the lines."""

    def __init__(self, times: Times) -> None:
        self._kept_s = times.kept_s
        self._granted: dict[str, float] = {}
        self._open: dict[tuple[str, int], Hold] = {}
        self._newest: dict[str, Hold] = {}
        self._dead: set[str] = set()

    def faults(self, line: Line) -> Iterator[str]:
        """Take over one line, and yield what it shows that must not be."""
        if line.name in self._dead:
            yield f"a dead one writes: {line}"
        if line.letter == "K":
            self._dead.add(line.name)
        elif line.letter == "G":
            self._granted[line.name] = line.at
        elif line.letter == "A":
            hold = Hold(line.name, line.token, self._granted[line.name])
            for path in line.paths:
                yield from self._taken(path, hold)
        elif line.letter in "RL":
            for path in line.paths:
                if self._open.pop((path, line.token), None) is None:
                    yield f"{line.name} leaves {path} without having it: {line}"

    def _taken(self, path: str, hold: Hold) -> Iterator[str]:
        for (held, _), other in self._open.items():
            if held == path and not self._may_follow(*sorted((other, hold), key=lambda one: one.token)):
                dead = ", which is dead but had a lease" if other.name in self._dead else ""
                yield f"two holders of {path}: {other}{dead} and {hold}"
        newest = self._newest.get(path)
        if newest is None or newest.token < hold.token:
            self._newest[path] = hold
        elif not self._may_follow(hold, newest):
            yield f"the token of {path} did not rise: {newest.token}, {hold.token}"
        self._open[path, hold.token] = hold

    def _may_follow(self, earlier: Hold, later: Hold) -> bool:
        """Tell whether the lease of the earlier one can have been over, and the delay after it.

        So it is not held against the gateway when a fighter stood still for longer than its lease, and wrote
        only then that it has something, or that it no longer relies on it.
        """
        return earlier.granted + self._kept_s < later.granted


def holding_faults(lines: Iterable[Line], times: Times) -> list[str]:
    """Return what the witness shows of two holders, falling tokens, or leases that were cut short."""
    holders = Holders(times)
    return [fault for line in lines for fault in holders.faults(line)]


# No lock outlives its lease plus the downtimes plus the delay.


@dataclass
class Round:
    """One attempt of one fighter, from its W to its N, F, X or K."""

    name: str
    paths: frozenset[str]
    asked: float
    granted: float = NEVER
    taken: float = NEVER
    ended: float = NEVER
    end: str = ""

    @property
    def answered(self) -> float:
        """When its wait was over; when it was killed, if that came first."""
        return min(self.granted, self.ended)


class Waited(NamedTuple):
    """How long somebody waited, and when it should have been over."""

    round: Round
    due: float
    """When nobody was in its way any more at the latest, if locks end as they should."""
    heir: bool
    """Whether it waited for the lock of a dead one."""

    @property
    def late_s(self) -> float:
        """How much too late it was answered; negative when in time."""
        return self.round.answered - self.due


def rounds_of(lines: Iterable[Line]) -> list[Round]:
    rounds: list[Round] = []
    current: dict[str, Round] = {}
    for line in lines:
        if line.letter == "W":
            current[line.name] = Round(line.name, frozenset(line.paths), line.at)
            rounds.append(current[line.name])
        elif line.name not in current:
            continue
        elif line.letter == "G":
            current[line.name].granted = line.at
        elif line.letter == "A":
            current[line.name].taken = line.at
        elif line.letter in "NFXK":
            current[line.name].ended = line.at
            current.pop(line.name).end = line.letter
    return rounds


def outages_of(lines: Iterable[Line]) -> list[tuple[float, float]]:
    """Return when the gateway was killed and when it was back."""
    times = [line.at for line in lines if line.letter in "DU"]
    return [*zip(times[::2], [*times[1::2], NEVER], strict=False)]


class Waits:
    """Everything that was waited for, and when it should have been there."""

    def __init__(self, lines: list[Line], times: Times) -> None:
        self._times = times
        self._rounds = rounds_of(lines)
        self._outages = outages_of(lines)
        self._heirs = {id(dead): self._heirs_of(dead) for dead in self._rounds if dead.end == "K"}

    def all(self) -> list[Waited]:
        """Return the waits whose end is known."""
        return [self._waited(round) for round in self._rounds if round.answered < NEVER]

    def _waited(self, mine: Round) -> Waited:
        due, heir = mine.asked, False
        for other in self._rounds:
            if other.name != mine.name and other.paths & mine.paths and other.asked <= mine.answered:
                free = self._free(other, mine)
                if free > due:
                    due, heir = free, other.end == "K"
        return Waited(mine, self._through(due, 0.0), heir)

    def _free(self, other: Round, mine: Round) -> float:
        """Return when the other one was out of the way at the latest, as far as it came to be in it."""
        if other.ended > mine.answered:
            return NEVER if other.granted <= mine.answered else 0.0
        if other.end == "K":
            return max(self._inherited(other, path, mine) for path in other.paths & mine.paths)
        return self._through(other.ended, self._times.delay_s) if other.end == "X" else other.ended

    def _inherited(self, dead: Round, path: str, mine: Round) -> float:
        """Return when what a dead one had was free: at the end of its lease, or when somebody else had it.

        Who is not known to have taken anything was granted it, for all one knows, when it died.
        """
        end = self._through(min(dead.taken, dead.ended), self._times.kept_s)
        had = self._heirs[id(dead)].get(path, NEVER)
        return min(end, had) if had < mine.answered else end

    def _heirs_of(self, dead: Round) -> dict[str, float]:
        """Return when each path of a dead one was next granted."""
        later = [round for round in self._rounds if round.granted > min(dead.granted, dead.ended)]
        later.sort(key=lambda round: -round.granted)
        return {path: round.granted for round in later if round.granted < NEVER for path in round.paths}

    def _through(self, start: float, lasts_s: float) -> float:
        """Return the end of what begins anew when the gateway is back, unless that was killed after the end.

        Killed within the slack, it may not yet have come to it.
        """
        end = start + lasts_s
        for down, up in self._outages:
            if down <= end + self._times.slack_s:
                end = max(end, up + lasts_s)
        return end


def waiting_faults(lines: list[Line], times: Times) -> list[str]:
    """Return who waited for longer than the locks of others may last."""
    return [
        f"{waited.late_s:.1f} s too late: {waited}"
        for waited in Waits(lines, times).all()
        if waited.late_s > times.slack_s
    ]
