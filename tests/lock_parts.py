"""Parts of tests on write locks: names and asks, as a request would lead to them, and a table to ask."""

from itertools import count

from herdr.glob import is_glob
from herdr.locks.lock import (
    FOLDER,
    Answer,
    Ask,
    Blocker,
    Denied,
    Held,
    Lock,
    Mode,
    Name,
    Queued,
    Ruling,
    Wait,
)
from herdr.locks.table import Table

_ids = count(1)


def name(path: str, space: str = "default") -> Name:
    """The name of a path; a folder if it ends in a slash."""
    segments = path.rstrip("/").split("/")
    first = next((i for i, segment in enumerate(segments) if is_glob(segment)), len(segments))
    rest = FOLDER if path.endswith("/") else tuple(segments[first:])
    return Name(space, tuple(segments[:first]), rest, path)


def ask(
    owner: str,
    *paths: str,
    mode: Mode = "write",
    waits: bool = False,
    lock: str | None = None,
    ttl_s: float = 60.0,
) -> Ask:
    """An ask with an id that nobody had before, unless it is given."""
    return Ask(
        lock=f"L{next(_ids)}" if lock is None else lock,
        owner=owner,
        names=tuple(map(name, paths)),
        paths=paths,
        ttl_s=ttl_s,
        mode=mode,
        purpose=f"{owner}'s purpose",
        waits=waits,
    )


class Locks:
    """A table whose every decision is committed at the next free `seq`."""

    def __init__(self, **bounds: int) -> None:
        self.table = Table(**bounds)
        self.seq = 1
        self.last = Ruling()

    def rule(self, ruling: Ruling) -> dict[str, Answer]:
        self.last = ruling
        self.seq += len(ruling.outcomes)
        self.table.keep()
        return dict(ruling.answers)

    def ask(self, asked: Ask) -> Answer:
        return self.rule(self.table.ask(asked, self.seq, self.seq * 10))[asked.lock]

    def take(self, owner: str, *paths: str, mode: Mode = "write") -> Lock:
        answer = self.ask(ask(owner, *paths, mode=mode))
        assert isinstance(answer, Held), answer
        return answer.lock

    def queue(self, owner: str, *paths: str, mode: Mode = "write") -> str:
        asked = ask(owner, *paths, mode=mode, waits=True)
        answer = self.ask(asked)
        assert isinstance(answer, Queued), answer
        return asked.lock

    def deny(self, owner: str, *paths: str, mode: Mode = "write") -> tuple[Blocker, ...]:
        answer = self.ask(ask(owner, *paths, mode=mode))
        assert isinstance(answer, Denied), answer
        return answer.blockers

    def release(self, lock: Lock) -> list[str]:
        """Release a lock; return who got one by that, in order."""
        answers = self.rule(self.table.release(lock.lock, lock.token, self.seq, 0))
        assert all(isinstance(answer, Held) for answer in answers.values())
        return [answer.lock.owner for answer in answers.values() if isinstance(answer, Held)]

    def expire(self, lock: Lock) -> dict[str, Answer]:
        return self.rule(self.table.expire(lock.lock, lock.renewed, self.seq, 0))

    def declare(self, owner: str, on: str) -> Answer | None:
        return self.table.declare(Wait(f"{owner} on {on}", owner, on))

    def promote(self) -> list[str]:
        answers = self.rule(self.table.promote(self.seq, 0))
        return [answer.lock.owner for answer in answers.values() if isinstance(answer, Held)]

    def owners(self) -> list[str]:
        return [lock.owner for lock in self.table.held()]


def owners_in(blockers: tuple[Blocker, ...]) -> list[str]:
    return [blocker.owner for blocker in blockers]
