"""Pure: pages as Server-Sent Events (WHATWG HTML, section 9.2). Encoded once per page, shared by its followers."""

import msgspec

from herdr.bus.cursor import format_cursor
from herdr.bus.envelope import wire_json
from herdr.bus.follow import Gap
from herdr.bus.page import Item, Page
from herdr.event import Event, Positions

SSE_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),  # nginx would hold small events back
]

_encode = msgspec.json.Encoder().encode


def event_json(event: Event, epoch: str, form: str = "full", context: bytes | None = None) -> bytes:
    """Return what a follower sees of one event: in the form that its rule asks for, with its context (an object)."""
    if event.corrupt:
        return _encode({"seq": event.seq, "epoch": epoch, "type": event.type, "detail": CORRUPT_DETAIL})
    shown = wire_json(event, epoch) if form == "full" else _shorter(event, epoch, form)
    return shown if context is None else b'%s,"context":%s}' % (shown[:-1], context)


def _shorter(event: Event, epoch: str, form: str) -> bytes:
    ref = f"/v1/events/{event.seq}"
    if form == "ref":
        short = {"seq": event.seq, "type": event.type, "ref": ref}
        return _encode(short if event.subject is None else {**short, "subject": event.subject})
    envelope = msgspec.json.decode(wire_json(event, epoch), type=dict[str, msgspec.Raw])
    data = envelope.pop("data")
    return _encode({**envelope, "data_bytes": len(bytes(data)), "ref": ref})


CORRUPT_DETAIL = "the stored event fails its checksum and cannot be shown; `herdr backup` keeps what is whole"


def start_block(epoch: str, positions: Positions, retry_ms: int) -> bytes:
    """Return the first block of a stream: how soon to come back, and from where. It dispatches nothing."""
    return f"retry: {retry_ms}\nid: {format_cursor(epoch, positions)}\n\n".encode()


def keep_alive(epoch: str, positions: Positions) -> bytes:
    """Return a block that dispatches nothing but moves the place from which the client resumes."""
    return f": keep-alive\nid: {format_cursor(epoch, positions)}\n\n".encode()


def page_block(page: Page, epoch: str) -> bytes:
    """Return a page's events as one piece of the stream."""
    known = page.encodings.get("sse")
    if known is None:
        known = page.encodings["sse"] = b"".join([_item_block(item, epoch) for item in page.items])
    return known


def _item_block(item: Item, epoch: str) -> bytes:
    event, (p0, p1, p2), delivery, context = (
        item  # once for each event that is delivered: looking up is dearer
    )
    form = "full" if delivery is None else delivery.format
    head = f"id: {epoch}:{p0}-{p1}-{p2}\nevent: {event.type}\ndata: ".encode()
    return b"%s%s\n\n" % (head, event_json(event, epoch, form, context))


def gap_data(gap: Gap) -> dict[str, object]:
    """Return the object that tells a client what it has missed."""
    return {"reason": gap.reason, "from": gap.from_, "to": gap.to}


def gap_block(gap: Gap, epoch: str) -> bytes:
    """Return `herdr.gap`; its id stands just before the oldest retained event."""
    cursor = format_cursor(epoch, gap.positions).encode()
    return b"id: %s\nevent: herdr.gap\ndata: %s\n\n" % (cursor, _encode(gap_data(gap)))


def synthetic_block(type_: str, data: object) -> bytes:
    """Return an event of this stream alone: no id, so it moves nothing."""
    return b"event: %s\ndata: %s\n\n" % (type_.encode(), _encode(data))
