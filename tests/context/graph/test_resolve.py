"""What a call means, and how sure that is; each case a few lines of a project."""

import pytest
from context.graph.memory_project import MemoryProject
from hypothesis import given, settings
from hypothesis import strategies as st

from herdr.context.graph.modules import FILES_MAX, Modules
from herdr.context.graph.outline import Import
from herdr.context.graph.resolve import TARGETS_MAX, Resolver, resolve_call, resolve_import, symbol_id

SHOP = {
    "shop/__init__.py": "from .cart import Cart\nfrom .price import total as sum_up\n",
    "shop/cart.py": (
        "from shop.base import Base\n\nclass Cart(Base):\n    def add(self): pass\n    def clear(self): self.add()\n"
    ),
    "shop/base.py": "class Base:\n    def save(self): pass\n    def add(self): pass\n",
    "shop/price.py": "def total(): pass\nRATE = 2\n",
    "shop/extra/__init__.py": "",
    "shop/extra/tax.py": "def tax(): pass\n",
}


def meaning(source: str, call: str, path: str = "main.py", **files: str) -> str:
    """Return `exact a.py::f`, `name 2 a.py::f b.py::f`, or `external`, for one call in a file of the shop."""
    project = MemoryProject({**SHOP, **files, path: source})
    outline = project.outline(path)
    assert outline is not None
    found = [c for c in outline.calls if f"{c.receiver}.{c.name}".removeprefix(".") == call]
    assert len(found) == 1, (call, outline.calls)
    kind, targets, candidates = resolve_call(project, path, outline, found[0])
    number = [str(candidates)] if kind == "name" else []
    assert kind != "exact" or candidates == 1
    return " ".join([kind, *number, *dict.fromkeys(symbol_id(project, target) for target in targets)])


