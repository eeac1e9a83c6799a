"""What travels: `Draft` (what one publishes), `Receipt` (what comes back), `Event` (what followers see)."""

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, Literal, TypedDict

import msgspec
from msgspec import UNSET, UnsetType

from herdr_sdk.errors import FieldError, InvalidEvent, VersionConflict

Priority = Literal["P0", "P1", "P2"]
IfStale = Literal["notify", "reject"]
Status = Literal["accepted", "duplicate", "deferred", "dropped", "stale"]

GAP = "herdr.gap"
EVENT_BYTES_MAX = 8 * 1024 * 1024  # the gateway's default for a whole request body


class DraftFields(TypedDict, total=False):
    """The optional fields of an event, as keyword arguments of `publish`. The gateway documents each."""

    id: str
    source: str
    subject: str
    workspace: str
    session: str
    task: str
    time: str | datetime
    priority: Priority
    tags: Sequence[str]
    based_on: int | None
    if_stale: IfStale
    trace: str
    ext: Mapping[str, str | int | bool]


class Draft(msgspec.Struct, omit_defaults=True):
    """One event to publish. `data` is anything that JSON (or msgspec) can express.

    Without `based_on` the hub fills in what it has seen of the subject; None switches that off.
    """

    type: str
    data: Any = None
    id: str | None = None
    source: str | None = None
    subject: str | None = None
    workspace: str | None = None
    session: str | None = None
    task: str | None = None
    time: str | datetime | None = None
    priority: Priority | None = None
    tags: Sequence[str] = ()
    based_on: int | UnsetType | None = UNSET
    if_stale: IfStale | None = None
    trace: str | None = None
    ext: Mapping[str, str | int | bool] | None = None


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The gateway's answer to one published event."""

    status: Status
    id: str
    seq: int | None = None
    epoch: str | None = None
    reason: str | None = None
    """Why it was dropped: `rate_limited` or `overloaded`."""
    conflict: VersionConflict | None = None

    @property
    def stored(self) -> bool:
        """True when the event is in the log: accepted now, or already there under this id."""
        return self.status in ("accepted", "duplicate")


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event as a follower sees it.

    A route may thin it out: `summary` has `data_bytes` and `ref` instead of `data`, `ref` has only `seq`,
    `type`, `subject` and `ref`.
    """

    type: str
    seq: int = 0
    epoch: str = ""
    id: str = ""
    source: str = ""
    workspace: str = "default"
    class_: str = msgspec.field(name="class", default="")
    priority: str = ""
    tags: tuple[str, ...] = ()
    accepted: str = ""
    data: Any = None
    subject: str | None = None
    session: str | None = None
    task: str | None = None
    time: str | None = None
    based_on: int | None = None
    if_stale: str | None = None
    trace: str | None = None
    ext: dict[str, str | int | bool] | None = None
    context: Any = None
    data_bytes: int | None = None
    ref: str | None = None
    detail: str | None = None
    """What is wrong with it: only in `herdr.corrupt`, which stands for an event that the disk has spoilt."""

    @property
    def synthetic(self) -> bool:
        """True when the event is not in the log but about it: `herdr.gap` tells that events were missed."""
        return self.seq == 0


_encoder = msgspec.json.Encoder()


def encode_draft(draft: Draft) -> bytes:
    """Return the event's JSON; raises InvalidEvent when it has none or it exceeds `EVENT_BYTES_MAX`."""
    try:
        body = _encoder.encode(draft)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"cannot be written as JSON: {error}"
        raise InvalidEvent("The event was not sent.", [FieldError("data", message)]) from None
    if len(body) > EVENT_BYTES_MAX:
        message = f"{len(body)} bytes exceed {EVENT_BYTES_MAX}; store large content elsewhere and refer to it"
        raise InvalidEvent("The event was not sent.", [FieldError("data", message)])
    return body


def as_draft(event: Draft | Mapping[str, Any]) -> Draft:
    """Return a new `Draft`: the hub fills in `id` and `source`, and the caller's object stays as it is."""
    if isinstance(event, Draft):
        return copy(event)
    try:
        return Draft(**event)
    except TypeError as error:
        raise InvalidEvent("The event was not sent.", [FieldError("", str(error))]) from None
