"""Pure: the routing table. Which targets an event goes to, in which lane, in what form and for how long.

No rule matches: the event is stored and only ad-hoc followers see it; there is no broadcast. Several
match: the highest priority is the event's lane, and each target gets it once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from herdr.config import RouteRule
from herdr.config.routes import MATCH_FIELDS
from herdr.errors import InvalidInput
from herdr.event import Delivery, Draft, Lane, WantedContext
from herdr.glob import check_glob, compile_glob

DEFAULT_TIMEOUT_MS = (30_000, 5_000, 1_000)
"""By lane: a user's instruction may arrive late, a file notice of a second ago is old news."""

TYPES_CACHED_MAX = 1024  # distinct types are few; the bound only guards against invented ones

_FIELDS = frozenset(MATCH_FIELDS)

Scalar = str | int | float | bool
Test = Callable[[Any], bool]


class Subject(NamedTuple):
    """What rules may look at beside the type."""

    draft: Draft
    source: str
    class_: str
    tags: tuple[str, ...]


class Routing(NamedTuple):
    """The table's answer for one event."""

    lane: Lane
    deliveries: tuple[Delivery, ...]


class _Compiled(NamedTuple):
    rule: RouteRule
    accepts_type: Callable[[str], bool]
    fields: tuple[tuple[str, Test], ...]
    data: tuple[tuple[tuple[str, ...], Test], ...]
    attrs: tuple[tuple[str, tuple[str, ...]], ...]
    context: WantedContext | None


class RoutingTable:
    """An immutable set of rules, compiled. Editing the rules means building another table."""

    def __init__(self, rules: Iterable[RouteRule] = ()) -> None:
        self.rules = tuple(rules)
        self._compiled = tuple(_compile(rule) for rule in self.rules)
        self._by_type: dict[str, tuple[_Compiled, ...]] = {}
        self._unconditional: dict[tuple[str, Lane], Routing] = {}

    def route(self, subject: Subject, wish: Lane) -> Routing:
        """Return lane and deliveries. `wish` counts only where no matching rule names a priority."""
        type_ = subject.draft.type
        key = (type_, wish)
        known = self._unconditional.get(key)
        if known is not None:
            return known
        candidates = self._candidates(type_)
        if not any(rule.fields or rule.data for rule in candidates):
            routing = _resolve(candidates, wish)
            if len(self._unconditional) >= TYPES_CACHED_MAX:
                self._unconditional.clear()
            self._unconditional[key] = routing
            return routing
        return _resolve(_matching(candidates, subject, wish), wish)

    def _candidates(self, type_: str) -> tuple[_Compiled, ...]:
        known = self._by_type.get(type_)
        if known is None:
            if len(self._by_type) >= TYPES_CACHED_MAX:
                self._by_type.clear()
            known = self._by_type[type_] = tuple(r for r in self._compiled if r.accepts_type(type_))
        return known


def check_rule(rule: RouteRule) -> None:
    """Raise InvalidInput when a glob of the rule, a field that it matches on, or its context is not one."""
    _compile(rule)
    if rule.context != "none":
        for _, message in rule.context.problems():
            raise InvalidInput(f"context: {message}", "bad_rule")


def reasons(rule: RouteRule, subject: Subject, wish: Lane) -> Iterator[str]:
    """Yield what keeps a rule from fitting an event; nothing when it fits. Conditions on followers are not judged."""
    compiled = _compile(rule)
    if not compiled.accepts_type(subject.draft.type):
        yield f"event is {rule.event}, not {subject.draft.type}"
    for name, test in compiled.fields:
        value = _field(subject, wish, name)
        if not test(value):
            yield f"{name} is {_said(value)}, not {_said(rule.match[name])}"
    payload = _decoded(subject.draft.data) if compiled.data else None
    for path, test in compiled.data:
        value = _dig(payload, path)
        if not test(value):
            name = ".".join(("data", *path))
            yield f"{name} is {_said(value)}, not {_said(rule.match[name])}"