@pytest.mark.parametrize(
    ("source", "call", "expected"),
    [
        # the file's own names, from the inside out
        ("def f(): pass\nf()\n", "f", "exact main.py::f"),
        ("def f(): pass\ndef g():\n    def f(): pass\n    f()\n", "f", "exact main.py::g.f"),
        ("def f(): pass\nclass A:\n    def f(self): pass\n    def g(self): f()\n", "f", "exact main.py::f"),
        ("class A:\n    def f(x): pass\n    g = f(1)\n", "f", "exact main.py::A.f"),
        ("if 1:\n    def f(): pass\nelse:\n    def f(x): pass\nf()\n", "f", "exact main.py::f"),
        ("class A:\n    def f(self): pass\ndef g(): f()\n", "f", "external"),
        ("class A: pass\nA()\n", "A", "exact main.py::A"),
        ("class A:\n    class B:\n        def f(): pass\nA.B.f()\n", "A.B.f", "exact main.py::A.B.f"),
        # what hides a name is not known, so neither is what it means
        ("def f(): pass\ndef g(f): f()\n", "f", "name 1 main.py::f"),
        ("def f(): pass\ndef g(*, f=None): f()\n", "f", "name 1 main.py::f"),
        ("def f(): pass\ndef g(a: f): f()\n", "f", "exact main.py::f"),
        ("def f(): pass\ndef g(a) -> f: f()\n", "f", "exact main.py::f"),
        ("def f(): pass\nf = f\nf()\n", "f", "name 1 main.py::f"),
        (
            "from shop import price\ndef g(price): price.total()\n",
            "price.total",
            "name 1 shop/price.py::total",
        ),
        (
            "from shop.price import total\ndef total(): pass\ntotal()\n",
            "total",
            "name 2 main.py::total shop/price.py::total",
        ),
        ("f().total()\n", "?.total", "name 1 shop/price.py::total"),
        ("x.total()\n", "x.total", "name 1 shop/price.py::total"),
        ("x.unheard()\n", "x.unheard", "external"),
        # objects and classes
        ("class A:\n    def f(self): self.g()\n    def g(self): pass\n", "self.g", "exact main.py::A.g"),
        (
            "class A:\n    def f(self):\n        def h(): self.g()\n    def g(self): pass\n",
            "self.g",
            "exact main.py::A.g",
        ),
        ("class A:\n    def f(cls): cls()\n", "cls", "exact main.py::A"),
        (
            "from shop import Cart\nclass A(Cart):\n    def f(self): self.save()\n",
            "self.save",
            "exact shop/base.py::Base.save",
        ),
        (
            "from shop import Cart\nclass A(Cart):\n    def add(self): super().add()\n",
            "super.add",
            "exact shop/cart.py::Cart.add",
        ),
        (
            "import shop.base as b\nclass A(b.Base):\n    def f(self): self.save()\n",
            "self.save",
            "exact shop/base.py::Base.save",
        ),
        ("from shop import Cart\nCart.save()\n", "Cart.save", "exact shop/base.py::Base.save"),
        (
            "from shop import Cart\nclass A(Cart):\n    save = 1\n    def f(self): self.save()\n",
            "self.save",
            "name 1 shop/base.py::Base.save",
        ),
        ("class A:\n    def f(self): self.save()\n", "self.save", "name 1 shop/base.py::Base.save"),
        ("class A:\n    def f(self): self.base.save()\n", "self.base.save", "name 1 shop/base.py::Base.save"),
        ("def f(self): self.save()\n", "self.save", "name 1 shop/base.py::Base.save"),
        # a base from outside
        ("from lib import L\nclass A(L):\n    def f(self): self.save()\n", "self.save", "external"),
        ("from lib import L\nclass A(L):\n    def f(self): super().save()\n", "super.save", "external"),
        (
            "from lib import L\nclass A(L):\n    def f(self): self.g()\n    def g(self): pass\n",
            "self.g",
            "exact main.py::A.g",
        ),
        (
            "from lib import L\nfrom shop import Cart\nclass A(L, Cart):\n    def f(self): self.save()\n",
            "self.save",
            "name 1 shop/base.py::Base.save",
        ),
        (
            "from lib import L\nfrom shop import Cart\nclass A(Cart, L):\n    def f(self): self.save()\n",
            "self.save",
            "exact shop/base.py::Base.save",
        ),
        (
            "from shop import Cart\nclass A(object, Cart):\n    def f(self): self.save()\n",
            "self.save",
            "exact shop/base.py::Base.save",
        ),
        (
            "class A(make()):\n    def f(self): self.g()\n    def g(self): pass\n",
            "self.g",
            "exact main.py::A.g",
        ),
        # names from other modules
        ("from shop.price import total\ntotal()\n", "total", "exact shop/price.py::total"),
        ("from shop.price import total as t\nt()\n", "t", "exact shop/price.py::total"),
        ("from shop import price\nprice.total()\n", "price.total", "exact shop/price.py::total"),
        ("import shop.price\nshop.price.total()\n", "shop.price.total", "exact shop/price.py::total"),
        ("import shop.price as p\np.total()\n", "p.total", "exact shop/price.py::total"),
        (
            "import shop.extra.tax\nshop.extra.tax.tax()\n",
            "shop.extra.tax.tax",
            "exact shop/extra/tax.py::tax",
        ),
        (
            "import shop.cart\nimport shop.price\nshop.price.total()\n",
            "shop.price.total",
            "exact shop/price.py::total",
        ),
        ("import shop\nshop.Cart()\n", "shop.Cart", "exact shop/cart.py::Cart"),
        ("from shop import sum_up\nsum_up()\n", "sum_up", "exact shop/price.py::total"),
        ("from shop import *\nsum_up()\n", "sum_up", "exact shop/price.py::total"),
        ("from lib import *\nfrom shop import *\nCart()\n", "Cart", "name 1 shop/cart.py::Cart"),
        ("def f():\n    from shop.price import total\n    total()\n", "total", "exact shop/price.py::total"),
        (
            "def f():\n    from shop.price import total\ndef g(): total()\n",
            "total",
            "name 1 shop/price.py::total",
        ),
        (
            "try:\n    from lib import total\nexcept ImportError:\n    from shop.price import total\ntotal()\n",
            "total",
            "name 1 shop/price.py::total",
        ),
        ("from shop.price import RATE\nRATE()\n", "RATE", "external"),
        ("from shop.price import gone\ngone.total()\n", "gone.total", "name 1 shop/price.py::total"),
        # what is outside
        ("import os\nos.total()\n", "os.total", "external"),
        ("from lib import thing\nthing.save()\n", "thing.save", "external"),
        ("import os.path\nos.path.total()\n", "os.path.total", "external"),
        ("print()\n", "print", "external"),
        ("from lib import *\nprint()\n", "print", "external"),
        ("super()\n", "super", "external"),
    ],
)
def test_python(source: str, call: str, expected: str) -> None:
    assert meaning(source, call) == expected


