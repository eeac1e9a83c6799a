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
        for name, raw in stored.items():
            self._known[name] = _decode(raw).positions

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def __len__(self) -> int:
        return len(self._known)

    def positions(self, name: str) -> Positions | None:
        """Return how far the target has acknowledged, or None."""
        return self._known.get(name)

    def set(self, name: str, positions: Positions | None) -> str | None:
        """Record a target; returns the one that was forgotten for it, if any."""
        self._known[name] = positions
        self._known.move_to_end(name)
        if len(self._known) <= TARGETS_MAX:
            return None
        return self._known.popitem(last=False)[0]


def encode_target(positions: Positions | None) -> bytes:
    """Return the stored form."""
    return _encode(_Stored(positions))
