# ruff: noqa: RUF001 - the marks of Chinese
import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.labelled import messages
from transcripts.talk import message, ran, talk, told

from herdr.context.sessions.message import Call, Message
from herdr.context.sessions.pieces import HEADINGS, listing, pieces, shortened, texts
from herdr.context.sessions.state import FULL_MAX, SHORT_MAX, Summary
from herdr.context.sessions.summary import summarise
from herdr.context.sessions.window import BUDGET_MIN, NEWEST_SHARE, Window, choose, compose


def count(text: str) -> int:
    return math.ceil(len(text.encode()) / 2.7)


def window(said: list[Message], budget: int, counter: Callable[[str], int] = count) -> Window:
    return compose(summarise(said), said[-64:], budget, counter)


LONG = messages("en-upload-queue")


@pytest.mark.parametrize("budget", [64, 100, 300, 1000, 2048, 8000])
def test_the_budget_is_kept_and_used(budget: int) -> None:
    tokens = count(window(LONG, budget).text)
    assert budget * 0.6 <= tokens <= budget


@pytest.mark.parametrize(
    "counter",
    [
        *(len, lambda text: len(text.encode()), lambda text: len(text) * 3),
        *(lambda text: len(text) // 9, lambda text: len(text.split())),
    ],
    ids=["characters", "bytes", "thrice", "ninth", "words"],
)
@pytest.mark.parametrize("budget", [64, 2048])
def test_the_budget_is_kept_under_any_counter(counter: Callable[[str], int], budget: int) -> None:
    assert counter(window(LONG, budget, counter).text) <= budget


def test_a_counter_that_counts_the_whole_higher_than_its_lines() -> None:
    def counter(text: str) -> int:
        return count(text) + (50 if text.count("\n") > 3 else 0)

    assert 250 <= counter(window(LONG, 500, counter).text) <= 500


def test_a_budget_below_the_least_is_the_least() -> None:
    assert window(LONG, 0) == window(LONG, BUDGET_MIN)


def test_the_same_gives_the_same_bytes() -> None:
    assert window(LONG, 2048).text.encode() == window(list(LONG), 2048).text.encode()


def test_decisions_come_first_and_what_changes_comes_last() -> None:
    text = window(LONG, 2048).text
    places = [text.find(heading) for heading in HEADINGS.values()]
    assert places[0] == 0 and places == sorted(places) and -1 not in places


def test_the_beginning_stays_the_same_from_turn_to_turn() -> None:
    before, after = (window(LONG[:n], 2048).text for n in (100, 104))
    decisions = before[: before.index(HEADINGS["outcome"])]
    assert len(decisions) > 500 and after.startswith(decisions)


def test_the_newest_get_a_third_and_the_rest_goes_to_the_summary() -> None:
    said = [
        message(n, "u", f"never use library number {n} because it is {n} times too slow for us")
        for n in range(1, 90)
    ]
    said += [message(n, "a", f"Sentence {n} of a story without end. " * 20) for n in range(90, 120)]
    for budget in (600, 1000, 3000):
        got = window(said, budget)
        newest = got.text[got.text.index(HEADINGS["message"]) :]
        assert count(newest) >= budget / NEWEST_SHARE * 0.7
        assert got.decisions and got.more.decisions == 89 - len(got.decisions)


def test_the_users_last_message_is_always_there() -> None:
    said = [message(1, "u", "please keep this in mind: " + "word " * 5000 + "the end")]
    said += [message(n, "t", f"output {n} " * 400) for n in range(2, 60)]
    for budget in (64, 300, 2048):
        users = [one for one in window(said, budget).newest if one.role == "user"]
        assert [one.seq for one in users] == [1]
    assert users[0].text.startswith("please keep") and users[0].text.endswith("the end")
    assert "characters left out" in users[0].text and not users[0].whole


def test_what_tools_printed_is_shown_by_its_end() -> None:
    said = [
        *talk("u: run it"),
        ran(2, "pytest", "x\n" * 3000 + "3 passed in 1s"),
        message(3, "a", "word " * 3000),
    ]
    shown = {one.seq: one for one in window(said, 500).newest}
    assert shown[2].text.endswith("3 passed in 1s") and len(shown[2].text) < 300


def test_calls_without_words_are_named() -> None:
    said = [message(1, "a", "", [Call("Edit", files=("a.py",)), Call("Bash", "pytest")])]
    assert window(said, 500).newest[0].text == "[Edit a.py]; [Bash pytest]"


def test_decisions_that_do_not_fit_in_full_stand_in_short() -> None:
    reason = "because " + "it is so very much better for everybody in the long run " * 3
    said = [message(n, "u", f"never use library number {n}, {reason}") for n in range(1, 21)]
    got = window([*said, message(99, "a", "filler " * 2000)], 700)
    lines = [line for line in got.text.splitlines() if line.startswith("- #")]
    assert len(got.decisions) == 20 and got.more.decisions == 0
    assert "because" not in lines[0] and "it is so very much better" in lines[-1]


def test_replaced_decisions_give_way_first() -> None:
    kept = [f"u: never use library number {n}" for n in range(9)]
    said = talk(*kept, "u: use Redis for the queue", "u: actually, drop Redis for the queue, SQLite will do")
    old = [decision.seq for decision in summarise(said).decisions if decision.superseded]
    assert old == [10]
    got = window([*said, message(99, "a", "filler " * 2000)], 150)
    assert got.more.decisions > 0
    assert not {decision.seq for decision in got.decisions} & set(old)


def test_replaced_decisions_say_by_what() -> None:
    said = [*talk("u: round half even", "u: round half up, not half even"), message(9, "a", "filler " * 2000)]
    assert "- #1 round half even [replaced by #2]" in window(said, 300).text


def test_a_session_that_fits_is_shown_whole() -> None:
    said = messages("en-short")
    got = window(said, 2048)
    assert [one.whole for one in got.newest] == [True] * len(said) and got.more.messages == 0
    assert not any(heading in got.text for heading in HEADINGS.values())
    assert all(line.strip() in got.text for one in said for line in one.text.splitlines())
    assert window([], 2048).text == ""


def test_files_are_shown_once_from_the_folder_they_share() -> None:
    calls = [Call("Read", files=(path,)) for path in ("/home/x/app/src/a.py", "/home/x/app/b.py", "src/a.py")]
    said = [message(n, "a", "", [call]) for n, call in enumerate(calls, 1)]
    assert [(file.path, file.seq) for file in window(said, 64).files] == [("b.py", 2), ("src/a.py", 3)]


def test_every_decision_is_listed() -> None:
    total = FULL_MAX + SHORT_MAX + 5
    said = [message(n, "u", f"never use library number {n}") for n in range(1, total + 1)]
    text = listing(summarise(said))
    assert "in the messages #1, #2, #3, #4, #5\n" in text
    assert text.count("\n- #") == FULL_MAX + SHORT_MAX
    assert f"- #{total} never use library number {total}" in text


def test_what_is_only_noted_is_counted() -> None:
    said = [message(n, "u", f"never use library number {n}") for n in range(1, FULL_MAX + SHORT_MAX + 6)]
    got = window(said, 64)
    assert got.more.decisions + len(got.decisions) == len(said)


def test_shortened() -> None:
    text = "".join(chr(97 + n % 26) for n in range(500))
    cut = shortened(text, 200)
    assert cut.startswith(text[:100]) and cut.endswith(text[-60:]) and "[300 characters left out]" in cut
    assert shortened(text, 200, tail=True).endswith(text[-130:])
    assert shortened(text, 10) == text[:9] + "…" and shortened(text, 500) == text


def test_the_two_steps() -> None:
    summary = summarise(LONG)
    found = pieces(summary, LONG[-9:], 700)
    counts = [count(text) for text in texts(found)]
    got = choose(summary, LONG[-9:], found, counts, 700)
    assert got == compose(summary, LONG[-9:], 700, count)
    assert choose(summary, LONG[-9:], found, counts, 0).text == ""


WORDS = st.sampled_from(  # a table of words reads better as a text
    "use|SQLite|Redis|must|not|because|should|we|?|.|\n|- |1. |yes|instead|不要|用|吗？|。|src/a.py|Error: x|1 failed"  # noqa: SIM905
    "|3 passed|```|B|option|done|\u2019|\U0001f600".split("|")
)
TALK = st.lists(
    st.tuples(st.sampled_from("uats"), st.lists(WORDS, max_size=25).map(" ".join) | st.text(max_size=80)),
    max_size=25,
)


@given(TALK, st.integers(0, 3000), st.integers(0, 30))
@settings(max_examples=200, deadline=None)
def test_whatever_was_said(said: list[tuple[str, str]], budget: int, last: int) -> None:
    talked = [message(n, who, text) for n, (who, text) in enumerate(said, 1)]
    summary = told(talked)
    newest = talked[len(talked) - last :] if last else []
    got = compose(summary, newest, budget, count)
    assert count(got.text) <= max(budget, BUDGET_MIN)
    assert len(got.decisions) + got.more.decisions == summary.decided
    assert len(got.questions) + got.more.questions == len(summary.questions) + summary.more.questions
    assert len(got.errors) + got.more.errors == len(summary.errors) + summary.more.errors
    assert len(got.outcomes) + got.more.outcomes == len(summary.outcomes) + summary.more.outcomes
    users = [one.seq for one in newest if one.role == "user"]
    assert not users or users[-1] in [one.seq for one in got.newest]


def test_a_summary_of_nothing() -> None:
    assert compose(Summary(), [], 2048, count) == Window("")
