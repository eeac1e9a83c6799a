"""Which files and definitions matter most."""

from math import isclose
from random import Random

import pytest
from context.graph.memory_project import MemoryProject
from hypothesis import given, settings
from hypothesis import strategies as st

from herdr.context.graph.project import Pair
from herdr.context.graph.rank import (
    DAMPING,
    ELSEWHERE,
    FROM_FOCUS,
    OWN,
    focused,
    page_rank,
    ranks,
    references,
    weight_of,
)

SHOP = {
    "price.py": "def calculate_total(): pass\ndef parse(): pass\n",
    "cart.py": "from price import calculate_total\ndef fill(): calculate_total()\n",
    "order.py": "from price import calculate_total\ndef send(): calculate_total()\n",
    "report.py": "from cart import fill\ndef show(): fill()\n",
    "alone.py": "def nobody(): pass\n",
}


def test_what_is_called_most_comes_first() -> None:
    found = ranks(MemoryProject(SHOP))
    assert max(found.files, key=found.files.__getitem__) == "price.py"
    assert isclose(sum(found.files.values()), 1.0, rel_tol=1e-9)
    assert set(found.symbols) == {("price.py", "calculate_total"), ("cart.py", "fill")}
    assert found.symbols["price.py", "calculate_total"] > found.symbols["cart.py", "fill"]


def test_an_empty_project_has_no_ranks() -> None:
    found = ranks(MemoryProject())
    assert (dict(found.files), dict(found.symbols)) == ({}, {})
    assert focused(found, MemoryProject(), ["a.py"], ["f"]) is found


def test_ranks_are_those_of_the_paper() -> None:
    """Two pages that link to a third, which links back to the first: solved by hand."""
    links = [[(2, 1.0)], [(2, 1.0)], [(0, 1.0)]]
    first, second, third = page_rank(links, [1 / 3] * 3)
    assert isclose(second, (1 - DAMPING) / 3, rel_tol=1e-3)
    assert isclose(third, (1 - DAMPING) / 3 + DAMPING * (first + second), rel_tol=1e-3)
    assert isclose(first, (1 - DAMPING) / 3 + DAMPING * third, rel_tol=1e-3)


def test_who_follows_no_link_begins_anew() -> None:
    assert page_rank([[], []], [0.75, 0.25]) == [0.75, 0.25]
    half = page_rank([[(1, 0.5)], []], [0.5, 0.5])
    whole = page_rank([[(1, 1.0)], []], [0.5, 0.5])
    assert isclose(sum(half), 1.0) and half[1] < whole[1]


def test_names_tell_more_or_less() -> None:
    assert weight_of("calculate_total") > weight_of("total") > weight_of("_total")
    assert weight_of("calculateTotal") == weight_of("calculate_total") == weight_of("calculate-total")
    assert weight_of("do_it") == weight_of("calculate") == weight_of("total")
    assert weight_of("append", "python") < weight_of("append", "go")


def test_the_definer_that_the_caller_imports_is_likelier_meant() -> None:
    project = MemoryProject(
        {
            "a.py": "def pay(): pass\n",
            "b.py": "def pay(): pass\n",
            "main.py": "import b\ndef run(x): x.pay()\n",
        }
    )
    found = ranks(project).symbols
    assert found["b.py", "pay"] > 4 * found["a.py", "pay"]


def test_a_name_that_the_caller_defines_itself_is_most_likely_its_own() -> None:
    files = {
        "a.py": "def pay(): pass\n",
        "main.py": "def run(x): x.pay()\n",
        "other.py": "def go(x): x.pay()\n",
    }
    assert shares(files, "main.py") == {("a.py", "pay"): 1 / (1 + ELSEWHERE)}
    own = {**files, "main.py": "class A:\n    def pay(self): pass\ndef run(x): x.pay()\n"}
    assert shares(own, "main.py") == {("a.py", "pay"): 1 / (1 + ELSEWHERE + OWN)}


