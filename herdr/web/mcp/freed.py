"""Tells those who were refused a lock when it is free: they do not stand in line, and nothing else would tell them.

Kept in memory only. After a restart an agent that was refused before has to ask again.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from herdr.event import Event

ENDINGS = ("lock.released", "lock.expired")
LOCKS_MAX = 1000  # locks that somebody was refused; beyond that the oldest refusal is forgotten
NAMES_MAX = 64  # of those who were refused one lock
NEWS_MAX = 20  # that wait for one name


class _Lock(msgspec.Struct):
    lock: str
    owner: str


class _Body(msgspec.Struct):
    data: _Lock


_decode = msgspec.json.Decoder(_Body).decode


class Freed:
    """Who was refused which lock, and which of them have ended since."""

    def __init__(self) -> None:
        self._refused: OrderedDict[str, dict[str, str]] = OrderedDict()
        """By lock: who wants it, and the path."""
        self._news: OrderedDict[str, deque[str]] = OrderedDict()

    def refused(self, name: str, conflicts: Iterable[Mapping[str, Any]]) -> None:
        """Note that a name was refused what these locks hold."""
        for conflict in conflicts:
            wanting = self._refused.setdefault(conflict["lock"], {})
            self._refused.move_to_end(conflict["lock"])
            if len(wanting) < NAMES_MAX:
                wanting[name] = conflict["asked"]
        while len(self._refused) > LOCKS_MAX:
            self._refused.popitem(last=False)

    def committed(self, events: Sequence[Event]) -> None:
        """Look for the ends of these locks in a commit."""
        if not self._refused:
            return
        for event in events:
            if event.type in ENDINGS:
                ended = _decode(event.body).data
                for name, path in self._refused.pop(ended.lock, {}).items():
                    how = "has released it" if event.type == ENDINGS[0] else "held it for too long"
                    self._tell(name, f"{path}, which you were refused, is free again: {ended.owner} {how}.")

    def _tell(self, name: str, news: str) -> None:
        self._news.setdefault(name, deque(maxlen=NEWS_MAX)).append(news)
        if len(self._news) > LOCKS_MAX:
            self._news.popitem(last=False)

    def take(self, name: str) -> list[str]:
        """Return what has ended in words, once."""
        return list(self._news.pop(name, ()))
