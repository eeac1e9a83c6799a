"""The outline of a project within a budget."""

from random import Random

import pytest
from context.graph.fitting import fit
from context.graph.memory_project import MemoryProject
from hypothesis import given, settings
from hypothesis import strategies as st

import herdr.context.graph.map as map_
from herdr.context.graph.map import KEPT, pieces
from herdr.context.graph.map_text import Piece, render
from herdr.context.graph.rank import focused, ranks

SHOP = {
    "shop/price.py": "def calculate_total(rows): return 1\ndef _round_up(x): return x\n",
    "shop/cart.py": """\
from shop.price import calculate_total

LIMIT = 3

class Cart:
    size = 0
    def fill_up(self, rows):
        def inner(): pass
        return calculate_total(rows)
    def _hide(self): pass
""",
    "app/main.py": "from shop.cart import Cart\ndef run(cart):\n    Cart()\n    cart.fill_up([])\n",
}


def chosen(
    files: dict[str, str], budget: int = 10_000, previous: frozenset[str] = frozenset()
) -> list[Piece]:
    project = MemoryProject(files)
    return fit(pieces(project, ranks(project), previous=previous), len, budget)


def ids(found: list[Piece]) -> frozenset[str]:
    return frozenset(piece.symbol for piece in found)


def test_a_map_shows_definitions_by_file_under_what_is_around_them() -> None:
    assert render(chosen(SHOP)) == (
        "app/main.py:\n"
        "  def run(cart)\n"
        "shop/cart.py:\n"
        "  class Cart\n"
        "    def fill_up(self, rows)\n"
        "shop/price.py:\n"
        "  def calculate_total(rows)\n"
    )


def test_the_best_comes_first_and_brings_what_is_around_it() -> None:
    found = chosen(SHOP)
    assert [piece.symbol for piece in found][:2] == ["shop/price.py::calculate_total", "shop/cart.py::Cart"]
    method = next(piece for piece in found if piece.symbol == "shop/cart.py::Cart.fill_up")
    assert render([method]) == "shop/cart.py:\n  class Cart\n    def fill_up(self, rows)\n"


def test_an_empty_project_has_an_empty_map() -> None:
    assert chosen({}) == [] and render([]) == ""


def test_line_breaks_in_a_signature_leave_no_trace_and_long_ones_are_cut() -> None:
    files = {
        "a.py": f"def go(\n    a,\n    b: list[\n        int\n    ],\n): pass\ndef far({'x' * 200}): pass\n"
    }
    first, second = render(chosen(files)).splitlines()[1:]
    assert first == "  def go(a, b: list[int])"
    assert second.endswith("…") and len(second) == 142


def test_a_name_that_a_file_defines_several_times_shares_its_worth() -> None:
    project = MemoryProject(
        {
            "a.py": "class A:\n    def pay(self): pass\nclass B:\n    def pay(self): pass\n",
            "b.py": "def settle(): pass\n",
            "c.py": "from a import A\nfrom b import settle\nx.pay()\nsettle()\n",
        }
    )
    ranking = ranks(project)
    by_id = {piece.symbol: piece.rank for piece in pieces(project, ranking)}
    assert by_id["a.py::A.pay"] == by_id["a.py::B.pay"] == ranking.symbols["a.py", "pay"] / 2


def test_what_is_within_a_function_is_not_in_the_map() -> None:
    project = MemoryProject(
        {
            "a.js": "export function pay() { function settle() {} }\n",
            "b.py": "def pay_all():\n    def settle_all(): pass\n    class Local:\n        def undo(self): pass\n",
            "c.js": "x.settle()\n",
            "d.py": "x.settle_all()\n",
        }
    )
    assert ids(pieces(project, ranks(project))) == {"a.js::pay", "b.py::pay_all"}


def test_what_a_focus_offers_is_in_the_map_however_low_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    project = MemoryProject(SHOP)
    monkeypatch.setattr(map_, "UNCALLED_FILES_MAX", 0)
    assert "app/main.py::run" not in ids(pieces(project, ranks(project)))
    assert "app/main.py::run" in ids(pieces(project, ranks(project), frozenset({"app/main.py"})))


def test_what_a_focus_offers_is_among_the_first_of_the_map() -> None:
    files = {
        **SHOP,
        **{f"m{n}.py": "import calculate_total\n" for n in range(30)},
        "z.py": "def unheard(): pass\n",
    }
    project = MemoryProject(files)
    ranking = ranks(project)
    assert "z.py::unheard" not in ids(pieces(project, ranking, limit=2))
    near = focused(ranking, project, ["z.py"])
    assert "z.py::unheard" in ids(pieces(project, near, frozenset({"z.py"}), limit=2))


