"""What tools are told: bounded, on one line each, and without what nobody sees."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.hooks import words
from herdr.hooks.call import Call
from herdr.hooks.changes import Change

CALL = Call(
    client="claude-code",
    kind="before",
    event="PreToolUse",
    session="11112222-3333-4444-5555-666677778888",
    cwd="/home/me/shop",
    tool="Edit",
)


def change(path: str, by: str | None = "cursor/1", seq: int = 1) -> Change:
    return Change(seq, path, by)


def signature(callers: object = ()) -> dict[str, Any]:
    return {"symbol": "cart.py::total", "old": "total(a)", "new": "total(a, b)", "callers": callers}


def test_a_denial_says_what_was_not_done_and_why() -> None:
    said = words.denied(CALL, "a.py is held by cursor/1 (renames total)")
    assert said == "Herdr: Edit was not run. a.py is held by cursor/1 (renames total)."


def test_a_denial_is_bounded_whatever_a_lock_is_said_to_be_for() -> None:
    assert len(words.denied(CALL, "x" * 100_000)) < words.CONTEXT_MAX + 100


def test_a_token_that_lacks_something_is_told_where_to_add_it() -> None:
    assert "lacks locks and events:publish;" in words.lacking(["locks", "events:publish"])
    assert "auth.tokens" in words.lacking(["locks"])


def test_an_introduction_has_the_name_that_register_takes() -> None:
    said = words.introduced(CALL, "shop")
    assert "`claude-code/77778888`" in said and "`shop`" in said and f"`{CALL.conversation}`" in said


def test_an_unknown_folder_comes_with_the_command_and_a_bound() -> None:
    assert "`herdr workspace add /home/me/shop`" in words.unknown_folder(CALL)
    assert len(words.unknown_folder(Call(**{**dict_of(CALL), "cwd": "/x" * 5000}))) < 1000
    assert "this folder" in words.unknown_folder(Call(**{**dict_of(CALL), "cwd": ""}))


def dict_of(call: Call) -> dict[str, Any]:
    return {name: getattr(call, name) for name in call.__struct_fields__}


def test_each_changed_file_is_named_once_by_who_changed_it_last() -> None:
    lines = words.changed([change("a.py", "x"), change("b.py", "x"), change("a.py", "y")])
    assert lines == ["Changed by others meanwhile: b.py (by x), a.py (by y)."]
    assert words.changed([]) == []


def test_of_many_changed_files_the_newest_are_named_and_the_others_counted() -> None:
    (line,) = words.changed([change(f"{n}.py") for n in range(words.CHANGES_SAID + 3)])
    assert line.endswith("12.py (by cursor/1) and 3 more.") and "2.py" not in line.partition(",")[0]
    assert line.count("(by ") == words.CHANGES_SAID


def test_signatures_come_with_a_few_of_their_callers() -> None:
    callers = [f"c{n}.py" for n in range(9)]
    (line,) = words.changed([Change(1, "", None, signatures=(signature(callers),))])
    assert line.startswith("cart.py::total is now `total(a, b)` (was `total(a)`); called in c0.py, ")
    assert line.endswith("c4.py.")
    many = [Change(n, "", None, signatures=(signature(),)) for n in range(20)]
    assert len(words.changed(many)) == words.SIGNATURES_SAID


@pytest.mark.parametrize("callers", [None, 5, "a.py", {}])
def test_odd_callers_are_none(callers: object) -> None:
    (line,) = words.changed([Change(1, "", None, signatures=(signature(callers),))])
    assert line.endswith("(was `total(a)`).")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"type": "conflict.detected", "subject": "a.py", "data": {"status": "stale"}},
            "Conflict on a.py: stale.",
        ),
        (
            {
                "type": "conflict.detected",
                "subject": "a.py",
                "data": {"reason": "too late", "current": {"source": "cursor/1"}},
            },
            "Conflict on a.py: too late, newer version by cursor/1.",
        ),
        (
            {"type": "handoff.asked", "data": {"task": "vat", "title": "Add VAT", "by": "coder/1"}},
            "Task vat (Add VAT): asked, by coder/1.",
        ),
        (
            {"type": "lock.expired", "data": {"paths": ["a.py", "b.py"], "reason": "lease over"}},
            "lock.expired a.py, b.py lease over.",
        ),
        ({"type": "test.failed", "subject": "t.py"}, "test.failed t.py."),
    ],
)
def test_news_are_facts_in_a_line(event: dict[str, Any], line: str) -> None:
    assert words.news([event], 0) == [line]


@pytest.mark.parametrize("data", [None, 5, "text", [], {"paths": 5}, {"paths": "a.py"}, {"paths": [None]}])
@pytest.mark.parametrize("type_", ["conflict.detected", "handoff.asked", "x.y", None])
def test_no_payload_is_too_odd_to_be_told_of(type_: str | None, data: object) -> None:
    assert len(words.news([{"type": type_, "subject": None, "data": data}], 0)) == 1


def test_what_does_not_fit_is_counted() -> None:
    events = [{"type": f"x.{n}"} for n in range(10)]
    lines = words.news(events, 3)
    assert len(lines) == words.NEWS_SAID + 1
    assert lines[-1] == "5 more events are waiting."
    assert words.news([], 0) == []


def test_nothing_to_say_is_nothing() -> None:
    assert words.context([]) is None


@pytest.mark.parametrize(
    "hidden", ["\n", "\r", "\0", "\x1b", "\u202e", "\u200b", "\u2028", "\ue000", "\U000e0041"]
)
def test_what_nobody_sees_does_not_reach_a_model(hidden: str) -> None:
    assert words.context([f"a{hidden}b"]) == "Herdr: a b"
    assert words.denied(CALL, f"held for a{hidden}b") == "Herdr: Edit was not run. held for a b."


@given(st.lists(st.text(max_size=3000)))
def test_a_context_is_bounded_and_each_line_a_line(lines: list[str]) -> None:
    said = words.context(lines)
    assert (said is None) == (not lines)
    if said is not None:
        assert len(said) <= words.CONTEXT_MAX and said.count("\n") < len(lines)
        assert all(c.isprintable() for c in said if c != "\n")


def test_lines_that_do_not_fit_any_more_are_left_out_whole() -> None:
    said = words.context([f"{n}{'x' * 800}" for n in range(5)])
    assert said is not None and [line[-801:-800] for line in said.split("\n")] == ["0", "1"]


def test_one_long_line_leaves_room_for_another() -> None:
    said = words.context(["x" * 10_000, "what came after it"])
    assert said is not None and said.endswith("\nwhat came after it")
