"""Pure: what the routing table would do with an event, and why, rule by rule."""

from collections.abc import Iterable, Iterator
from typing import Any

from herdr.bus.classify import class_of, default_lane, tags_of
from herdr.bus.envelope import merge_tags
from herdr.bus.route import RoutingTable, Subject, reasons
from herdr.config import RouteRule
from herdr.event import Delivery, Draft, Lane


def explain(rules: Iterable[RouteRule], draft: Draft, source: str) -> dict[str, Any]:
    """Return the event's class, lane and tags, where it would go, and what each rule says to it."""
    rules = tuple(rules)
    class_, lane = class_of(draft.type), default_lane(draft.type)
    tags = merge_tags(tags_of(draft.type), draft.tags)
    wish = lane if draft.priority is None else Lane[draft.priority]
    subject = Subject(draft, source, class_, tags)
    routing = RoutingTable(rules).route(subject, wish)
    fitting = [rule for rule in rules if not list(reasons(rule, subject, wish))]
    return {
        "class": class_,
        "priority": routing.lane.name,
        "tags": list(tags),
        "deliveries": [_delivery(delivery, fitting) for delivery in routing.deliveries],
        "rules": list(_judged(rules, subject, wish)),
    }


def _judged(rules: Iterable[RouteRule], subject: Subject, wish: Lane) -> Iterator[dict[str, Any]]:
    for rule in rules:
        why = list(reasons(rule, subject, wish))
        conditions = [name for name in rule.match if name.startswith("attr.")]
        said = "; ".join(why) or "fits"
        if not why and conditions:
            said = f"fits followers whose {' and '.join(conditions)} fit"
        yield {"name": rule.name, "target": rule.target, "fits": not why, "why": said}


def _delivery(delivery: Delivery, fitting: Iterable[RouteRule]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "target": delivery.target,
        "format": delivery.format,
        "timeout_ms": delivery.timeout_ms,
        "rules": [rule.name for rule in fitting if rule.target == delivery.target],
    }
    if delivery.attrs:
        shown["attrs"] = {name: list(globs) for name, globs in delivery.attrs}
    return shown
