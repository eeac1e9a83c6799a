import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdr.bus.cursor import SEQ_MAX, Cursor, format_cursor, parse_cursor
from herdr.errors import InvalidInput
from herdr.event import Positions

SEQS = st.integers(0, SEQ_MAX)


@given(st.from_regex(r"[0-9a-f]{8}", fullmatch=True), st.tuples(SEQS, SEQS, SEQS))
def test_a_cursor_comes_back(epoch: str, positions: Positions) -> None:
    assert parse_cursor(format_cursor(epoch, positions)) == Cursor(epoch, positions)


@given(SEQS)
def test_a_plain_seq_is_a_place_in_any_log(seq: int) -> None:
    assert parse_cursor(str(seq)) == Cursor(None, (seq, seq, seq))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "-1",
        "1.5",
        " 1",
        "1\n",
        "\u0661",
        "0123abcd",
        "0123abcd:",
        "0123abcd:1",
        "0123abcd:1-2",
        "0123abcd:1-2-3-4",
        "0123abcd:1-2-3\n",
        "0123ABCD:1-2-3",
        "0123abc:1-2-3",
        "0123abcd:-1-2-3",
        "0123abcd:1-2-\u0663",
        "0123abcd:1-2-3, 0123abcd:1-2-3",
        "9223372036854775808",
        "0123abcd:0-0-9223372036854775808",
        "9" * 10_000,
        "\x00",
        "\udcff",
    ],
)
def test_anything_else_is_no_cursor(text: str) -> None:
    with pytest.raises(InvalidInput, match="cursor") as error:
        parse_cursor(text)
    assert error.value.code == "bad_cursor"
    assert len(error.value.detail) < 400
    error.value.detail.encode()