def _said(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:200]


def _compile(rule: RouteRule) -> _Compiled:
    fields: list[tuple[str, Test]] = []
    data: list[tuple[tuple[str, ...], Test]] = []
    attrs: list[tuple[str, tuple[str, ...]]] = []
    for field, wanted in rule.match.items():
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        if field.startswith("attr.") and len(field) > len("attr."):
            attrs.append((field.removeprefix("attr."), tuple(map(_attribute_glob, values))))
        elif field.startswith("data.") and len(field) > len("data."):
            data.append((tuple(field.split(".")[1:]), _any_of(values)))
        elif field in _FIELDS:
            fields.append((field, _any_of(values)))
        else:
            raise InvalidInput(
                f"a rule cannot match on {field!r}; it can on {', '.join(sorted(_FIELDS))}, data.<path> "
                "and attr.<name>",
                "bad_rule",
            )
    accepts_type = compile_glob(rule.event)
    return _Compiled(rule, accepts_type, tuple(fields), tuple(data), tuple(attrs), _wanted(rule))


def _wanted(rule: RouteRule) -> WantedContext | None:
    context = rule.context
    return None if context == "none" else WantedContext(context.session_tokens or 0, context.graph)


def _attribute_glob(value: Scalar) -> str:
    """Attributes arrive as text in a query string, so they are compared as text."""
    text = msgspec.json.encode(value).decode() if not isinstance(value, str) else value
    check_glob(text)
    return text


def _any_of(values: Sequence[Scalar]) -> Test:
    if not values:
        raise InvalidInput(
            "a match with an empty list can never fit; leave the field out instead", "bad_rule"
        )
    globs = [compile_glob(v) for v in values if isinstance(v, str)]
    # bool is an int in Python, but true is not 1 in JSON
    exact = [(type(v) is bool, v) for v in values if not isinstance(v, str)]

    def test_one(value: Any) -> bool:
        if isinstance(value, str):
            return any(glob(value) for glob in globs)
        return (type(value) is bool, value) in exact

    def test(value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return any(test_one(item) for item in value)
        return test_one(value)

    return test


def _matching(candidates: Iterable[_Compiled], subject: Subject, wish: Lane) -> list[_Compiled]:
    payload: Any = msgspec.UNSET
    found = []
    for rule in candidates:
        if not all(test(_field(subject, wish, name)) for name, test in rule.fields):
            continue
        if rule.data and payload is msgspec.UNSET:
            payload = _decoded(subject.draft.data)
        if all(test(_dig(payload, path)) for path, test in rule.data):
            found.append(rule)
    return found


def _decoded(data: msgspec.Raw) -> Any:
    """Return the payload, or None for JSON that no reader can hold: no condition on it fits."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


def _field(subject: Subject, wish: Lane, name: str) -> Any:
    if name == "source":
        return subject.source
    if name == "class":
        return subject.class_
    if name == "tags":
        return subject.tags
    if name == "priority":
        return wish.name
    return getattr(subject.draft, name)


def _dig(payload: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(payload, dict):
            return None
        payload = payload.get(name)
    return payload


def _resolve(matching: Sequence[_Compiled], wish: Lane) -> Routing:
    named = [Lane[m.rule.priority] for m in matching if m.rule.priority is not None]
    lane = min(named, default=wish)
    ranked = sorted(matching, key=lambda m: Lane[m.rule.priority] if m.rule.priority is not None else lane)
    deliveries: dict[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]], Delivery] = {}
    for compiled in ranked:
        rule = compiled.rule
        timeout_ms = rule.timeout_ms if rule.timeout_ms is not None else DEFAULT_TIMEOUT_MS[lane]
        delivery = Delivery(rule.target, timeout_ms, rule.format, compiled.attrs, compiled.context)
        deliveries.setdefault((rule.target, compiled.attrs), delivery)
    return Routing(lane, tuple(deliveries.values()))
