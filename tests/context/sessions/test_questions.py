# ruff: noqa: RUF001 - the marks of Chinese
import pytest
from transcripts.talk import message, talk, told

from herdr.context.sessions.message import Call
from herdr.context.sessions.state import QUESTIONS_MAX


def open_after(*lines: str) -> list[str]:
    return [question.text for question in told(talk(*lines)).questions]


@pytest.mark.parametrize(
    "lines",
    [
        ("a: Which Rust version does the box have?",),
        ("a: Who owns the PDF service?", "u: I'll ask Jonas about that."),
        (
            "a: Who owns the PDF service?",
            "u: I'll ask. For now add a date.",
            "a: Done with the date.",
            "u: now push it",
        ),
        ("u: is the cache shared between workers?",),
        ("u: is the cache shared between workers?", "a: Let me look."),
        ("a: 订单服务存的时间是 UTC 吗？", "u: 我问一下订单组。"),
    ],
)
def test_questions_that_are_open(lines: tuple[str, ...]) -> None:
    assert open_after(*lines) == [lines[0].partition(": ")[2]]


@pytest.mark.parametrize(
    "lines",
    [
        ("a: Which Rust version does the box have?", "u: 1.70"),
        (
            "a: Should amounts be floats or strings?",
            "u: strings, the front end parses them with big.js anyway and so on",
        ),
        ("a: Want me to open a branch there?", "u: now add the tests for the other module as we said"),
        (
            "a: Thoughts? What do you think?",
            "u: make it seven days because people go on holiday and forget about it",
        ),
        ("u: is the cache shared between workers?", "a: No, each worker has its own."),
        (
            "u: what does it cost?",
            "a: About five lines in the loader, and a dependency that has to be installed too.",
        ),
        ("u: could you add a flag?",),
        ("u: really?",),
        ("a: 文件名有别的地方依赖吗？", "u: 没有"),
        ("u: 缓存会无限增长吗？", "a: 会，缓存现在没有淘汰。"),
    ],
)
def test_questions_that_are_over_or_none(lines: tuple[str, ...]) -> None:
    assert open_after(*lines) == []


def test_one_of_two_is_answered() -> None:
    asked = "a: Should we keep the old endpoints? Is a timeout of 30 seconds fine?"
    assert open_after(
        asked, "u: Please keep the old endpoints in place for another year or two, people use them."
    ) == ["Is a timeout of 30 seconds fine?"]


def test_what_is_asked_on_the_way_to_a_step_is_no_question() -> None:
    thinking = message(1, "a", "Is it the cache? Let me look.", [Call("Read", files=("a.py",))])
    assert told([thinking]).questions == ()


def test_an_old_question_is_answered_only_by_what_names_it() -> None:
    lines = ("a: Who owns the PDF service?", "u: will ask tomorrow", "a: Fine.")
    assert open_after(*lines, "u: thanks") != []
    assert open_after(*lines, "u: the PDF service is owned by the billing team") == []


def test_asked_twice_is_asked_once_and_the_number_is_bounded() -> None:
    assert len(open_after("a: Who owns the PDF service?", "a: Who owns the PDF service?")) == 1
    summary = told(talk(*(f"a: Who owns the service number {n}?" for n in range(QUESTIONS_MAX + 5))))
    assert (len(summary.questions), summary.more.questions) == (QUESTIONS_MAX, 5)
    assert summary.questions[0].seq == 6
