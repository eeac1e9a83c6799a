"""The declared waits: who goes on only when somebody else has delivered. Pure; changes go through a journal."""

from collections.abc import Iterator, Set
from functools import partial

from herdr.journal import Journal
from herdr.locks.lock import Wait
from herdr.locks.relation import Relation


class Waits:
    """Waits by id; of one owner on one other there is at most one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._waits: dict[str, Wait] = {}
        self._between: dict[tuple[str, str], str] = {}
        self._edges = Relation(journal)

    def __len__(self) -> int:
        return len(self._waits)

    def __iter__(self) -> Iterator[Wait]:
        return iter(self._waits.values())

    def get(self, wait: str) -> Wait | None:
        """Return the wait, or None."""
        return self._waits.get(wait)

    def between(self, owner: str, on: str) -> Wait | None:
        """Return the wait of one owner on another, or None."""
        wait = self._between.get((owner, on))
        return None if wait is None else self._waits[wait]

    def whom(self, owner: str) -> Set[str]:
        """Return for whom an owner waits."""
        return self._edges.rights(owner)

    def who(self, on: str) -> Set[str]:
        """Return who waits for an owner."""
        return self._edges.lefts(on)

    def add(self, wait: Wait) -> None:
        """Add a wait."""
        self._put(wait)
        self._journal.note(partial(self._drop, wait))
        self._edges.add(wait.owner, {wait.on})

    def remove(self, wait: Wait) -> None:
        """Remove a wait that is in here."""
        self._drop(wait)
        self._journal.note(partial(self._put, wait))
        self._edges.remove(wait.owner, {wait.on})

    def _put(self, wait: Wait) -> None:
        self._waits[wait.wait] = wait
        self._between[wait.owner, wait.on] = wait.wait

    def _drop(self, wait: Wait) -> None:
        del self._waits[wait.wait]
        del self._between[wait.owner, wait.on]
