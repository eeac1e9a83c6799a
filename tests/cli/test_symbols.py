import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli, read_until
from context_answers import ContextAnswers, context_answers

WHERE = "/v1/context/shop/graph/symbols"
TOTAL: dict[str, Any] = {
    "symbol": "src/cart.py::Cart.total",
    "name": "total",
    "kind": "method",
    "path": "src/cart.py",
    "line": 12,
    "end_line": 19,
    "signature": "def total(self, tax: Decimal) -> Decimal",
    "exported": True,
}
EVIL = {**TOTAL, "symbol": "a\x1b.py::x", "signature": "", "line": 3}
TABLE = """\
symbol                   line  kind    signature
src/cart.py::Cart.total  12    method  def total(self, tax: Decimal) -> Decimal
a\\u001b.py::x            3     method  -
"""


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[ContextAnswers]:
    with context_answers() as running:
        running.workspaces = [{"name": "shop", "path": str(tmp_path), "roots": []}]
        running.answers[WHERE] = (200, {"symbols": [TOTAL, EVIL], "more": 0})
        yield running


def test_the_table(answers: ContextAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("symbols", "total")
    assert (done.returncode, done.stdout, done.stderr) == (0, TABLE, "")
    assert answers.addresses() == [f"{WHERE}?name=total&limit=100"]


def test_options_are_the_query(answers: ContextAnswers, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    options = ("--kind", "method", "--path", "api/**", "--limit", "2")
    answers.answers[WHERE] = (200, {"symbols": [TOTAL], "more": 1200})
    done = Cli(answers.url, tmp_path / "src")("symbols", "Cart.*", *options)
    assert answers.addresses() == [f"{WHERE}?name=Cart.%2A&kind=method&path=src%2Fapi%2F%2A%2A&limit=2"]
    assert done.stderr == "herdr: 1,200 more: narrow it with --kind or --path, or raise --limit\n"


@pytest.mark.parametrize(
    ("path", "covers"), [("src", "src%2F%2A%2A"), ("src/", "src%2F%2A%2A"), (".", "%2A%2A"), ("a.py", "a.py")]
)
def test_a_folder_covers_what_is_in_it(
    answers: ContextAnswers, tmp_path: Path, path: str, covers: str
) -> None:
    (tmp_path / "src").mkdir()
    assert Cli(answers.url, tmp_path)("symbols", "x", "--path", path).returncode == 0
    assert answers.addresses() == [f"{WHERE}?name=x&path={covers}&limit=100"]


def test_at_a_narrow_terminal_lines_are_cut(answers: ContextAnswers, tmp_path: Path) -> None:
    herdr = Cli(answers.url, tmp_path)
    with herdr.terminal("symbols", "total", COLUMNS="40") as (process, terminal):
        shown = read_until(terminal, b"a\\u001b.py::x")
        assert process.wait(30) == 0
    assert b"src/cart.py::Cart.total  12    method  \xe2\x80\xa6\r\n" in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing in shop is called x\\u001b"),
        (("--kind", "class"), "nothing in shop is called x\\u001b there"),
    ],
)
def test_nothing_is_called_so(
    answers: ContextAnswers, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    answers.answers[WHERE] = (200, {"symbols": [], "more": 0})
    done = Cli(answers.url, tmp_path)("symbols", "x\x1b", *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"herdr: {said}\n")


def test_json_is_the_answer_as_it_is(answers: ContextAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("symbols", "total", "--json")
    assert json.loads(done.stdout) == {"symbols": [TOTAL, EVIL], "more": 0}


def test_a_name_of_another_encoding_is_sent_as_its_bytes(answers: ContextAnswers, tmp_path: Path) -> None:
    assert Cli(answers.url, tmp_path)("symbols", "caf\udce9").returncode == 0
    assert answers.addresses() == [f"{WHERE}?name=caf%E9&limit=100"]


def test_without_a_name_and_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("symbols").returncode == 2
    assert nowhere("symbols", "x").returncode == 3
