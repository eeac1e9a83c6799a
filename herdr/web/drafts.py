"""Pure: from a request's bytes to checked drafts, with an error for every wrong field."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from herdr.bus.classify import is_reserved
from herdr.errors import FieldError, InvalidInput
from herdr.event import Draft

EVENTS_MAX = 1000  # per request; larger imports go in several
ERRORS_SHOWN_MAX = 20

EXPECTED = {
    "type": "dotted lower case such as test.failed: a-z, 0-9, _ and -, at most 128 characters",
    "id": "1 to 128 characters without control characters",
    "source": "1 to 128 characters without control characters",
    "workspace": "1 to 128 characters without control characters",
    "session": "1 to 128 characters without control characters",
    "task": "1 to 128 characters without control characters",
    "subject": "1 to 4096 characters without control characters",
    "time": "an RFC 3339 time such as 2026-01-31T12:00:00Z",
    "priority": "P0, P1 or P2",
    "tags": "at most 16 texts of 1 to 64 characters",
    "based_on": "the seq of an event, 0 or more",
    "if_stale": "notify or reject",
    "trace": "a W3C traceparent",
    "data": "any JSON value",
    "ext": "an object of texts, whole numbers and booleans",
}

_one = msgspec.json.Decoder(Draft).decode
_many = msgspec.json.Decoder(list[Draft]).decode
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_any = msgspec.json.Decoder().decode

_LINE = re.compile(rb"^[^\n]*\S[^\n]*", re.MULTILINE)  # one that is not blank
_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
# A number that no double holds, or nesting that readers choke on, is legal JSON but poison for followers.
_NESTING_SPARE = 64  # levels that envelopes, pages and frames add around a payload, generously
_BRACKETS_MAX = 400  # a payload with no more of them cannot be nested too deeply, and needs no closer look
EXT_MAX = 64 * 1024  # bytes of JSON; attributes describe a payload and are none themselves
_INTEGER = range(-(2**63), 2**63)


def parse_body(body: bytes, data_max: int) -> tuple[list[Draft], bool]:
    """Return the drafts of a JSON body, and whether it was one object rather than an array.

    `data_max`, here and below: bytes that one payload may have.
    """
    check_text(body)
    if body.lstrip(b" \t\r\n")[:1] == b"[":
        return check_all(_decode_array(body), data_max), False
    try:
        return check_all([_one(body)], data_max), True
    except (msgspec.DecodeError, RecursionError) as error:
        raise unreadable(error) from None


def parse_lines(body: bytes, data_max: int) -> list[Draft]:
    """Return the drafts of an NDJSON body; blank lines are skipped."""
    check_text(body)
    lines = [found[0] for found in islice(_LINE.finditer(body), EVENTS_MAX + 1)]
    check_count(len(lines))
    drafts, errors = [], []
    for index, line in enumerate(lines):
        try:
            drafts.append(_one(line))
        except (msgspec.DecodeError, RecursionError) as error:
            errors.append(explain(error, index))
            if len(errors) >= ERRORS_SHOWN_MAX:
                break
    if errors:
        raise invalid(errors)
    return check_all(drafts, data_max)


def parse_tried(body: bytes, data_max: int) -> Draft:
    """Return the draft of a JSON object that will not be published: it may be one that only the gateway publishes."""
    check_text(body)
    try:
        draft = _one(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise unreadable(error) from None
    check_sizes([draft], data_max)
    return draft


def check_text(body: bytes) -> None:
    """Raise InvalidInput unless the body is UTF-8: payloads are passed on as bytes, so this is the one check."""
    if body.isascii():
        return
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"the body is not UTF-8: byte {error.start} cannot stand there", "invalid_json"
        ) from None


def check_count(count: int) -> None:
    """Raise InvalidInput (`too_many_events`) beyond `EVENTS_MAX`.

    Asked before anything is decoded where that is cheap: a body of 8 MiB holds half a million events, which
    take 0.3 s to decode and seconds to explain.
    """
    if count > EVENTS_MAX:
        raise InvalidInput(
            f"more than {EVENTS_MAX} events in one request; send several requests", "too_many_events"
        )


def check_all(drafts: list[Draft], data_max: int) -> list[Draft]:
    """Return the drafts if all of them may be published from outside; raises InvalidInput otherwise."""
    check_count(len(drafts))
    check_sizes(drafts, data_max)  # before payloads are looked at: nobody pays for one that is too large
    errors = [error for index, draft in enumerate(drafts) for error in _check(draft, index)]
    if errors:
        raise invalid(errors)
    return drafts


def check_sizes(drafts: Sequence[Draft], data_max: int) -> None:
    """Raise InvalidInput (`too_large`) when a payload has more than `data_max` bytes."""
    sizes = [len(bytes(draft.data)) for draft in drafts]
    if max(sizes, default=0) > data_max:
        errors = [
            FieldError(
                "data", f"{size} bytes, the most is {data_max}; store it elsewhere and refer to it", index
            )
            for index, size in enumerate(sizes)
            if size > data_max
        ]
        raise invalid(errors, "too_large")


def _check(draft: Draft, index: int) -> Iterable[FieldError]:
    if is_reserved(draft.type):
        kind = draft.type.partition(".")[0]
        yield FieldError("type", f"{kind}.* is the gateway's own; choose another first word", index)
    if draft.ext is not None:
        yield from _check_ext(draft.ext, index)
    data = bytes(draft.data)
    if not _is_digestible(data):
        yield FieldError(
            "data", "nested too deeply, or holds a number or a text that readers cannot take", index
        )


def _check_ext(ext: dict[str, str | int | bool], index: int) -> Iterable[FieldError]:
    large = next(
        (name for name, value in ext.items() if isinstance(value, int) and value not in _INTEGER), None
    )
    if large is not None:
        yield FieldError(f"ext.{large}"[:128], "a whole number of more than 64 bits; make it a text", index)
    elif len(msgspec.json.encode(ext)) > EXT_MAX:
        yield FieldError("ext", f"more than {EXT_MAX} bytes; put it into data", index)


def _is_digestible(data: bytes) -> bool:
    """Tell whether readers can decode a payload: 1e999 and half a surrogate pair are JSON, but poison.

    Decoding it once, and throwing the result away, is cheaper than any search for what may be wrong: 0.1 to
    1 us for 250 bytes, where a regular expression for the numbers alone takes 2 to 5.
    """
    try:
        if data.count(b"[") + data.count(b"{") > _BRACKETS_MAX:
            _any(b"[" * _NESTING_SPARE + data + b"]" * _NESTING_SPARE)
        else:
            _any(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _decode_array(body: bytes) -> list[Draft]:
    if body.count(b"{") > EVENTS_MAX:  # no event has less than one brace, so fewer need no counting
        split_array(body)
    try:
        return _many(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise invalid(find_errors(split_array(body)) or [explain(error, None)]) from None


def split_array(body: bytes) -> list[msgspec.Raw]:
    """Return the items of a JSON array without decoding them; raises InvalidInput, also for too many."""
    try:
        raws = _raws(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise unreadable(error) from None
    check_count(len(raws))
    return raws


def find_errors(raws: Iterable[msgspec.Raw]) -> list[FieldError]:
    """Return what keeps these items from being drafts, as much of it as is shown."""
    errors: list[FieldError] = []
    for index, raw in enumerate(raws):
        try:
            _one(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            errors.append(explain(error, index))
            if len(errors) >= ERRORS_SHOWN_MAX:
                break
    return errors


def explain(error: Exception, index: int | None, expected: Mapping[str, str] = EXPECTED) -> FieldError:
    """Turn a decoder's message into the field and what it should be; `expected`: of each field, those of events."""
    if isinstance(error, RecursionError):
        return FieldError("", "nested too deeply", index)
    text = str(error)
    place = _PLACE.search(text)
    path = place["path"].lstrip(".") if place else ""
    text = _PLACE.sub("", text)
    if path and (unknown := _UNKNOWN.fullmatch(text)):  # of something within
        return FieldError(f"{path}.{unknown['name'][:128]}", "unknown field", index)
    if unknown := _UNKNOWN.fullmatch(text):
        return FieldError(unknown["name"][:128], f"unknown field; there are {', '.join(expected)}", index)
    if missing := _MISSING.fullmatch(text):
        return FieldError(
            missing["name"], f"required: {expected.get(missing['name'], 'it is missing')}", index
        )
    field = re.split(r"[.\[]", path)[0]
    if field in expected:
        got = f", got `{found[1]}`" if (found := re.search(r", got `(\w+)`", text)) else ""
        return FieldError(path, f"expected {expected[field]}{got}", index)
    return FieldError(path, text[:200], index)


def invalid(errors: Sequence[FieldError], code: str | None = None) -> InvalidInput:
    """Return the error for wrong events, which names the first wrong field and lists all that were found."""
    first = errors[0]
    where = f"event {first.index}: " if first.index is not None else ""
    name = f"{first.field}: " if first.field else ""
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    detail = f"{where}{name}{first.message}{more}; nothing of this request was stored"
    return InvalidInput(detail, code or "invalid_event", list(errors[:ERRORS_SHOWN_MAX]))


def unreadable(error: Exception) -> InvalidInput:
    """Return the error for a body that is not JSON (`invalid_json`), or one event that is not right."""
    is_json = isinstance(error, msgspec.ValidationError)
    return invalid([explain(error, None)], None if is_json else "invalid_json")


def asks_for_p0(drafts: Sequence[Draft]) -> bool:
    """Tell whether any draft asks for P0."""
    return any(draft.priority == "P0" for draft in drafts)


def encode_receipts(receipts: Any) -> bytes:
    """Return the body that answers an array or NDJSON."""
    return b'{"results":' + msgspec.json.encode(receipts) + b"}"