def shares(files: dict[str, str], source: str) -> dict[tuple[str, str], float]:
    known = references(MemoryProject(files))
    calls = known.calls[list(known.paths).index(source)]
    return {(known.paths[to], name): share for to, name, share in calls}


def test_other_languages_definitions_are_not_meant() -> None:
    project = MemoryProject({"a.go": "package a\nfunc pay() {}\n", "main.py": "x.pay()\n"})
    assert not ranks(project).symbols


def test_a_focus_draws_the_ranks_to_what_it_calls() -> None:
    files = SHOP | {
        "till.py": "from money import count_coins\ndef close(): count_coins()\n",
        "money.py": "def count_coins(): pass\n",
    }
    project = MemoryProject(files)
    whole = ranks(project)
    assert whole.symbols["money.py", "count_coins"] < whole.symbols["price.py", "calculate_total"]
    near = focused(whole, project, ["till.py"])
    assert near.symbols["money.py", "count_coins"] > near.symbols["price.py", "calculate_total"]
    assert near.files["money.py"] > whole.files["money.py"]
    share = shares(files, "till.py")["money.py", "count_coins"]
    assert isclose(near.symbols["money.py", "count_coins"], FROM_FOCUS * near.files["till.py"] * share)
    assert isclose(sum(near.files.values()), 1.0, rel_tol=1e-9)


def test_a_name_that_is_asked_for_comes_first_even_if_nobody_calls_it() -> None:
    project = MemoryProject(SHOP)
    near = focused(ranks(project), project, [], ["nobody"])
    assert max(near.symbols, key=near.symbols.__getitem__) == ("alone.py", "nobody")


def test_what_a_focus_certainly_does_not_mean_gets_nothing_of_it() -> None:
    project = MemoryProject(
        {
            "main.py": "from a import pay\ndef run(): pay()\n",
            "a.py": "def pay(): pass\n",
            "b.py": "def pay(): pass\n",
        }
    )
    near = focused(ranks(project), project, ["main.py"])
    assert ("b.py", "pay") not in near.symbols and ("a.py", "pay") in near.symbols


@pytest.mark.parametrize("focus", [["gone.py"], []])
def test_a_focus_on_nothing_changes_nothing(focus: list[str]) -> None:
    project = MemoryProject(SHOP)
    whole = ranks(project)
    assert focused(whole, project, focus, ["gone"]) is whole


class Backwards(MemoryProject):
    """Tells who calls whom in another order, as a store may."""

    def pairs(self, definers_max: int) -> list[Pair]:
        return list(super().pairs(definers_max))[::-1]


names = st.sampled_from(["fetch_rows", "run", "_hide", "save", "calculateTotal"])
sources = st.lists(
    st.one_of(
        st.builds("def {}(x):\n    x.{}()\n".format, names, names),
        st.builds("from {} import {}\n".format, st.sampled_from(["m0", "m1", "m2"]), names),
    ),
    max_size=6,
).map("".join)


@settings(deadline=None)
@given(st.lists(sources, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_equal_graphs_have_equal_ranks_to_the_last_bit(contents: list[str], random: Random) -> None:
    files = {f"m{n}.py": source for n, source in enumerate(contents)}
    shuffled = list(files.items())
    random.shuffle(shuffled)
    grown = Backwards({"gone.py": "def run(): save()\n", "m0.py": "def save(): pass\n"})
    for path, source in shuffled:
        grown.write(path, source)
    grown.remove("gone.py")
    fresh, late = ranks(MemoryProject(files)), ranks(grown)
    assert fresh.references == late.references
    assert (fresh.files, fresh.symbols) == (late.files, late.symbols)
    assert isclose(sum(fresh.files.values()), 1.0, rel_tol=1e-6)
    near, far = (
        focused(fresh, MemoryProject(files), ["m0.py"], ["run"]),
        focused(late, grown, ["m0.py"], ["run"]),
    )
    assert (near.files, near.symbols) == (far.files, far.symbols)
