from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.bus import select as module
from herdr.bus.select import PATTERNS_MAX, Selection, compile_selection
from herdr.errors import InvalidInput
from herdr.event import Event
from herdr.glob import compile_glob

EVENT = Event(1, "7", "tool.result", "ci/3f", "shop", "tool", b"{}", "app/[id]/page.tsx", "s1")


@pytest.mark.parametrize(
    ("selection", "answer"),
    [
        (Selection(), True),
        (Selection(type=("tool.result",)), True),
        (Selection(type=("tool.*",)), True),
        (Selection(type=("test.*", "tool.result")), True),
        (Selection(type=("test.*", "lint.*")), False),
        (Selection(type=("tool",)), False),
        (Selection(class_=("tool",)), True),
        (Selection(class_=("user",)), False),
        (Selection(priority=("P0", "P1")), True),
        (Selection(priority=("P[1]",)), False),
        (Selection(priority=("p1",)), False),
        (Selection(source=("ci/*",)), True),
        (Selection(source=("ci",)), False),
        (Selection(workspace=("shop",)), True),
        (Selection(workspace=("default",)), False),
        (Selection(session=("s?",)), True),
        (Selection(session=("s",)), False),
        (Selection(subject=("app/[id]/page.tsx",)), True),
        (Selection(subject=("app/[id]/*",)), True),
        (Selection(subject=("app/*",)), False),
        (Selection(subject=("**/*.tsx",)), True),
        (Selection(type=("tool.*",), source=("ci/*",), subject=("**",)), True),
        (Selection(type=("tool.*",), source=("laptop",)), False),
        (Selection(target="somebody", attrs=(("a", "b"),)), True),
    ],
)
def test_any_pattern_of_a_field_and_all_fields_must_fit(selection: Selection, answer: bool) -> None:
    assert compile_selection(selection)(EVENT) is answer


@pytest.mark.parametrize("pattern", ["*", "**", "x", "s1"])
def test_an_event_without_the_field_fits_no_pattern(pattern: str) -> None:
    bare = Event(1, "7", "a", "ci", "default", "tool", b"{}")
    assert compile_selection(Selection(subject=(pattern,)))(bare) is False
    assert compile_selection(Selection(session=(pattern,)))(bare) is False


@given(st.lists(st.text("ab/*?", min_size=1, max_size=5), min_size=1, max_size=4), st.text("ab/", max_size=6))
def test_a_field_fits_when_one_of_its_globs_does(patterns: list[str], subject: str) -> None:
    matches = compile_selection(Selection(subject=tuple(patterns)))
    event = msgspec.structs.replace(EVENT, subject=subject)
    wanted = any(compile_glob(pattern)(subject) for pattern in patterns)
    assert [matches(event), matches(event)] == [wanted, wanted]


@pytest.mark.parametrize("fields", [{"type": ("",)}, {"subject": ("a", "")}, {"class_": ("",)}])
def test_an_empty_pattern_is_refused_for_it_would_fit_nothing(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="is empty") as error:
        compile_selection(Selection(**fields))
    assert error.value.code == "bad_filter"


def test_there_is_a_limit_to_patterns() -> None:
    compile_selection(Selection(type=("a",) * PATTERNS_MAX))
    with pytest.raises(InvalidInput, match="class has 65 patterns"):
        compile_selection(Selection(class_=("a",) * (PATTERNS_MAX + 1)))


def test_a_bad_glob_is_refused() -> None:
    with pytest.raises(InvalidInput):
        compile_selection(Selection(subject=("a*\n",)))


def test_remembered_verdicts_are_bounded_and_stay_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VALUES_CACHED_MAX", 3)
    matches = compile_selection(Selection(subject=("a*",)))
    for _ in range(3):
        for number in range(10):
            event = msgspec.structs.replace(EVENT, subject=f"{'ab'[number % 2]}{number}")
            assert matches(event) is (number % 2 == 0)


def test_equal_selections_are_equal_values() -> None:
    assert {Selection(type=("a",), attrs=(("x", "1"),)): 1}[Selection(type=("a",), attrs=(("x", "1"),))] == 1
    assert Selection(type=("a",)) != Selection(source=("a",))
