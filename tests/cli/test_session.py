import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from context_answers import ContextAnswers, context_answers

from herdr.cli.session import SAID_MAX, content_of

WINDOW: dict[str, Any] = {
    "session": "fix cart",
    "messages": 1200,
    "tokens": 1812,
    "full_tokens": 9640,
    "saved_tokens": 7828,
    "tokenizer": "o200k_base",
    "summariser": "rules",
    "summary": {"decisions": []},
    "newest": [],
    "text": "Decisions\n- use Decimal\x1b[1m",
    "ref": "ab",
}
SESSIONS = {
    "sessions": [
        {
            "session": "fix\x1bcart",
            "workspace": "shop",
            "messages": 1200,
            "updated": "2026-03-02T09:15:00.000Z",
            "sources": ["cursor", "claude"],
        },
        {"session": "s2", "workspace": "default", "messages": 1, "updated": None, "sources": []},
    ],
    "more": 3,
}
SESSIONS_TABLE = """\
session        workspace  messages  updated         sources
fix\\u001bcart  shop       1,200     03-02 09:15:00  cursor, claude
s2             default    1         -               -
"""
MESSAGES = {
    "messages": [
        {
            "seq": 7,
            "time": "2026-03-02T09:15:00.000Z",
            "role": "user",
            "source": "me",
            "content": "Fix\n  it.\x07",
        },
        {
            "seq": 9,
            "time": "2026-03-02T09:15:02.000Z",
            "role": "assistant",
            "source": "cursor",
            "content": [
                {"type": "text", "text": "Yes."},
                {"type": "tool_use", "name": "edit", "input": {"p": 1}},
            ],
        },
    ],
    "more": 0,
}
MESSAGES_TABLE = """\
seq  time            role       source  content
7    03-02 09:15:00  user       me      Fix it.\\u0007
9    03-02 09:15:02  assistant  cursor  Yes. [edit {"p": 1}]
"""


@pytest.fixture
def answers() -> Iterator[ContextAnswers]:
    with context_answers() as running:
        running.answers = {
            "GET /v1/sessions": (200, SESSIONS),
            "GET /v1/sessions/fix%20cart": (200, WINDOW),
            "GET /v1/sessions/a%2Fb/messages": (200, MESSAGES),
            "DELETE /v1/sessions/s2": (204, None),
        }
        yield running


@pytest.fixture
def herdr(answers: ContextAnswers, tmp_path: Path) -> Cli:
    return Cli(answers.url, tmp_path)


def test_the_window_goes_to_stdout_and_its_cost_to_stderr(herdr: Cli, answers: ContextAnswers) -> None:
    done = herdr("session", "show", "fix cart")
    assert (done.returncode, done.stdout) == (0, "Decisions\n- use Decimal\\u001b[1m\n")
    said = "1,812 tokens (o200k_base) of 9,640, 7,828 saved: 1,200 messages, summary by rules"
    assert done.stderr == f"herdr: {said}\n"
    assert herdr("session", "show", "fix cart", "--tokens", "64").returncode == 0
    assert answers.addresses() == ["/v1/sessions/fix%20cart", "/v1/sessions/fix%20cart?tokens=64"]


def test_an_id_of_another_encoding_is_sent_as_its_bytes(herdr: Cli, answers: ContextAnswers) -> None:
    assert herdr("session", "show", "caf\udce9").returncode == 1
    assert answers.addresses() == ["/v1/sessions/caf%E9"]


def test_the_list(herdr: Cli, answers: ContextAnswers) -> None:
    done = herdr("session", "list")
    assert (done.returncode, done.stdout) == (0, SESSIONS_TABLE)
    assert done.stderr == "herdr: 3 more: raise --limit\n"
    assert herdr("session", "list", "--workspace", "a&b", "--limit", "2").returncode == 0
    assert answers.addresses() == ["/v1/sessions?limit=100", "/v1/sessions?workspace=a%26b&limit=2"]


def test_messages(herdr: Cli, answers: ContextAnswers) -> None:
    done = herdr("session", "messages", "a/b", "--after", "6", "--limit", "2")
    assert (done.returncode, done.stdout, done.stderr) == (0, MESSAGES_TABLE, "")
    assert answers.addresses() == ["/v1/sessions/a%2Fb/messages?after=6&limit=2"]


@pytest.mark.parametrize(("more", "said"), [(True, "more"), (1200, "1,200 more")])
def test_how_to_go_on_is_told(herdr: Cli, answers: ContextAnswers, more: object, said: str) -> None:
    answers.answers["GET /v1/sessions/a%2Fb/messages"] = (200, {**MESSAGES, "more": more})
    done = herdr("session", "messages", "a/b")
    assert done.stderr == f"herdr: {said}: herdr session messages a/b --after 9\n"


def test_a_long_message_is_cut_for_people(herdr: Cli, answers: ContextAnswers) -> None:
    answers.answers["GET /v1/sessions/a%2Fb/messages"] = (
        200,
        {"messages": [{"seq": 1, "content": "x" * 5000}]},
    )
    assert herdr("session", "messages", "a/b").stdout.endswith(f"-       {'x' * SAID_MAX}…\n")
    assert "x" * 5000 in herdr("session", "messages", "a/b", "--json").stdout


def test_deleting(herdr: Cli, answers: ContextAnswers) -> None:
    done = herdr("session", "delete", "s2")
    said = "herdr: s2 is deleted; the log keeps its events as long as any others\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)
    answers.answers["DELETE /v1/sessions/s2"] = (404, {"code": "unknown_session", "detail": "no session s2"})
    done = herdr("session", "delete", "s2")
    assert (done.returncode, done.stderr) == (1, "herdr: no session s2\n")


@pytest.mark.parametrize(
    ("part", "answer", "said"),
    [
        (("list",), {"sessions": []}, "there are no sessions"),
        (("messages", "a/b"), {"messages": []}, "a/b has no messages"),
        (("messages", "a/b", "--after", "9"), {"messages": []}, "a/b has no messages after 9"),
    ],
)
def test_there_is_nothing(
    herdr: Cli, answers: ContextAnswers, part: tuple[str, ...], answer: dict[str, Any], said: str
) -> None:
    for address in list(answers.answers):
        answers.answers[address] = (200, answer)
    done = herdr("session", *part)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"herdr: {said}\n")


@pytest.mark.parametrize(
    ("part", "answer"),
    [(("show", "fix cart"), WINDOW), (("list",), SESSIONS), (("messages", "a/b"), MESSAGES)],
)
def test_json_is_the_answer_as_it_is(herdr: Cli, part: tuple[str, ...], answer: dict[str, Any]) -> None:
    done = herdr("session", *part, "--json")
    assert (json.loads(done.stdout), done.stdout.count("\n"), done.stderr) == (answer, 1, "")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", "a"),
        (None, "-"),
        ([], "-"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "3 passed"}]}], "3 passed"),
        ([{"type": "tool_result", "content": "3 passed"}, "x", {"type": "later"}], "3 passed x -"),
    ],
)
def test_content_in_words(content: object, text: str) -> None:
    assert content_of(content) == text


@pytest.mark.parametrize(
    "wrong",
    [("show", "x", "--tokens", "63"), ("list", "--limit", "0"), ("messages", "x", "--after", "-1"), ()],
)
def test_wrong_command_lines(nowhere: Cli, wrong: tuple[str, ...]) -> None:
    assert nowhere("session", *wrong).returncode == 2


def test_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("session", "list").returncode == 3
