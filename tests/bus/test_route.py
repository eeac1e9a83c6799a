from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from herdr.bus import route as module
from herdr.bus.classify import class_of, default_lane, tags_of
from herdr.bus.envelope import merge_tags
from herdr.bus.route import DEFAULT_TIMEOUT_MS, RoutingTable, Subject, check_rule
from herdr.config import RouteRule
from herdr.errors import InvalidInput
from herdr.event import Delivery, Draft, Lane, WantedContext

P0, P1, P2 = Lane


def rule(event: str = "*", target: str = "t", **fields: Any) -> RouteRule:
    return msgspec.convert({"event": event, "target": target, **fields}, RouteRule)


def subject(type_: str = "tool.result", data: bytes = b"null", **fields: Any) -> Subject:
    draft = msgspec.convert({"type": type_, **fields}, Draft)
    draft.data = Raw(data)
    return Subject(draft, str(draft.source or "ci"), class_of(type_), merge_tags(tags_of(type_), draft.tags))


def targets(table: RoutingTable, asked: Subject) -> list[str]:
    return [d.target for d in table.route(asked, default_lane(asked.draft.type)).deliveries]


def test_without_a_rule_there_is_no_delivery_and_the_wish_counts() -> None:
    table = RoutingTable([rule("test.*")])
    assert table.route(subject(), P2) == (P2, ())
    assert RoutingTable().route(subject(), P0) == (P0, ())


@pytest.mark.parametrize("lane", list(Lane))
def test_a_rule_without_wishes_leaves_the_lane_and_takes_its_timeout(lane: Lane) -> None:
    routing = RoutingTable([rule()]).route(subject(), lane)
    assert routing == (lane, (Delivery("t", DEFAULT_TIMEOUT_MS[lane]),))


def test_a_rule_says_lane_timeout_and_form() -> None:
    table = RoutingTable([rule(priority="P0", timeout_ms=7, format="ref")])
    assert table.route(subject(), P2) == (P0, (Delivery("t", 7, "ref"),))


@pytest.mark.parametrize(
    ("context", "wanted"),
    [
        ("none", None),
        ({"session_tokens": 64}, WantedContext(64, False)),
        ({"graph": True}, WantedContext(0, True)),
        ({"session_tokens": 1_000_000, "graph": True}, WantedContext(1_000_000, True)),
    ],
)
def test_a_rule_says_what_comes_beside_the_event(context: Any, wanted: WantedContext | None) -> None:
    table = RoutingTable([rule(timeout_ms=7, context=context)])
    assert table.route(subject(), P1).deliveries == (Delivery("t", 7, context=wanted),)


@pytest.mark.parametrize("context", [{}, {"graph": False}, {"session_tokens": None}])
def test_a_rule_that_asks_for_no_context_in_many_words_is_refused(context: Any) -> None:
    with pytest.raises(InvalidInput, match="asks for nothing") as refused:
        check_rule(rule(context=context))
    assert refused.value.code == "bad_rule"


@pytest.mark.parametrize(
    "context", ["all", {"session_tokens": 63}, {"session_tokens": 10**6 + 1}, {"map": 1}, 3]
)
def test_a_context_that_is_none_is_refused(context: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match="context"):
        rule(context=context)


def test_of_several_rules_for_a_target_the_first_of_the_highest_lane_says_it() -> None:
    rules = [
        rule(target="t", priority="P2", context={"graph": True}),
        rule(target="t", priority="P0"),
        rule(target="u"),
        rule(target="u", context={"graph": True}),
    ]
    found = {d.target: d.context for d in RoutingTable(rules).route(subject(), P1).deliveries}
    assert found == {"t": None, "u": None}


def test_a_rule_may_also_lower_the_lane() -> None:
    assert RoutingTable([rule(priority="P2")]).route(subject("user.message"), P0).lane is P2


def test_the_highest_priority_wins_whatever_the_order() -> None:
    rules = [
        rule(target="a", priority="P2"),
        rule(target="b", priority="P0"),
        rule(target="c"),
        rule(target="d", priority="P1"),
    ]
    for table in (RoutingTable(rules), RoutingTable(rules[::-1])):
        routing = table.route(subject(), P1)
        assert routing.lane is P0
        assert sorted(d.target for d in routing.deliveries) == ["a", "b", "c", "d"]
        assert {d.timeout_ms for d in routing.deliveries} == {DEFAULT_TIMEOUT_MS[P0]}


