"""What is particular to Java; the fixture shows the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import java
from herdr.context.graph.outline import Import, Outline, qualified_name
from herdr.context.graph.parse import Reader


def outline(text: str) -> Outline:
    return Reader(java.LANGUAGE).read(text.encode())


def calls(text: str) -> set[tuple[str, str]]:
    return {(call.receiver, call.name) for call in outline(f"class C {{ void f() {{ {text} }} }}").calls}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b.C;", ("a.b", "C", "C")),
        ("import a.b.*;", ("a.b", "*", "")),
        ("import static a.b.C.f;", ("a.b.C", "f", "f")),
        ("import static a.b.C.*;", ("a.b.C", "*", "")),
        ("import a . b . C ;", ("a.b", "C", "C")),
        ("import C;", ("C", "", "C")),
    ],
)
def test_forms_of_imports(text: str, expected: tuple[str, str, str]) -> None:
    assert [(found.module, found.name, found.alias) for found in outline(text).imports] == [expected]


def test_the_package_is_what_the_file_declares() -> None:
    assert outline("@X package a.b;\nclass C {}").package == "a.b"
    assert outline("package a;").package == "a"
    assert outline("class C {}").package == ""


FILES = {
    "app/src/main/java/a/b/Cart.java": "package a.b; class Cart { class Item { class Part {} } } class Beside {}",
    "app/src/main/java/a/b/Other.java": "package a.b; class Other {}",
    "app/src/test/java/a/b/CartTest.java": "package a.b; class CartTest {}",
    "lib/src/a/c/Cart.java": "package a.c; class Cart {}",
    "lib/strange/Cart.java": "package a.d; class Cart {}",
    "one/Loose.java": "class Loose {}",
    "one/Lone.java": "class Lone {}",
    "two/Lone.java": "class Lone {}",
}
B = "app/src/main/java/a/b/"


@pytest.mark.parametrize(
    ("module", "name", "files"),
    [
        ("a.b", "Cart", [f"{B}Cart.java"]),
        ("a.c", "Cart", ["lib/src/a/c/Cart.java"]),
        ("a.d", "Cart", ["lib/strange/Cart.java"]),
        ("a.b", "Beside", [f"{B}Cart.java"]),
        ("a.b.Cart", "Item", [f"{B}Cart.java"]),
        ("a.b.Cart.Item", "Part", [f"{B}Cart.java"]),
        ("a.b.Cart", "*", [f"{B}Cart.java"]),
        ("a.b.Cart", "total", [f"{B}Cart.java"]),
        ("a.b", "*", [f"{B}Cart.java", f"{B}Other.java", "app/src/test/java/a/b/CartTest.java"]),
        ("a", "*", []),
        ("a.b", "None", []),
        ("java.util", "List", []),
        ("a.e", "Cart", []),
        ("Cart", "", []),
    ],
)
def test_a_class_is_found_by_its_package(module: str, name: str, files: list[str]) -> None:
    found = java.find_module(Import(module, 1, name), "x/Y.java", MemoryProject(FILES))
    assert list(found) == files


def test_a_package_sees_its_files_in_all_source_folders() -> None:
    project = MemoryProject(FILES)
    assert list(java.neighbours("app/src/test/java/a/b/CartTest.java", project)) == [
        *[f"{B}Cart.java", f"{B}Other.java"]
    ]
    assert list(java.neighbours("one/Loose.java", project)) == ["one/Lone.java"]
    assert list(java.neighbours("lib/src/a/c/Cart.java", project)) == []


def test_all_names_of_one_field_are_there() -> None:
    read = outline("class C { int a, b[] = {1}, c; static final int D = 1, E = 2; }")
    assert [(s.name, s.kind) for s in read.symbols[1:]] == [
        *[("a", "field"), ("b", "field"), ("c", "field"), ("D", "constant"), ("E", "constant")]
    ]


def test_annotations_are_no_part_of_a_signature_nor_of_the_line() -> None:
    read = outline(
        'class C {\n  @A("x") @B\n  public @D final\n  int f(@E int x)\n  { }\n  @F\n  int g\n  = 1;\n}'
    )
    assert [(s.signature, s.line, s.end_line) for s in read.symbols[1:]] == [
        *[("public final int f(@E int x)", 4, 5), ("int g", 7, 8)]
    ]


def test_nameless_classes_give_their_calls_to_what_is_around() -> None:
    read = outline("class C { void f() { run(new R() { int x; public void go() { a(); } }); } }")
    assert [qualified_name(read, place) for place in range(len(read.symbols))] == ["C", "C.f"]
    assert {(call.name, call.caller) for call in read.calls} == {("run", 1), ("R", 1), ("a", 1)}


def test_forms_of_calls() -> None:
    assert calls("a(); b.c(); this.d(); super.e(); x.y.f(); g().h(); ((T) i).j(); K.<L>m(); n[0].o();") == {
        *[("", "a"), ("b", "c"), ("this", "d"), ("super", "e"), ("x.y", "f"), ("", "g"), ("?", "h")],
        *[("?", "j"), ("K", "m"), ("?", "o")],
    }
    assert calls("new A(); new B<C>(); new d.E(); new d.F<G>(); new H<>() {}; i.new J(); new K[3];") == {
        *[("", "A"), ("", "B"), ("d", "E"), ("d", "F"), ("", "H"), ("", "J")]
    }
    assert calls("x(A::b, this::c, super::d, E::new, f.G::new, int[]::new, h()::i);") == {
        *[("", "x"), ("A", "b"), ("this", "c"), ("super", "d"), ("", "E"), ("f", "G"), ("", "h"), ("?", "i")]
    }
    made = outline("class A extends B { A() { super(1); } A(int x) { this(); } }").calls
    assert [(call.receiver, call.name) for call in made] == [("", "super"), ("", "this")]


@pytest.mark.parametrize(
    ("head", "kind", "bases"),
    [
        ("class A", "class", ()),
        ("class A extends b.C<D> implements E, f.G<H>", "class", ("b.C", "E", "f.G")),
        ("interface A extends B, C<D>", "interface", ("B", "C")),
        ("enum A implements B", "enum", ("B",)),
        ("record A(int x) implements B", "class", ("B",)),
        ("@interface A", "interface", ()),
        ("sealed class A extends B permits C, D", "class", ("B",)),
    ],
)
def test_what_a_type_extends(head: str, kind: str, bases: tuple[str, ...]) -> None:
    symbol = outline(f"{head} {{ }}").symbols[0]
    assert (symbol.kind, symbol.bases, symbol.signature) == (kind, bases, head)


def test_only_private_is_hidden() -> None:
    read = outline("class A { private int b; int c; protected void d() {} public E() {} private class F {} }")
    assert [s.name for s in read.symbols if not s.exported] == ["b", "F"]


def test_broken_text_gives_what_can_be_read() -> None:
    read = outline("package a;\nclass B { void c() { d(); }\n void e( { f();\n")
    assert read.broken
    assert (read.package, [s.name for s in read.symbols][:2]) == ("a", ["B", "c"])
    assert ("", "d") in {(call.receiver, call.name) for call in read.calls}
