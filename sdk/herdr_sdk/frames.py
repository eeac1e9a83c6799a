"""The frames of `/v1/connect`: how they are written, and what the gateway's decode to."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from herdr_sdk.errors import (
    Conflict,
    Deadlock,
    FieldError,
    HerdrError,
    Holder,
    InvalidEvent,
    NotFound,
    NotReady,
    ServerError,
    Unauthorized,
)
from herdr_sdk.event import Event, Receipt

SUBPROTOCOL = "herdr.v1.json"
PASSING = ("log_unavailable", "overloaded")  # the gateway's trouble, not the request's: worth asking again

NOT_READY = (
    "indexing",
    "workspace_lost",
    "graph_unavailable",
    "context_unavailable",
)  # it comes, or comes back


class Receipts(msgspec.Struct, tag_field="op", tag="receipts", gc=False):
    """The receipts of one publish frame, in its order."""

    ref: int
    results: list[Receipt]


class Events(msgspec.Struct, tag_field="op", tag="events", gc=False):
    """Events of one follow (perhaps none), and the position after all of them."""

    ref: int
    events: list[Event]
    cursor: str


class Gap(msgspec.Struct, tag_field="op", tag="gap"):
    """Events were missed: the gateway no longer has them, or is another log than before."""

    ref: int
    gap: dict[str, Any]
    cursor: str


class Acked(msgspec.Struct, tag_field="op", tag="ack"):
    """The position that the gateway now remembers for the followed target."""

    ref: int
    cursor: str


class Busy(msgspec.Struct, tag_field="op", tag="busy"):
    """Too many followers at the moment; ask again later."""

    ref: int
    retry_ms: int = 2000


class Bye(msgspec.Struct, tag_field="op", tag="bye"):
    """The gateway is about to stop."""

    retry_ms: int = 2000


class Pong(msgspec.Struct, tag_field="op", tag="pong"):
    """The answer to a ping."""


class Leased(msgspec.Struct, tag_field="op", tag="lock"):
    """A lock that is held, new or extended."""

    ref: int
    lock: str
    token: int
    paths: tuple[str, ...]
    expires: str
    ttl_s: float
    owner: str = ""
    mode: str = "write"
    workspace: str = "default"
    since: str = ""
    purpose: str | None = None
    session: str | None = None


class Renewed(Leased, tag="renew"):
    """The same lock, its lease begun anew."""


class Unlocked(msgspec.Struct, tag_field="op", tag="unlock"):
    """A lock was given back, or is no longer waited for."""

    ref: int


class Declared(msgspec.Struct, tag_field="op", tag="wait"):
    """A declared wait, new or extended."""

    ref: int
    wait: str


class Unwaited(msgspec.Struct, tag_field="op", tag="unwait"):
    """A declared wait has ended."""

    ref: int


class Failure(msgspec.Struct, tag_field="op", tag="error"):
    """An operation failed; without `ref` it was one that has none."""

    code: str
    detail: str = ""
    ref: int | None = None
    errors: list[FieldError] = []
    conflicts: list[Holder] = []
    cycle: list[str] = []
    retry_after_s: float | None = None

    def as_error(self) -> HerdrError:
        """Return the exception that tells this to the caller."""
        if self.code in ("unauthorized", "missing_scope"):
            return Unauthorized(self.detail)
        if self.code == "locked":
            return Conflict(self.conflicts, self.retry_after_s)
        if self.code == "deadlock":
            return Deadlock(self.cycle)
        if self.code in NOT_READY:
            return NotReady(self.code, self.detail, self.errors, self.retry_after_s)
        kind = NotFound if self.code.startswith("unknown_") else ServerError
        return kind(self.code, self.detail, self.errors)

    def as_event_error(self, errors: list[FieldError]) -> HerdrError:
        """Return what to tell the publisher of one event that `errors` are about."""
        if not errors and not self.code.startswith("invalid"):
            return self.as_error()
        return InvalidEvent(self.detail, errors)


Answer = Receipts | Events | Gap | Acked | Busy | Failure | Leased | Renewed | Unlocked | Declared | Unwaited
"""What comes back for a `ref`."""
Frame = Answer | Bye | Pong


class _Head(msgspec.Struct):
    op: str = ""
    ref: int | None = None


_KNOWN = {"receipts", "events", "gap", "ack", "busy", "bye", "pong", "error"} | {
    *("lock", "renew", "unlock", "wait", "unwait"),
}
_decode = msgspec.json.Decoder(Frame).decode
_decode_head = msgspec.json.Decoder(_Head).decode
_encode = msgspec.json.Encoder().encode


def decode_frame(text: str | bytes) -> Frame | None:
    """Return the frame, or None for an op that this version does not know.

    A frame that is broken but says whose it is becomes a `Failure` for that ref, so that nobody waits
    for ever; raises ValueError for anything else.
    """
    try:
        return _decode(text)
    except msgspec.DecodeError as error:
        head = _decode_head(text)
        if head.op not in _KNOWN:
            return None
        detail = f"The gateway sent a frame that this SDK cannot read: {error}. Are both of one version?"
        return Failure("bad_frame", detail, head.ref)


def publish_frame(ref: int, bodies: Iterable[bytes]) -> bytes:
    """Write a publish of events that are encoded already."""
    return b'{"op":"publish","ref":%d,"events":[%b]}' % (ref, b",".join(bodies))


def follow_frame(ref: int, query: Mapping[str, object]) -> bytes:
    """Write a follow with the query's names as fields."""
    return _encode({"op": "follow", "ref": ref, **query})


def ack_frame(ref: int, cursor: str) -> bytes:
    """Write the acknowledgement of everything up to the cursor."""
    return _encode({"op": "ack", "ref": ref, "cursor": cursor})


def unfollow_frame(ref: int) -> bytes:
    """Write the end of a follow."""
    return _encode({"op": "unfollow", "ref": ref})


def attrs_frame(attrs: Mapping[str, str]) -> bytes:
    """Write the attributes of this client."""
    return _encode({"op": "attrs", "attrs": attrs})


def lock_frame(ref: int, fields: Mapping[str, object]) -> bytes:
    """Write a request for a lock."""
    return _encode({"op": "lock", "ref": ref, **fields})


def renew_frame(ref: int, lock: str, token: int, ttl_s: float) -> bytes:
    """Write the renewal of a lock."""
    return _encode({"op": "renew", "ref": ref, "lock": lock, "token": token, "ttl_s": ttl_s})


def unlock_frame(ref: int, lock: str, token: int) -> bytes:
    """Write that a lock is given back."""
    return _encode({"op": "unlock", "ref": ref, "lock": lock, "token": token})


def cancel_frame(ref: int, asked: int) -> bytes:
    """Write that the lock asked for under the ref `asked` is not wanted any more."""
    return _encode({"op": "unlock", "ref": ref, "cancel": asked})


def wait_frame(ref: int, fields: Mapping[str, object]) -> bytes:
    """Write the declaration of a wait for somebody."""
    return _encode({"op": "wait", "ref": ref, **fields})


def unwait_frame(ref: int, wait: str) -> bytes:
    """Write the end of a declared wait."""
    return _encode({"op": "unwait", "ref": ref, "wait": wait})
