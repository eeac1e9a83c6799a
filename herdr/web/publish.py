"""`POST /v1/events`: one object, an array, NDJSON or CloudEvents in; receipts out, once they are true."""

from collections.abc import Sequence

import msgspec

from herdr.bus.publish import Publisher
from herdr.event import Draft, Receipt
from herdr.web.asgi import JSON, Headers, Receive, Reply, Scope, header, read_body, respond
from herdr.web.auth import Caller
from herdr.web.cloudevents import is_binary, parse_batch, parse_binary, parse_structured
from herdr.web.drafts import asks_for_p0, encode_receipts, parse_body, parse_lines
from herdr.web.problems import Refused

P0_SCOPE = "events:p0"

_STATUS = {"accepted": 200, "duplicate": 200, "deferred": 202, "dropped": 202, "stale": 409}
_RETRY: Headers = [*JSON, (b"retry-after", b"1")]
_encode = msgspec.json.Encoder().encode


class PublishEvents:
    """The handler of `POST /v1/events`."""

    def __init__(self, publisher: Publisher, body_max: int, data_max: int) -> None:
        self._publisher = publisher
        self._body_max = body_max
        self._data_max = data_max

    async def __call__(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer one publish."""
        body = await read_body(scope, receive, self._body_max)
        await self._publisher.decoding_turn(body)
        drafts, single = _parse(scope, body, self._data_max)
        check_wishes(drafts, caller)
        receipts = await self._publisher.publish(drafts, caller.name)
        if single:
            receipt = receipts[0]
            status, headers = status_of(receipt)
            await respond(send, status, _encode(receipt), headers)
        else:
            await respond(send, 200, encode_receipts(receipts))


def check_wishes(drafts: Sequence[Draft], caller: Caller) -> None:
    """Raise Refused when a draft asks for P0 and the caller may not."""
    if not caller.may(P0_SCOPE) and asks_for_p0(drafts):
        raise Refused(
            "missing_scope", f"priority P0 needs the scope {P0_SCOPE!r}; add it to the token, or ask for less"
        )


def status_of(receipt: Receipt) -> tuple[int, Headers]:
    """Return the HTTP status of a single event's receipt, and the headers that go with it."""
    if receipt.reason == "overloaded":
        return 503, _RETRY
    return _STATUS[receipt.status], JSON


def _parse(scope: Scope, body: bytes, data_max: int) -> tuple[list[Draft], bool]:
    if header(scope, b"content-encoding") not in (None, "identity"):
        raise Refused("unsupported_media_type", "compressed bodies are not taken; send it as it is")
    kind = (header(scope, b"content-type") or "application/json").partition(";")[0].strip().lower()
    if is_binary(scope):
        return parse_binary(scope, body, data_max), True
    if kind == "application/json":
        return parse_body(body, data_max)
    if kind in ("application/x-ndjson", "application/ndjson", "application/jsonl"):
        return parse_lines(body, data_max), False
    if kind == "application/cloudevents+json":
        return parse_structured(body, data_max), True
    if kind == "application/cloudevents-batch+json":
        return parse_batch(body, data_max), False
    raise Refused(
        "unsupported_media_type",
        f"the content type {kind[:100]!r} is not one for events; use application/json (curl: -H 'content-type: "
        "application/json'), application/x-ndjson or application/cloudevents+json",
    )
