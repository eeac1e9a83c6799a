"""The questions that tools put to the graph."""

import pytest
from context.graph.memory_project import MemoryProject
from hypothesis import given, settings
from hypothesis import strategies as st

from herdr.context.graph import lookups
from herdr.context.graph.lookups import (
    callees,
    callers,
    calling_files,
    dependents,
    file_outline,
    find_symbols,
)
from herdr.errors import InvalidInput

SHOP = {
    "shop/__init__.py": "from shop.cart import Cart\nfrom shop.price import total as sum_up\n",
    "shop/cart.py": """\
from shop.price import total

class Cart:
    def __init__(self): pass
    def total(self, tax):
        return total() + self.fee()
    def fee(self): pass
""",
    "shop/price.py": "import json\n\ndef total():\n    pass\n",
    "app/main.py": """\
from shop import Cart, sum_up

def run(cart):
    sum_up()
    sum_up()
    cart.total(1)
    made = Cart()

run(1)
""",
    "app/report.py": """\
import shop.price as p

class Report:
    def show(self, what):
        what.total(p.total())
""",
    "docs/notes.txt": "no outline",
}


@pytest.fixture
def shop() -> MemoryProject:
    return MemoryProject(SHOP)


def ids(answer: object) -> list[str]:
    return [symbol.symbol for symbol in answer.symbols]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({"name": "total"}, ["shop/cart.py::Cart.total", "shop/price.py::total"]),
        ({"name": "Cart.total"}, ["shop/cart.py::Cart.total"]),
        ({"name": "shop/cart.py::Cart.total"}, ["shop/cart.py::Cart.total"]),
        ({"name": "shop/none.py::Cart.total"}, []),
        ({"name": "tot*"}, ["shop/cart.py::Cart.total", "shop/price.py::total"]),
        (
            {"name": "Cart.*"},
            ["shop/cart.py::Cart.__init__", "shop/cart.py::Cart.total", "shop/cart.py::Cart.fee"],
        ),
        ({"name": "*.total"}, ["shop/cart.py::Cart.total"]),
        ({"name": "art.total"}, []),
        ({"name": "total", "kind": "function"}, ["shop/price.py::total"]),
        ({"name": "total", "path": "shop/c*.py"}, ["shop/cart.py::Cart.total"]),
        ({"kind": "class"}, ["app/report.py::Report", "shop/cart.py::Cart"]),
        ({"path": "app/**", "kind": "function"}, ["app/main.py::run"]),
        ({"name": "nothing"}, []),
    ],
)
def test_symbols_are_found_by_name_kind_and_path(
    shop: MemoryProject, question: dict[str, str], expected: list[str]
) -> None:
    found = find_symbols(shop, **question)  # type: ignore[arg-type]
    assert (ids(found), found.more) == (expected, 0)


def test_a_symbol_is_told_in_full(shop: MemoryProject) -> None:
    found = find_symbols(shop, "Cart.total").symbols[0]
    assert (
        found.name,
        found.kind,
        found.path,
        found.line,
        found.end_line,
        found.signature,
        found.exported,
    ) == (
        *("total", "method", "shop/cart.py", 5, 6),
        *("def total(self, tax)", True),
    )


def test_what_is_beyond_the_limit_is_counted(shop: MemoryProject) -> None:
    found = find_symbols(shop, "*", limit=3)
    assert (len(found.symbols), found.more) == (3, 5)


def test_a_bad_glob_is_refused(shop: MemoryProject) -> None:
    with pytest.raises(InvalidInput):
        find_symbols(shop, "*" + "a?" * 100)


def test_callers_are_told_with_how_sure_that_is(shop: MemoryProject) -> None:
    found = callers(shop, "shop/price.py::total")
    assert found is not None and found.more == 0
    assert ids(type("A", (), {"symbols": found.definitions})) == ["shop/price.py::total"]
    rows = [(c.symbol, c.call, c.lines, c.resolution, c.candidates, c.target) for c in found.callers]
    assert rows == [
        ("app/main.py::run", "sum_up", (4, 5), "exact", 1, "shop/price.py::total"),
        ("app/report.py::Report.show", "p.total", (5,), "exact", 1, "shop/price.py::total"),
        ("shop/cart.py::Cart.total", "total", (6,), "exact", 1, "shop/price.py::total"),
        ("app/main.py::run", "cart.total", (6,), "name", 2, None),
        ("app/report.py::Report.show", "what.total", (5,), "name", 2, None),
    ]
    assert found.callers[1].signature == "def show(self, what)"


