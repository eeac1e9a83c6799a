import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli, read_until
from context_answers import Answer, ContextAnswers, context_answers

from herdr.cli.index import bar_line, describe

WHERE = "/v1/context/shop"
READY: dict[str, Any] = {
    "state": "ready",
    "version": "0f3a",
    "files": 2840,
    "parsed": 2818,
    "symbols": 40876,
    "calls": 175271,
    "imports": 8123,
    "languages": {"markdown": {"files": 108, "symbols": 776}, "python": {"files": 2710, "symbols": 40100}},
    "skipped": {"binary": 20, "generated": 2},
    "progress": None,
    "verified": "2026-03-02T09:15:00.000Z",
    "detail": None,
}
INDEXING = {**READY, "state": "indexing", "progress": {"done": 710, "total": 2840, "files_per_s": 412.4}}
SKIPPED = {
    "skipped": [
        {"path": "docs/logo.png", "reason": "binary", "bytes": 3_500_000},
        {"path": "a\x1b]0;x\x07.min.js", "reason": "generated", "bytes": 900},
    ],
    "more": 20,
}
TABLES = """\
language  files  symbols
python    2,710  40,100
markdown  108    776

skipped: 20 binary, 2 generated
file                      reason     size
docs/logo.png             binary     3.3 MiB
a\\u001b]0;x\\u0007.min.js  generated  900 bytes
… and 20 more
"""


def manifest(graph: dict[str, Any]) -> dict[str, Any]:
    return {"workspace": "shop", "graph": graph, "head": None, "sessions": [], "artifacts": []}


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[ContextAnswers]:
    with context_answers() as running:
        running.workspaces = [{"name": "shop", "path": str(tmp_path), "roots": []}]
        running.answers = {
            f"{WHERE}/index": (202, {"graph": INDEXING}),
            WHERE: [(200, manifest(INDEXING)), (200, manifest(READY))],
            f"{WHERE}/graph/skipped": (200, SKIPPED),
        }
        yield running


def test_it_is_followed_to_its_end(answers: ContextAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("index")
    assert (done.returncode, done.stderr) == (0, "")
    head, _, tables = done.stdout.partition("\n\n")
    assert tables == TABLES
    first, second = head.splitlines()
    assert re.fullmatch(r"shop: 2,840 files in \d+\.\d s \(412 files/s\)", first)
    assert second == "  2,818 parsed, 40,876 symbols, 175,271 calls, 8,123 imports"
    post, *rest = [call for call in answers.asked if call.path != "/v1/workspaces"]
    assert (post.method, post.path, post.json) == ("POST", f"{WHERE}/index", {"fresh": False})
    assert [call.path for call in rest] == [WHERE, WHERE, f"{WHERE}/graph/skipped?limit=20"]


def test_an_index_that_is_done_at_once(answers: ContextAnswers, tmp_path: Path) -> None:
    bare = {**READY, "skipped": {}, "languages": {}}
    answers.answers |= {f"{WHERE}/index": (202, {"graph": bare}), WHERE: (200, manifest(bare))}
    done = Cli(answers.url, tmp_path)("index", "shop", "--fresh")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 2)
    assert answers.asked[0].json == {"fresh": True}
    assert answers.addresses() == [f"{WHERE}/index", WHERE]


def test_a_graph_that_still_takes_in_changes_is_waited_for(answers: ContextAnswers, tmp_path: Path) -> None:
    taking = {**READY, "progress": {"done": 0, "total": 1, "files_per_s": 0}}
    looks = [(200, manifest(taking)), (200, manifest(READY))]
    answers.answers |= {f"{WHERE}/index": (202, {"graph": READY}), WHERE: looks}
    assert Cli(answers.url, tmp_path)("index").returncode == 0
    assert answers.addresses() == [f"{WHERE}/index", WHERE, WHERE, f"{WHERE}/graph/skipped?limit=20"]


@pytest.mark.parametrize(
    ("state", "detail", "said"),
    [
        ("failed", "disk full\x1b", "the index failed (disk full\\u001b)"),
        ("lost", None, "its folder is away"),
        ("none", None, "it has no graph: `herdr workspace add PATH` has the gateway watch a folder"),
        ("later", "x", "later (x)"),
    ],
)
def test_a_failure_is_told(
    answers: ContextAnswers, tmp_path: Path, state: str, detail: str | None, said: str
) -> None:
    broken = manifest({**READY, "state": state, "detail": detail})
    answers.answers[WHERE] = [(200, manifest(INDEXING)), (200, broken)]
    done = Cli(answers.url, tmp_path)("index")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"herdr: shop is not indexed: {said}\n")
    answers.answers[WHERE] = (200, broken)
    done = Cli(answers.url, tmp_path)("index", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (1, broken)


def test_json_is_the_manifest_at_the_end(answers: ContextAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("index", "--json")
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, manifest(READY), "")


def test_at_a_terminal_a_bar_shows_how_far_it_is(answers: ContextAnswers, tmp_path: Path) -> None:
    later = {**INDEXING, "progress": {"done": 2130, "total": 2840, "files_per_s": 398}}
    answers.answers[WHERE] = (200, manifest(later))
    with Cli(answers.url, tmp_path).terminal("index") as (process, terminal):
        first = read_until(terminal, b"710/2,840 files, 412 files/s  [######------------------]")
        assert first.startswith(b"\r\x1b[K")
        read_until(terminal, b"2,130/2,840 files, 398 files/s  [##################------]")
        answers.answers[WHERE] = (200, manifest(READY))
        shown = read_until(terminal, b"and 20 more")
        assert b"\r\x1b[Kshop: 2,840 files" in shown
        assert process.wait(30) == 0


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {}])
def test_no_bar_where_it_could_not_be_drawn(
    answers: ContextAnswers, tmp_path: Path, environ: dict[str, str]
) -> None:
    herdr = Cli(answers.url, tmp_path)
    shown = herdr.at_terminal("index", **environ)[1] if environ else herdr("index").stderr
    assert "710/2,840" not in shown and "\x1b" not in shown


def test_ctrl_c_leaves_a_clean_line(answers: ContextAnswers, tmp_path: Path) -> None:
    answers.answers[WHERE] = (200, manifest(INDEXING))
    with Cli(answers.url, tmp_path).terminal("index") as (process, terminal):
        read_until(terminal, b"710/2,840")
        os.write(terminal, b"\x03")
        assert process.wait(30) == 130


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        ({}, "indexing: looking for files"),
        ({"done": 0, "total": 9}, "indexing 0/9 files, 0 files/s  [------------------------]"),
        ({"done": 11, "total": 9}, "indexing 11/9 files, 0 files/s  [########################]"),
    ],
)
def test_bars(progress: dict[str, Any], line: str) -> None:
    assert bar_line(progress) == line


def test_without_a_rate_none_is_made_up() -> None:
    assert next(describe(manifest({"files": 1}), 0.04, None)) == "shop: 1 file in 0.0 s"


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ((404, {"code": "unknown_workspace", "detail": "no workspace shop"}), 1, "no workspace shop"),
        ((403, {"code": "missing_scope", "detail": "the token lacks context"}), 4, "the token lacks context"),
        ((202, {}), 3, "is not a Herdr gateway"),
    ],
)
def test_refusals(answers: ContextAnswers, tmp_path: Path, answer: Answer, code: int, said: str) -> None:
    answers.answers[f"{WHERE}/index"] = answer
    done = Cli(answers.url, tmp_path)("index")
    assert (done.returncode, done.stdout) == (code, "") and said in done.stderr


def test_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("index", "shop").returncode == 3
