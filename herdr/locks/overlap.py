"""Whether two names can mean the same path, exactly, and whether one lies within the other. Pure.

A name stands for the set of paths that it matches, and two names collide if a path is in both sets. Both are
walked side by side as automata: first segment by segment (`**` stands still or lets a segment pass), and in
two segments character by character. That is the textbook product of two automata, with the states of one side
kept as the bits of an integer, so the cost is the product of the lengths at worst and mostly far below.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from herdr.locks.lock import FOLDER, Name


class Wild(NamedTuple):
    """A segment with wildcards, cut at its stars. In each part `?` is any one character."""

    head: str
    """Up to the first star; all of it if it has no star."""
    middle: tuple[str, ...]
    tail: str
    """From the last star on."""
    starred: bool


ANY = Wild("", (), "", True)
"""`*`"""
Segment = str | Wild | None
"""Literal text, a pattern of one segment, or None for any number of segments (`**`)."""


def overlaps(a: Name, b: Name) -> bool:
    """Tell whether some path is matched by both names, as `herdr.glob` matches.

    Ordinary names take 0.3 to 6 us; the worst that a request may hold (256 segments, 32 wildcards) 5 ms.
    """
    if a.space != b.space:
        return False
    shared = min(len(a.literal), len(b.literal))
    if a.literal[:shared] != b.literal[:shared]:
        return False
    short, long = sorted((read_segments(a), read_segments(b)), key=len)
    return bool(short) and Track(short).meets(long)  # nothing at all is no path


def covers(held: Name, asked: Name) -> bool:
    """Tell whether `held` matches every path that `asked` matches.

    True is certain. False is certain too if `asked` is one path or `held` is a folder; a glob that is held is
    taken to cover no other glob.
    """
    if held.space != asked.space:
        return False
    if held.rest == FOLDER:
        return asked.literal[: len(held.literal)] == held.literal
    if held.literal == asked.literal and held.rest == asked.rest:
        return True
    return not asked.rest and overlaps(held, asked)


def read_segments(name: Name) -> tuple[Segment, ...]:
    """Return the name as segments to walk along; of several `**` in a row one is left."""
    read: list[Segment] = [*name.literal]
    for text in name.rest:
        segment = _read_segment(text)
        if segment is not None or not read or read[-1] is not None:
            read.append(segment)
    return tuple(read)


def _read_segment(text: str) -> Segment:
    if text == "**":
        return None
    if "*" not in text:
        return Wild(text, (), "", False) if "?" in text else text
    head, *middle, tail = text.split("*")
    return Wild(head, tuple(filter(None, middle)), tail, True)


class Track:
    """The segments of a name, walked along segment by segment with those of other names.

    Where one can be is a set of places, each the number of segments that were passed, kept as bits.
    """

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self.segments = segments
        self.end = 1 << len(segments)
        self.stands = _places(segments, lambda segment: segment is None)
        """Where any segment can pass without moving on."""
        self.moves = _places(segments, lambda segment: segment == ANY)
        """Where any segment can pass, moving on."""
        self.picks = self.end - 1 & ~(self.stands | self.moves)
        """Where only certain segments can pass."""
        self.start = self._skip(1)
        self._tested: dict[str | Wild, tuple[int, int]] = {}
        """For a segment the `picks` that were tested, and those of them that it meets."""

    def meets(self, other: tuple[Segment, ...]) -> bool:
        """Tell whether both match some path."""
        places = self.start
        for segment in other:
            places = self.step(segment, places)
            if not places:
                return False
        return bool(places & self.end)

    def step(self, segment: Segment, places: int) -> int:
        """Return where one can be after a segment of the other name."""
        if segment is None:
            return -(places & -places) & (2 * self.end - 1)  # the lowest and everything after it
        onward = places & self.moves
        picks = places & self.picks
        if picks:
            onward |= picks & self._fits(segment, picks)
        return self._skip(places & self.stands | onward << 1)

    def _fits(self, segment: str | Wild, picks: int) -> int:
        """Return which of these picks meet the segment, and maybe more that do; each is tested once."""
        tested, fits = self._tested.get(segment, (0, 0))
        untested = picks & ~tested
        if untested:
            fits |= sum(1 << place for place in bits(untested) if _meet(segment, self.segments[place]))
            self._tested[segment] = (tested | untested, fits)
        return fits

    def passed(self, places: int) -> int:
        """Return where one can be after a segment that meets none of the `picks`."""
        return self._skip(places & self.stands | (places & self.moves) << 1)

    def _skip(self, places: int) -> int:
        return places | (places & self.stands) << 1


def _places(segments: tuple[Segment, ...], which: Callable[[Segment], bool]) -> int:
    return sum(1 << place for place, segment in enumerate(segments) if which(segment))


def bits(number: int) -> Iterator[int]:
    """Yield the places of the bits that are set, from the lowest."""
    while number:
        yield (number & -number).bit_length() - 1
        number &= number - 1


def _meet(a: Segment, b: Segment) -> bool:
    """Tell whether some text is matched by both."""
    if a is None or b is None:
        return True
    if isinstance(a, str):
        return a == b if isinstance(b, str) else _matches(b, a, jokers=False)
    if isinstance(b, str):
        return _matches(a, b, jokers=False)
    if not b.starred:
        return _matches(a, b.head, jokers=True)
    if not a.starred:
        return _matches(b, a.head, jokers=True)
    # Where both have a star, what stands between stars can go one after the other: only the ends can disagree
    return _agree(a.head, b.head, True) and _agree(a.tail[::-1], b.tail[::-1], True)


def _matches(wild: Wild, text: str, *, jokers: bool) -> bool:
    """Tell whether the pattern matches the text, in which `?` is any character if there are jokers."""
    head, middle, tail, starred = wild
    spare = len(text) - len(head) - len(tail)
    if spare < 0 or (spare and not starred):
        return False
    if not _agree(head, text, jokers) or not _agree(tail, text[len(text) - len(tail) :], jokers):
        return False
    return not middle or _in_turn(middle, text[len(head) : len(head) + spare], jokers)


def _agree(pattern: str, text: str, jokers: bool) -> bool:
    """Tell whether they agree as far as both go."""
    if "?" not in pattern and not jokers:
        return text.startswith(pattern) or pattern.startswith(text)
    return all(p == t or p == "?" or (jokers and t == "?") for p, t in zip(pattern, text, strict=False))


def _in_turn(parts: tuple[str, ...], text: str, jokers: bool) -> bool:
    """Tell whether the parts stand in the text one after the other; the leftmost place of each is the best."""
    places: dict[str, int] = {}
    for place, char in enumerate(text):
        places[char] = places.get(char, 0) | 1 << place
    joker = places.get("?", 0) if jokers else 0
    start = 0
    for part in parts:
        fits = -1 << start & ((1 << max(0, len(text) - len(part) + 1)) - 1)
        for offset, char in enumerate(part):
            if char != "?":
                fits &= (places.get(char, 0) | joker) >> offset
        if not fits:
            return False
        start = (fits & -fits).bit_length() - 1 + len(part)
    return True
