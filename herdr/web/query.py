"""Pure: the query of `GET /v1/events`, and the same fields of a `follow` frame, as a selection."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from herdr.bus.page import EVENTS_MAX
from herdr.bus.select import Selection
from herdr.errors import InvalidInput
from herdr.event import Name

LIMIT_MAX = 1000
LIMIT_DEFAULT = EVENTS_MAX
ATTRS_MAX = 32  # what rules may match on; a subscriber with more is not described but logged
ATTR_LENGTH_MAX = 1024  # characters of a name or a value; rules match them with globs, which are no longer
SEQ_DIGITS_MAX = 19  # of the largest 64-bit number
QUERY_MAX = 16 * 1024  # bytes, also of a `follow` frame; uvicorn's own bound is 64 KiB

_FIELDS = {
    "type": "type",
    "class": "class_",
    "priority": "priority",
    "source": "source",
    "workspace": "workspace",
    "session": "session",
    "subject": "subject",
}


class Query(NamedTuple):
    """What a follower asked for."""

    selection: Selection
    after: str | None
    limit: int


def parse_query(query: bytes) -> Query:
    """Read a query string; raises InvalidInput for a name that is none, so that a typo does not go unnoticed."""
    if len(query) > QUERY_MAX:
        raise InvalidInput(f"the query is longer than {QUERY_MAX} bytes", "bad_filter")
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise InvalidInput("the query is not percent-encoded UTF-8", "bad_filter") from None
    return _build(pairs)


def parse_fields(fields: Mapping[str, Any]) -> Query:
    """Read the fields of a `follow` frame, where a filter is a text or a list of texts."""
    pairs: list[tuple[str, str]] = []
    for name, value in fields.items():
        if name == "attrs" and isinstance(value, dict):
            pairs.extend((f"attr.{key}", _text(f"attr.{key}", item)) for key, item in value.items())
        else:
            pairs.extend(
                (name, _text(name, item)) for item in (value if isinstance(value, list) else [value])
            )
    return _build(pairs)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise InvalidInput(f"{name} takes a text, got {value!r:.80}", "bad_filter")
    return str(value)


def _build(pairs: Iterable[tuple[str, str]]) -> Query:
    filters: dict[str, list[str]] = {}
    attrs: dict[str, str] = {}
    single: dict[str, str] = {}
    for name, value in pairs:
        if name in _FIELDS:
            filters.setdefault(_FIELDS[name], []).append(value)
        elif name.startswith("attr.") and len(name) > len("attr."):
            attrs[name.removeprefix("attr.")] = value
        elif name in ("as", "after", "limit"):
            if name in single:
                raise InvalidInput(f"{name} stands twice in the query", "bad_filter")
            single[name] = value
        else:
            known = ", ".join([*_FIELDS, "as", "after", "limit", "attr.NAME"])
            raise InvalidInput(f"{name[:80]!r} is not a filter; there are {known}", "bad_filter")
    check_attributes(attrs)
    selection = Selection(
        **{name: tuple(values) for name, values in filters.items()},
        target=_target(single.get("as")),
        attrs=tuple(sorted(attrs.items())),
    )
    return Query(selection, single.get("after"), _limit(single.get("limit")))


def check_attributes(attrs: Mapping[str, str]) -> None:
    """Raise InvalidInput when a subscriber describes itself with too much."""
    if len(attrs) > ATTRS_MAX:
        raise InvalidInput(f"{len(attrs)} attributes, the most is {ATTRS_MAX}", "bad_filter")
    long = next((n for n, value in attrs.items() if max(len(n), len(value)) > ATTR_LENGTH_MAX), None)
    if long is not None:
        raise InvalidInput(
            f"the attribute {long[:80]!r} has more than {ATTR_LENGTH_MAX} characters", "bad_filter"
        )


def parse_seq(text: str) -> int:
    """Read the `seq` of a path such as `/v1/events/7`; raises InvalidInput for what is no number."""
    if not (text.isascii() and text.isdigit() and len(text) <= SEQ_DIGITS_MAX):
        raise InvalidInput(f"{text[:40]!r} is not the seq of an event, a whole number from 1")
    return int(text)


def _target(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        return msgspec.convert(name, Name)
    except msgspec.ValidationError:
        raise InvalidInput(
            "`as` takes the name of a target: 1 to 128 characters without control characters", "bad_filter"
        ) from None


def _limit(text: str | None) -> int:
    if text is None:
        return LIMIT_DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= LIMIT_MAX):
        raise InvalidInput(
            f"limit takes a whole number from 1 to {LIMIT_MAX}, got {text[:80]!r}", "bad_filter"
        )
    return int(text)
