"""A snapshot made by one gateway answers the same questions in another one, and in CI without keeping anything."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import GatewayProcess, refused_start, running_gateway
from graphs import WS, ask, graph, watching
from wire import Answer, call

QUESTIONS = (
    ("symbols", {"name": "*"}),
    ("callers", {"symbol": "shop/cart.py::Cart.total"}),
    ("callees", {"symbol": "shop/till.py::bill"}),
    ("dependents", {"path": "shop/cart.py", "depth": 3}),
    ("map", {"tokens": 500}),
    ("files/shop/till.py", {}),
)


def write_tree(folder: Path) -> Path:
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "cart.py").write_text("class Cart:\n    def total(self):\n        return 0\n")
    (folder / "shop" / "till.py").write_text(
        "from shop.cart import Cart\n\ndef bill(cart):\n    return Cart().total()\n"
    )
    for number in range(40):
        (folder / "shop" / f"m{number}.py").write_text(f"from shop.till import bill\nbill({number})\n")
    return folder


def answers(gateway: GatewayProcess) -> list[Any]:
    return [ask(gateway, question, **query) for question, query in QUESTIONS]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "here" / WS)


@pytest.fixture
def gateway(tmp_path: Path, tree: Path) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path / "data", *watching(tree)) as process:
        graph(process)
        yield process


def say(gateway: GatewayProcess, session: str, *messages: tuple[str, str]) -> None:
    body = {"messages": [{"role": role, "content": text, "workspace": WS} for role, text in messages]}
    assert call(gateway, "POST", f"/v1/sessions/{session}/messages", body).status == 201


def export(gateway: GatewayProcess, file: Path, query: str = "") -> Path:
    answer = call(gateway, "GET", f"/v1/snapshots/{WS}{query}")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/zstd")
    file.write_bytes(answer.body)
    return file


@pytest.fixture
def full(gateway: GatewayProcess, tmp_path: Path) -> Path:
    """A snapshot of a workspace in which something was said, decided and stored."""
    say(
        gateway,
        "s1",
        ("user", "Use the csv module instead of pandas, because we want no new dependency."),
        ("assistant", "I changed shop/till.py so that it writes with csv.writer."),
    )
    put = call(gateway, "PUT", f"/v1/artifacts/patch-1?kind=patch&workspace={WS}", b"--- a\n+++ b\n")
    assert put.status == 201
    return export(gateway, tmp_path / "full.snapshot")


def ci(tmp_path: Path, folder: Path, snapshot: Path) -> Any:
    return running_gateway(
        tmp_path / "ci-data", "--ci", "--snapshot", str(snapshot), "--workspace", str(folder)
    )


def test_another_checkout_answers_the_same_and_parses_nothing(
    gateway: GatewayProcess, full: Path, tmp_path: Path
) -> None:
    wanted = answers(gateway)
    other = write_tree(tmp_path / "there" / WS)
    with ci(tmp_path, other, full) as second:
        found = graph(second)
        assert found["last_pass"]["parsed"] == 0
        assert found["version"] == graph(gateway)["version"]
        assert answers(second) == wanted


def test_only_files_that_differ_are_parsed(full: Path, tmp_path: Path) -> None:
    other = write_tree(tmp_path / "there" / WS)
    (other / "shop" / "cart.py").write_text("class Cart:\n    def total(self, tax):\n        return 0\n")
    (other / "shop" / "m7.py").unlink()
    (other / "shop" / "new.py").write_text("def new(): pass\n")
    with ci(tmp_path, other, full) as second:
        assert graph(second)["last_pass"]["parsed"] == 2
        signatures = [found["signature"] for found in ask(second, "symbols", name="total")["symbols"]]
        assert signatures == ["def total(self, tax)"]
        paths = {found["path"] for found in ask(second, "callers", symbol="bill", limit=1000)["callers"]}
        assert "shop/m7.py" not in paths and len(paths) == 39
    with running_gateway(tmp_path / "fresh", "--workspace", str(other)) as fresh:
        version = graph(fresh)["version"]
    with ci(tmp_path, other, full) as second:
        assert graph(second)["version"] == version


def test_artifacts_and_decisions_come_along_and_conversations_do_not(full: Path, tmp_path: Path) -> None:
    other = write_tree(tmp_path / "there" / WS)
    with ci(tmp_path, other, full) as second:
        assert call(second, "GET", f"/v1/artifacts/patch-1?workspace={WS}").body == b"--- a\n+++ b\n"
        decisions = call(second, "GET", f"/v1/artifacts/snapshot/decisions.json?workspace={WS}").json()
        assert [d["text"] for d in decisions if "csv" in d["text"]], decisions
        assert any("dependency" in d["reason"] for d in decisions), decisions
        assert call(second, "GET", "/v1/sessions").json()["sessions"] == []
        assert call(second, "GET", "/v1/sessions/s1").status == 404
    unpacked = subprocess.run(["zstd", "-dc"], input=full.read_bytes()[17:], capture_output=True)
    if unpacked.returncode == 0:  # where the program is; the answers above show the same
        assert b"I changed shop/till.py so that" not in unpacked.stdout


def test_whole_sessions_come_along_when_asked_for(
    gateway: GatewayProcess, full: Path, tmp_path: Path
) -> None:
    said = call(gateway, "GET", "/v1/sessions/s1/messages").json()
    window = call(gateway, "GET", "/v1/sessions/s1").json()
    whole = export(gateway, tmp_path / "whole.snapshot", "?sessions=true")
    other = write_tree(tmp_path / "there" / WS)
    with running_gateway(tmp_path / "second", *watching(other)) as second:
        graph(second)
        answer = call(second, "POST", f"/v1/snapshots/{WS}", whole.read_bytes())
        assert answer.status == 200 and answer.json()["sessions"] == 1, answer
        again = call(second, "GET", "/v1/sessions/s1/messages").json()
        assert [m["content"] for m in again["messages"]] == [m["content"] for m in said["messages"]]
        assert call(second, "GET", "/v1/sessions/s1").json()["summary"] == window["summary"]
        repeated = call(second, "POST", f"/v1/snapshots/{WS}", whole.read_bytes()).json()
        assert repeated["sessions"] == 0, "one of that name is here already"


def test_ci_keeps_nothing_that_is_said_or_stored(full: Path, tmp_path: Path) -> None:
    other = write_tree(tmp_path / "there" / WS)
    before = {path: path.stat().st_mtime_ns for path in (full, *other.rglob("*"))}

    def refused(answer: Answer) -> bool:
        return (answer.status, answer.json()["code"]) == (403, "read_only")

    with ci(tmp_path, other, full) as second:
        message = {"role": "user", "content": "remember me"}
        assert refused(call(second, "POST", "/v1/sessions/s2/messages", message))
        assert refused(call(second, "DELETE", "/v1/sessions/s1"))
        assert refused(call(second, "PUT", "/v1/artifacts/x", b"y"))
        assert refused(call(second, "DELETE", f"/v1/artifacts/patch-1?workspace={WS}"))
        event = {"type": "user.message", "session": "s3", "data": "remember me"}
        assert call(second, "POST", "/v1/events", event).status == 200, "the bus works"
        assert call(second, "GET", "/v1/sessions").json()["sessions"] == []
    assert {path: path.stat().st_mtime_ns for path in (full, *other.rglob("*"))} == before


def test_ci_without_a_data_folder_leaves_none_behind(full: Path, tmp_path: Path) -> None:
    other = write_tree(tmp_path / "there" / WS)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-m", "herdr", "serve", "--ci", "--port", "0", "--snapshot", str(full)]
    env = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(command, cwd=other, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "listens on" in process.stdout.readline()
        assert len(list(scratch.iterdir())) == 1
        process.terminate()
        assert process.wait(20) == 0
    assert list(scratch.iterdir()) == []


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


DAMAGES = {
    "empty": lambda data: b"",
    "text": lambda data: b"hello, I am no snapshot\n" * 50,
    "cut in its head": lambda data: data[:10],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "cut at the end": lambda data: data[:-1],
    "a byte changed": lambda data: flipped(data, len(data) // 2),
    "another version": lambda data: data.replace(b"SNAPSHOT-1", b"SNAPSHOT-9", 1),
    "rubbish behind the head": lambda data: data[:17] + os.urandom(5000),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(
    gateway: GatewayProcess, full: Path, tmp_path: Path, tree: Path, damage: str
) -> None:
    before = answers(gateway)
    data = DAMAGES[damage](full.read_bytes())
    answer = call(gateway, "POST", f"/v1/snapshots/{WS}", data)
    assert answer.status == 400, answer
    assert answer.json()["code"] in ("snapshot_damaged", "snapshot_version")
    assert "export" in answer.json()["detail"], "what to do next"
    assert answers(gateway) == before
    broken = tmp_path / "broken.snapshot"
    broken.write_bytes(data)
    said = refused_start(tmp_path / "ci", "--ci", "--snapshot", str(broken), "--workspace", str(tree))
    assert "broken.snapshot" in said and "export" in said


def test_a_snapshot_that_is_not_there_is_said_in_one_line(tmp_path: Path, tree: Path) -> None:
    missing = tmp_path / "missing.snapshot"
    said = refused_start(tmp_path / "ci", "--ci", "--snapshot", str(missing), "--workspace", str(tree))
    assert "No such file" in said


def test_a_graph_of_other_parsers_is_parsed_anew_and_the_rest_is_taken(
    gateway: GatewayProcess, full: Path, tmp_path: Path
) -> None:
    """What another version of a grammar made is not believed; see `graph_form`."""
    program = tmp_path / "indexer.py"
    program.write_text(
        "import sys, runpy, herdr.indexer.form as form\n"
        "form.STORE_FORMAT = 99\n"
        "sys.argv = ['herdr.indexer']\n"
        "runpy.run_module('herdr.indexer', run_name='__main__')\n"
    )
    fake = tmp_path / "python"
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *herdr.indexer) exec {sys.executable} {program} ;; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    fake.chmod(0o755)
    wanted = answers(gateway)
    other = write_tree(tmp_path / "there" / WS)
    script = (
        "import sys; sys.executable = sys.argv[1]; sys.argv = ['herdr', *sys.argv[2:]];"
        "from herdr.cli.main import main; raise SystemExit(main())"
    )
    args = ("--ci", "--snapshot", str(full), "--workspace", str(other))
    second = GatewayProcess(tmp_path / "ci", args, None, ("-c", script, str(fake))).start()
    try:
        assert graph(second)["last_pass"]["parsed"] == 42
        assert answers(second) == wanted
        assert call(second, "GET", f"/v1/artifacts/patch-1?workspace={WS}").status == 200
    finally:
        second.kill()