def test_a_built_in_name_is_ours_where_a_file_binds_it() -> None:
    assert meaning("from util import print\nprint()\n", "print", **{"util.py": "def print(): pass\n"}) == (
        "exact util.py::print"
    )
    assert meaning("print()\n", "print", **{"util.py": "def print(): pass\n"}) == "external"


def test_the_order_of_bases_is_pythons() -> None:
    files = {
        "a.py": "class Top:\n    def f(self): pass\nclass Left(Top): pass\nclass Right(Top):\n    def f(self): pass\n"
    }
    source = "from a import Left, Right\nclass Low(Left, Right):\n    def g(self): self.f()\n"
    assert meaning(source, "self.f", **files) == "exact a.py::Right.f"


def test_circles_end() -> None:
    stars = {"a.py": "from b import *\n", "b.py": "from a import *\n"}
    assert meaning("from a import *\nf()\n", "f", **stars) == "external"
    assert meaning("from a import f\nf()\n", "f", **stars) == "external"
    names = {"a.py": "from b import f\n", "b.py": "from a import f\n"}
    assert meaning("from a import f\nf()\n", "f", **names) == "external"
    classes = "class A(B):\n    def g(self): self.f()\nclass B(A): pass\n"
    assert meaning(classes, "self.f", **{"c.py": "def f(): pass\n"}) == "name 1 c.py::f"
    itself = "from a import A\nclass A(A):\n    def g(self): self.f()\n"
    assert meaning(itself, "self.f", **{"a.py": "class A:\n    def f(self): pass\n"}) == "name 1 a.py::A.f"


def test_a_tower_of_bases_and_re_exports_ends_without_an_answer() -> None:
    tower = "class C0:\n    def f(self): pass\n" + "".join(
        f"class C{n}(C{n - 1}): pass\n" for n in range(1, 500)
    )
    assert meaning(f"{tower}class A(C499):\n    def g(self): self.f()\n", "self.f") == "name 1 main.py::C0.f"
    passed = {f"m{n}.py": f"from m{n - 1} import f\n" for n in range(1, 500)} | {"m0.py": "def f(): pass\n"}
    assert meaning("from m20 import f\nf()\n", "f", **passed) == "exact m0.py::f"
    assert meaning("from m499 import f\nf()\n", "f", **passed) == "name 1 m0.py::f"


def test_many_ways_to_one_base_are_bounded_work() -> None:
    rows = ["class A0:\n    def f(self): pass\nclass B0(A0): pass\n"]
    rows += [
        f"class A{n}(A{n - 1}, B{n - 1}): pass\nclass B{n}(A{n - 1}, B{n - 1}): pass\n" for n in range(1, 30)
    ]
    source = "".join(rows) + "class Z(A29, B29):\n    def g(self): self.f()\n"
    assert meaning(source, "self.f") in ("exact main.py::A0.f", "name 1 main.py::A0.f")


