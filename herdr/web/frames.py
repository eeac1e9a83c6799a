"""Pure: the frames of `/v1/connect`, in JSON or MessagePack, and what may be wrong with them."""

import contextlib
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from herdr.errors import FieldError, HerdrError, InvalidInput
from herdr.event import Draft
from herdr.web.bodies import wrong
from herdr.web.drafts import EVENTS_MAX, check_all, check_count, check_text, explain, find_errors, split_array
from herdr.web.lock_bodies import LockBody, Token, Tokens, Ttl, WaitBody, explained
from herdr.web.query import QUERY_MAX

JSON_PROTOCOL = "herdr.v1.json"
MSGPACK_PROTOCOL = "herdr.v1.msgpack"

Ref = int | str


class Publish(msgspec.Struct, tag_field="op", tag="publish", forbid_unknown_fields=True, gc=False):
    """Publish events; answered by `receipts` with the same ref."""

    ref: Ref
    events: list[Draft]
    tokens: Tokens = ()
    """Of locks whose leases this renews; when one is not held any more, nothing is published."""


class Ack(msgspec.Struct, tag_field="op", tag="ack", forbid_unknown_fields=True):
    """Acknowledge, as the target of the follow with this ref, everything up to a cursor."""

    ref: Ref
    cursor: str


class Unfollow(msgspec.Struct, tag_field="op", tag="unfollow", forbid_unknown_fields=True):
    """End the follow with this ref."""

    ref: Ref


class Attrs(msgspec.Struct, tag_field="op", tag="attrs", forbid_unknown_fields=True):
    """Set this subscriber's attributes, for all its follows."""

    attrs: dict[str, str]


class Ping(msgspec.Struct, tag_field="op", tag="ping"):
    """Ask whether the gateway is there; answered by `pong`."""

    ref: Ref | None = None


class Lock(LockBody, kw_only=True, tag_field="op", tag="lock", forbid_unknown_fields=True):
    """Ask for a lock; answered by `lock` once it is granted."""

    ref: Ref
    bound: bool = False
    """Whether it is released when this connection ends."""


class Unlock(msgspec.Struct, tag_field="op", tag="unlock", forbid_unknown_fields=True):
    """Give a lock back; or, with `cancel`, give up what was asked for under that ref."""

    ref: Ref
    lock: str | None = None
    token: Token | None = None
    cancel: Ref | None = None


class Renew(msgspec.Struct, tag_field="op", tag="renew", forbid_unknown_fields=True):
    """Begin a lease anew."""

    ref: Ref
    lock: str
    token: Token
    ttl_s: Ttl | None = None


class Wait(WaitBody, kw_only=True, tag_field="op", tag="wait", forbid_unknown_fields=True):
    """Declare that an owner waits for another's result."""

    ref: Ref
    bound: bool = False


class Unwait(msgspec.Struct, tag_field="op", tag="unwait", forbid_unknown_fields=True):
    """End a declared wait."""

    ref: Ref
    wait: str


class Follow(msgspec.Struct):
    """Follow; the fields are those of the query of `GET /v1/events`."""

    ref: Ref
    fields: dict[str, Any]


class _Counted(msgspec.Struct):
    """As much of a frame as it takes to count its events."""

    ref: Ref | None = None
    events: list[Raw] = []


class _Bounded(msgspec.Struct):
    """The same for MessagePack, which says how many there are before they come."""

    events: Annotated[list[Raw], Meta(max_length=EVENTS_MAX)] = []


class _Named(msgspec.Struct):
    ref: Ref | None = None


LockFrame = Lock | Unlock | Renew | Wait | Unwait
_Closed = Publish | Ack | Unfollow | Attrs | Ping | LockFrame
Frame = _Closed | Follow

_LOCK_OPS: dict[str, type[msgspec.Struct]] = {
    "lock": Lock,
    "unlock": Unlock,
    "renew": Renew,
    "wait": Wait,
    "unwait": Unwait,
}
_OPS = ("publish", "follow", "ack", "unfollow", "attrs", "ping", *_LOCK_OPS)

_decode = msgspec.json.Decoder(_Closed).decode
_count = msgspec.json.Decoder(_Counted).decode
_bound = msgspec.msgpack.Decoder(_Bounded).decode
_name = msgspec.msgpack.Decoder(_Named).decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class BadFrame(Exception):
    """A frame that cannot be carried out; `ref` is the frame's own where it could be read."""

    def __init__(self, error: HerdrError, ref: Ref | None) -> None:
        super().__init__(error.detail)
        self.error = error
        self.ref = ref


