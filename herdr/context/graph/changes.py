"""Pure: what became of one file's definitions between two of its outlines."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from herdr.context.graph.outline import Outline, qualified_name

HELD = frozenset({"variable", "constant", "heading"})
"""Kinds whose text is their content: when that changes nobody who uses them has to change anything."""

_Key = tuple[str, str]


class Signature(NamedTuple):
    """One definition that others have to call in another way now."""

    symbol: str
    """Qualified name: `Cart.total`."""
    old: str
    new: str


class Changed(NamedTuple):
    """Counts of definitions. One that only moved within its file has not changed."""

    added: int
    removed: int
    changed: int
    """With another signature, or of a variable another value."""
    signatures: tuple[Signature, ...]
    """By name; without those of variables."""


def difference(old: Outline | None, new: Outline | None) -> Changed:
    """Compare two outlines of one file; None stands for a file that is not there or cannot be read."""
    before, after = _signatures(old), _signatures(new)
    added = removed = 0
    changed: list[tuple[_Key, str, str]] = []
    for key in sorted(before.keys() | after.keys()):
        for was, now in _unlike(before.get(key, ()), after.get(key, ())):
            if was is None:
                added += 1
            elif now is None:
                removed += 1
            else:
                changed.append((key, was, now))
    told = (Signature(name, was, now) for (name, kind), was, now in changed if kind not in HELD)
    return Changed(added, removed, len(changed), tuple(told))


def _signatures(outline: Outline | None) -> dict[_Key, list[str]]:
    found: dict[_Key, list[str]] = defaultdict(list)
    for place, symbol in enumerate(outline.symbols if outline is not None else ()):
        assert outline is not None
        found[qualified_name(outline, place), symbol.kind].append(symbol.signature)
    return found


def _unlike(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Pair what one name had and has, equal signatures left out; overloads that differ go by their order."""
    yield from zip_longest(_without(before, after), _without(after, before))


def _without(some: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    same = Counter(others)
    for signature in some:
        if same[signature]:
            same[signature] -= 1
        else:
            yield signature
