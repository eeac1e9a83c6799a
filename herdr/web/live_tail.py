"""Pure: the tail of events that a dashboard shows. Bounded in number and in bytes, whatever comes.

In a storm it holds the users' own events and the newest of the others, and says how many it has left out.
"""

from collections import deque
from collections.abc import Sequence
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
    """An event that new streams begin with; of a large one, only what is shown of it is held."""

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
        self._urgent: list[Event] = []
        self._others: deque[Event] = deque(maxlen=EVENTS_A_BEAT)
        self._came = 0

    def add(self, events: Sequence[Event]) -> None:
        """Take note of what was committed."""
        self._came += len(events)
        self._recent.extend(map(self._kept, events[-RECENT:]))
        for event in events:
            if event.type == REDACTED:
                self._blank(_redaction(event.body).data.seq)
            if event.lane == Lane.P0 and len(self._urgent) < EVENTS_A_BEAT:
                self._urgent.append(event)
            else:
                self._others.append(event)

    def take(self) -> tuple[bytes, int]:
        """Return what is told of what came since it was last asked, as JSON, and how many events that were."""
        came = self._came
        room = EVENTS_A_BEAT - len(self._urgent)
        newest = list(self._others)[max(0, len(self._others) - room) :]
        chosen = sorted((*self._urgent, *newest), key=lambda event: event.seq)
        self.drop()
        listed = b",".join([shown(event, self._epoch) for event in chosen])
        return b'{"events":[%s],"skipped":%d}' % (listed, came - len(chosen)), came

    def drop(self) -> None:
        """Forget what came since it was last asked."""
        self._urgent.clear()
        self._others.clear()
        self._came = 0

    def recent(self) -> bytes:
        """Return the newest events as a JSON array, the oldest first."""
        return b"[%s]" % b",".join([kept.shown or shown(kept.event, self._epoch) for kept in self._recent])

    def _kept(self, event: Event) -> _Kept:
        if len(event.body) <= BODY_SHOWN_MAX:
            return _Kept(event)
        return _Kept(msgspec.structs.replace(event, body=b""), shown(event, self._epoch))

    def _blank(self, seq: int) -> None:
        """Show no more of an event than the log holds now."""
        self._urgent = [_redacted(event, seq) for event in self._urgent]
        self._others = deque([_redacted(event, seq) for event in self._others], EVENTS_A_BEAT)
        kept = [_Kept(_redacted(one.event, seq)) if one.event.seq == seq else one for one in self._recent]
        self._recent = deque(kept, RECENT)


def _redacted(event: Event, seq: int) -> Event:
    if event.seq != seq:
        return event
    return msgspec.structs.replace(event, body=redacted_body(event), subject=None)


def shown(event: Event, epoch: str) -> bytes:
    """Return an event as followers see it; a large one without its payload, and with `ref`, where the whole is."""
    whole = wire_json(event, epoch)
    if len(event.body) <= BODY_SHOWN_MAX:
        return whole
    parts = _parts(whole)
    size = len(bytes(parts.pop("data", b"")))
    parts.pop("ext", None)  # up to 64 KiB
    return _encode({**parts, "data_bytes": size, "ref": f"/v1/events/{event.seq}"})
