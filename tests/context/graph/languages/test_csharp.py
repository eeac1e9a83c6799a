"""What is particular to C#; the fixture shows the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import csharp
from herdr.context.graph.outline import Import, Outline, qualified_name
from herdr.context.graph.parse import Reader


def outline(text: str) -> Outline:
    return Reader(csharp.LANGUAGE).read(text.encode())


def names(text: str) -> list[tuple[str, str]]:
    read = outline(text)
    return [(qualified_name(read, place), s.kind) for place, s in enumerate(read.symbols)]


def calls(text: str) -> set[tuple[str, str]]:
    return {(call.receiver, call.name) for call in outline(f"class C {{ void f() {{ {text} }} }}").calls}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("using A;", ("A", "*", "")),
        ("using A.B;", ("A.B", "*", "")),
        ("global using A.B;", ("A.B", "*", "")),
        ("using static A.B;", ("A.B", "*", "")),
        ("using global::A.B;", ("A.B", "*", "")),
        ("using X = A.B.C;", ("A.B", "C", "X")),
        ("using X = A;", ("A", "", "X")),
        ("using X = A.List<int>;", ("A", "List", "X")),
    ],
)
def test_forms_of_usings(text: str, expected: tuple[str, str, str]) -> None:
    assert [(found.module, found.name, found.alias) for found in outline(text).imports] == [expected]


def test_both_forms_of_a_namespace_give_the_same_names() -> None:
    inside = "class C { void F() {} }"
    expected = [("A.B", "namespace"), ("C", "class"), ("C.F", "method")]
    for text in (f"namespace A.B; {inside}", f"namespace A.B {{ {inside} }}"):
        assert names(text) == expected
        assert outline(text).package == "A.B"
        assert outline(text).symbols[0].signature == "namespace A.B"


FILES = {
    "Cart.cs": "namespace A.B; public partial class Cart { class Item {} }",
    "Cart.More.cs": "namespace A.B; public partial class Cart {} delegate void Changed();",
    "deep/X.cs": "namespace A { class X {} }",
    "Top.cs": "class Top {}",
    "Y.cs": "namespace C.B.A; class Y {}",
}
BOTH = ["Cart.More.cs", "Cart.cs"]


@pytest.mark.parametrize(
    ("module", "name", "files"),
    [
        ("A.B", "*", BOTH),
        ("A", "*", ["deep/X.cs"]),
        ("A", "B", BOTH),
        ("A", "A", []),
        ("A.B", "Cart", BOTH),
        ("A.B", "Changed", ["Cart.More.cs"]),
        ("A.B.Cart", "*", BOTH),
        ("A.B.Cart", "Item", BOTH),
        ("A.B.None", "*", []),
        ("System", "*", []),
        ("System.Collections.Generic", "List", []),
    ],
)
def test_a_namespace_is_found_by_what_files_declare(module: str, name: str, files: list[str]) -> None:
    found = csharp.find_module(Import(module, 1, name), "z.cs", MemoryProject(FILES))
    assert list(found) == files


def test_a_name_may_be_short_by_the_namespaces_around_it() -> None:
    project = MemoryProject(FILES)
    assert list(csharp.find_module(Import("B", 1, "*"), "deep/X.cs", project)) == BOTH
    assert list(csharp.find_module(Import("A.X", 1), "Y.cs", project)) == ["deep/X.cs"]
    assert list(csharp.find_module(Import("B", 1, "*"), "Top.cs", project)) == []


def test_a_namespace_sees_itself_and_those_around_it() -> None:
    project = MemoryProject(FILES)
    assert list(csharp.neighbours("Cart.cs", project)) == ["Cart.More.cs", "deep/X.cs"]
    assert list(csharp.neighbours("Top.cs", project)) == []
    assert csharp.known_keys("Cart.cs", project) == ("B",)
    assert csharp.known_keys("Top.cs", project) == ()


def test_kinds_of_members() -> None:
    text = """
    struct S {
        int a, b; const int C = 1, D = 2; event E F; event E G { add {} remove {} }
        int H { get; set; } int I => 1; int this[int i] => i; S(int a) {} ~S() {}
        static S operator +(S x, S y) => x; void J() { int K() => 1; } void L.M() {}
        enum N { O, P = 2 } delegate void Q(); record R(int T); record struct U(int V); interface W { void X(); }
    }"""
    assert [name.removeprefix("S.") + f" {kind}" for name, kind in names(text)] == [
        *[
            "S struct",
            "a field",
            "b field",
            "C constant",
            "D constant",
            "F field",
            "G property",
            "H property",
        ],
        *["I property", "this property", "S constructor", "J method", "J.K function", "M method", "N enum"],
        *["N.O constant", "N.P constant", "Q type", "R class", "R.T property", "U struct", "U.V property"],
        *["W interface", "W.X method"],
    ]


@pytest.mark.parametrize(
    ("head", "bases"),
    [
        ("class A", ()),
        ("class A<T> : B<T>, C, D.E<T> where T : class, new()", ("B", "C", "D.E")),
        ("class A(int x) : B(x), C", ("B", "C")),
        ("record A(int X) : B(X), C", ("B", "C")),
        ("interface A : B", ("B",)),
        ("struct A : global::B.C", ("global::B.C",)),
        ("enum A : byte", ()),
    ],
)
def test_what_a_type_extends(head: str, bases: tuple[str, ...]) -> None:
    symbol = outline(f"{head} {{ }}").symbols[0]
    assert (symbol.signature, symbol.bases) == (head, bases)


def test_forms_of_calls() -> None:
    assert calls(
        "A(); b.C(); this.D(); base.E(); x.y.F(); G().H(); ((T)i).J(); K<L>(); m.N<O>(); p[0].Q();"
    ) == {
        *[("", "A"), ("b", "C"), ("this", "D"), ("base", "E"), ("x.y", "F"), ("", "G"), ("?", "H")],
        *[("?", "J"), ("", "K"), ("m", "N"), ("?", "Q")],
    }
    assert calls("a?.B(); c?.D<E>(); f!.G(); h?.i.J(); await k.L(); M<N>.O(); global::P.Q(); x?.y?.Z();") == {
        *[("a", "B"), ("c", "D"), ("f", "G"), ("h.i", "J"), ("k", "L"), ("M", "O"), ("global.P", "Q")],
        ("x.y", "Z"),
    }
    assert calls(
        "new A(); new B<C>(); new D.E(); F g = new(); H<I> j = new(1); new K[2]; new { L = 1 };"
    ) == {*[("", "A"), ("", "B"), ("D", "E"), ("", "F"), ("", "H")]}
    made = outline("class A : B { A() : base(1) {} A(int x) : this() {} C D { get; } = new(); }").calls
    assert [(call.receiver, call.name) for call in made] == [("", "base"), ("", "this"), ("", "C")]


def test_attributes_are_no_part_of_a_signature_nor_of_the_line() -> None:
    read = outline(
        "[A]\n[B(1)]\npublic class C {\n  [D]\n  int e = 1;\n  [F] // x\n  public int G { get; }\n}"
    )
    assert [(s.signature, s.line) for s in read.symbols] == [
        *[("public class C", 3), ("int e = 1", 5), ("public int G", 7)]
    ]


def test_who_can_name_what() -> None:
    text = """
    class A { int b; public int c; internal int d; protected int e; private protected int f; private class G {} }
    file class H {} public interface I { void J(); } enum K { L } record M(int N); struct O { void P() {} }
    namespace Q { class R { void S() {} } }
    """
    hidden = {name for (name, _), s in zip(names(text), outline(text).symbols, strict=True) if not s.exported}
    assert hidden == {"A.b", "A.f", "A.G", "H", "O.P", "R.S"}


def test_conditions_of_the_preprocessor_are_read_over_in_any_place() -> None:
    text = """
class A
#if X
    : B
#endif
{
    #if Y
    void C() {}
    #else
    void D() {}
    # endif
    enum E {
#if Z
        F,
#endif
        G
    }
    string h = "#if";
}"""
    read = outline(text)
    assert not read.broken
    assert [s.name for s in read.symbols] == ["A", "C", "D", "E", "F", "G", "h"]
    assert (read.symbols[0].bases, read.symbols[-1].signature) == (("B",), 'string h = "#if"')


def test_statements_at_the_top_have_no_caller() -> None:
    read = outline("var x = new A();\nx.B();\nvoid C() { D(); }\nC();")
    assert [(call.name, call.caller) for call in read.calls] == [("A", -1), ("B", -1), ("D", 0), ("C", -1)]


def test_broken_text_gives_what_can_be_read() -> None:
    read = outline("namespace A;\nclass B { void C() { D(); }\n void E() { F( }\n }")
    assert read.broken
    assert (read.package, [s.name for s in read.symbols]) == ("A", ["A", "B", "C", "E"])
    assert ("", "D") in {(call.receiver, call.name) for call in read.calls}
