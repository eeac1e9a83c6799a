import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from herdr.errors import InvalidInput
from herdr.pool.canonical import canonical
from herdr.pool.identity import NAME_MAX, Caller, clean, identify
from herdr.pool.request import ChatRequest, Message, Text, Tool

SUB_BILLING = "x-anthropic-billing-header: cc_version=2.1.328.256; cc_is_subagent=true;"
CODE = "x-claude-code-session-id"
SUB = "x-claude-code-agent-id"
REQUEST = ChatRequest("m", (Message("user", (Text("hi"),)),), (Tool("ls"),))
BARE = replace(REQUEST, tools=())


def caller(headers: dict[str, str], request: ChatRequest = REQUEST, token: str | None = None) -> Caller:
    return identify(headers, request, canonical(request), token)


@pytest.mark.parametrize(
    ("headers", "body", "token", "agent"),
    [
        ({}, {}, None, None),
        ({}, {}, "ci", "ci"),
        ({}, {"session": "s"}, "ci", "s"),
        ({CODE: "u1"}, {"session": "s"}, "ci", "u1"),
        ({CODE: "u1", SUB: "9f"}, {}, None, "u1/9f"),
        ({SUB: "9f"}, {"session": "s"}, None, "s/9f"),
        ({SUB: "9f"}, {}, None, "9f"),
        ({"thread-id": "t", "session-id": "s"}, {"session": "t"}, None, "t"),
        ({"session-id": "s"}, {}, None, "s"),
        ({"x-session-id": "o", "x-session-affinity": "o"}, {}, None, "o"),
        ({"x-session-id": "o"}, {"agent": "mine"}, None, "mine"),
        ({"x-agent-id": "main"}, {"agent": "mine"}, None, "main"),
        ({"x-agent-id": "main", CODE: "u1"}, {"session": "s"}, "ci", "main"),
        ({"x-agent-id": "main", CODE: "u1", SUB: "9f"}, {}, "ci", "main/9f"),
        ({"x-agent-id": " \t", CODE: "u1"}, {}, None, "u1"),
        ({"x-agent-id": "", CODE: ""}, {}, None, None),
    ],
)
def test_who_is_asking(
    headers: dict[str, str], body: dict[str, object], token: str | None, agent: str | None
) -> None:
    found = caller(headers, replace(REQUEST, **body), token)
    assert found.agent == agent
    assert found.shown == (agent or "default")


def test_a_sub_agent_that_only_its_billing_text_names_is_not_its_parent() -> None:
    system = Message("system", (Text(SUB_BILLING), Text("You explore.")))
    request = replace(BARE, messages=(system, *BARE.messages))
    found = caller({CODE: "u1"}, request)
    assert (found.agent, found.sub_agent, found.side) == ("u1/sub-agent", True, False)
    assert caller({}, request).agent is None
    assert caller({CODE: "u1", SUB: "9f"}, request).agent == "u1/9f"


@pytest.mark.parametrize(
    ("headers", "body", "session"),
    [
        ({}, {}, None),
        ({}, {"session": "s"}, "s"),
        ({CODE: "u1"}, {"session": "s"}, "u1"),
        ({CODE: "u1", SUB: "9f", "x-agent-id": "a"}, {}, "u1"),
        ({CODE: "u1", "x-herdr-session": "mine"}, {"session": "s"}, "mine"),
    ],
)
def test_where_its_turns_are_recorded(
    headers: dict[str, str], body: dict[str, object], session: str | None
) -> None:
    assert caller(headers, replace(REQUEST, **body)).session == session


@pytest.mark.parametrize(
    ("headers", "request_", "route", "side"),
    [
        ({}, REQUEST, "primary_agent", False),
        ({}, BARE, "primary_agent", False),  # a plain client without tools is no side call
        ({CODE: "u1"}, REQUEST, "primary_agent", False),
        ({CODE: "u1"}, BARE, "background", True),  # a title
        ({"x-session-id": "o"}, BARE, "background", True),
        ({"thread-id": "t"}, BARE, "background", True),
        ({"x-agent-id": "main"}, BARE, "primary_agent", False),  # no header of the client's own
        ({}, replace(BARE, session="s"), "primary_agent", False),
        ({CODE: "u1", SUB: "9f"}, BARE, "primary_agent", False),
        ({CODE: "u1", "x-claude-code-request-class": "subagent"}, BARE, "primary_agent", False),
        ({}, replace(REQUEST, max_tokens=1), "background", True),
        ({}, replace(REQUEST, max_tokens=2), "primary_agent", False),
        ({"x-claude-code-request-class": "auxiliary"}, REQUEST, "background", True),
        ({"x-claude-code-request-class": "side_reply"}, REQUEST, "background", True),
        ({"x-claude-code-request-class": "main"}, REQUEST, "primary_agent", False),
        ({"x-claude-code-request-class": "compaction"}, REQUEST, "primary_agent", False),
        ({}, replace(REQUEST, route="reviews"), "reviews", False),
        ({"x-herdr-route": "ci"}, replace(REQUEST, route="reviews"), "ci", False),
        ({"x-herdr-route": "ci"}, replace(REQUEST, max_tokens=1), "ci", True),
        ({"x-herdr-route": "ci", CODE: "u1", SUB: "9f"}, REQUEST, "ci", False),
    ],
)
def test_on_which_route(headers: dict[str, str], request_: ChatRequest, route: str, side: bool) -> None:
    found = caller(headers, request_)
    assert (found.route, found.side) == (route, side)