def from_msgpack(data: bytes) -> bytes:
    """Return a MessagePack frame as JSON; raises BadFrame."""
    _check_bound(data)
    try:
        return _encode(msgspec.msgpack.decode(data))
    except (msgspec.DecodeError, msgspec.EncodeError, TypeError, ValueError, RecursionError) as error:
        raise BadFrame(
            InvalidInput(f"the frame is not MessagePack of JSON values: {error}", "bad_frame"), None
        ) from None


def _check_bound(data: bytes) -> None:
    try:
        _bound(data)
    except (msgspec.DecodeError, RecursionError) as error:  # other mistakes are explained later
        if str(error).startswith("Expected `array` of length"):
            ref = None
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                ref = _name(data).ref
            _check_count(EVENTS_MAX + 1, ref)


def to_msgpack(data: bytes) -> bytes:
    """Return a JSON frame as MessagePack; whole numbers beyond 64 bits, which it cannot hold, become texts."""
    frame = _decode_any(data)
    try:
        return msgspec.msgpack.encode(frame)
    except OverflowError:
        return msgspec.msgpack.encode(_fitting(frame))


def _fitting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fitting(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fitting(item) for item in value]
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**64 else value


def parse_frame(data: bytes, data_max: int) -> Frame:
    """Return a client's frame; raises BadFrame with the error to answer with.

    `data_max`: bytes that the payload of one event may have.
    """
    ref: Ref | None = None
    try:
        check_text(data)
        if data.count(b"{") > EVENTS_MAX:  # no event has less than one brace, so fewer need no counting
            _check_events(data)
        frame: _Closed = _decode(data)
        if isinstance(frame, Publish):
            ref = frame.ref
            check_all(frame.events, data_max)
        return frame
    except (msgspec.DecodeError, RecursionError) as error:
        return _parse_slowly(data, error)
    except HerdrError as error:
        raise BadFrame(error, ref) from None


def _check_events(data: bytes) -> None:
    with contextlib.suppress(msgspec.DecodeError, RecursionError):  # other mistakes are explained later
        counted = _count(data)
        _check_count(len(counted.events), counted.ref)


def _check_count(count: int, ref: Ref | None) -> None:
    try:
        check_count(count)
    except InvalidInput as error:
        raise BadFrame(error, ref) from None


def _parse_slowly(data: bytes, error: Exception) -> Frame:
    """Find out what the frame was meant to be: a follow, whose fields are open, or a mistake to explain."""
    ref: Ref | None = None
    try:
        members = _members(data)
        op, ref = _small(members.pop("op", None)), _ref(_small(members.pop("ref", None)))
        if op == "follow" and ref is not None:
            return _follow(ref, members, len(data))
        raise _explain(op, ref, members, error)
    except InvalidInput as wrong:
        raise BadFrame(wrong, ref) from None
    except (msgspec.DecodeError, RecursionError) as wrong:
        if not data.lstrip().startswith(b"{"):
            raise BadFrame(InvalidInput("a frame is a JSON object with an `op`", "bad_frame"), None) from None
        raise BadFrame(InvalidInput(f"the frame is not JSON: {wrong}", "bad_frame"), ref) from None


def _ref(value: Any) -> Ref | None:
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _small(raw: Raw | None) -> Any:
    """Return a member that is a short text or a number where all is well; None when it is larger than that."""
    return None if raw is None or len(bytes(raw)) > QUERY_MAX else _decode_any(raw)


def _follow(ref: Ref, members: dict[str, Raw], size: int) -> Follow:
    if size > QUERY_MAX:
        raise InvalidInput(f"the follow is longer than {QUERY_MAX} bytes", "bad_filter")
    return Follow(ref, {name: _decode_any(value) for name, value in members.items()})


def _explain(op: Any, ref: Ref | None, members: dict[str, Raw], error: Exception) -> InvalidInput:
    if op not in _OPS:
        return InvalidInput(f"{op!r:.80} is not an op; there are {', '.join(_OPS)}", "bad_frame")
    if op != "attrs" and ref is None:
        return InvalidInput(f"{op} needs a `ref`, a number or text that its answer will carry", "bad_frame")
    events = bytes(members.get("events", b"")) if op == "publish" else b""
    if events.startswith(b"[") and (errors := find_errors(split_array(events))):
        return _explain_events(errors)
    if op in _LOCK_OPS:
        return wrong(explained(error, _LOCK_OPS[op]))
    found = explained(error, Publish) if op == "publish" else explain(error, None)
    return InvalidInput(f"{op}: {found.field or 'frame'}: {found.message}", "bad_frame", [found])


def _explain_events(errors: list[FieldError]) -> InvalidInput:
    where = f"event {errors[0].index}: {errors[0].field}: {errors[0].message}"
    return InvalidInput(f"{where}; nothing of this frame was stored", "invalid_event", errors)
