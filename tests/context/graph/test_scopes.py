"""Which parameters a signature shows."""

import pytest

from herdr.context.graph.outline import Symbol
from herdr.context.graph.scopes import takes


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("def f(x)", True),
        ("def f(a, x)", True),
        ("def f(a, *x)", True),
        ("def f(a, **x)", True),
        ("def f(a, x: int = 1)", True),
        ("def f(a=(1, x))", True),  # a default, but who would know
        ("def f(a: x)", False),
        ("def f(a: x, b)", False),
        ("def f(a) -> x", False),
        ("def f(a) -> Callable[[x], y]", False),
        ("def f(xx, x_x)", False),
        ("def f()", False),
        ("function f({ x, y }, z)", True),
        ("function f(a, ...x)", True),
        ("f(private readonly x: Cart)", True),
        ("func f(a int, x func() int) x", True),
        ("func f(a *x) x", False),
        ("fn f(mut x: u8)", True),
        ("def f a, x", True),
    ],
)
def test_languages_that_name_first(signature: str, expected: bool) -> None:
    assert takes(Symbol("f", "function", 1, 2, signature), "x", False) is expected


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("int f(int x)", True),
        ("int f(Cart *x, int y)", True),
        ("int f(Cart &x)", True),
        ("int f(int x[3])", True),
        ("int f(int x = 2)", True),
        ("x f(int y)", False),
        ("int f(x y)", False),
        ("int f(List<x> y)", False),
        ("int f(int y) throws x", False),
    ],
)
def test_languages_that_name_the_type_first(signature: str, expected: bool) -> None:
    assert takes(Symbol("f", "function", 1, 2, signature), "x", True) is expected
