"""Pure: the tail of events that a dashboard shows. Bounded in number and in bytes, whatever comes.

In a storm it holds the users' own events and the newest of the others, and says how many it has left out.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from herdr.bus.envelope import redacted_body, wire_json
from herdr.event import Event, Lane

EVENTS_A_BEAT = 25  # 100 a second: more than anybody reads, and a browser draws them without effort
RECENT = 100  # events that a new stream begins with
BODY_SHOWN_MAX = 8192  # bytes of an event; of a larger one, the payload is fetched when somebody opens it
REDACTED = "herdr.redacted"

_encode = msgspec.json.Encoder().encode
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Kept(NamedTuple):
    """An event that may be shown; of a large one, only what is shown of it is held."""

    event: Event
    shown: bytes | None = None


class _Named(msgspec.Struct):
    seq: int


class _Redaction(msgspec.Struct):
    """What `herdr.redacted` says."""

    data: _Named


_redaction = msgspec.json.Decoder(_Redaction).decode


class LiveTail:
    """What came since the last beat, and the newest events of all."""

    def __init__(self, epoch: str) -> None:
        self._epoch = epoch
        self._recent: deque[_Kept] = deque(maxlen=RECENT)
        self._urgent: list[_Kept] = []
        self._others: deque[_Kept] = deque(maxlen=EVENTS_A_BEAT)
        self._came = 0

    def add(self, events: Sequence[Event]) -> None:
        """Take note of what was committed."""
        self._came += len(events)
        kept = [self._kept(event) for event in events]
        self._recent.extend(kept)
        for one in kept:
            if one.event.type == REDACTED:
                self._blank(_redaction(one.event.body).data.seq)
            if one.event.lane == Lane.P0 and len(self._urgent) < EVENTS_A_BEAT:
                self._urgent.append(one)
            else:
                self._others.append(one)

    def take(self) -> tuple[bytes, int]:
        """Return what is told of what came since it was last asked, as JSON, and how many events that were."""
        came = self._came
        room = EVENTS_A_BEAT - len(self._urgent)
        newest = list(self._others)[max(0, len(self._others) - room) :]
        chosen = sorted((*self._urgent, *newest), key=lambda kept: kept.event.seq)
        self.drop()
        return b'{"events":%s,"skipped":%d}' % (self._listed(chosen), came - len(chosen)), came

    def drop(self) -> None:
        """Forget what came since it was last asked."""
        self._urgent.clear()
        self._others.clear()
        self._came = 0

    def recent(self) -> bytes:
        """Return the newest events as a JSON array, the oldest first."""
        return self._listed(self._recent)

    def _listed(self, kept: Iterable[_Kept]) -> bytes:
        return b"[%s]" % b",".join([one.shown or shown(one.event, self._epoch) for one in kept])

    def _kept(self, event: Event) -> _Kept:
        if len(event.body) <= BODY_SHOWN_MAX:
            return _Kept(event)
        return _Kept(msgspec.structs.replace(event, body=b""), shown(event, self._epoch))

    def _blank(self, seq: int) -> None:
        """Show no more of an event than the log holds now."""
        self._urgent = [_redacted(one, seq) for one in self._urgent]
        self._others = deque([_redacted(one, seq) for one in self._others], EVENTS_A_BEAT)
        self._recent = deque([_redacted(one, seq) for one in self._recent], RECENT)


def _redacted(kept: _Kept, seq: int) -> _Kept:
    event = kept.event
    if event.seq != seq:
        return kept
    return _Kept(msgspec.structs.replace(event, body=redacted_body(event), subject=None))


def shown(event: Event, epoch: str) -> bytes:
    """Return an event as followers see it; a large one without its payload, and with `ref`, where the whole is."""
    whole = wire_json(event, epoch)
    if len(event.body) <= BODY_SHOWN_MAX:
        return whole
    parts = _parts(whole)
    size = len(bytes(parts.pop("data", b"")))
    parts.pop("ext", None)  # up to 64 KiB
    return _encode({**parts, "data_bytes": size, "ref": f"/v1/events/{event.seq}"})
