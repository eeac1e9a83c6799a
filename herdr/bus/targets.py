"""The named targets that have followed or acknowledged, and how far. Kept in the log's store."""

from collections import OrderedDict
from collections.abc import Mapping

import msgspec

from herdr.event import Positions

TARGETS_MAX = 10_000  # names are chosen by clients; beyond this the one that acknowledged longest ago goes


class _Stored(msgspec.Struct, array_like=True, gc=False):
    positions: Positions | None


_decode = msgspec.json.Decoder(_Stored).decode
_encode = msgspec.json.Encoder().encode


class Targets:
    """Name → acknowledged positions (None: known, but has acknowledged nothing yet)."""

    def __init__(self, stored: Mapping[str, bytes]) -> None:
        self._known: OrderedDict[str, Positions | None] = OrderedDict()
        self._new: OrderedDict[str, Positions | None] = OrderedDict()
        for name, raw in stored.items():
            positions = _decode(raw).positions
            (self._new if positions is None else self._known)[name] = positions

    def __contains__(self, name: str) -> bool:
        return name in self._known or name in self._new

    def __len__(self) -> int:
        return len(self._known) + len(self._new)

    def names(self) -> list[str]:
        """Return all known targets, whoever acknowledged last first."""
        return [*reversed(self._known), *reversed(self._new)]

    def positions(self, name: str) -> Positions | None:
        """Return how far the target has acknowledged, or None."""
        return self._known.get(name)

    def set(self, name: str, positions: Positions | None) -> str | None:
        """Record a target; returns the one that was forgotten for it, if any.

        One that has acknowledged nothing goes first: whoever makes up names loses those, and not the place of a
        tool that was away over night.
        """
        known = self._known if positions is not None else self._new
        if positions is not None:
            self._new.pop(name, None)
        known[name] = positions
        known.move_to_end(name)
        if len(self) <= TARGETS_MAX:
            return None
        others = self._new if len(self._new) > 1 or not self._known else self._known
        return others.popitem(last=False)[0]


def encode_target(positions: Positions | None) -> bytes:
    """Return the stored form."""
    return _encode(_Stored(positions))