def test_candidates_are_counted_beyond_those_that_are_named() -> None:
    files = {f"m{n:02}.py": f"class C{n}:\n    def run(self): pass\n" for n in range(30)}
    project = MemoryProject({**files, "main.py": "x.run()\n"})
    outline = project.outline("main.py")
    assert outline is not None
    found = resolve_call(project, "main.py", outline, outline.calls[0])
    assert (found.kind, found.candidates, len(found.targets)) == ("name", 30, TARGETS_MAX)
    assert list(found.targets) == sorted(found.targets)


def test_other_languages_definitions_are_no_candidates() -> None:
    assert meaning("x.run()\n", "x.run", **{"a.go": "package a\nfunc run() {}\n"}) == "external"


def test_go_sees_its_package_and_java_its_own_members() -> None:
    other = {"cart/items.go": "package cart\nfunc count() int { return 1 }\n"}
    go = "package cart\nfunc Total() int { return count() }\n"
    assert meaning(go, "count", "cart/cart.go", **other) == "exact cart/items.go::count"
    assert meaning(go, "count", "till/cart.go", **other) == "name 1 cart/items.go::count"
    java = "class Cart extends Base { int total() { return count() + save(); } int count() { return 1; } }"
    base = {"Base.java": "class Base { int save() { return 2; } }"}
    assert meaning(java, "count", "Cart.java", **base) == "exact Cart.java::Cart.count"
    assert meaning(java, "save", "Cart.java", **base) == "exact Base.java::Base.save"


def test_a_method_of_a_base_from_outside_may_hide_a_function() -> None:
    source = "void save() {}\nclass Cart : public Outer { void f() { save(); } };\n"
    assert meaning(source, "save", "cart.cpp").startswith("name ")
    source = "class Outer {};\nvoid store() {}\nclass Cart : public Outer { void f() { store(); } };\n"
    assert meaning(source, "store", "cart.cpp") == "exact cart.cpp::store"


def test_a_name_may_be_given_out_under_another() -> None:
    module = {"cart.js": "function hidden() {}\nfunction shown() {}\nexport { hidden as shown };\n"}
    source = "import { shown } from './cart';\nshown();\n"
    assert meaning(source, "shown", "main.js", **module) == "exact cart.js::hidden"


def test_names_may_be_given_out_crosswise() -> None:
    module = {"cart.js": "function a() {}\nfunction b() {}\nexport { a as b, b as a };\n"}
    assert meaning("import { a } from './cart';\na();\n", "a", "main.js", **module) == "exact cart.js::b"


def test_a_capital_name_that_nothing_defines_is_the_languages_own() -> None:
    source = "class Cart { String format() { return String.format(this); } }"
    assert meaning(source, "String.format", "Cart.java") == "external"
    own = {"String.java": "package other; class String { static void format() {} }"}
    assert meaning(source, "String.format", "Cart.java", **own).startswith("name ")


def test_types_and_imports_are_not_hidden_by_a_base_from_outside() -> None:
    tax = {"tax/Tax.java": "package tax; public class Tax { public static int rate() { return 1; } }"}
    source = "import static tax.Tax.rate;\nimport tax.Tax;\n"
    source += "class Cart extends Outer { int f() { return rate() + Tax.rate(); } }"
    assert meaning(source, "rate", "Cart.java", **tax) == "exact tax/Tax.java::Tax.rate"
    assert meaning(source, "Tax.rate", "Cart.java", **tax) == "exact tax/Tax.java::Tax.rate"
    source = "namespace tax { int rate() { return 1; } }\n"
    source += "class Cart : public Outer { int f() { return tax::rate(); } };\n"
    assert meaning(source, "tax.rate", "cart.cpp") == "exact cart.cpp::tax.rate"