def test_each_target_gets_it_once_as_its_highest_rule_says() -> None:
    table = RoutingTable(
        [
            rule(priority="P2", format="ref"),
            rule(priority="P1", format="summary"),
            rule(priority="P1", format="full", timeout_ms=9),
        ]
    )
    assert table.route(subject(), P2).deliveries == (Delivery("t", DEFAULT_TIMEOUT_MS[P1], "summary"),)


def test_conditions_on_attributes_go_with_the_delivery() -> None:
    table = RoutingTable(
        [
            rule(match={"attr.activity": ["debug*", "test"], "attr.n": 3, "attr.on": True}, format="summary"),
            rule(format="ref"),
        ]
    )
    attrs = (("activity", ("debug*", "test")), ("n", ("3",)), ("on", ("true",)))
    assert table.route(subject(), P1).deliveries == (
        Delivery("t", DEFAULT_TIMEOUT_MS[P1], "summary", attrs),
        Delivery("t", DEFAULT_TIMEOUT_MS[P1], "ref"),
    )


@pytest.mark.parametrize(
    ("match", "asked", "fits"),
    [
        ({}, subject(), True),
        ({"type": "tool.*"}, subject(), True),
        ({"type": "tool"}, subject(), False),
        ({"source": "ci"}, subject(), True),
        ({"source": "cursor*"}, subject(source="cursor-1"), True),
        ({"source": "cursor*"}, subject(), False),
        ({"subject": "src/**"}, subject(subject="src/a/b.py"), True),
        ({"subject": "**"}, subject(), False),
        ({"workspace": "default"}, subject(), True),
        ({"session": ["a", "b"]}, subject(session="b"), True),
        ({"task": "t?"}, subject(task="t1"), True),
        ({"class": "environment"}, subject("test.failed"), True),
        ({"class": "environment"}, subject("tool.failed"), False),
        ({"tags": "failure"}, subject("test.failed"), True),
        ({"tags": "re*"}, subject(tags=["blue", "red"]), True),
        ({"tags": "green"}, subject(tags=["blue", "red"]), False),
        ({"tags": "x"}, subject(), False),
        ({"priority": "P1"}, subject(), True),
        ({"priority": ["P0", "P2"]}, subject(), False),
        ({"data.level": "error"}, subject(data=b'{"level":"error"}'), True),
        ({"data.level": "err*"}, subject(data=b'{"level":"error"}'), True),
        ({"data.level": ["warn", "error"]}, subject(data=b'{"level":"error"}'), True),
        ({"data.level": "error"}, subject(data=b'{"level":["info","error"]}'), True),
        ({"data.level": "error"}, subject(data=b'{"level":[["error"]]}'), False),
        ({"data.level": "error"}, subject(data=b'{"level":{"error":1}}'), False),
        ({"data.level": "error"}, subject(data=b'{"level":null}'), False),
        ({"data.level": "error"}, subject(data=b"{}"), False),
        ({"data.level": "*"}, subject(data=b"{}"), False),
        ({"data.a.b.c": 1}, subject(data=b'{"a":{"b":{"c":1}}}'), True),
        ({"data.a.b.c": 1}, subject(data=b'{"a":{"b":1}}'), False),
        ({"data.a": 1}, subject(data=b"[1]"), False),
        ({"data.a": 1}, subject(data=b'"a"'), False),
        ({"data.n": 1}, subject(data=b'{"n":1.0}'), True),
        ({"data.n": 1.5}, subject(data=b'{"n":1.5}'), True),
        ({"data.n": 1}, subject(data=b'{"n":true}'), False),
        ({"data.n": True}, subject(data=b'{"n":1}'), False),
        ({"data.n": True}, subject(data=b'{"n":true}'), True),
        ({"data.n": False}, subject(data=b'{"n":0}'), False),
        ({"data.n": 0}, subject(data=b'{"n":false}'), False),
        ({"data.n": "1"}, subject(data=b'{"n":1}'), False),
        ({"data.n": [1, "x", True]}, subject(data=b'{"n":"x"}'), True),
        ({"data.x": 1}, subject(data=b'{"x":' + b"[" * 700 + b"]" * 700 + b"}"), False),
        ({"data.x": 1}, subject(data=b'{"x":' + b"[" * 9000 + b"]" * 9000 + b"}"), False),
        ({"data.x": 1}, subject(data=b'{"x":1,"y":1e999}'), False),
        ({"type": "tool.*", "data.n": 1}, subject(data=b'{"n":1}'), True),
        ({"type": "tool.*", "data.n": 1}, subject(data=b'{"n":2}'), False),
        ({"type": "test.*", "data.n": 1}, subject(data=b'{"n":1}'), False),
    ],
)
def test_every_condition_must_hold(match: dict[str, Any], asked: Subject, fits: bool) -> None:
    assert targets(RoutingTable([rule(match=match)]), asked) == (["t"] if fits else [])


