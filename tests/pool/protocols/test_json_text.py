import json

import pytest

from herdr.pool.protocols.json_text import as_object, is_object, object_raw, on_one_line

DEEP = '{"a":' * 100_000


@pytest.mark.parametrize(
    ("text", "is_one", "whole"),
    [
        ('{"b": 1,\n"a": {}}', True, '{"b": 1,\n"a": {}}'),
        (" {} ", True, " {} "),
        ("", False, "{}"),
        (" \n", False, "{}"),
        ('{"path": "a', False, r'{"arguments":"{\"path\": \"a"}'),
        ("[1]", False, '{"arguments":"[1]"}'),
        ("{} {}", False, '{"arguments":"{} {}"}'),
        (DEEP, False, json.dumps({"arguments": DEEP}, separators=(",", ":"))),
    ],
)
def test_what_is_an_object_stays_as_it_is(text: str, is_one: bool, whole: str) -> None:
    assert is_object(text) is is_one
    assert as_object(text) == whole
    raw = object_raw(text)
    assert (raw and bytes(raw).decode()) == (whole if is_one or not text.strip() else None)


def test_half_a_surrogate_is_no_json() -> None:
    assert not is_object('{"a":"\ud800"}')


@pytest.mark.parametrize(
    ("written", "line"),
    [
        (b'{"a":1}', b'{"a":1}'),
        (b'{\r\n"a":\n1}', b'{  "a": 1}'),
        (b'{\r"a":1}', b'{ "a":1}'),
        ('{"ä":"a\x85b\u2028c\u2029d"}'.encode(), '{"ä":"a\\u0085b\\u2028c\\u2029d"}'.encode()),
    ],
)
def test_nothing_breaks_the_line(written: bytes, line: bytes) -> None:
    assert on_one_line(written) == line
    assert json.loads(line) == json.loads(written)
    assert len(line.decode().splitlines()) == 1
