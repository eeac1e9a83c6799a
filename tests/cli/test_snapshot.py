import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from context_answers import ContextAnswers, Cut, context_answers

from herdr.context.snapshot import Head, write_records

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


HEAD = Head("shop", "2026-03-02T09:15:00.000Z", "0.1.0", "f1", 3 * 2**20, "main", "c0ffee123456789", True)
PATCH = {"name": "fix\x1b.patch", "kind": "patch", "bytes": 2048, "by": "ci", "based_on": None}
DECISION = {
    "time": "2026-03-02T09:15:00.000Z",
    "source": "me",
    "text": "Use\nDecimal\x1b",
    "reason": "rounding",
}
SHOWN = """\
x  SIZE, whole
of         shop, main at c0ffee123456
written    2026-03-02T09:15:00.000Z by herdr 0.1.0
graph      3.0 MiB unpacked
holds      1 artifact, 30 decisions
sessions   1 session, 2 messages

artifact         kind   size     by  based on
fix\\u001b.patch  patch  2.0 KiB  ci  -

time            source  decision           reason
"""


def written(file: Path, *records: tuple[Any, Any], head: Any = HEAD) -> Path:
    with file.open("wb") as opened:
        write_records(opened, [("head", head), ("graph", b"g" * 1000), *records])
    return file


def test_what_is_in_a_file(nowhere: Cli, tmp_path: Path) -> None:
    said = [("message", {"body": b"x"})] * 2
    decisions = [{**DECISION, "text": f"no {n}"} for n in range(29)] + [DECISION]
    artifact = ("artifact", {"about": PATCH, "content": b"c" * 2048})
    file = written(tmp_path / "x", ("decisions", decisions), artifact, ("session", {"session": "s1"}), *said)
    done = nowhere("snapshot", "show", "x")
    size = f"{file.stat().st_size} bytes"
    head, rows = done.stdout.split("reason\n")
    assert (done.returncode, done.stderr, f"{head}reason\n") == (0, "", SHOWN.replace("SIZE", size))
    assert rows.count("\n") == 21 and "no 9 " not in rows and "no 10 " in rows
    assert rows.endswith("03-02 09:15:00  me      Use Decimal\\u001b  rounding\n… and 10 earlier\n")
    found = json.loads(nowhere("snapshot", "show", "x", "--json").stdout)
    assert (found["workspace"], found["bytes"], found["artifacts"]) == ("shop", file.stat().st_size, [PATCH])
    assert (found["decisions"], found["sessions"]) == (decisions, [{"session": "s1", "messages": 2}])


def test_a_file_with_nothing_but_a_graph(nowhere: Cli, tmp_path: Path) -> None:
    written(tmp_path / "x", ("decisions", []), head=Head("w", "t", "0", "f", 0, None, None, False))
    lines = nowhere("snapshot", "show", "x").stdout.splitlines()
    assert lines[1:] == [
        "of         w", "written    t by herdr 0", "graph      0 bytes unpacked",
        "holds      0 artifacts, 0 decisions", "sessions   none",
    ]  # fmt: skip


def test_a_file_with_one_decision(nowhere: Cli, tmp_path: Path) -> None:
    written(tmp_path / "x", ("decisions", [DECISION]))
    assert nowhere("snapshot", "show", "x").stdout.endswith("rounding\n")


def test_a_file_that_is_not_whole(nowhere: Cli, tmp_path: Path) -> None:
    whole = written(tmp_path / "x", ("decisions", [])).read_bytes()
    wrong = [
        (whole[:-3], "the snapshot is damaged"),
        (b"PK" + whole, "no snapshot"),
        (b"", "no snapshot"),
        (written(tmp_path / "x", ("decisions", 3)).read_bytes(), "its decisions is none"),
        (written(tmp_path / "x", ("artifact", {})).read_bytes(), "its artifact is none"),
        (written(tmp_path / "x", ("session", 3)).read_bytes(), "its session is none"),
        (written(tmp_path / "x", ("message", {})).read_bytes(), "its message is none"),
    ]
    for content, said in wrong:
        (tmp_path / "y").write_bytes(content)
        done = nowhere("snapshot", "show", "y")
        assert (done.returncode, done.stdout) == (1, "") and said in done.stderr
    assert nowhere("snapshot", "show", "none").returncode == 1


def test_wrong_command_lines(nowhere: Cli) -> None:
    assert nowhere("snapshot").returncode == 2
    assert nowhere("snapshot", "export").returncode == 2
    done = nowhere("snapshot", "import", "none", "--workspace", "w")
    assert (done.returncode, done.stderr) == (1, "herdr: none: No such file or directory\n")


def test_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("snapshot", "export", "x", "--workspace", "w").returncode == 3