def test_conditional_and_plain_rules_of_one_type_are_both_judged_each_time() -> None:
    table = RoutingTable([rule(target="all"), rule(target="errors", match={"data.level": "error"})])
    for _ in range(2):
        assert targets(table, subject(data=b'{"level":"error"}')) == ["all", "errors"]
        assert targets(table, subject(data=b'{"level":"info"}')) == ["all"]
        assert targets(table, subject("test.failed")) == ["all"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"match": {"colour": "red"}}, "cannot match on 'colour'; it can on"),
        ({"match": {"data.": 1}}, "cannot match on"),
        ({"match": {"attr.": 1}}, "cannot match on"),
        ({"match": {"data": 1}}, "cannot match on"),
    ],
)
def test_a_rule_that_can_never_work_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as error:
        check_rule(rule(**fields))
    assert error.value.code == "bad_rule"


@pytest.mark.parametrize(
    "made",
    [
        RouteRule(event="a\n*", target="t"),
        RouteRule(event="", target="t"),
        RouteRule(event="*", target="t", match={"subject": "x\x00"}),
        RouteRule(event="*", target="t", match={"attr.x": ""}),
        RouteRule(event="*", target="t", match={"data.x": ()}),
    ],
)
def test_a_bad_glob_is_refused(made: RouteRule) -> None:
    with pytest.raises(InvalidInput):
        RoutingTable([made])


RULES = st.lists(
    st.builds(
        RouteRule,
        event=st.sampled_from(["*", "a.*", "a.b", "c"]),
        target=st.sampled_from("xyz"),
        priority=st.sampled_from([None, "P0", "P1", "P2"]),
        timeout_ms=st.sampled_from([None, 5, 6]),
        match=st.sampled_from([{}, {"data.n": 1}, {"tags": "t"}, {"attr.q": "1"}]),
    ),
    max_size=6,
)


@given(RULES, st.sampled_from(["a.b", "a.c", "c"]), st.sampled_from(list(Lane)), st.booleans(), st.booleans())
def test_lane_and_targets_are_what_the_rules_say(
    rules: list[RouteRule], type_: str, wish: Lane, tagged: bool, payload: bool
) -> None:
    asked = subject(type_, b'{"n":1}' if payload else b"0", tags=["t"] if tagged else [])
    holds = {"data.n": payload, "tags": tagged, "attr.q": True}
    globs = {"*": True, "a.*": type_.startswith("a."), "a.b": type_ == "a.b", "c": type_ == "c"}
    fitting = [r for r in rules if globs[r.event] and all(holds[name] for name in r.match)]
    table = RoutingTable(rules)
    for _ in range(2):  # the second time from what the table has remembered
        routing = table.route(asked, wish)
        assert routing.lane == min((Lane[r.priority] for r in fitting if r.priority), default=wish)
        keys = [(d.target, bool(d.attrs)) for d in routing.deliveries]
        assert sorted(keys) == sorted({(r.target, "attr.q" in r.match) for r in fitting})
        allowed = {r.timeout_ms or DEFAULT_TIMEOUT_MS[routing.lane] for r in fitting}
        assert {d.timeout_ms for d in routing.deliveries} <= allowed


def test_what_it_remembers_by_type_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TYPES_CACHED_MAX", 3)
    table = RoutingTable([rule("a.*"), rule("b.*", match={"data.n": 1})])
    for number in range(20):
        assert targets(table, subject(f"a.{number}")) == ["t"]
        assert targets(table, subject(f"b.{number}")) == []
    assert len(table._by_type) <= 3
    assert len(table._unconditional) <= 3
