"""Events: what a publisher sends (`Draft`), what the log holds (`Event`), what the publisher gets back (`Receipt`).

Payloads (`data`) stay the publisher's own bytes from the socket to every follower: they are never decoded.
"""

import re
from enum import IntEnum
from hashlib import blake2b
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType


class Lane(IntEnum):
    """The three lanes before the writer. P0 passes everything; P2 is what may be dropped."""

    P0 = 0
    P1 = 1
    P2 = 2


LANE_NAMES = tuple(lane.name for lane in Lane)

Positions = tuple[int, int, int]
"""A follower's place: for each lane, the `seq` up to which it has seen that lane's events."""

Priority = Literal["P0", "P1", "P2"]
IfStale = Literal["notify", "reject"]

# `$(?!\n)`: Python's `$` also matches before a trailing line break, JSON Schema's does not; this means the
# same in both. Control characters would break SSE frames and logs.
_PRINTABLE = r"^[^\x00-\x1f\x7f]+$(?!\n)"
_TYPE = r"^[a-z0-9_-]+(\.[a-z0-9_-]+)*$(?!\n)"
# `[0-9]`, not `\d`: Python's takes the digits of every script.
_RFC3339 = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)"
    r"(\.[0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$(?!\n)"
)
# https://www.w3.org/TR/trace-context/#traceparent-header
_TRACEPARENT = r"^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$(?!\n)"

Name = Annotated[str, Meta(min_length=1, max_length=128, pattern=_PRINTABLE)]
EventType = Annotated[str, Meta(min_length=1, max_length=128, pattern=_TYPE)]
Subject = Annotated[str, Meta(min_length=1, max_length=4096, pattern=_PRINTABLE)]
Tag = Annotated[str, Meta(min_length=1, max_length=64, pattern=_PRINTABLE)]
Time = Annotated[str, Meta(pattern=_RFC3339)]
Seq = Annotated[int, Meta(ge=0, le=2**63 - 1)]

TAGS_MAX = 16  # short labels for people and filters, not a second payload


