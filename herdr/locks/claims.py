"""What is claimed by whom: the held locks, or those who stand in line. Pure; changes go through a journal."""

from collections.abc import Iterator, Set
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from herdr.journal import Journal
from herdr.locks.index import Index
from herdr.locks.lock import Mode, Name


class Claim(Protocol):
    """Anything that claims names for an owner."""

    @property
    def owner(self) -> str:
        """Whose it is."""
        ...

    @property
    def names(self) -> tuple[Name, ...]:
        """What it covers."""
        ...

    @property
    def mode(self) -> Mode:
        """Exclusive or shared."""
        ...


T = TypeVar("T", bound=Claim)


class Overlap(NamedTuple, Generic[T]):
    """Two names that can mean the same path; a claim can have several such."""

    key: str
    claim: T
    held: Name
    asked: Name


def collide(one: Claim, other: Claim) -> bool:
    """Tell whether two claims on the same path exclude each other. One owner's never do."""
    return one.owner != other.owner and "write" in (one.mode, other.mode)


def segments_of(claim: Claim) -> int:
    """Return how many segments a claim's names have together."""
    return sum(len(name.literal) + len(name.rest) for name in claim.names)


class Claims(Generic[T]):
    """Claims by key, by owner, and by what they overlap with."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._claims: dict[str, T] = {}
        self._by_owner: dict[str, set[str]] = {}
        self._index = Index()
        self.segments = 0
        """Of all names together: what their index takes memory for."""

    def __len__(self) -> int:
        return len(self._claims)

    def __contains__(self, key: str) -> bool:
        return key in self._claims

    def __iter__(self) -> Iterator[T]:
        return iter(self._claims.values())

    def __getitem__(self, key: str) -> T:
        return self._claims[key]

    def get(self, key: str) -> T | None:
        """Return the claim, or None."""
        return self._claims.get(key)

    def keys(self) -> Set[str]:
        """Return the keys of all claims."""
        return self._claims.keys()

    def of(self, owner: str) -> Set[str]:
        """Return the keys of an owner's claims."""
        return self._by_owner.get(owner, frozenset())

    def overlapping(self, names: tuple[Name, ...]) -> Iterator[Overlap[T]]:
        """Yield every overlap with the names, lazily; nothing may be changed meanwhile."""
        claims = self._claims
        for key, held, asked in self._index.find(names):
            yield Overlap(key, claims[key], held, asked)

    def against(self, claim: Claim) -> Iterator[Overlap[T]]:
        """Yield every overlap with something of others that excludes the claim."""
        return (overlap for overlap in self.overlapping(claim.names) if collide(overlap.claim, claim))

    def put(self, key: str, claim: T) -> None:
        """Add a claim, or replace the one that has this key."""
        old = self._claims.get(key)
        self._put(key, claim)
        self._journal.note(partial(self._drop, key) if old is None else partial(self._put, key, old))

    def drop(self, key: str) -> T:
        """Remove a claim and return it. Raises KeyError when there is none."""
        old = self._claims[key]
        self._drop(key)
        self._journal.note(partial(self._put, key, old))
        return old

    def _put(self, key: str, claim: T) -> None:
        old = self._claims.get(key)
        if old is not None and (old.names, old.owner) == (claim.names, claim.owner):
            self._claims[key] = claim  # the usual renewal: nothing to look up differently
            return
        if old is not None:
            self._drop(key)
        self._claims[key] = claim
        self._by_owner.setdefault(claim.owner, set()).add(key)
        self._index.add(key, claim.names)
        self.segments += segments_of(claim)

    def _drop(self, key: str) -> None:
        claim = self._claims.pop(key)
        owner = claim.owner
        self.segments -= segments_of(claim)
        keys = self._by_owner[owner]
        keys.remove(key)
        if not keys:
            del self._by_owner[owner]
        self._index.remove(key)
