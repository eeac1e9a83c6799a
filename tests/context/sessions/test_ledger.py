# ruff: noqa: RUF001 - the marks of Chinese
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.talk import message, talk, told

from herdr.context.sessions.decisions import Found
from herdr.context.sessions.ledger import decide, noted_seqs
from herdr.context.sessions.state import FULL_MAX, NOTED_BYTES_MAX, SHORT_MAX, SHORT_TEXT_MAX, Summary


def test_fifteen_times_five_facts_are_five_decisions() -> None:
    facts = ["use SQLite", "never push to main", "keep the names", "port must be 8080", "don't log tokens"]
    lines = [f"u: {fact}{mark}" for mark in (".", "!", "") for fact in facts]
    summary = told(talk(*lines))
    assert [decision.text.rstrip(".") for decision in summary.decisions] == facts
    assert [decision.seq for decision in summary.decisions] == [1, 2, 3, 4, 5]
    assert [decision.again for decision in summary.decisions] == [11, 12, 13, 14, 15]


def test_an_assistant_that_repeats_what_it_was_told_decides_nothing() -> None:
    summary = told(
        talk(
            "u: round half up on every invoice",
            "a: I'll use half up rounding on every invoice, because that is the rule.",
        )
    )
    assert [(d.by, d.again, d.reason) for d in summary.decisions] == [("user", 2, "that is the rule")]


@pytest.mark.parametrize(
    "first, then",
    [
        ("round half even", "round half up, not half even"),
        ("use Redis for the queue", "actually, drop Redis, SQLite is enough for the queue"),
        ("缓存用 Redis", "缓存不用 Redis，改成 SQLite"),
        (
            "no background refresh for the cache please",
            "ok then do the background refresh of the cache after all",
        ),
    ],
)
def test_a_later_decision_replaces_an_earlier_one_on_the_same_thing(first: str, then: str) -> None:
    summary = told(talk(f"u: {first}", f"u: {then}"))
    old, *new = summary.decisions
    assert old.superseded == 2 and new and not any(decision.superseded for decision in new)


def test_another_option_replaces_the_one_chosen_before() -> None:
    ways = "Three ways:\n1. SQLite, a native module\n2. a JSON file\n3. a journal, append only"
    summary = told(
        talk(f"a: {ways}", "u: go with sqlite", "a: It is not there.", "u: then do the journal after all")
    )
    assert [(d.text, d.superseded) for d in summary.decisions] == [
        ("go with sqlite", 4),
        ("then do the journal after all", 0),
    ]


@pytest.mark.parametrize(
    "first, then",
    [
        ("use SQLite for the queue", "use Redis for the cache, not memcached"),
        ("keep the names", "don't touch the tests"),
        ("the port must be 8080", "the log must be JSON"),
    ],
)
def test_decisions_on_other_things_stand_side_by_side(first: str, then: str) -> None:
    assert all(not decision.superseded for decision in told(talk(f"u: {first}", f"u: {then}")).decisions)


def test_an_assistant_does_not_replace_what_a_user_laid_down() -> None:
    summary = told(
        talk(
            "u: use SQLite for the queue",
            "a: I'm using Redis for the queue instead of SQLite, because it is fast.",
        )
    )
    assert [decision.superseded for decision in summary.decisions] == [0, 0]


def filled(count: int, step: int = 1) -> Summary:
    summary = Summary()
    for number in range(1, count + 1):
        name = "".join(chr(97 + int(digit)) for digit in str(number)) * 3
        summary = decide(summary, Found(f"keep {name}", "why", "asked"), message(number * step, "u", ""))
    return summary


def test_no_decision_is_dropped_only_shortened() -> None:
    count = FULL_MAX + SHORT_MAX + 40
    summary = filled(count, step=300)
    assert summary.decided == count
    assert (len(summary.decisions), len(summary.older), summary.noted_count) == (FULL_MAX, SHORT_MAX, 40)
    assert list(noted_seqs(summary)) == [300 * number for number in range(1, 41)]
    assert summary.older[0].seq == 300 * 41 and "(asked)" in summary.older[0].text
    assert summary.decisions[-1].reason == "why"


def test_a_short_one_is_one_line() -> None:
    summary = decide(Summary(), Found("x" * 300), message(1, "u", ""))
    for number in range(2, FULL_MAX + 2):
        summary = decide(summary, Found(f"{number} " * 9), message(number, "u", ""))
    assert len(summary.older[0].text) == SHORT_TEXT_MAX


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_noted_numbers_come_back(gaps: list[int]) -> None:
    seqs, at = [], 0
    for gap in gaps:
        at += gap
        seqs.append(at)
    full = filled(FULL_MAX + SHORT_MAX)
    old = [msgspec.structs.replace(one, seq=seq) for one, seq in zip(full.older, seqs, strict=False)]
    summary = msgspec.structs.replace(full, older=(*old, *full.older[len(old) :]))
    for number in range(len(seqs)):
        summary = decide(summary, Found(f"{number} more of this"), message(2**41 + number, "u", ""))
    assert list(noted_seqs(summary)) == seqs


def test_the_notes_are_bounded_and_what_is_beyond_is_counted() -> None:
    full = filled(FULL_MAX + SHORT_MAX + 1)
    full = msgspec.structs.replace(full, noted=b"\x01" * NOTED_BYTES_MAX, noted_count=NOTED_BYTES_MAX)
    after = decide(full, Found("one more thing entirely"), message(9999, "u", ""))
    assert len(after.noted) == NOTED_BYTES_MAX and after.noted_count == NOTED_BYTES_MAX + 1
