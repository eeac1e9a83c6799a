"""What is particular to PHP; the fixture shows the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import php
from herdr.context.graph.outline import Import, Outline, qualified_name
from herdr.context.graph.parse import Reader
from herdr.context.graph.resolve import Resolver, symbol_id


def outline(text: str) -> Outline:
    return Reader(php.LANGUAGE).read(f"<?php\n{text}".encode())


def names(text: str) -> list[tuple[str, str]]:
    read = outline(text)
    return [(qualified_name(read, place), symbol.kind) for place, symbol in enumerate(read.symbols)]


def calls(text: str) -> list[tuple[str, str]]:
    return [(call.receiver, call.name) for call in outline(text).calls]


def resolved(files: dict[str, str], path: str) -> list[tuple[str, list[str]]]:
    project = MemoryProject({name: f"<?php\n{text}" for name, text in files.items()})
    read = project.outline(path)
    assert read is not None
    found = [Resolver(project).call(path, read, call) for call in read.calls]
    return [(each.kind, [symbol_id(project, place) for place in each.targets]) for each in found]


def test_names_and_kinds() -> None:
    text = (
        "abstract class A { const B = 1, C = 2; private int $d = 1, $e; use T; function f() {}\n"
        " function __construct(private int $g) {} }\n"
        "interface I { function h(); }\ntrait T { }\nenum E: int { case K = 1; }\nconst L = 1;\n"
        "define('M', 1);\nif (x()) { function n() {} }"
    )
    assert names(text) == [
        ("A", "class"),
        *[("A.B", "constant"), ("A.C", "constant"), ("A.d", "field"), ("A.e", "field")],
        *[("A.f", "method"), ("A.__construct", "constructor")],
        *[("I", "interface"), ("I.h", "method"), ("T", "trait"), ("E", "enum"), ("E.K", "constant")],
        *[("L", "constant"), ("M", "constant"), ("n", "function")],
    ]


def test_a_class_without_a_name_has_the_one_that_php_gives_it() -> None:
    text = "class A { function f() { return new class(1) extends B { function g() { $this->h(); } }; } }"
    assert names(text)[2:] == [("A.f.class@anonymous", "class"), ("A.f.class@anonymous.g", "method")]
    assert outline(text).symbols[2].bases == ("B",)
    assert outline(text).symbols[2].signature == "class(1) extends B"


def test_what_others_cannot_name() -> None:
    text = (
        "class A { private $a, $b; private const C = 1; private function d() {} protected function e() {} }"
    )
    assert {s.name: s.exported for s in outline(text).symbols} == {
        **dict.fromkeys("abCd", False),
        **dict.fromkeys("Ae", True),
    }
    assert outline(text).symbols[2].signature == "private $b"


def test_a_definition_stands_where_its_name_does() -> None:
    symbol = outline("#[Entity]\n#[Table('a')]\nfinal class A\n{\n}").symbols[0]
    assert (symbol.line, symbol.end_line, symbol.signature) == (4, 6, "final class A")


def test_traits_come_before_what_is_extended_and_implemented() -> None:
    text = "class A extends \\B\\C implements D, E\\F { use G; use H, I { G::x as y; } }"
    assert outline(text).symbols[0].bases == ("G", "H", "I", "B.C", "D", "E.F")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a(); \\b(); c\\d(); \\e\\f\\g(); namespace\\h();", ["a", "b", "c.d", "e.f.g", "h"]),
        ("$a->b(); $a?->b(); $this->c->d(); $e[0]->f();", ["$a.b", "$this.c.d", "?.f"]),
        (
            "A::b(); \\A\\B::c(); self::d(); static::e(); parent::f(); $a::g();",
            ["A.b", "A.B.c", "self.d", "static.e", "parent.f", "$a.g"],
        ),
        ("new A; new \\B\\C(1); new self; new static(); new $a;", ["A", "B.C"]),
        ("$a(); $a->$b(); [$a, 'b'](); A::class;", []),
        ("array_map(fn($x) => k($x), $a);", ["array_map", "k"]),
    ],
)
def test_calls(text: str, expected: list[str]) -> None:
    assert [f"{receiver}.{name}".strip(".") for receiver, name in calls(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use A;", [("A", "A")]),
        ("use A\\B, \\C\\D as E;", [("A\\B", "B"), ("C\\D", "E")]),
        ("use A\\{B, C\\D as E, function f};", [("A\\B", "B"), ("A\\C\\D", "E"), ("A\\f", "f")]),
        ("use function A\\f as g; use const A\\B;", [("A\\f", "g"), ("A\\B", "B")]),
        ("require 'a.php'; include_once(\"b.php\");", [("a.php", ""), ("b.php", "")]),
        (
            "require __DIR__ . '/a.php'; require dirname(__FILE__) . '/b.php';",
            [("./a.php", ""), ("./b.php", "")],
        ),
        ("require ABSPATH . 'wp/a.php';", [("wp/a.php", "")]),
        ("require $a; require \"a$b.php\"; require $a . '/b.php'; require f() . 'c.php';", []),
    ],
)
def test_imports(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(found.module, found.alias) for found in outline(text).imports] == expected


def test_a_class_is_found_by_its_namespace_wherever_it_lies() -> None:
    files = {
        "x/Cart.php": "<?php namespace A\\B; class Cart {}",
        "Cart.php": "<?php class Cart {}",
        "all.php": "<?php namespace A\\B; class Item {} function total() {}",
        "other.php": "<?php namespace A\\C; class Item {}",
    }
    project = MemoryProject(files)

    def found(module: str) -> list[str]:
        return list(php.find_module(Import(module, 1, "", "any"), "main.php", project))

    assert found("A\\B\\Cart") == ["x/Cart.php"]
    assert found("Cart") == ["Cart.php"]
    assert found("A\\B\\Item") == ["all.php"]
    assert found("A\\B\\total") == ["all.php"]
    assert found("A\\B") == ["all.php", "x/Cart.php"]
    assert found("A\\C\\Cart") == found("Item") == found("A") == []


def test_where_a_required_file_is_looked_for() -> None:
    project = MemoryProject(dict.fromkeys(["a/x.php", "b/x.php", "c/lib/y.php"], ""))

    def found(module: str, path: str) -> list[str]:
        return list(php.find_module(Import(module, 1, "*"), path, project))

    assert found("x.php", "a/z.php") == ["a/x.php"]
    assert found("./x.php", "z.php") == []
    assert found("x.php", "z.php") == [], "two files are equally far"
    assert found("lib/y.php", "a/z.php") == ["c/lib/y.php"]
    assert found("../../x.php", "a/z.php") == []


def test_a_function_that_its_namespace_lacks_may_be_the_global_one() -> None:
    files = {"lib.php": "function helper() {}", "a.php": "namespace A; helper(); own(); strlen('');"}
    files["b.php"] = "namespace A; function own() {}"
    assert resolved(files, "a.php") == [
        ("name", ["lib.php::helper"]),
        ("exact", ["b.php::own"]),
        ("external", []),
    ]


def test_what_this_self_and_parent_mean() -> None:
    files = {
        "Base.php": "namespace A; class Base { function __construct() {} function f() {} static function g() {} }",
        "T.php": "namespace A; trait T { function f() {} }",
        "C.php": "namespace B; use A\\{Base, T};\nclass C extends Base { use T; function m() {\n"
        "$this->f(); parent::f(); static::g(); self::g(); parent::__construct(); $this->none(); } }",
    }
    assert resolved(files, "C.php") == [
        ("exact", ["T.php::T.f"]),
        ("exact", ["Base.php::Base.f"]),
        ("exact", ["Base.php::Base.g"]),
        ("exact", ["Base.php::Base.g"]),
        ("exact", ["Base.php::Base"]),
        ("external", []),
    ]


def test_php_between_html() -> None:
    read = Reader(php.LANGUAGE).read(
        b"<p class='a'><?= f() ?></p>\n<?php if (g()): ?>\n<b>h()</b>\n<?php endif ?>\n"
    )
    assert [(call.name, call.lines) for call in read.calls] == [("f", (1,)), ("g", (2,))]
    assert Reader(php.LANGUAGE).read(b"<html>no code</html>").symbols == ()
