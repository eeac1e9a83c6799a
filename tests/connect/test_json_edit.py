"""Changes in JSON text, seen as a person would look at the file."""

import pytest

from herdr.connect.json_edit import append, drop, drop_empty, put
from herdr.connect.json_text import Unreadable


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "h": 1\n}\n'),
        ("{}", '{\n  "h": 1\n}'),
        ('{"a": 1}', '{"a": 1, "h": 1}'),
        ('{"a": 1,}', '{"a": 1, "h": 1,}'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"h": 1\n}'),
        ('{\r\n   "a": 1\r\n}', '{\r\n   "a": 1,\r\n   "h": 1\r\n}'),
        ('{\n  "a": 1 // one\n}', '{\n  "a": 1, // one\n  "h": 1\n}'),
        ('{\n  "a": 1, // one\n}', '{\n  "a": 1, // one\n  "h": 1,\n}'),
        ('{\n  "a": 1 /* one */ }', '{\n  "a": 1,\n  "h": 1 /* one */ }'),
        ("{ // empty\n}", '{ // empty\n  "h": 1\n}'),
        ('{"h": 1}', '{"h": 1}'),
        ('{"h": 0, "h": 2}', '{"h": 0, "h": 1}'),
    ],
)
def test_a_value_is_put_where_a_person_would(before: str, after: str) -> None:
    assert put(before, ("h",), 1) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"h": 1}', "{}"),
        ('{ "h": 1, "a": 2 }', '{ "a": 2 }'),
        ('{ "a": 2, "h": 1 }', '{ "a": 2 }'),
        ('{\n  "a": 2,\n  "h": 1\n}', '{\n  "a": 2\n}'),
        ('{\n  "a": 2,\n  "h": 1,\n}', '{\n  "a": 2,\n}'),
        ('{\r\n  "h": 1,\r\n  "a": 2\r\n}', '{\r\n  "a": 2\r\n}'),
        ('{\n  "h": 1,\n  // of a\n  "a": 2\n}', '{\n  // of a\n  "a": 2\n}'),
        ('{\n  "a": 2, // of a\n  "h": 1 // of h\n}', '{\n  "a": 2 // of a\n  // of h\n}'),
        ('{"h": 1 /* x */, "a": 2}', '{/* x */ "a": 2}'),
        ('{"h": 0, "h": 1}', '{"h": 0}'),
        ('{"a": 2}', '{"a": 2}'),
    ],
)
def test_a_value_goes_with_its_comma_and_its_line_and_no_comment_goes(before: str, after: str) -> None:
    assert drop(before, ("h",)) == after


def test_only_what_is_empty_is_dropped() -> None:
    assert drop_empty('{"a": { }, "b": 1}', ("a",)) == '{"b": 1}'
    for text in ('{"a": [1]}', '{"a": {/* mine */}}', '{"a": ""}', '{"b": []}'):
        assert drop_empty(text, ("a",)) == text


def test_a_list_is_made_or_appended_to() -> None:
    assert append("{}", ("a", "b"), 1) == '{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}'
    assert append('{"a": [0]}', ("a",), 1) == '{"a": [0, 1]}'
    with pytest.raises(Unreadable, match="a is not a list"):
        append('{"a": {}}', ("a",), 1)
