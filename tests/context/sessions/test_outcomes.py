# ruff: noqa: RUF001 - the marks of Chinese
import pytest
from transcripts.talk import message, ran, talk, told

from herdr.context.sessions.message import Call, Message
from herdr.context.sessions.outcomes import ONE_OFF_MESSAGES
from herdr.context.sessions.state import ERRORS_MAX, OUTCOMES_MAX

RED, GREEN = "FAILED tests/a.py::test_x - boom\n1 failed", "3 passed in 0.1s"


def errors(*messages: Message) -> list[str]:
    return [error.text for error in told(messages).errors]


def outcomes(*messages: Message) -> list[str]:
    return [outcome.text for outcome in told(messages).outcomes]


def test_a_failed_test_is_open_until_it_passes() -> None:
    red = ran(1, "pytest", RED)
    assert errors(red) == ["pytest: 1 failed (tests/a.py::test_x)"]
    assert errors(red, ran(2, "pytest", RED)) == ["pytest: 1 failed (tests/a.py::test_x)"]
    assert errors(red, ran(2, "pytest -q tests/a.py", GREEN)) == []
    assert errors(red, ran(2, "pytest", GREEN)) == []


@pytest.mark.parametrize("command", ["pytest tests/b.py", "mypy", "npm test"])
def test_what_others_pass_says_nothing_of_it(command: str) -> None:
    assert errors(ran(1, "pytest", RED), ran(2, command, GREEN)) != []


def test_a_part_that_passes_says_nothing_of_an_error_without_a_name() -> None:
    assert (
        errors(ran(1, "mypy src/a.py", "Found 1 error"), ran(2, "mypy src/b.py", "Success: no issues found"))
        != []
    )
    assert (
        errors(ran(1, "mypy src/a.py", "Found 1 error"), ran(2, "mypy src/a.py", "Success: no issues found"))
        == []
    )


def test_the_call_may_stand_in_the_message_before() -> None:
    asks = message(1, "a", "Run it.", [Call("Bash", "pytest", id="c1"), Call("Bash", "mypy", id="c2")])
    answer = Message(2, "m2", "tool", "tool", 0, RED, tool="Bash", answers="c1")
    assert errors(asks, answer) == ["pytest: 1 failed (tests/a.py::test_x)"]
    unnamed = Message(3, "m3", "tool", "tool", 0, "src/a.py:1: error: no", tool="Bash")
    assert [e.split(":")[0] for e in errors(asks, answer, unnamed)] == ["pytest", "mypy"]


def test_output_of_tools_that_only_show_is_no_error() -> None:
    reads = message(1, "t", "ValueError: in some source code", [Call("Read", files=("a.py",))])
    assert errors(reads) == []
    assert errors(ran(1, "cat log.txt", "Traceback (most recent call last)\nValueError: old")) == []


def test_an_edit_that_did_not_fit() -> None:
    edit = [Call("Edit", files=("a.py",))]
    bad = message(1, "t", "String not found", edit, failed=True)
    assert errors(bad) == ["Edit a.py: String not found"]
    assert errors(bad, message(2, "t", "ok", [Call("Edit", files=("b.py",))])) != []
    assert errors(bad, message(2, "t", "ok", edit)) == []


def test_an_error_of_a_command_that_nobody_came_back_to_is_given_up() -> None:
    bad = ran(1, "node once.js", "Error: Cannot find module 'x'")
    talked = [message(n, "a", "Looking further.") for n in range(2, 3 + ONE_OFF_MESSAGES)]
    assert errors(bad, *talked[:-1]) != []
    assert errors(bad, *talked) == []
    assert errors(ran(1, "pytest", RED), *talked) != []


@pytest.mark.parametrize(
    "over", ["works now", "ok that did it", "still red, but a different one now", "好了，可以了"]
)
def test_what_a_user_reports_is_over_when_the_user_says_so(over: str) -> None:
    bad = message(1, "u", "CI says\nTypeError: no 'ttl'")
    assert errors(bad) == ["TypeError: no 'ttl'"]
    assert errors(bad, ran(2, "pytest", GREEN), message(3, "a", "Fixed and green.")) != []
    assert errors(bad, message(2, "u", over)) == []


def test_the_last_run_of_a_check_is_the_outcome() -> None:
    runs = [ran(n, "pytest -q", f"{n} passed in 0.1s") for n in range(1, 9)]
    assert outcomes(*runs) == ["pytest: 8 passed in 0.1s"]
    assert outcomes(*runs, ran(9, "mypy", "Success: no issues found"))[1:] == [
        "mypy: Success: no issues found"
    ]


def test_commits() -> None:
    assert outcomes(ran(1, "git commit -am 'x'", "[main 5cd3a69] Use decimals\n")) == [
        "committed 5cd3a69 Use decimals"
    ]
    assert outcomes(ran(1, "git commit -qm 'Use decimals'", "")) == ["committed: Use decimals"]
    assert outcomes(ran(1, "git commit -qm 'x'", "fatal: nothing", failed=True)) == []


@pytest.mark.parametrize(
    "line, kept",
    [
        ("a: All tests pass, including the case from support.", True),
        ("a: Done: the version is 0.3.0 and it is tagged.", True),
        ("u: deployed it to the staging box", True),
        ("a: 全部通过，共 8 个测试。", True),
        ("a: Done.", False),
        ("u: pushed, still red on windows", False),
        ("a: All tests pass now?", False),
        ("a: The tests should pass once it is done.", False),
    ],
)
def test_what_is_said_to_be_done(line: str, kept: bool) -> None:
    assert bool(told(talk(line)).outcomes) == kept


def test_bounds() -> None:
    many = [ran(n, f"node s{n}.js", f"Error: no {n}", failed=True) for n in range(ERRORS_MAX + 3)]
    summary = told(many)
    assert (len(summary.errors), summary.more.errors) == (ERRORS_MAX, 3)
    done = [ran(n, f"git commit -m 'thing {n}'", "") for n in range(OUTCOMES_MAX + 3)]
    summary = told(done)
    assert (len(summary.outcomes), summary.more.outcomes) == (OUTCOMES_MAX, 3)