class Draft(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One event as a publisher sends it (PROTOCOL section 1)."""

    type: EventType
    source: Name | UnsetType = UNSET
    id: Name | UnsetType = UNSET
    subject: Subject | None = None
    workspace: Name = "default"
    session: Name | None = None
    task: Name | None = None
    time: Time | None = None
    priority: Priority | None = None
    tags: Annotated[tuple[Tag, ...], Meta(max_length=TAGS_MAX)] = ()
    based_on: Seq | None = None
    if_stale: IfStale | None = None
    trace: Annotated[str, Meta(pattern=_TRACEPARENT)] | None = None
    data: Raw = Raw(b"null")
    ext: dict[str, str | int | bool] | None = None


class WantedContext(msgspec.Struct, array_like=True, frozen=True, omit_defaults=True, gc=False):
    """What a rule wants beside the event; it is looked up when the event is delivered."""

    session_tokens: int = 0
    """Tokens that the window of the event's session may have; 0: no window."""
    graph: bool = False
    """The outline of the file that the event is about."""


class Delivery(msgspec.Struct, array_like=True, frozen=True, omit_defaults=True, gc=False):
    """One target that a committed event goes to, as the routing table said at the commit."""

    target: str
    timeout_ms: int
    format: Literal["full", "summary", "ref"] = "full"
    attrs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Conditions on the subscriber: (attribute, globs of which one must fit); judged while following."""
    context: WantedContext | None = None


class Extra(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """What the log keeps beside an event and never shows: its targets, and the ids that it replaced."""

    deliveries: tuple[Delivery, ...] = ()
    replaced_ids: tuple[str, ...] = ()


class Envelope(msgspec.Struct, omit_defaults=True, gc=False):
    """The stored part of what followers see: everything but `seq`, `epoch` and `accepted`."""

    id: str
    type: str
    source: str
    workspace: str
    class_: str = msgspec.field(name="class")
    priority: str
    tags: tuple[str, ...]
    data: Raw
    subject: str | None = None
    session: str | None = None
    task: str | None = None
    time: str | None = None
    based_on: int | None = None
    if_stale: str | None = None
    trace: str | None = None
    ext: dict[str, str | int | bool] | None = None


class Event(msgspec.Struct, gc=False):
    """One event from classification to the log and out of it again.

    `seq` and `accepted_us` are 0 until the writer gives them; after the commit nothing changes any more.
    """

    lane: int
    id: str
    type: str
    source: str
    workspace: str
    class_: str
    body: bytes
    """The encoded `Envelope`: one JSON object without line breaks."""
    subject: str | None = None
    session: str | None = None
    deliveries: tuple[Delivery, ...] = ()
    replaced_ids: tuple[str, ...] = ()
    seq: int = 0
    accepted_us: int = 0
    """Wall clock of the batch, microseconds since the epoch."""
    committed: float = 0.0
    """Monotonic seconds of the commit; 0 for an event read back from the store."""
    accepted: str = ""
    """`accepted_us` as text, where the writer made it for the whole batch."""
    corrupt: bool = False
    """The stored row failed its checksum: `body` is not to be trusted and is empty."""


class Conflict(msgspec.Struct, frozen=True, gc=False):
    """The version that a stale event collided with."""

    subject: str
    seq: int
    source: str
    time: str


class Receipt(msgspec.Struct, omit_defaults=True, gc=False):
    """The answer to one published event (PROTOCOL section 1)."""

    status: Literal["accepted", "duplicate", "deferred", "dropped", "stale"]
    id: str
    seq: int | None = None
    epoch: str | None = None
    reason: Literal["rate_limited", "overloaded"] | None = None
    conflict: Conflict | None = None


class _Header(msgspec.Struct, gc=False):
    """The fields of a stored envelope that filters look at; the payload is skipped, not decoded."""

    id: str
    type: str
    source: str
    workspace: str
    class_: str = msgspec.field(name="class")
    subject: str | None = None
    session: str | None = None


_decode_header = msgspec.json.Decoder(_Header).decode
_decode_extra = msgspec.json.Decoder(Extra).decode
_encode = msgspec.json.Encoder().encode
_LINE_BREAKS = re.compile(rb"[\r\n]")


def encode_extra(event: Event) -> bytes | None:
    """Return the event's stored `Extra`, or None when there is nothing to keep."""
    if not event.deliveries and not event.replaced_ids:
        return None
    return _encode(Extra(event.deliveries, event.replaced_ids))


def restore_event(seq: int, lane: int, accepted_us: int, extra: bytes | None, body: bytes) -> Event:
    """Build an event from its stored row; raises msgspec.DecodeError when the row does not hold one."""
    header = _decode_header(body)
    kept = _decode_extra(extra) if extra is not None else Extra()
    return Event(
        lane,
        header.id,
        header.type,
        header.source,
        header.workspace,
        header.class_,
        body,
        header.subject,
        header.session,
        kept.deliveries,
        kept.replaced_ids,
        seq,
        accepted_us,
    )


def corrupt_event(seq: int, lane: int, accepted_us: int) -> Event:
    """Stand in for a row whose checksum does not fit, so that readers can say so and go on."""
    return Event(
        lane, "", "herdr.corrupt", "herdr", "", "tool", b"", seq=seq, accepted_us=accepted_us, corrupt=True
    )


def single_line(data: Raw) -> Raw:
    """Turn line breaks between JSON tokens into spaces: inside an SSE frame they would end the field.

    Inside JSON strings raw line breaks cannot occur, so this never changes a value.
    """
    raw = bytes(data)
    return data if b"\n" not in raw and b"\r" not in raw else Raw(_LINE_BREAKS.sub(b" ", raw))


def id_key(source: str, event_id: str) -> str:
    """Return (`source`, `id`) as one text; NUL can occur in neither."""
    return f"{source}\0{event_id}"


def key_hash(key: str) -> int:
    """Return the signed 64-bit number under which an `id_key` is remembered; stable across processes."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big", signed=True)


def id_hash(source: str, event_id: str) -> int:
    """Return `key_hash` of (`source`, `id`)."""
    return key_hash(id_key(source, event_id))
