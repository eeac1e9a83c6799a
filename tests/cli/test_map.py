import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from context_answers import ContextAnswers, context_answers

MAP: dict[str, Any] = {
    "text": "src/cart.py\n  class Cart\n\tfunc \x1b[2J(c *Cart)\n",
    "tokens": 1004,
    "tokenizer": "bytes/2.7",
    "ref": "ab12",
    "files": 31,
    "symbols": 1200,
    "focus": [],
}
SHOWN = "src/cart.py\n  class Cart\n    func \\u001b[2J(c *Cart)\n"
COST = "herdr: 1,004 tokens (bytes/2.7): 1,200 symbols in 31 files of shop\n"
WHERE = "/v1/context/shop/graph/map"


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[ContextAnswers]:
    with context_answers() as running:
        running.workspaces = [{"name": "shop", "path": str(tmp_path), "roots": []}]
        running.answers[WHERE] = (200, MAP)
        yield running


def test_the_map_goes_to_stdout_and_its_cost_to_stderr(answers: ContextAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("map")
    assert (done.returncode, done.stdout, done.stderr) == (0, SHOWN, COST)
    assert answers.addresses() == [f"{WHERE}?tokens=1024"]


def test_paths_are_meant_from_where_we_are(answers: ContextAnswers, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    herdr = Cli(answers.url, tmp_path / "src")
    options = ("--focus", "a b.py", "--focus", "./sub/", "--focus", "..", "--name", "total", "--name", "x&y")
    assert herdr("map", "--tokens", "16", *options).returncode == 0
    query = "tokens=16&focus=src%2Fa+b.py&focus=src%2Fsub&focus=.&name=total&name=x%26y"
    assert answers.addresses() == [f"{WHERE}?{query}"]


def test_a_path_outside_of_every_workspace(answers: ContextAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("map", "--focus", "../x.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "../x.py lies in no watched workspace" in done.stderr
    assert answers.addresses() == []


def test_a_workspace_that_is_named_is_not_looked_for(answers: ContextAnswers, tmp_path: Path) -> None:
    answers.answers["/v1/context/a%20b/graph/map"] = (200, MAP)
    assert Cli(answers.url, tmp_path)("map", "a b").returncode == 0
    assert [call.path for call in answers.asked] == ["/v1/context/a%20b/graph/map?tokens=1024"]


@pytest.mark.parametrize(
    ("folder", "workspace"), [(".", "shop"), ("src", "shop"), ("src/vendor/x", "vendor"), ("/", "default")]
)
def test_the_innermost_folder_that_holds_us(
    answers: ContextAnswers, tmp_path: Path, folder: str, workspace: str
) -> None:
    vendor = {"name": "vendor", "path": "/srv/vendor", "roots": [str(tmp_path / "src/vendor")]}
    answers.workspaces = [*answers.workspaces, vendor, {"name": "default", "path": "/nowhere", "roots": []}]
    (tmp_path / "src/vendor/x").mkdir(parents=True)
    answers.answers[f"/v1/context/{workspace}/graph/map"] = (200, MAP)
    assert Cli(answers.url, tmp_path / folder)("map").returncode == 0
    assert answers.addresses() == [f"/v1/context/{workspace}/graph/map?tokens=1024"]


def test_json_is_the_answer_as_it_is(answers: ContextAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("map", "--json")
    assert (json.loads(done.stdout), done.stdout.count("\n"), done.stderr) == (MAP, 1, "")


@pytest.mark.parametrize("tokens", ["0", "15", "100001", "-5", "x", "²", "9" * 30])
def test_tokens_that_no_map_has(nowhere: Cli, tokens: str) -> None:
    done = nowhere("map", f"--tokens={tokens}")
    assert done.returncode == 2 and "is not a number from 16 to 100000" in done.stderr


def test_while_the_first_index_is_built(answers: ContextAnswers, tmp_path: Path) -> None:
    detail = "the first index of shop is being built (20 of 210 files): ask again in a moment"
    answers.answers[WHERE] = (503, {"code": "indexing", "detail": detail})
    done = Cli(answers.url, tmp_path)("map")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"herdr: {detail}\n")


def test_something_else_than_a_gateway(answers: ContextAnswers, tmp_path: Path) -> None:
    answers.answers[WHERE] = (200, ["x"])
    done = Cli(answers.url, tmp_path)("map")
    assert done.returncode == 3 and "is not a Herdr gateway" in done.stderr


def test_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("map").returncode == 3