def test_a_function_of_c_is_its_declaration_and_its_definition() -> None:
    files = {"cart.h": "int add(int a);\n", "cart.c": '#include "cart.h"\nint add(int a) { return a; }\n'}
    source = '#include "cart.h"\nint main(void) { return add(1); }\n'
    assert meaning(source, "add", "main.c", **files) == "exact cart.c::add cart.h::add"


def test_a_class_may_be_opened_in_several_files() -> None:
    parts = {
        "cart.rb": "class Cart\n  def add; end\nend\n",
        "more.rb": "class Cart\n  def self.all; end\nend\n",
    }
    source = "require_relative 'cart'\nrequire_relative 'more'\nCart.all()\n"
    assert meaning(source, "Cart.all", "main.rb", **parts) == "exact more.rb::Cart.all"


def test_a_call_of_a_constructor_is_one_of_its_class() -> None:
    source = "<?php class A { function __construct() {} }\n"
    source += "class B extends A { function f() { parent::__construct(); } }\n"
    assert meaning(source, "parent.__construct", "main.php") == "exact main.php::A"


def test_a_module_may_be_what_it_gives_by_default() -> None:
    module = {"cart.js": "class Cart { static make() {} }\nmodule.exports = Cart;\n"}
    source = "const Basket = require('./cart');\nnew Basket();\nBasket.make();\nBasket.gone();\n"
    assert meaning(source, "Basket", "main.js", **module) == "exact cart.js::Cart"
    assert meaning(source, "Basket.make", "main.js", **module) == "exact cart.js::Cart.make"
    assert meaning(source, "Basket.gone", "main.js", **module) == "external"


def test_a_name_that_is_all_over_the_place_tells_nothing() -> None:
    files = {f"m{n}.py": "def f(): pass\n" for n in range(FILES_MAX)}
    assert len(list(Modules(MemoryProject(files)).definers("python", "f"))) == FILES_MAX
    files["one_more.py"] = "def f(): pass\n"
    assert list(Modules(MemoryProject(files)).definers("python", "f")) == []


def test_imports_lead_to_files_or_out() -> None:
    project = MemoryProject(SHOP)
    assert resolve_import(project, "shop/cart.py", Import("shop.base", 1, "Base", "Base")) == (
        "shop/base.py",
    )
    assert resolve_import(project, "shop/cart.py", Import("..gone", 1, "x", "x")) == ()
    assert resolve_import(project, "no/such.py", Import("shop.base", 1, "Base", "Base")) == ()


names = st.sampled_from(["f", "g", "A", "m", "n"])
lines = st.one_of(
    st.builds("from {} import {}\n".format, st.sampled_from(["m", "n", "out"]), names),
    st.builds("from {} import *\n".format, st.sampled_from(["m", "n", "out"])),
    st.builds("def {}({}):\n    {}()\n".format, names, names, names),
    st.builds("class {}({}):\n    def {}(self): self.{}()\n".format, names, names, names, names),
    st.builds("{} = 1\n".format, names),
    st.builds("{}.{}()\n".format, names, names),
)
sources = st.lists(lines, max_size=8).map("".join)


@settings(deadline=None)
@given(sources, sources, sources)
def test_the_way_to_a_graph_and_the_questions_before_do_not_change_an_answer(a: str, m: str, n: str) -> None:
    fresh = MemoryProject({"a.py": a, "m.py": m, "n.py": n})
    grown = MemoryProject({"n.py": a, "old.py": m})
    for path, source in (("m.py", m), ("n.py", n), ("a.py", a)):
        grown.write(path, source)
    grown.remove("old.py")
    resolver = Resolver(grown)
    for path in fresh.paths():
        outline = fresh.outline(path)
        assert outline is not None
        for call in outline.calls:
            found = resolve_call(fresh, path, outline, call)
            assert found == resolver.call(path, outline, call)
            assert (found.kind == "external") == (not found.targets)
            assert all(fresh.outline(p.path) is not None for p in found.targets)
