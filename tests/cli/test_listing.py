import pytest

from herdr.cli.listing import cell, cut, many, moment, number, size


@pytest.mark.parametrize(
    ("line", "columns", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("购物车合计", 10, "购物车合计"),
        ("购物车合计", 9, "购物车合…"),
        ("购物车合计", 8, "购物车…"),
        ("a购b", 3, "a…"),
        ("购物", 2, "…"),
        ("", 1, ""),
    ],
)
def test_lines_fit_a_terminal(line: str, columns: int, shown: str) -> None:
    assert cut(line, columns) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), ("", "-"), (0, "0"), (False, "False"), ([], "-"), (["a", "b"], "a, b"), ("x", "x")],
)
def test_cells(value: object, shown: str) -> None:
    assert cell(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1536, "1.5 KiB"),
        (3 * 2**40, "3072.0 GiB"),
    ],
)
def test_sizes(value: object, shown: str) -> None:
    assert size(value) == shown


def test_numbers_and_times() -> None:
    assert [number(value) for value in (None, 0, 1234567, 41.6)] == ["-", "0", "1,234,567", "42"]
    assert [many(value, "file") for value in (None, 1, 2000)] == ["- files", "1 file", "2,000 files"]
    assert [moment(value) for value in (None, "x")] == ["-", "-"]
