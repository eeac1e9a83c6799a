import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from herdr.bus.explain import explain
from herdr.config import RouteRule
from herdr.event import Draft


def rule(name: str, **fields: Any) -> RouteRule:
    return msgspec.convert({"event": "*", "target": name, **fields, "name": name}, RouteRule)


def draft(data: Any = None, **fields: Any) -> Draft:
    made = msgspec.convert({"type": "test.failed", **fields}, Draft)
    made.data = Raw(json.dumps(data).encode())
    return made


def why(one: RouteRule, event: Draft, source: str = "ci") -> tuple[bool, str]:
    (said,) = explain([one], event, source)["rules"]
    assert (said["name"], said["target"]) == (one.name, one.target)
    return said["fits"], said["why"]


@pytest.mark.parametrize(
    ("fields", "event", "reason"),
    [
        ({"event": "lint.*"}, draft(), "event is lint.*, not test.failed"),
        ({"match": {"source": "ide"}}, draft(), 'source is "ci", not "ide"'),
        ({"match": {"workspace": ["a", "b"]}}, draft(), 'workspace is "default", not ["a","b"]'),
        ({"match": {"subject": "src/**"}}, draft(subject="docs/a"), 'subject is "docs/a", not "src/**"'),
        ({"match": {"session": "s"}}, draft(), 'session is null, not "s"'),
        ({"match": {"class": "user"}}, draft(), 'class is "environment", not "user"'),
        ({"match": {"tags": "slow"}}, draft(tags=["a"]), 'tags is ["failure","a"], not "slow"'),
        ({"match": {"priority": "P0"}}, draft(), 'priority is "P1", not "P0"'),
        ({"match": {"data.a.b": 1}}, draft({"a": {"b": 2}}), "data.a.b is 2, not 1"),
        ({"match": {"data.a.b": True}}, draft({"a": {"b": 1}}), "data.a.b is 1, not true"),
        ({"match": {"data.a.b": 1}}, draft({"a": 1}), "data.a.b is null, not 1"),
    ],
)
def test_each_thing_that_keeps_a_rule_away_is_named(
    fields: dict[str, Any], event: Draft, reason: str
) -> None:
    assert why(rule("r", **fields), event) == (False, reason)


def test_all_reasons_are_named_and_long_values_cut() -> None:
    fits, said = why(rule("r", event="a.b", match={"source": "x", "data.n": 1}), draft({"n": "y" * 5000}))
    assert not fits
    first, second, third = said.split("; ")
    assert (first, second) == ("event is a.b, not test.failed", 'source is "ci", not "x"')
    assert third.startswith('data.n is "yyy') and len(third) < 250


def test_a_condition_on_followers_is_named_and_not_judged() -> None:
    assert why(rule("r"), draft()) == (True, "fits")
    asked = rule("r", match={"attr.mode": "debug", "attr.ide": "x", "class": "environment"})
    assert why(asked, draft()) == (True, "fits followers whose attr.mode and attr.ide fit")
    (delivery,) = explain([asked], draft(), "ci")["deliveries"]
    assert delivery["attrs"] == {"mode": ["debug"], "ide": ["x"]}


def test_a_wish_for_a_lane_is_what_rules_are_asked_with() -> None:
    said = explain([rule("r", match={"priority": "P0"})], draft(priority="P0"), "ci")
    assert said["rules"][0]["fits"] and said["priority"] == "P0"


RULES = st.lists(
    st.fixed_dictionaries(
        {"event": st.sampled_from(["*", "test.*", "lint.*"]), "target": st.sampled_from(["a", "b"])},
        optional={
            "match": st.dictionaries(
                st.sampled_from(["source", "data.n", "class", "attr.x"]),
                st.sampled_from(["ci", "environment", 1, True]),
                max_size=2,
            ),
            "priority": st.sampled_from(["P0", "P1", "P2"]),
        },
    ),
    max_size=6,
)


@given(RULES, st.sampled_from([None, {"n": 1}, {"n": True}, {"n": "ci"}]))
def test_what_is_said_to_fit_is_what_is_delivered(made: list[dict[str, Any]], data: Any) -> None:
    rules = [msgspec.convert({**fields, "name": f"r{n}"}, RouteRule) for n, fields in enumerate(made)]
    said = explain(rules, draft(data), "ci")
    fitting = {one["target"] for one in said["rules"] if one["fits"]}
    assert {delivery["target"] for delivery in said["deliveries"]} == fitting
    for delivery in said["deliveries"]:
        names = [one["name"] for one in said["rules"] if one["fits"] and one["target"] == delivery["target"]]
        assert delivery["rules"] == names
    wishes = [r.priority for r, one in zip(rules, said["rules"], strict=True) if one["fits"] and r.priority]
    assert said["priority"] == min(wishes, default="P1")
