"""Pure: from a draft to the event that goes into a lane, encoded here once for every reader."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw

from herdr.clock import rfc3339
from herdr.event import LANE_NAMES, Delivery, Draft, Envelope, Event, Lane, single_line

OWN_SOURCE = "herdr"
OWN_TIMEOUT_MS = 30_000  # as any P0; what the gateway says itself never raises `herdr.undelivered`

_encode = msgspec.json.Encoder().encode
_REDACTED = Raw(b'{"redacted":true}')


def merge_tags(own: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the classifier's tags and then the publisher's, each once."""
    return tuple(dict.fromkeys(own + wanted))


def build_event(
    draft: Draft,
    source: str,
    event_id: str,
    class_: str,
    tags: tuple[str, ...],
    lane: Lane,
    deliveries: tuple[Delivery, ...],
) -> Event:
    """Return the event of a checked draft, encoded but without `seq` and `accepted`."""
    body = _encode(
        Envelope(
            event_id,
            draft.type,
            source,
            draft.workspace,
            class_,
            lane.name,
            tags,
            single_line(draft.data),
            draft.subject,
            draft.session,
            draft.task,
            draft.time,
            draft.based_on,
            draft.if_stale,
            draft.trace,
            draft.ext,
        )
    )
    return Event(
        lane,
        event_id,
        draft.type,
        source,
        draft.workspace,
        class_,
        body,
        draft.subject,
        draft.session,
        deliveries,
    )


def own_draft(
    type_: str,
    data: Any,
    subject: str | None = None,
    workspace: str = "default",
    session: str | None = None,
    task: str | None = None,
) -> Draft:
    """Return the draft of an event that the gateway itself publishes."""
    return Draft(
        type_, subject=subject, workspace=workspace, session=session, task=task, data=Raw(_encode(data))
    )


def address(to: Iterable[str], routed: Iterable[Delivery]) -> tuple[Delivery, ...]:
    """Return deliveries to the named targets, and then the routing table's to all others."""
    addressed = {name: Delivery(name, OWN_TIMEOUT_MS) for name in to}
    return (*addressed.values(), *(delivery for delivery in routed if delivery.target not in addressed))


def redacted_body(event: Event) -> bytes:
    """Return the event's stored body with everything blanked that a person may have pasted a secret into."""
    fields = {name: getattr(event, name) for name in ("id", "type", "source", "workspace", "session")}
    blank = Envelope(
        **fields, class_=event.class_, priority=LANE_NAMES[event.lane], tags=("redacted",), data=_REDACTED
    )
    return _encode(blank)


def wire_json(event: Event, epoch: str) -> bytes:
    """Return the JSON envelope that followers see: the stored body with the gateway's fields in front."""
    return b'{"seq":%d,"epoch":"%s","accepted":"%s",%s' % (
        event.seq,
        epoch.encode(),
        (event.accepted or rfc3339(event.accepted_us)).encode(),
        event.body[1:],
    )
