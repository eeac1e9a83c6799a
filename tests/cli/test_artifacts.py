import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from context_answers import ContextAnswers, Cut, context_answers

NAME, ADDRESS = "digests/py test", "/v1/artifacts/digests/py%20test"
ABOUT: dict[str, Any] = {
    "name": NAME,
    "workspace": "shop",
    "kind": "log_digest",
    "ref": "ab12",
    "bytes": 3_500_000,
    "by": "ci\x1b",
    "expires": "2020-01-01T00:00:00Z",
    "session": "s 1",
    "based_on": "17",
    "redacted": 0,
}
LIST = {
    "artifacts": [ABOUT, {**ABOUT, "name": "x", "expires": None, "based_on": None}],
    "bytes": 7 * 2**20,
    "limit_bytes": 128 * 2**20,
    "more": 0,
}
ROOM = "herdr: 7.0 MiB of 128.0 MiB are taken; the least recently used go first\n"


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[ContextAnswers]:
    with context_answers() as running:
        running.workspaces = [{"name": "shop", "path": str(tmp_path), "roots": []}]
        running.answers = {
            "GET /v1/artifacts": (200, LIST),
            f"GET {ADDRESS}": (200, b"3 failed\n"),
            f"PUT {ADDRESS}": (201, ABOUT),
            f"DELETE {ADDRESS}": (204, None),
        }
        yield running


@pytest.fixture
def herdr(answers: ContextAnswers, tmp_path: Path) -> Cli:
    return Cli(answers.url, tmp_path)


@pytest.mark.parametrize("part", [(), ("list",)])
def test_the_list(herdr: Cli, answers: ContextAnswers, part: tuple[str, ...]) -> None:
    done = herdr("artifacts", *part)
    head, first, second = done.stdout.splitlines()
    assert head.split() == ["name", "kind", "size", "by", "session", "expires", "based", "on"]
    assert first.startswith(r"digests/py test  log_digest  3.3 MiB  ci\u001b  s 1      ")
    assert first.endswith("ago  17")
    assert second.split() == ["x", "log_digest", "3.3", "MiB", r"ci\u001b", "s", "1", "-", "-"]
    assert (done.returncode, done.stderr) == (0, ROOM)
    assert answers.addresses() == ["/v1/artifacts?workspace=shop" + ("&limit=100" if part else "")]


def test_filters(herdr: Cli, answers: ContextAnswers) -> None:
    answers.answers["GET /v1/artifacts"] = (200, {"artifacts": [], "bytes": 0, "limit_bytes": 1, "more": 2})
    done = herdr(
        "artifacts", "list", "--kind", "patch", "--workspace", "a&b", "--session", "s", "--limit", "1"
    )
    assert answers.addresses() == ["/v1/artifacts?workspace=a%26b&kind=patch&session=s&limit=1"]
    more = "herdr: 2 more: `herdr artifacts list --limit N`\n"
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "",
        "herdr: a&b has no artifacts such as these\n" + more,
    )


def test_content_goes_to_a_pipe_as_it_is(herdr: Cli, answers: ContextAnswers) -> None:
    content = bytes(range(256)) * 8192
    answers.answers[f"GET {ADDRESS}"] = (200, content)
    with herdr.start("artifacts", "get", NAME) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out == content, err) == (0, True, b"")
    assert answers.addresses() == [f"{ADDRESS}?workspace=shop"]


def test_content_cannot_drive_a_terminal(herdr: Cli, answers: ContextAnswers) -> None:
    answers.answers[f"GET {ADDRESS}"] = (200, "\x1b[2J3 füße\n".encode())
    assert herdr.at_terminal("artifacts", "get", NAME) == (0, "\\u001b[2J3 füße\r\n")
    answers.answers[f"GET {ADDRESS}"] = (200, b"\x1b\xff")
    code, shown = herdr.at_terminal("artifacts", "get", NAME)
    assert code == 1 and f"{NAME} is no text: write it to a file with --output FILE" in shown