def test_a_caller_may_be_no_function(shop: MemoryProject) -> None:
    found = callers(shop, "run")
    assert found is not None
    assert [(c.symbol, c.path, c.lines, c.signature) for c in found.callers] == [
        (None, "app/main.py", (9,), "")
    ]


def test_all_definitions_of_a_name_are_meant_by_the_name(shop: MemoryProject) -> None:
    found = callers(shop, "total")
    assert found is not None and len(found.definitions) == 2 and len(found.callers) == 5
    assert callers(shop, "Cart.total") == callers(shop, "shop/cart.py::Cart.total")


def test_who_makes_an_object_calls_its_constructor(shop: MemoryProject) -> None:
    of_class, of_constructor = callers(shop, "Cart"), callers(shop, "Cart.__init__")
    assert of_class is not None and of_constructor is not None
    assert [(c.symbol, c.target) for c in of_class.callers] == [("app/main.py::run", "shop/cart.py::Cart")]
    assert of_constructor.callers == of_class.callers


def test_what_nobody_has_heard_of_is_no_answer(shop: MemoryProject) -> None:
    assert callers(shop, "nothing") is callees(shop, "nothing") is None
    assert callers(shop, "shop/cart.py::Cart.nothing") is callers(shop, "no.py::x") is None
    assert callers(shop, "tot*") is None
    assert dependents(shop, "docs/notes.txt") is file_outline(shop, "docs/notes.txt") is None


def test_an_exact_call_of_another_definition_is_no_call_of_this_one(shop: MemoryProject) -> None:
    found = callers(shop, "Cart.total")
    assert found is not None
    assert {c.resolution for c in found.callers} == {"name"}


def test_a_plain_call_is_no_call_of_a_method() -> None:
    project = MemoryProject(
        {"a.py": "class A:\n    def f(self): pass\n", "b.py": "def f(): pass\n", "c.py": "f()\n"}
    )
    found = callers(project, "A.f")
    assert found is not None and not found.callers


def test_callers_beyond_the_limit_are_counted_and_the_sure_ones_come_first(shop: MemoryProject) -> None:
    found = callers(shop, "total", 2)
    assert found is not None and found.more == 3
    assert [c.resolution for c in found.callers] == ["exact", "exact"]


def test_files_beyond_the_bound_of_one_question_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "LOOKS_MAX", 10)
    many = {f"m{n:02}.py": "from a import f\nf()\n" for n in range(15)}
    project = MemoryProject({**many, "a.py": "def f(): pass\n"})
    calling = callers(project, "f")
    assert calling is not None and (len(calling.callers), calling.more) == (10, 5)
    importing = dependents(project, "a.py")
    assert importing is not None and (len(importing.dependents), importing.more) == (10, 5)
    found = find_symbols(project, path="m*.py")
    assert (len(found.symbols), found.more) == (0, 5)


def test_ruby_makes_objects_by_new() -> None:
    cart = "class Cart\n  def initialize(a); end\nend\n"
    run = "def run\n  Cart.new(1)\n  Other.new\nend\n"
    files = {"cart.rb": cart, "main.rb": run, "sure.rb": f'require_relative "cart"\n{run}'}
    found = callers(MemoryProject(files), "Cart")
    assert found is not None
    assert [(c.symbol, c.call, c.resolution, c.candidates) for c in found.callers] == [
        ("sure.rb::run", "Cart.new", "exact", 1),
        ("main.rb::run", "Cart.new", "name", 1),
    ]


def test_callees_are_told_in_the_order_of_the_text(shop: MemoryProject) -> None:
    found = callees(shop, "Cart.total")
    assert found is not None
    rows = [(c.call, c.resolution, c.candidates, [t.symbol for t in c.targets]) for c in found.callees]
    assert rows == [
        ("total", "exact", 1, ["shop/price.py::total"]),
        ("self.fee", "exact", 1, ["shop/cart.py::Cart.fee"]),
    ]


