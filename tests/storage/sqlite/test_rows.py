"""What a row's checksum tells apart."""

from itertools import combinations

import pytest

from herdr.storage.sqlite.rows import ROWS_PER_STATEMENT, Statements, row_crc


def test_a_checksum_covers_every_column_and_where_each_ends():
    rows = [
        (1, 0, 9, None, b"abc"),
        (2, 0, 9, None, b"abc"),
        (1, 1, 9, None, b"abc"),
        (1, 0, 8, None, b"abc"),
        (1, 0, 9, b"", b"abc"),
        (1, 0, 9, b"a", b"bc"),
        (1, 0, 9, b"ab", b"c"),
        (1, 0, 9, None, b"abd"),
    ]
    for one, other in combinations(rows, 2):
        assert row_crc(*one) != row_crc(*other), (one, other)


@pytest.mark.parametrize(
    ("count", "statements"), [(0, 0), (1, 1), (3, 1), (255, 1), (256, 1), (257, 2), (600, 3)]
)
def test_rows_take_as_few_statements_as_possible(count, statements):
    parts = list(Statements("INSERT INTO t", 2).split([(n, b"x") for n in range(count)]))
    assert len(parts) == statements
    assert [value for _, values in parts for value in values[::2] if value is not None] == list(range(count))
    assert all(sql.count("(?,?)") * 2 == len(values) for sql, values in parts)
    assert ROWS_PER_STATEMENT == 256
