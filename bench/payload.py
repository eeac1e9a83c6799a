"""What is published: events of 360 bytes of JSON, the size that the comparison is defined for."""

from herdr_sdk import Draft

EVENT_BYTES = 360
P0, P1, P2 = "user.message", "tool.result", "index.updated"  # types that have these lanes by default
_HEAD = '{"type":"%s","source":"bench","data":{"n":%d,"t":%d,"text":"'
_TAIL = '"}}'


def event_json(number: int, stamp_ns: int = 0, type_: str = P1) -> bytes:
    """Return one event, ready to be published, without an id. `stamp_ns` is when, by the monotonic clock."""
    head = _HEAD % (type_, number, stamp_ns)
    return f"{head}{_filler(number, stamp_ns, type_)}{_TAIL}".encode()


def batch_json(count: int, type_: str = P1) -> bytes:
    """Return an array of `count` events."""
    return b"[" + b",".join([event_json(number, 0, type_) for number in range(count)]) + b"]"


def draft(number: int, stamp_ns: int = 0) -> Draft:
    """Return the same event as the SDK takes it; the SDK adds an id of 26 characters."""
    data = {"n": number, "t": stamp_ns, "text": _filler(number, stamp_ns, P1)}
    return Draft(P1, data, source="bench")


def _filler(number: int, stamp_ns: int, type_: str) -> str:
    return "x" * (EVENT_BYTES - len(_HEAD % (type_, number, stamp_ns)) - len(_TAIL))
