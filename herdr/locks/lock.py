"""What a lock is, what may happen to one, and what whoever asks is answered. Pure; every other part uses these.

A lock covers `Name`s. One thing can have several: a symbolic link and its target, or a file that lies in two
watched workspaces; a lock on it covers all of them, so two names for one file always collide.
"""

from typing import Literal, NamedTuple

import msgspec

Mode = Literal["write", "intent"]
"""`write` is exclusive; `intent` ("I plan to change this") is shared with other intents."""

FOLDER = ("**",)
"""The `rest` of a name that covers a folder and everything in it."""


class Name(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One canonical name, or a pattern of names, within one space (mostly a workspace)."""

    space: str
    literal: tuple[str, ...]
    """Segments up to the first one with a wildcard; no wildcard in them counts as one."""
    rest: tuple[str, ...] = ()
    """Segments from there on, as `herdr.glob` reads them; empty for one exact path."""
    shown: str = ""
    """The requested path that this name comes from, as people see it."""


def size_of(names: tuple[Name, ...]) -> int:
    """Return about how many bytes the names take in the log."""
    return sum(len(name.space) + len(name.shown) + sum(map(len, name.literal + name.rest)) for name in names)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks for, checked by field only: PROTOCOL section 3 has the meanings and the bounds."""

    paths: tuple[str, ...]
    owner: str | None
    """None: nobody else's, so that those who give no name exclude each other."""
    workspace: str = "default"
    mode: Mode = "write"
    ttl_s: float = 60.0
    wait_s: float = 0.0
    purpose: str | None = None
    session: str | None = None
    reports: bool = True
    """Whether the owner publishes what it changes. If not, what nobody reports is taken for its own."""


class Ask(msgspec.Struct, frozen=True):
    """A request for a lock. `lock` is the id that the lock gets if it is a new one."""

    lock: str
    owner: str
    names: tuple[Name, ...]
    paths: tuple[str, ...]
    ttl_s: float
    mode: Mode = "write"
    workspace: str = "default"
    purpose: str | None = None
    session: str | None = None
    waits: bool = False
    """Whether to stand in line while others are in the way."""
    reports: bool = True


class Lock(msgspec.Struct, frozen=True):
    """A lock that is held, or (`expired`) one whose lease ran out a moment ago and which still keeps others off."""

    lock: str
    token: int
    """The fencing token: the `seq` of its `lock.granted`."""
    owner: str
    mode: Mode
    workspace: str
    paths: tuple[str, ...]
    names: tuple[Name, ...]
    ttl_s: float
    since_us: int
    """Wall clock of the grant, microseconds since the epoch; for people, nothing is decided by it."""
    renewed: int
    """The `seq` of the newest `lock.renewed`, or of the grant."""
    purpose: str | None = None
    session: str | None = None
    expired: bool = False
    reports: bool = True


class Granted(NamedTuple):
    """A new lock; its `token` is the `seq` at which this is committed."""

    lock: Lock


class Renewed(NamedTuple):
    """The lease of a lock begins anew at `seq`."""

    lock: Lock
    """As it was before."""
    seq: int
    ttl_s: float


class Released(NamedTuple):
    """A lock was given back, by its holder or by force."""

    lock: Lock
    reason: str
    """`released`, `connection_closed`, or what was given when it was released by force."""
    by: str
    """Who did it; the holder, or whoever forced it."""


class Expired(NamedTuple):
    """A lease ran out. Void when the lock was renewed after `saw`."""

    lock: Lock
    saw: int


Outcome = Granted | Renewed | Released | Expired
"""What is committed as an event; `herdr.locks.events` has the form."""


class Blocker(NamedTuple):
    """What is in the way of a request: a lock, or somebody who asked earlier and waits."""

    lock: str
    path: str
    """The path as the other has it."""
    asked: str
    """The path that was asked for and collides with it."""
    owner: str
    purpose: str | None
    since_us: int
    kind: Literal["held", "expired", "waiting"]


class Held(NamedTuple):
    """Answer: the lock is held, new or extended."""

    lock: Lock


class Denied(NamedTuple):
    """Answer: others are in the way, and the request does not wait."""

    blockers: tuple[Blocker, ...]


class Queued(NamedTuple):
    """Answer: stands in line; another answer follows."""

    blockers: tuple[Blocker, ...]


class Cycle(NamedTuple):
    """Answer: waiting would never end. `owners` begins and ends with whoever asked."""

    owners: tuple[str, ...]


class Full(NamedTuple):
    """Answer: a bound was reached."""

    what: Literal["locks", "waiters", "waits"]


Answer = Held | Denied | Queued | Cycle | Full


class Wait(msgspec.Struct, frozen=True):
    """A declared wait: `owner` goes on only when `on` has delivered something."""

    wait: str
    owner: str
    on: str
    purpose: str | None = None
    renewed: int = 0
    """Rises whenever it is declared again: what would end it says which declaration it saw."""


class Ruling(NamedTuple):
    """What one decision of the table comes to."""

    outcomes: tuple[Outcome, ...] = ()
    """To be committed at consecutive `seq`s, the first at the one that the decision was given."""
    answers: tuple[tuple[str, Answer], ...] = ()
    """By the `lock` of the `Ask` (or the `wait` of the `Wait`) that each one answers."""