def test_a_focus_that_is_not_there_is_no_trouble() -> None:
    project = MemoryProject(SHOP)
    assert pieces(project, ranks(project), frozenset({"gone.py"})) == pieces(project, ranks(project))


def test_files_that_went_after_the_ranking_are_left_out() -> None:
    project = MemoryProject(SHOP)
    ranking = ranks(project)
    project.remove("shop/price.py")
    project.write("shop/cart.py", "class Basket: pass\n")
    assert (
        render(pieces(project, ranking)) == "app/main.py:\n  def run(cart)\nshop/cart.py:\n  class Basket\n"
    )


def test_an_edit_within_a_function_changes_no_byte() -> None:
    edited = SHOP["shop/cart.py"].replace(
        "        def inner", "        rows = rows + rows\n\n        def inner"
    )
    assert edited != SHOP["shop/cart.py"]
    for budget in range(0, 200, 10):
        assert render(chosen(SHOP, budget)) == render(chosen({**SHOP, "shop/cart.py": edited}, budget))


def test_a_file_elsewhere_adds_only_its_own_lines() -> None:
    before = render(chosen(SHOP))
    after = render(chosen({**SHOP, "lib/new.py": "def fresh(): pass\n"}))
    assert after == before.replace("shop/cart.py", "lib/new.py:\n  def fresh()\nshop/cart.py", 1)


def test_what_is_in_the_map_stays_unless_something_is_clearly_better() -> None:
    callers = {
        f"c{n}.py": f"from a import a\nfrom b import b\n{'a()' if n % 2 else 'b()'}\n" for n in range(20)
    }
    files = {"a.py": "def a(): pass\n", "b.py": "def b(): pass\n", **callers}
    first = chosen(files, 30)
    loser = ({"a.py::a", "b.py::b"} - ids(first)).pop()
    module = loser[0]
    a_little = {**files, "c20.py": f"from {module} import {module}\n{module}()\n"}
    assert ids(chosen(a_little, 30)) == {loser}
    assert ids(chosen(a_little, 30, previous=ids(first))) == ids(first)
    a_lot = files | {f"d{n}.py": f"from {module} import {module}\n{module}()\n" for n in range(20)}
    assert ids(chosen(a_lot, 30, previous=ids(first))) == {loser}
    assert KEPT < 2


def test_a_counter_is_asked_about_texts_near_the_budget_only() -> None:
    asked: list[int] = []

    def count(text: str) -> int:
        asked.append(len(text))
        return len(text)

    found = [Piece("a.py", f"a.py::f{n}", ((n, f"  def f{n:05}()\n"),), 1.0) for n in range(4_000)]
    assert len(render(fit(found, count, 1_000))) <= 1_000
    assert len(asked) < 20 and max(asked) < 2_500


found_pieces = st.lists(
    st.builds(
        lambda path, place, text: Piece(path, f"{path}::{place}", ((place, f"  {text}\n"),), 1.0),
        st.sampled_from(["a.py", "b.py", "c/d.py"]),
        st.integers(0, 20),
        st.text("ab", max_size=9),
    ),
    max_size=30,
    unique_by=lambda piece: piece.symbol,
)


@given(found_pieces, st.integers(0, 400))
def test_a_map_fills_its_budget_and_never_goes_beyond(found: list[Piece], budget: int) -> None:
    taken = fit(found, len, budget)
    assert taken == found[: len(taken)]
    assert len(render(taken)) <= budget
    assert taken == found or len(render(found[: len(taken) + 1])) > budget


@given(found_pieces, st.randoms(use_true_random=False))
def test_the_text_does_not_depend_on_the_order_of_worth(found: list[Piece], random: Random) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)
    assert render(shuffled) == render(found)


sources = st.lists(
    st.sampled_from(["def go(): pass\n", "class A:\n    def go(self): go()\n", "A().go()\n"]), max_size=5
)


@settings(deadline=None)
@given(st.lists(sources.map("".join), min_size=1, max_size=4))
def test_equal_projects_have_equal_maps(contents: list[str]) -> None:
    files = {f"m{n}.py": source for n, source in enumerate(contents)}
    grown = MemoryProject({"gone.py": "def go(): pass\n"})
    for path in reversed(files):
        grown.write(path, files[path])
    grown.remove("gone.py")
    assert pieces(grown, ranks(grown)) == pieces(MemoryProject(files), ranks(MemoryProject(files)))