@pytest.mark.parametrize(
    ("headers", "sub_agent"),
    [
        ({CODE: "u1"}, False),
        ({CODE: "u1", SUB: "9f"}, True),
        ({CODE: "u1", SUB: ""}, False),
        ({"x-claude-code-request-class": "subagent"}, True),
    ],
)
def test_sub_agents(headers: dict[str, str], sub_agent: bool) -> None:
    assert caller(headers).sub_agent is sub_agent


@pytest.mark.parametrize(
    ("headers", "body", "priority"),
    [
        ({}, {}, 5),
        ({"x-priority": "0"}, {}, 0),
        ({"x-priority": " 9 "}, {}, 9),
        ({}, {"priority": 2}, 2),
        ({"x-priority": "7"}, {"priority": 2}, 7),
    ],
)
def test_how_urgently(headers: dict[str, str], body: dict[str, object], priority: int) -> None:
    assert caller(headers, replace(REQUEST, **body)).priority == priority


@pytest.mark.parametrize("given_", ["", "high", "10", "-1", "5.0", "+5", "05", "٣", "1 2", "x\r\n1", "None"])
def test_a_bad_priority_is_refused_and_told_what_is_allowed(given_: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        caller({"x-priority": given_})
    assert "whole number from 0 (first) to 9 (last)" in refused.value.detail
    assert [error.field for error in refused.value.errors] == ["X-Priority"]


@pytest.mark.parametrize("given_", [-1, 10, 1 << 80])
def test_a_bad_priority_in_the_body_too(given_: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        caller({}, replace(REQUEST, priority=given_))
    assert [error.field for error in refused.value.errors] == ["priority"]


@pytest.mark.parametrize(
    ("headers", "retry"),
    [
        ({}, False),
        ({"x-stainless-retry-count": "0"}, False),
        ({"x-stainless-retry-count": "1"}, True),
        ({"x-stainless-retry-count": " 10 "}, True),
        ({"x-retry-count": "2"}, True),
        ({"x-retry-attempt": "2"}, True),
        ({"x-stainless-retry-count": "often"}, False),
        ({"x-stainless-retry-count": "-1"}, False),
        ({"x-stainless-retry-count": "²"}, False),
        ({"x-stainless-retry-count": "9" * 5000}, False),
    ],
)
def test_whether_it_asks_again(headers: dict[str, str], retry: bool) -> None:
    assert caller(headers).retry is retry


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, None),
        ("", None),
        ("\x00\x1f", None),
        ("main", "main"),
        (" two  words\t", "two words"),
        ("a\r\nb\x7f", "a b"),
        ("caf%C3%A9", "café"),
        ("caf\u00c3\u00a9", "café"),  # UTF-8 that was read as Latin-1
        ("caf\u00e9", "café"),
        ("渐", "渐"),
        ("50%", "50%"),
        ("%FF", "%FF"),
        ("a%0D%0Ab", "a b"),
        ("a\u202eb", "a b"),
        ("x" * NAME_MAX, "x" * NAME_MAX),
    ],
)
def test_odd_names_are_cleaned(value: str | None, name: str | None) -> None:
    assert clean(value) == name


def test_long_names_are_bounded_and_stay_apart() -> None:
    one, other = clean("x" * 5000 + "1"), clean("x" * 5000 + "2")
    assert one is not None
    assert other is not None
    assert len(one) == len(other) == NAME_MAX
    assert one != other
    assert one.startswith("x" * 100)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_any_name_is_printable_and_bounded(value: str) -> None:
    name = clean(value)
    assert name is None or (name.isprintable() and 0 < len(name) <= NAME_MAX and name == name.strip())