def test_content_goes_to_a_file_whole_or_not_at_all(
    herdr: Cli, answers: ContextAnswers, tmp_path: Path
) -> None:
    done = herdr("artifacts", "get", NAME, "--output", "out.txt")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "herdr: out.txt: 9 bytes\n")
    answers.answers[f"GET {ADDRESS}"] = (200, Cut(b"3 fai", 9))
    assert herdr("artifacts", "get", NAME, "--output", "out.txt").returncode == 3
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.txt", "3 failed\n")]
    answers.answers[f"GET {ADDRESS}"] = (404, {"code": "unknown_artifact", "detail": "there is none\x1b"})
    done = herdr("artifacts", "get", NAME)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "herdr: there is none\\u001b\n")


def test_content_from_stdin_and_from_a_file(herdr: Cli, answers: ContextAnswers, tmp_path: Path) -> None:
    options = ("--kind", "log_digest", "--ttl", "3600", "--session", "s 1", "--based-on", "17")
    done = herdr("artifacts", "put", NAME, *options, stdin="3 füße\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{NAME}  3.3 MiB  ab12\n", "")
    (tmp_path / "core").write_bytes(b"\xff\x00")
    answers.answers[f"PUT {ADDRESS}"] = (200, {**ABOUT, "redacted": 2})
    done = herdr("artifacts", "put", NAME, "core", "--workspace", "w")
    assert "blanked, 2 times" in done.stderr
    text, binary = (call for call in answers.asked if call.method == "PUT")
    query = "workspace=shop&kind=log_digest&ttl_s=3600&session=s+1&based_on=17"
    assert (text.path, text.body) == (f"{ADDRESS}?{query}", "3 füße\n".encode())
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert (binary.path, binary.body) == (f"{ADDRESS}?workspace=w", b"\xff\x00")
    assert binary.headers["content-type"] == "application/octet-stream"


def test_content_that_is_empty_is_content(herdr: Cli, answers: ContextAnswers) -> None:
    assert herdr("artifacts", "put", NAME, os.devnull).returncode == 0
    assert answers.asked[-1].headers["content-length"] == "0"


def test_a_refusal_that_comes_before_all_was_sent(
    herdr: Cli, answers: ContextAnswers, tmp_path: Path
) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(48 * 1024**2)
    answers.body_max = 0
    detail = "an artifact has at most 16 MiB"
    answers.answers[f"PUT {ADDRESS}"] = (413, {"code": "artifact_too_large", "detail": detail})
    done = herdr("artifacts", "put", NAME, "big")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"herdr: {detail}\n")


def test_deleting(herdr: Cli, answers: ContextAnswers) -> None:
    done = herdr("artifacts", "delete", NAME)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"herdr: {NAME} is deleted\n")
    assert answers.asked[-1][:2] == ("DELETE", f"{ADDRESS}?workspace=shop")


@pytest.mark.parametrize(
    ("part", "answer", "address"),
    [
        ((), LIST, "/v1/artifacts?workspace=shop"),
        (("list",), LIST, "/v1/artifacts?workspace=shop&limit=100"),
        (("get", NAME), ABOUT, f"{ADDRESS}?workspace=shop&meta=true"),
        (("put", NAME, os.devnull), ABOUT, f"{ADDRESS}?workspace=shop"),
    ],
)
@pytest.mark.parametrize("early", [True, False])
def test_json_is_the_answer_as_it_is(
    herdr: Cli, answers: ContextAnswers, part: tuple[str, ...], answer: Any, address: str, early: bool
) -> None:
    answers.answers[f"GET {ADDRESS}"] = (200, ABOUT)
    done = herdr("artifacts", *(("--json", *part) if early else (*part, "--json")))
    assert (json.loads(done.stdout), done.stdout.count("\n"), done.stderr) == (answer, 1, "")
    assert answers.addresses() == [address]


@pytest.mark.parametrize(
    "wrong", [("get",), ("put", "x", "--ttl", "0"), ("list", "--limit", "x"), ("show", "x")]
)
def test_wrong_command_lines(nowhere: Cli, wrong: tuple[str, ...]) -> None:
    assert nowhere("artifacts", *wrong).returncode == 2


def test_a_file_that_there_is_not(herdr: Cli, answers: ContextAnswers) -> None:
    done = herdr("artifacts", "put", NAME, "none")
    assert (done.returncode, done.stderr) == (1, "herdr: none: No such file or directory\n")
    assert answers.asked == []


def test_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("artifacts").returncode == 3
