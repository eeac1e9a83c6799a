"""What is particular to Python; the fixture shows the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import python
from herdr.context.graph.lookups import dependents
from herdr.context.graph.outline import Import, Outline
from herdr.context.graph.parse import Reader


def outline(text: str) -> Outline:
    return Reader(python.LANGUAGE).read(text.encode())


def symbols(text: str) -> list[tuple[str, str]]:
    return [(symbol.kind, symbol.name) for symbol in outline(text).symbols]


def calls(text: str) -> set[tuple[str, str]]:
    return {(call.receiver, call.name) for call in outline(text).calls}


def found(module: str, path: str, files: str, name: str = "") -> list[str]:
    project = MemoryProject(dict.fromkeys([path, *files.split()], b""))
    return list(python.find_module(Import(module, 1, name, name), path, project))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b", [("a.b", "", "a")]),
        ("import a.b as c, d", [("a.b", "", "c"), ("d", "", "d")]),
        ("from . import a", [(".", "a", "a")]),
        ("from ..a.b import (\n c as d,\n e,\n)", [("..a.b", "c", "d"), ("..a.b", "e", "e")]),
        ("from a import *", [("a", "*", "")]),
        ("try:\n import a\nexcept E:\n import b as a", [("a", "", "a"), ("b", "", "a")]),
        ("def f():\n from a import b", [("a", "b", "b")]),
        ("from __future__ import annotations", []),
    ],
)
def test_imports(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert [(i.module, i.name, i.alias) for i in outline(text).imports] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("X: int", [("constant", "X")]),
        ("a = b = 1", [("variable", "a"), ("variable", "b")]),
        ("a, *b = c", [("variable", "a"), ("variable", "b")]),
        ("(a, B) = c", [("variable", "a"), ("constant", "B")]),
        ("if x:\n a = 1\nelif y:\n b = 1\nelse:\n c = 1", [("variable", n) for n in "abc"]),
        ("try:\n a = 1\nexcept E:\n b = 1\nelse:\n c = 1", [("variable", "a"), ("variable", "c")]),
        ("with x as y:\n a = 1", [("variable", "a")]),
        ("for a in b:\n c = 1", []),
        ("a.b = 1; a[0] = 1; a += 1", []),
        ("a = lambda b: b", [("function", "a")]),
        (
            "class A:\n b = lambda self: 1\n c, d = 1, 2",
            [("class", "A"), ("method", "b"), ("field", "c"), ("field", "d")],
        ),
        ("type A = int\ntype B[T] = T", [("type", "A"), ("type", "B")]),
        ("type = 1; match = 2; _ = 3", [("variable", "type"), ("variable", "match"), ("variable", "_")]),
        ("class A:\n @functools.cached_property\n def b(self): ...", [("class", "A"), ("property", "b")]),
    ],
)
def test_symbols(text: str, expected: list[tuple[str, str]]) -> None:
    assert symbols(text) == expected


def test_calls() -> None:
    assert calls("@a\n@b.c\n@d()\ndef f(): pass") == {("", "a"), ("b", "c"), ("", "d")}
    assert calls("x = *a(b), 1\ny = [*c.d(1)]\n(e)(1)\n[f() for g in h()]") == {
        *[("", "a"), ("c", "d"), ("", "e"), ("", "f"), ("", "h")]
    }
    assert calls("if (n := a()) > 1: f'{b()!r}'\nawait c()\nraise D from e()") == {("", n) for n in "abce"}


def test_bases() -> None:
    assert outline("class A(b.C, D[int], E(), *F, metaclass=G): pass").symbols[0].bases == ("b.C", "D")


@pytest.mark.parametrize(
    ("module", "path", "files", "expected"),
    [
        ("html", "a/text.py", "a/__init__.py a/html.py", []),  # a package's own folder does not count
        ("html", "a/text.py", "a/html.py", ["a/html.py"]),  # a script's own does, before the standard library
        ("html", "a/b/text.py", "a/html.py", []),
        ("cart", "a/b/text.py", "a/cart.py", ["a/cart.py"]),
        ("shop.cart", "tests/t.py", "src/shop/__init__.py src/shop/cart.py", ["src/shop/cart.py"]),
        (
            "shop.cart",
            "packages/x/tests/t.py",
            "packages/x/src/shop/cart.py",
            ["packages/x/src/shop/cart.py"],
        ),
        ("shop", "main.py", "shop/__init__.pyi", ["shop/__init__.pyi"]),
        ("shop", "main.py", "shop.py shop.pyi shop/__init__.py", ["shop.py"]),
        ("shop", "main.py", "other/shop.py", []),
        (".", "a/b.py", "a/__init__.py", ["a/__init__.py"]),
        ("..c", "a/b/d.py", "a/c.py", ["a/c.py"]),
        ("...c", "a/b/d.py", "c.py", ["c.py"]),
        ("....c", "a/b/d.py", "c.py", []),
        (".", "b.py", "__init__.py", ["__init__.py"]),
    ],
)
def test_modules(module: str, path: str, files: str, expected: list[str]) -> None:
    assert found(module, path, files) == expected


def test_a_name_may_be_a_module() -> None:
    files = "shop/__init__.py shop/cart.py"
    assert found("shop", "main.py", files, "cart") == ["shop/cart.py"]
    assert found("shop", "main.py", files, "Cart") == ["shop/__init__.py"]
    assert found("..", "shop/ui/page.py", files, "cart") == ["shop/cart.py"]
    assert found("shop", "main.py", files, "*") == ["shop/__init__.py"]


def test_who_imports_a_package_by_dots_alone() -> None:
    project = MemoryProject(
        {"a/__init__.py": "X = 1", "a/b.py": "from . import X", "a/c/d.py": "from .. import X"}
    )
    found = dependents(project, "a/__init__.py")
    assert found is not None and [each.path for each in found.dependents] == ["a/b.py", "a/c/d.py"]


def test_keys() -> None:
    assert list(python.keys("src/shop/cart.py")) == ["cart"]
    assert list(python.keys("src/shop/__init__.py")) == ["shop", "."]
