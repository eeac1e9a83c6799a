"""Which keys belong to which, looked up from both sides. Pure; changes go through a journal."""

from collections.abc import Iterable, Set
from functools import partial

from herdr.journal import Journal


class Relation:
    """Pairs of a left and a right key."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._rights: dict[str, set[str]] = {}
        self._lefts: dict[str, set[str]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def rights(self, left: str) -> Set[str]:
        """Return what belongs to the left key; a view that later changes go into."""
        return self._rights.get(left, frozenset())

    def lefts(self, right: str) -> Set[str]:
        """Return what the right key belongs to; a view that later changes go into."""
        return self._lefts.get(right, frozenset())

    def all_lefts(self) -> Set[str]:
        """Return the left keys that something belongs to."""
        return self._rights.keys()

    def add(self, left: str, rights: Iterable[str]) -> None:
        """Add pairs; those that are there already stay."""
        new = set(rights) - self.rights(left)
        if new:
            self._add(left, new)
            self._journal.note(partial(self._remove, left, new))

    def remove(self, left: str, rights: Iterable[str]) -> None:
        """Remove pairs, as far as they are there."""
        gone = self.rights(left) & set(rights)
        if gone:
            self._remove(left, gone)
            self._journal.note(partial(self._add, left, gone))

    def _add(self, left: str, new: Set[str]) -> None:
        self._rights.setdefault(left, set()).update(new)
        for right in new:
            self._lefts.setdefault(right, set()).add(left)
        self._size += len(new)

    def _remove(self, left: str, gone: Set[str]) -> None:
        _subtract(self._rights, left, gone)
        for right in gone:
            _subtract(self._lefts, right, {left})
        self._size -= len(gone)


def _subtract(sets: dict[str, set[str]], key: str, gone: Set[str]) -> None:
    rest = sets[key]
    rest -= gone
    if not rest:
        del sets[key]
