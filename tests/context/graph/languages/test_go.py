"""What is particular to Go; the fixture shows the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import go, manifests
from herdr.context.graph.outline import Import, Outline, qualified_name
from herdr.context.graph.parse import Reader


def outline(text: str) -> Outline:
    return Reader(go.LANGUAGE).read(text.encode())


def found(files: dict[str, str], path: str, module: str) -> list[str]:
    return list(go.find_module(Import(module, 1), path, MemoryProject(files)))


def calls(text: str) -> set[tuple[str, str]]:
    return {(call.receiver, call.name) for call in outline(f"package p\nfunc f() {{\n{text}\n}}").calls}


def test_all_names_of_one_declaration_are_there() -> None:
    read = outline(
        "package p\nvar a, b = 1, 2\nconst (\n\tX, Y = iota, iota\n\tZ, _\n)\ntype S struct { l, r int }"
    )
    assert [(s.name, s.kind) for s in read.symbols if s.parent < 0] == [
        *[("a", "variable"), ("b", "variable"), ("X", "constant"), ("Y", "constant"), ("Z", "constant")],
        ("S", "struct"),
    ]
    assert [s.name for s in read.symbols if s.parent >= 0] == ["l", "r"]


@pytest.mark.parametrize(
    ("receiver", "qualified"),
    [
        ("c Cart", "Cart.F"),
        ("c *Cart", "Cart.F"),
        ("*Cart", "Cart.F"),
        ("Cart", "Cart.F"),
        ("c *Cart[K, V]", "Cart.F"),
        ("c (*Cart)", "Cart.F"),
        ("_ Cart", "Cart.F"),
    ],
)
def test_a_method_belongs_to_its_receivers_type(receiver: str, qualified: str) -> None:
    read = outline(f"package p\nfunc ({receiver}) F() {{}}")
    assert qualified_name(read, 0) == qualified


def test_calls_through_the_receiver_are_calls_of_the_object_itself() -> None:
    read = outline("package p\nfunc (c *Cart) F(d *Cart) { c.A(); c.items.B(); d.C(); func() { c.D() }() }")
    assert [(call.receiver, call.name) for call in read.calls] == [
        *[("self", "A"), ("self.items", "B"), ("d", "C"), ("self", "D")]
    ]
    assert [call.receiver for call in outline("package p\nfunc (_ T) F() { _.A() }").calls] == ["_"]
    assert [call.receiver for call in outline("package p\nfunc F(c T) { c.A() }").calls] == ["c"]


def test_calls_with_type_arguments() -> None:
    text = "f[int](); g[A, B](x); p.h[T](x); q.i[string](); (*T)(x); m[key](); n[0](x)"
    assert calls(text) == {("", "f"), ("", "g"), ("p", "h"), ("q", "i"), ("", "T")}


def test_values_that_are_made_are_calls_of_their_types() -> None:
    text = (
        "_ = Cart{}; _ = &shop.Cart{}; _ = Pair[int]{}; _ = shop.Pair[int]{}; _ = []Cart{{}}; _ = map[K]V{}"
    )
    assert calls(text) == {("", "Cart"), ("shop", "Cart"), ("", "Pair"), ("shop", "Pair")}


def test_embedded_types_are_bases() -> None:
    read = outline(
        "package p\ntype S struct { A; *B; c.D; E[int]; f G }\ntype I interface { J; k.L; ~int; M() }"
    )
    assert {s.name: s.bases for s in read.symbols if s.bases} == {
        "S": ("A", "B", "c.D", "E"),
        "I": ("J", "k.L"),
    }


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("fmt", "fmt"),
        ("example.com/shop/cart", "cart"),
        ("example.com/shop/v2", "shop"),
        ("gopkg.in/yaml.v3", "yaml"),
        ("github.com/acme/go-clock", "clock"),
        ("github.com/acme/some-thing", "some"),
        ("v2", "v2"),
    ],
)
def test_the_name_that_a_package_is_assumed_to_have(module: str, name: str) -> None:
    assert go.assumed_name(module) == name


FILES = {
    "go.mod": "// the shop\nmodule example.com/shop\n\ngo 1.23\n",
    "shop.go": "package shop",
    "cart/cart.go": "package cart",
    "cart/cart_test.go": "package cart",
    "cart/black_test.go": "package cart_test",
    "cart/README.md": "cart",
    "tools/go.mod": 'module "example.com/shop/tools"',
    "tools/lint/lint.go": "package lint",
    "fmt/fmt.go": "package fmt",
    "vendor/github.com/acme/clock/clock.go": "package clock",
}


@pytest.mark.parametrize(
    ("module", "files"),
    [
        ("example.com/shop", ["shop.go"]),
        ("example.com/shop/cart", ["cart/cart.go"]),
        ("example.com/shop/tools/lint", ["tools/lint/lint.go"]),
        ("example.com/shop/none", []),
        ("example.com/other/cart", []),
        ("github.com/acme/clock", ["vendor/github.com/acme/clock/clock.go"]),
        ("fmt", []),
        ("cart", []),
        ("", []),
    ],
)
def test_an_import_path_is_found_by_the_modules_manifest(module: str, files: list[str]) -> None:
    assert found(FILES, "main.go", module) == files


def test_of_two_modules_with_one_path_the_own_one_counts() -> None:
    files = {
        path: text
        for top in ("a", "b")
        for path, text in {f"{top}/go.mod": "module x.org/m", f"{top}/p/p.go": "package p"}.items()
    }
    assert found(files, "b/main.go", "x.org/m/p") == ["b/p/p.go"]
    assert found(files, "a/main.go", "x.org/m/p") == ["a/p/p.go"]


def test_without_a_manifest_a_path_needs_two_matching_parts() -> None:
    files = {"shop/cart/cart.go": "package cart", "clock/clock.go": "package clock"}
    assert found(files, "main.go", "example.com/shop/cart") == ["shop/cart/cart.go"]
    assert found(files, "main.go", "example.com/clock") == []
    assert found({"src/x.org/a/a.go": "package a"}, "main.go", "x.org/a") == ["src/x.org/a/a.go"]


def test_a_package_sees_its_own_files_and_only_a_test_sees_tests() -> None:
    project = MemoryProject({**FILES, "cart/items.go": "package cart", "else/cart.go": "package cart"})
    assert go.neighbours("cart/cart.go", project) == ["cart/items.go"]
    assert go.neighbours("cart/cart_test.go", project) == ["cart/cart.go", "cart/items.go"]
    assert go.neighbours("cart/black_test.go", project) == []
    assert go.neighbours("none.go", project) == ()


def test_the_root_package_is_found_by_its_own_name() -> None:
    project = MemoryProject(FILES)
    assert list(go.keys("shop.go")) == []
    assert go.known_keys("shop.go", project) == ("shop",)
    assert list(go.keys("internal/cart/cart.go")) == ["cart"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"module example.com/shop\n", "example.com/shop"),
        (b"\n// x\nmodule `a.b/c` // y\n", "a.b/c"),
        (b"go 1.23\n", ""),
        (b"\xff\xfe\x00", ""),
        (b"", ""),
    ],
)
def test_a_module_says_its_path(text: bytes, name: str) -> None:
    read = Reader(manifests.GO_MODULE).read(text)
    assert (read.package, read.broken, read.symbols) == (name, not name, ())


def test_broken_text_gives_what_can_be_read() -> None:
    read = outline("package p\nfunc A() { B() }\nfunc (c *Cart) { \ntype T struct { x int\nfunc C() {}")
    assert read.broken
    assert "A" in [s.name for s in read.symbols]
    assert ("", "B") in {(call.receiver, call.name) for call in read.calls}