def test_a_classs_callees_are_those_of_its_methods(shop: MemoryProject) -> None:
    of_class, of_method = callees(shop, "Cart"), callees(shop, "Cart.total")
    assert of_class is not None and of_method is not None
    assert of_class.callees == of_method.callees
    first = callees(shop, "Cart", 1)
    assert first is not None and (len(first.callees), first.more) == (1, 1)


def test_dependents_go_outwards_file_by_file(shop: MemoryProject) -> None:
    near = dependents(shop, "shop/price.py", 1)
    assert near is not None
    assert [d.path for d in near.dependents] == ["app/report.py", "shop/__init__.py", "shop/cart.py"]
    far = dependents(shop, "shop/price.py", 3)
    assert far is not None
    assert [(d.path, d.distance, d.via) for d in far.dependents] == [
        ("app/report.py", 1, "shop/price.py"),
        ("shop/__init__.py", 1, "shop/price.py"),
        ("shop/cart.py", 1, "shop/price.py"),
        ("app/main.py", 2, "shop/__init__.py"),
    ]
    few = dependents(shop, "shop/price.py", 3, 2)
    assert few is not None and (len(few.dependents), few.more) == (2, 2)


def test_circular_imports_end() -> None:
    project = MemoryProject({"a.py": "import b\n", "b.py": "import c\n", "c.py": "import a\n"})
    found = dependents(project, "a.py", 100)
    assert found is not None
    assert [(d.path, d.distance) for d in found.dependents] == [("c.py", 1), ("b.py", 2)]


def test_a_file_is_told_with_its_imports_and_importers(shop: MemoryProject) -> None:
    found = file_outline(shop, "shop/price.py")
    assert found is not None
    assert [(i.module, i.alias, i.resolution, i.paths) for i in found.imports] == [
        ("json", "json", "external", ())
    ]
    assert found.importers == ("app/report.py", "shop/__init__.py", "shop/cart.py")
    assert (found.language, found.lines, found.broken, found.more) == ("python", 4, False, 0)
    assert [s.symbol for s in found.symbols] == ["shop/price.py::total"]
    importing = file_outline(shop, "shop/cart.py")
    assert importing is not None
    assert [(i.name, i.resolution, i.paths) for i in importing.imports] == [
        ("total", "exact", ("shop/price.py",))
    ]


def test_a_changed_functions_callers_files_are_told_the_sure_ones_first(shop: MemoryProject) -> None:
    assert calling_files(shop, "shop/cart.py", "Cart.fee") == ["shop/cart.py"]
    assert calling_files(shop, "shop/price.py", "total") == ["app/main.py", "app/report.py", "shop/cart.py"]
    assert calling_files(shop, "shop/cart.py", "Cart.total") == ["app/main.py", "app/report.py"]
    assert calling_files(shop, "shop/cart.py", "gone") == []


def test_a_name_that_means_anything_is_no_news(monkeypatch: pytest.MonkeyPatch, shop: MemoryProject) -> None:
    monkeypatch.setattr(lookups, "TOLD_CANDIDATES_MAX", 1)
    assert calling_files(shop, "shop/cart.py", "Cart.total") == []


bodies = st.sampled_from(["f()", "g()", "a.f()", "m.g()", "x.f()", "pass"])
sources = st.builds(
    "from {} import {} as {}\nimport {}\ndef f():\n    {}\nclass g:\n    def f(self):\n        {}\n".format,
    st.sampled_from(["a", "m", "out"]),
    st.sampled_from(["f", "g"]),
    st.sampled_from(["f", "x", "h"]),
    st.sampled_from(["a", "m", "out"]),
    bodies,
    bodies,
)


@settings(deadline=None)
@given(sources, sources)
def test_callers_are_the_other_side_of_callees(a: str, m: str) -> None:
    project = MemoryProject({"a.py": a, "m.py": m})
    downwards, upwards = set(), set()
    for symbol in ids(find_symbols(project, "*")):
        called = callees(project, symbol)
        assert called is not None
        downwards |= {
            (callee.path, callee.lines, callee.call, target.symbol)
            for callee in called.callees
            for target in callee.targets
            if callee.resolution == "exact"
        }
        calling = callers(project, symbol)
        assert calling is not None
        upwards |= {
            (caller.path, caller.lines, caller.call, caller.target)
            for caller in calling.callers
            if caller.resolution == "exact" and caller.symbol is not None
        }
    assert downwards == upwards
