import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from context_answers import ContextAnswers, context_answers

WHERE = "/v1/context/shop/graph"
TOTAL = {"symbol": "src/cart.py::Cart.total", "line": 12, "kind": "method", "signature": "def total(self)"}
CALLERS: dict[str, Any] = {
    "definitions": [TOTAL],
    "callers": [
        {
            "symbol": "src/shop.py::checkout",
            "path": "src/shop.py",
            "lines": [30, 41, 52, 63, 74, 85],
            "call": "self.cart.total",
            "resolution": "exact",
            "candidates": 1,
            "target": TOTAL["symbol"],
            "signature": "def checkout()",
        },
        {
            "symbol": None,
            "path": "b\x1b.py",
            "lines": [3],
            "call": "total",
            "resolution": "name",
            "candidates": 3,
        },
        {
            "symbol": None,
            "path": "c.py",
            "lines": [4],
            "call": "t.total",
            "resolution": "name",
            "candidates": 1,
        },
    ],
    "more": 0,
}
CALLERS_TABLE = """\
symbol                   line  kind    signature
src/cart.py::Cart.total  12    method  def total(self)

caller                 lines                 call             resolved
src/shop.py::checkout  30, 41, 52, 63, 74 …  self.cart.total  exact
b\\u001b.py             3                     total            name, 3 candidates
c.py                   4                     t.total          name, 1 candidate
"""
CALLEES: dict[str, Any] = {
    "definitions": [TOTAL],
    "callees": [
        {
            "name": "rate",
            "call": "tax.rate",
            "lines": [14],
            "resolution": "name",
            "candidates": 2,
            "targets": [{"symbol": "src/tax.py::rate"}, {"symbol": "old/tax.py::rate"}],
        },
        {
            "name": "sum",
            "call": "sum",
            "lines": [13],
            "resolution": "external",
            "candidates": 0,
            "targets": [],
        },
    ],
    "more": 5,
}
CALLEES_TABLE = """\
symbol                   line  kind    signature
src/cart.py::Cart.total  12    method  def total(self)

call      lines  resolved            definition
tax.rate  14     name, 2 candidates  src/tax.py::rate and 1 more
sum       13     external            -
"""


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[ContextAnswers]:
    with context_answers() as running:
        running.workspaces = [{"name": "shop", "path": str(tmp_path), "roots": []}]
        running.answers = {f"{WHERE}/callers": (200, CALLERS), f"{WHERE}/callees": (200, CALLEES)}
        yield running


def test_callers(answers: ContextAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("callers", "src/cart.py::Cart.total")
    assert (done.returncode, done.stdout, done.stderr) == (0, CALLERS_TABLE, "")
    assert answers.addresses() == [f"{WHERE}/callers?symbol=src%2Fcart.py%3A%3ACart.total"]


def test_callees(answers: ContextAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("callers", "total", "--callees", "--workspace", "shop", "--limit", "2")
    assert (done.returncode, done.stdout, done.stderr) == (0, CALLEES_TABLE, "herdr: 5 more: raise --limit\n")
    assert [call.path for call in answers.asked] == [f"{WHERE}/callees?symbol=total&limit=2"]


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "nothing in the project calls it"), (("--callees",), "it calls nothing")],
)
def test_nobody(answers: ContextAnswers, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    for what in ("callers", "callees"):
        answers.answers[f"{WHERE}/{what}"] = (200, {"definitions": [TOTAL], what: [], "more": 0})
    done = Cli(answers.url, tmp_path)("callers", "total", *options)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 2, f"herdr: {said}\n")


def test_a_symbol_that_there_is_not(answers: ContextAnswers, tmp_path: Path) -> None:
    answers.answers[f"{WHERE}/callers"] = (404, {"code": "unknown_symbol", "detail": "nothing is called x"})
    done = Cli(answers.url, tmp_path)("callers", "x")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "herdr: nothing is called x\n")


@pytest.mark.parametrize(("options", "answer"), [((), CALLERS), (("--callees",), CALLEES)])
def test_json_is_the_answer_as_it_is(
    answers: ContextAnswers, tmp_path: Path, options: tuple[str, ...], answer: dict[str, Any]
) -> None:
    assert json.loads(Cli(answers.url, tmp_path)("callers", "total", "--json", *options).stdout) == answer


def test_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("callers", "x", "--workspace", "w").returncode == 3
