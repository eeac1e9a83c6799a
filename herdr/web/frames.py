"""Pure: the frames of `/v1/connect`, in JSON or MessagePack, and what may be wrong with them."""

from typing import Any

import msgspec

from herdr.errors import HerdrError, InvalidInput
from herdr.event import Draft
from herdr.web.drafts import check_all, check_text, explain

JSON_PROTOCOL = "herdr.v1.json"
MSGPACK_PROTOCOL = "herdr.v1.msgpack"

Ref = int | str


class Publish(msgspec.Struct, tag_field="op", tag="publish", forbid_unknown_fields=True, gc=False):
    """Publish events; answered by `receipts` with the same ref."""

    ref: Ref
    events: list[Draft]


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


class Follow(msgspec.Struct):
    """Follow; the fields are those of the query of `GET /v1/events`."""

    ref: Ref
    fields: dict[str, Any]


Frame = Publish | Ack | Unfollow | Attrs | Ping | Follow

LATER = frozenset({"lock", "unlock", "renew", "wait"})
"""Operations of the protocol that this version does not have."""

_decode = msgspec.json.Decoder(Publish | Ack | Unfollow | Attrs | Ping).decode
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
    try:
        return _encode(msgspec.msgpack.decode(data))
    except (msgspec.DecodeError, msgspec.EncodeError, TypeError, ValueError, RecursionError) as error:
        raise BadFrame(
            InvalidInput(f"the frame is not MessagePack of JSON values: {error}", "bad_frame"), None
        ) from None


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


def parse_frame(data: bytes) -> Frame:
    """Return a client's frame; raises BadFrame with the error to answer with."""
    ref: Ref | None = None
    try:
        check_text(data)
        frame: Publish | Ack | Unfollow | Attrs | Ping = _decode(data)
        if isinstance(frame, Publish):
            ref = frame.ref
            check_all(frame.events)
        return frame
    except (msgspec.DecodeError, RecursionError) as error:
        return _parse_slowly(data, error)
    except HerdrError as error:
        raise BadFrame(error, ref) from None


def _parse_slowly(data: bytes, error: Exception) -> Frame:
    """Find out what the frame was meant to be: a follow, whose fields are open, or a mistake to explain."""
    try:
        loose = _decode_any(data)
    except (msgspec.DecodeError, RecursionError):
        raise BadFrame(InvalidInput(f"the frame is not JSON: {error}", "bad_frame"), None) from None
    if not isinstance(loose, dict):
        raise BadFrame(InvalidInput("a frame is a JSON object with an `op`", "bad_frame"), None)
    op, ref = loose.get("op"), loose.get("ref")
    if isinstance(ref, bool) or not isinstance(ref, int | str):
        ref = None
    if op == "follow" and ref is not None:
        return Follow(ref, {name: value for name, value in loose.items() if name not in ("op", "ref")})
    raise BadFrame(_explain(op, ref, loose, error), ref)


def _explain(op: Any, ref: Ref | None, loose: dict[str, Any], error: Exception) -> InvalidInput:
    if isinstance(op, str) and op in LATER:
        return InvalidInput(f"{op!r} is not in this version of the gateway", "unsupported")
    if op not in ("publish", "follow", "ack", "unfollow", "attrs", "ping"):
        return InvalidInput(
            f"{op!r:.80} is not an op; there are publish, follow, ack, unfollow, attrs, ping", "bad_frame"
        )
    if op != "attrs" and ref is None:
        return InvalidInput(f"{op} needs a `ref`, a number or text that its answer will carry", "bad_frame")
    if op == "publish" and isinstance(loose.get("events"), list):
        return _explain_events(loose["events"], error)
    found = explain(error, None)
    return InvalidInput(f"{op}: {found.field or 'frame'}: {found.message}", "bad_frame", [found])


def _explain_events(events: list[Any], error: Exception) -> InvalidInput:
    errors = []
    for index, event in enumerate(events):
        try:
            msgspec.json.decode(_encode(event), type=Draft)
        except (msgspec.DecodeError, RecursionError) as wrong:
            errors.append(explain(wrong, index))
    errors = errors[:20] or [explain(error, None)]
    where = f"event {errors[0].index}: {errors[0].field}: {errors[0].message}"
    return InvalidInput(f"{where}; nothing of this frame was stored", "invalid_event", errors)
