import pytest
from msgspec.structs import replace

from herdr.pool.canonical import canonical
from herdr.pool.joins import join_key, may_join, retry_key
from herdr.pool.request import (
    ChatRequest,
    Message,
    ResponseFormat,
    Sampling,
    Text,
    Tool,
    ToolChoice,
    ToolUse,
)

BILLING = "x-anthropic-billing-header: cc_version=2.1.100.{}; cc_entrypoint=cli; cch={};"
SYSTEM = Message("system", (Text("You are kind."),))
USER = Message("user", (Text("hi"),))
REQUEST = ChatRequest("m", (SYSTEM, USER), (Tool("ls"),), max_tokens=100)


def key(request: ChatRequest, backend: str = "local") -> bytes:
    return join_key(canonical(request), backend)


@pytest.mark.parametrize(
    "changes",
    [
        {"stream": True},
        {"include_usage": True},
        {"hide_thinking": True},
        {"session": "s", "agent": "a", "route": "r", "priority": 0},
        {"messages": (Message("system", (Text(BILLING.format("abc", "00000")), *SYSTEM.parts)), USER)},
        {"messages": (Message("system", (Text(BILLING.format("123", "a5145") + "You are kind."),)), USER)},
        {"messages": (SYSTEM, Message("user", (Text(""), Text("hi"))))},
    ],
)
def test_how_the_answer_is_delivered_is_no_part(changes: dict[str, object]) -> None:
    assert key(replace(REQUEST, **changes)) == key(REQUEST)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "n"},
        {"messages": (SYSTEM, Message("user", (Text("ho"),)))},
        {"messages": (SYSTEM, USER, Message("assistant", (Text("hi"),)))},
        {"messages": (SYSTEM, USER, Message("assistant", (ToolUse("t", "ls", "{}"),)))},
        {"messages": (USER,)},
        {"tools": ()},
        {"tools": (Tool("ls", strict=True),)},
        {"tool_choice": ToolChoice("any")},
        {"tool_choice": ToolChoice(parallel=False)},
        {"sampling": Sampling(temperature=0)},
        {"sampling": Sampling(seed=1)},
        {"sampling": Sampling(stop=("END",))},
        {"response_format": ResponseFormat("json_object")},
        {"max_tokens": 101},
        {"max_tokens": None},
        {"thinking": True},
        {"thinking": False},
        {"effort": "low"},
    ],
)
def test_what_decides_the_answer_is(changes: dict[str, object]) -> None:
    assert key(replace(REQUEST, **changes)) != key(REQUEST)


def test_so_does_the_backend() -> None:
    assert key(REQUEST, "local") != key(REQUEST, "cloud")


@pytest.mark.parametrize(
    ("temperature", "retry", "same_client", "joins"),
    [
        (0, False, False, True),
        (0.0, True, True, True),
        (0.7, True, True, True),
        (None, True, True, True),
        (0.7, False, True, False),
        (0.7, True, False, False),
        (None, False, True, False),  # the backend's default is not 0
        (None, False, False, False),
    ],
)
def test_who_may_share_a_generation(
    temperature: float | None, retry: bool, same_client: bool, joins: bool
) -> None:
    request = replace(REQUEST, sampling=Sampling(temperature=temperature))
    assert may_join(request, retry, same_client) is joins


def test_a_repeated_request_is_known_for_each_client() -> None:
    asked = key(REQUEST)
    assert retry_key(asked, "a") == retry_key(key(replace(REQUEST, stream=True)), "a")
    assert len({retry_key(asked, "a"), retry_key(asked, "b"), retry_key(asked, None), asked}) == 4
