"""What is particular to Rust; the fixture shows the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import manifests, rust
from herdr.context.graph.outline import Import, Outline, qualified_name
from herdr.context.graph.parse import Reader


def outline(text: str) -> Outline:
    return Reader(rust.LANGUAGE).read(text.encode())


def imports(text: str) -> list[tuple[str, str, str]]:
    return [(found.module, found.name, found.alias) for found in outline(text).imports]


def calls(text: str) -> set[tuple[str, str]]:
    return {(call.receiver, call.name) for call in outline(f"fn f() {{ {text} }}").calls}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use a;", [("a", "", "a")]),
        ("use a::b;", [("a", "b", "b")]),
        ("pub use a::b as c;", [("a", "b", "c")]),
        ("use a::b as _;", [("a", "b", "")]),
        ("use a::*;", [("a", "*", "")]),
        ("use ::a::b;", [("a", "b", "b")]),
        ("use a::{self, b, c::{d, e as f}};", [
            *[("a", "", "a"), ("a", "b", "b"), ("a::c", "d", "d"), ("a::c", "e", "f")]
        ]),
        ("use {a::b, c};", [("a", "b", "b"), ("c", "", "c")]),
        ("use a::{b::*};", [("a::b", "*", "")]),
        ("use a :: /* x */ b;", [("a", "b", "b")]),
        ("use crate::a::b;", [("crate::a", "b", "b")]),
        ("use super::super::a;", [("super::super", "a", "a")]),
        ("use super::{self as up};", [("super", "", "up")]),
        ("extern crate a;", [("a", "", "a")]),
        ("extern crate a as b;", [("a", "", "b")]),
        ("mod a;", [("a", "", "a")]),
        ("pub(crate) mod a;", [("a", "", "a")]),
        ("mod a {}", []),
        ("mod a { use super::b; }", [("self", "b", "b")]),
        ("mod a { use super::super::b::c; }", [("super::b", "c", "c")]),
        ("mod a { mod d { use super::super::b::*; } }", [("self::b", "*", "")]),
        ("mod a { use crate::b; use std::c; }", [("crate", "b", "b"), ("std", "c", "c")]),
    ],
)  # fmt: skip
def test_forms_of_imports(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert imports(text) == expected


FILES = {
    "shop/Cargo.toml": '[package]\nname = "my-shop"\n',
    "shop/src/lib.rs": "",
    "shop/src/main.rs": "",
    "shop/src/money.rs": "",
    "shop/src/cart/mod.rs": "",
    "shop/src/cart/item.rs": "",
    "shop/src/cart/item/size.rs": "",
    "shop/src/bin/tool.rs": "",
    "shop/src/bin/part.rs": "",
    "shop/tests/whole.rs": "",
    "shop/tests/common/mod.rs": "",
    "plain-crate/src/lib.rs": "",
    "plain-crate/src/deep.rs": "",
    "other/Cargo.toml": '[package]\nname = "x"\n[lib]\nname = "renamed"\n',
    "other/src/lib.rs": "",
}


@pytest.mark.parametrize(
    ("path", "module", "name", "file"),
    [
        ("shop/src/lib.rs", "cart", "", "shop/src/cart/mod.rs"),
        ("shop/src/cart/mod.rs", "item", "", "shop/src/cart/item.rs"),
        ("shop/src/cart/item.rs", "size", "", "shop/src/cart/item/size.rs"),
        ("shop/src/money.rs", "cart", "", None),
        ("shop/src/money.rs", "crate::cart", "Cart", "shop/src/cart/mod.rs"),
        ("shop/src/money.rs", "crate::cart", "item", "shop/src/cart/item.rs"),
        ("shop/src/money.rs", "crate::cart::item::Item", "new", "shop/src/cart/item.rs"),
        ("shop/src/money.rs", "crate", "Error", "shop/src/lib.rs"),
        ("shop/src/main.rs", "crate", "Args", "shop/src/main.rs"),
        ("shop/src/money.rs", "super", "Error", "shop/src/lib.rs"),
        ("shop/src/cart/mod.rs", "super::money", "Amount", "shop/src/money.rs"),
        ("shop/src/cart/item.rs", "super", "Cart", "shop/src/cart/mod.rs"),
        ("shop/src/cart/item/size.rs", "super", "Item", "shop/src/cart/item.rs"),
        ("shop/src/cart/item/size.rs", "super::super::super::money", "*", "shop/src/money.rs"),
        ("shop/src/cart/item.rs", "self", "*", "shop/src/cart/item.rs"),
        ("shop/src/lib.rs", "super", "x", None),
        ("shop/src/bin/tool.rs", "part", "", "shop/src/bin/part.rs"),
        ("shop/src/bin/tool.rs", "my_shop::cart", "Cart", "shop/src/cart/mod.rs"),
        ("shop/tests/whole.rs", "my_shop", "Cart", "shop/src/lib.rs"),
        ("shop/tests/whole.rs", "common", "", "shop/tests/common/mod.rs"),
        ("shop/src/lib.rs", "plain_crate::deep", "X", "plain-crate/src/deep.rs"),
        ("shop/src/lib.rs", "renamed", "X", "other/src/lib.rs"),
        ("shop/src/lib.rs", "other", "X", None),
        ("shop/src/lib.rs", "std::fmt", "Display", None),
        ("build.rs", "crate", "x", "build.rs"),
        ("alone.rs", "crate", "x", None),
        ("alone.rs", "super::super", "x", None),
        ("alone.rs", "", "", None),
    ],
)
def test_where_paths_lead(path: str, module: str, name: str, file: str | None) -> None:
    found = rust.find_module(Import(module, 1, name), path, MemoryProject(FILES))
    assert list(found) == ([file] if file else [])


def test_under_which_names_a_file_is_imported() -> None:
    project = MemoryProject(FILES)
    assert list(rust.keys("my-shop/src/lib.rs")) == ["crate", "super", "my_shop"]
    assert list(rust.keys("src/cart/mod.rs")) == ["cart", "super"]
    assert list(rust.keys("src/money.rs")) == ["money", "super"]
    assert rust.known_keys("other/src/lib.rs", project) == ("renamed",)
    assert rust.known_keys("plain-crate/src/lib.rs", project) == ()


@pytest.mark.parametrize(
    ("head", "name", "bases"),
    [
        ("impl Cart", "Cart", ()),
        ("impl<T: Copy> Cart<T>", "Cart", ()),
        ("unsafe impl<'a, T> Iterator for Cart<'a, T> where T: Copy", "Cart", ("Iterator",)),
        ("impl fmt::Display for crate::cart::Cart", "Cart", ("fmt.Display",)),
        ("impl From<u8> for &'static mut Cart", "Cart", ("From",)),
        ("impl Trait for u8", "u8", ("Trait",)),
        ("impl Trait for [u8; 4]", "[u8; 4]", ("Trait",)),
        ("impl dyn Trait", "dyn Trait", ()),
    ],
)
def test_methods_are_named_by_their_type(head: str, name: str, bases: tuple[str, ...]) -> None:
    read = outline(f"{head} {{ fn f(&self) {{}} const C: u8 = 1; }}")
    assert (read.symbols[0].kind, read.symbols[0].bases, read.symbols[0].signature) == ("impl", bases, head)
    assert [qualified_name(read, place) for place in (1, 2)] == [f"{name}.f", f"{name}.C"]


def test_forms_of_calls() -> None:
    assert calls(
        "a(); b::c(); b::c::d(); x.e(); x.y.f(); Self::g(); self.h(); ::i::j(); k::<u8>(); r#l()"
    ) == {
        *[("", "a"), ("b", "c"), ("b.c", "d"), ("x", "e"), ("x.y", "f"), ("Self", "g"), ("self", "h")],
        *[("?", "j"), ("", "k"), ("", "l")],
    }
    assert calls(
        "x.a::<u8>(); Vec::<u8>::b(); <T as U>::c(); d::e::<u8>(); x().f(); y?.g(); h!(); i::j![]"
    ) == {
        *[("x", "a"), ("Vec", "b"), ("?", "c"), ("d", "e"), ("", "x"), ("?", "f"), ("?", "g"), ("", "h")],
        ("i", "j"),
    }
    assert calls("P { a: 1 }; b::Q { }; E::V { x }; T(1)") == {("", "P"), ("b", "Q"), ("E", "V"), ("", "T")}


def test_calls_in_what_a_macro_is_given() -> None:
    text = "m!(a(1), b::c(2), b::c::d(3), self.e(), x.y.f(4), Self::g(), h![i(5)], vec![6], J { k: l(7) })"
    assert calls(text) == {
        *[("", "m"), ("", "a"), ("b", "c"), ("?", "d"), ("self", "e"), ("?", "f"), ("Self", "g")],
        *[("", "i"), ("", "l")],
    }
    assert outline("#[cfg(all(a, not(any(b))))] struct S;").calls == ()


def test_who_can_name_what() -> None:
    text = """
    pub struct A { pub a: u8, b: u8 }
    struct B(pub u8);
    pub(crate) fn c() {}
    trait D { fn d(&self); }
    impl D for A { fn d(&self) {} }
    impl A { pub fn e() {} fn f() {} }
    enum E { G, H { h: u8 } }
    """
    read = outline(text)
    shown = {qualified_name(read, p) for p, s in enumerate(read.symbols) if s.exported and s.kind != "impl"}
    assert shown == {"A", "A.a", "c", "D.d", "A.d", "A.e", "E.G", "E.H", "E.H.h"}


def test_variants_with_fields_are_made_like_structs() -> None:
    kinds = [(s.name, s.kind) for s in outline("enum E { A, B(u8), C { d: u8 } }").symbols]
    assert kinds == [("E", "enum"), ("A", "constant"), ("B", "struct"), ("C", "struct"), ("d", "field")]


@pytest.mark.parametrize(
    ("text", "name", "broken"),
    [
        (b'[package]\nname = "a-b"\n', "a_b", False),
        (b'[lib]\nname = "c"\n[package]\nname = "a-b"\n', "c", False),
        (b'[lib]\npath = "x.rs"\n[package]\nname = "a"\n', "a", False),
        (b'[workspace]\nmembers = ["a"]\n', "", False),
        (b"package = 1\nlib = []\n", "", False),
        (b"[package]\nname = 1\n", "", False),
        (b"[package\n", "", True),
        (b"\xff\x00", "", True),
        (b"a = " + b"[" * 5000, "", True),
    ],
)
def test_a_manifest_says_its_crates_name(text: bytes, name: str, broken: bool) -> None:
    read = Reader(manifests.CARGO).read(text)
    assert (read.package, read.broken) == (name, broken)


def test_broken_text_gives_what_can_be_read() -> None:
    read = outline("fn a() { b(); }\nimpl X { fn c( { }\nstruct D { e: u8, \nuse f::{g, ;\n")
    assert read.broken
    assert read.symbols[0].name == "a"
    assert (read.calls[0].receiver, read.calls[0].name) == ("", "b")


def test_a_deep_use_is_read_up_to_a_bound() -> None:
    def deep(levels: int) -> list[str]:
        read = outline("use " + "a::{" * levels + "b" + "}" * levels + "; use c;")
        return [found.name or found.module for found in read.imports]

    assert deep(60) == ["b", "c"]
    assert deep(50_000) == ["c"]
