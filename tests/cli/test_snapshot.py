import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from context_answers import ContextAnswers, Cut, context_answers

CONTENT = os.urandom(3 * 1024**2)
WHERE = "/v1/snapshots/shop"
REPORT: dict[str, Any] = {
    "files": 2818,
    "reused": 2800,
    "parsed": 18,
    "artifacts": 3,
    "decisions": 1200,
    "sessions": 0,
}


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[ContextAnswers]:
    with context_answers() as running:
        running.workspaces = [{"name": "shop", "path": str(tmp_path), "roots": []}]
        running.answers = {f"GET {WHERE}": (200, CONTENT), f"POST {WHERE}": (200, REPORT)}
        yield running


@pytest.fixture
def herdr(answers: ContextAnswers, tmp_path: Path) -> Cli:
    return Cli(answers.url, tmp_path)


def test_an_export(herdr: Cli, answers: ContextAnswers, tmp_path: Path) -> None:
    (tmp_path / "shop.herdr").write_bytes(b"old")
    done = herdr("snapshot", "export", "shop.herdr")
    assert (done.returncode, done.stdout, done.stderr) == (0, "shop.herdr  3.0 MiB of shop\n", "")
    assert [(path.name, path.read_bytes() == CONTENT) for path in tmp_path.iterdir()] == [
        ("shop.herdr", True)
    ]
    done = herdr("snapshot", "export", "shop.herdr", "--sessions", "--workspace", "shop", "--json")
    assert json.loads(done.stdout) == {"workspace": "shop", "file": "shop.herdr", "bytes": len(CONTENT)}
    assert answers.addresses() == [f"{WHERE}?sessions=false", f"{WHERE}?sessions=true"]


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ((200, Cut(CONTENT[:1000], len(CONTENT))), 3, "no answer from"),
        ((404, {"code": "unknown_workspace", "detail": "no workspace shop"}), 1, "no workspace shop"),
        ((502, b"<html>"), 3, "is not a Herdr gateway"),
    ],
)
def test_an_export_that_fails_leaves_what_was_there(
    herdr: Cli, answers: ContextAnswers, tmp_path: Path, answer: Any, code: int, said: str
) -> None:
    (tmp_path / "shop.herdr").write_bytes(b"old")
    answers.answers[f"GET {WHERE}"] = answer
    done = herdr("snapshot", "export", "shop.herdr")
    assert (done.returncode, done.stdout) == (code, "") and said in done.stderr
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("shop.herdr", b"old")]


def test_an_export_to_nowhere(herdr: Cli) -> None:
    done = herdr("snapshot", "export", "none/shop.herdr")
    assert done.returncode == 1 and "No such file or directory" in done.stderr


def test_an_import(herdr: Cli, answers: ContextAnswers, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(CONTENT)
    done = herdr("snapshot", "import", "x")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "shop: 2,818 files, 2,800 as in the snapshot, 18 parsed\n"
        "  3 artifacts, 1,200 decisions, 0 sessions\n"
    )  # fmt: skip
    post = answers.asked[-1]
    assert (post.method, post.path, post.body == CONTENT) == ("POST", WHERE, True)
    assert (post.headers["content-type"], post.headers["content-length"]) == (
        "application/zstd", str(len(CONTENT))
    )  # fmt: skip
    assert json.loads(herdr("snapshot", "import", "x", "--workspace", "shop", "--json").stdout) == REPORT


@pytest.mark.parametrize(
    ("code", "detail"), [("snapshot_damaged", "the file ends too early"), ("too_large", "more than 256 MiB")]
)
def test_an_import_that_is_refused(
    herdr: Cli, answers: ContextAnswers, tmp_path: Path, code: str, detail: str
) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate(48 * 1024**2)
    answers.body_max = 0
    answers.answers[f"POST {WHERE}"] = (400, {"code": code, "detail": detail})
    done = herdr("snapshot", "import", "x")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"herdr: {detail}\n")


def test_wrong_command_lines(nowhere: Cli) -> None:
    assert nowhere("snapshot").returncode == 2
    assert nowhere("snapshot", "export").returncode == 2
    done = nowhere("snapshot", "import", "none", "--workspace", "w")
    assert (done.returncode, done.stderr) == (1, "herdr: none: No such file or directory\n")


def test_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("snapshot", "export", "x", "--workspace", "w").returncode == 3
