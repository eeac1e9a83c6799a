"""Reading JSON with comments, and where its values are."""

from typing import Any

import pytest
from connect.jsonc import parse
from connect.oddly import settings, written
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from herdr.connect.json_text import Unreadable, read


@limits(max_examples=80, deadline=None)
@given(settings().flatmap(lambda plain: st.tuples(st.just(plain), written(plain))))
def test_it_agrees_with_another_reader(case: tuple[dict[str, Any], str]) -> None:
    plain, text = case
    assert read(text).plain() == plain == parse(text)


@limits(max_examples=80, deadline=None)
@given(settings().flatmap(written))
def test_every_value_is_where_it_is_said_to_be(text: str) -> None:
    root = read(text)
    for _, _, node in root.members:
        assert read(text[node.start : node.end]).plain() == node.plain()


@limits(max_examples=80, deadline=None)
@given(st.text(alphabet='{}[]",:/*\\ \n1a', max_size=30))
def test_whatever_comes_is_read_or_refused(text: str) -> None:
    try:
        read(text)
    except Unreadable as refused:
        assert "line" in refused.detail or "deeply" in refused.detail


@pytest.mark.parametrize(
    "text", ["{,}", "[1,,]", "{'a': 1}", "{a: 1}", "NaN", "[01]", '{"a"}', '"\n"', "/* open"]
)
def test_what_is_neither_json_nor_jsonc_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="line 1"):
        read(text)


def test_it_stops_at_a_depth_that_no_real_file_has() -> None:
    assert read("[" * 101 + "]" * 101).kind == "array"
    with pytest.raises(Unreadable, match="line 1: it is nested too deeply"):
        read("[" * 102 + "]" * 102)


def test_a_comment_ends_at_a_carriage_return_too() -> None:
    assert read('// note\r{"a": 1}').plain() == {"a": 1}
