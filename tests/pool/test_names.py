import pytest

from herdr.pool.names import Names, Short

BACKENDS = ["local", "cloud", "small"]


@pytest.mark.parametrize(
    ("model", "backend"),
    [
        ("gpt-5", "small"),  # an exact name comes first
        ("gpt-4", "cloud"),  # then globs in their order
        ("gpt-oss", "cloud"),
        ("claude", "local"),
        ("", "local"),
    ],
)
def test_exact_names_before_globs_before_the_first_backend(model: str, backend: str) -> None:
    names = Names({"gpt-*": "cloud", "gpt-oss": "cloud", "*-oss": "small", "gpt-5": "small"}, BACKENDS)
    assert names.find(model) == backend


def test_a_star_is_the_default_wherever_it_stands() -> None:
    names = Names({"*": "cloud", "claude-*": "local"}, BACKENDS)
    assert names.find("something") == "cloud"
    assert Names({"claude-*": "local", "*": "cloud"}, BACKENDS).find("claude-x") == "local"


def test_without_backends_there_is_nowhere_to_go() -> None:
    assert Names({}, []).find("any") is None
    assert Names({}, []).choices("any", 1, False) == []


def test_fallbacks_follow_in_their_order_and_never_in_a_circle() -> None:
    circle = {"local": "cloud", "cloud": "small", "small": "local"}
    assert Names({}, BACKENDS, circle).choices("any", 1, False) == ["local", "cloud", "small"]
    assert Names({}, BACKENDS, {"local": "local"}).choices("any", 1, False) == ["local"]
    assert Names({}, BACKENDS, {"cloud": "small"}).choices("any", 1, False) == ["local"]


@pytest.mark.parametrize(
    ("tokens", "has_tools", "chosen"),
    [(2000, False, "small"), (2001, False, "local"), (1, True, "local"), (0, False, "small")],
)
def test_short_requests_without_tools_go_to_the_small_model(
    tokens: int, has_tools: bool, chosen: str
) -> None:
    names = Names({}, BACKENDS, {"small": "cloud"}, Short("small", 2000))
    assert names.choices("any", tokens, has_tools)[0] == chosen
    assert names.choices("any", 1, False) == ["small", "cloud"], "its fallback is its own"


def test_globs_are_not_listed() -> None:
    names = Names({"gpt-5": "cloud", "gpt-*": "cloud", "*": "local", "qwen": "local"}, BACKENDS)
    assert names.listed == ["gpt-5", "qwen"]
    assert names.given == {"gpt-5": "cloud", "gpt-*": "cloud", "*": "local", "qwen": "local"}
