import pytest

from herdr.pool.protocols.quote import quoted


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("a\n\n  b", "a b"),
        (b"x" * 9000, "x" * 399 + "…"),
        (" <html lang=en>x", "(an HTML page)"),
        (b"  ", "(nothing)"),
        ("a\x1b[31m\u202eb\ud800", "a [31m b"),
        ("Authorization: Bearer abc.def-123 was wrong", "Authorization: Bearer *** was wrong"),
        ("key sk-proj-1234567890 and hf_abcdefgh", "key sk-*** and hf_***"),
        ("a < b and a task-force", "a < b and a task-force"),
    ],
)
def test_quotes(said: bytes | str, expected: str) -> None:
    assert quoted(said) == expected
