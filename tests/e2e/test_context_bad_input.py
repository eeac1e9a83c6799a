"""What bad input gets in the shared context: clear errors or bounded work, and the rest goes on.

Rows that are elsewhere: a workspace that disappears (test_graph_freshness), damaged and foreign snapshots
(test_snapshots), who may call (test_protocol_access).
"""

import contextlib
import os
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from context_faults import processes, report, say, skipped, symbols, wait_for
from gateway import GatewayProcess, running_gateway
from graphs import WS, ask, graph, manifest, names, watching
from refusals import assert_problem
from wire import call, post, wait_until

LIMIT = 1000  # messages of one request


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / WS
    folder.mkdir()
    (folder / "good.py").write_text("def good(): pass\n")
    return folder


@pytest.fixture
def gateway(tmp_path: Path, tree: Path) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path / "data", *watching(tree)) as process:
        graph(process)
        yield process


# Files


NESTED = {
    "deep.py": ("(", ")", "1"),
    "deep.js": ("[", "]", "1"),
    "deep.ts": ("A<", ">", "B"),
    "deep.tsx": ("<a>", "</a>", "x"),
    "deep.go": ("f(", ")", "1"),
    "deep.rs": ("mod a{", "}", ""),
    "Deep.java": ("class A{", "}", ""),
    "deep.c": ("{", "}", ""),
    "deep.cpp": ("namespace a{", "}", ""),
    "Deep.cs": ("class A{", "}", ""),
    "deep.rb": ("[", "]", "1"),
    "deep.php": ("f(", ")", "1"),
    "deep.md": ("> ", "", "x"),
}
DEPTH = 100_000


def test_nesting_of_100_000_levels_costs_only_that_file(gateway: GatewayProcess, tree: Path) -> None:
    for name, (left, right, inner) in NESTED.items():
        head = "<?php " if name.endswith(".php") else ""
        (tree / name).write_text(f"{head}{left * DEPTH}{inner}{right * DEPTH}\n")
    (tree / "after.py").write_text("def after(): pass\n")
    report(gateway, "after.py")
    wait_for(gateway, "after")
    wait_until(lambda: manifest(gateway)["graph"]["files"] == len(NESTED) + 2, "all files")
    assert set(skipped(gateway).values()) <= {"generated", "minified", "parser_timeout"}, skipped(gateway)
    assert names(gateway, "good") == ["good.py::good"]
    assert ask(gateway, "map", tokens=200)["symbols"] > 0
    for name in NESTED:
        assert len(ask(gateway, f"files/{name}")["symbols"]) < 1001


def test_files_that_nobody_can_parse_are_listed_with_the_reason(gateway: GatewayProcess, tree: Path) -> None:
    with (tree / "huge.py").open("wb") as file:
        file.write(b"def huge(): pass\n" * (50 * 1024 * 1024 // 17))
    (tree / "line.js").write_bytes(b"var a=1;" * (3 * 1024 * 1024 // 8))
    with (tree / "long.js").open("wb") as file:
        file.write(b"x" * 5 * 1024 * 1024)
    (tree / "binary.py").write_bytes(bytes(range(256)) * 40)
    wait_until(lambda: manifest(gateway)["graph"]["files"] == 5, "all files")
    assert skipped(gateway) == {
        "huge.py": "too_large",
        "line.js": "minified",
        "long.js": "too_large",
        "binary.py": "binary",
    }
    assert names(gateway, "*") == ["good.py::good"]


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    tree = tmp_path / WS
    tree.mkdir()
    (tree / "good.py").write_text("def good(): pass\n")
    os.mkfifo(tree / "pipe.py")
    (tree / "loop.py").symlink_to("loop2.py")
    (tree / "loop2.py").symlink_to("loop.py")
    (tree / "again").symlink_to(".")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock:
        sock.bind(str(tree / "socket.py"))
        Path(os.fsdecode(os.fsencode(tree) + b"/odd\xff.py")).write_text("def odd(): pass\n")
        (tree / "two\nlines.py").write_text("def lines(): pass\n")
        with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
            assert graph(gateway)["left_out"] == {"name": 2, "symlink": 3, "special": 2, "ignored": 0}
            assert names(gateway, "*") == ["good.py::good"]
            (tree / "good.py").unlink()
            os.mkfifo(tree / "good.py")
            report(gateway, "good.py")
            assert names(gateway, "*") == []


def test_a_file_that_changes_while_it_is_read_is_right_in_the_end(
    gateway: GatewayProcess, tree: Path
) -> None:
    lines = "".join(f"def f{number}(): pass\n" for number in range(3_000))
    for round_ in range(10):
        with (tree / "busy.py").open("w") as file:
            file.write(f"def begin_{round_}(): pass\n")
            report(gateway, "busy.py")
            file.write(lines)
            symbols(gateway)
            file.write(f"def end_{round_}(): pass\n")
    report(gateway, "busy.py")
    assert names(gateway, "begin_*") == ["busy.py::begin_9"]
    assert names(gateway, "end_*") == ["busy.py::end_9"]


def test_times_and_inodes_beyond_all_reason_are_read(gateway: GatewayProcess, tree: Path) -> None:
    for name, year in (("old", -3_000_000_000), ("new", 15_000_000_000)):
        (tree / f"{name}.py").write_text(f"def {name}(): pass\n")
        with contextlib.suppress(OSError):  # not every file system can
            os.utime(tree / f"{name}.py", (year, year))
    wait_for(gateway, "new")
    wait_for(gateway, "old")
    assert call(gateway, "POST", f"/v1/context/{WS}/index", {}).status == 202
    assert names(gateway, "*") == ["good.py::good", "new.py::new", "old.py::old"]


# Many questions, and workspaces that come and go


def test_questions_beside_each_other_all_know_what_was_reported(gateway: GatewayProcess, tree: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        for number in range(10):
            (tree / "good.py").write_text(f"def good_{number}(): pass\n")
            report(gateway, "good.py")
            answers = list(threads.map(lambda _: names(gateway, "good_*"), range(8)))
            assert answers == [[f"good.py::good_{number}"]] * 8


def test_questions_of_clients_that_leave_hold_up_nobody(gateway: GatewayProcess, tree: Path) -> None:
    for number in range(300):
        code = "".join(f"def f{number}_{k}(x): return f{number * 7 % 300}_{k}(x)\n" for k in range(40))
        (tree / f"m{number}.py").write_text(code)
    wait_for(gateway, "f299_39")
    assert graph(gateway)["files"] == 301
    request = f"GET /v1/context/{WS}/graph/map?tokens=%d HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    for number in range(200):
        with socket.create_connection(("127.0.0.1", gateway.port)) as sock:
            sock.sendall((request % (90_000 + number)).encode())
    assert symbols(gateway).status == 200
    assert gateway.running() and not any("Traceback" in line for line in gateway.log), gateway.log


def test_the_same_path_reported_10_000_times_is_looked_at_once_more(
    gateway: GatewayProcess, tree: Path
) -> None:
    event = {"type": "file.changed", "source": "editor", "subject": "good.py", "workspace": WS}
    others = [{**event, "subject": f"none/{number}.py"} for number in range(11_000)]
    for start in range(0, 10_000, 1000):
        assert post(gateway, [event] * 1000).status in (200, 202)
        assert post(gateway, others[start : start + 1000]).status in (200, 202)
    assert post(gateway, others[10_000:]).status in (200, 202)
    (tree / "good.py").write_text("def better(): pass\n")
    report(gateway, "good.py")
    assert names(gateway, "*") == ["good.py::better"]


def test_workspaces_come_and_go_and_lie_in_each_other(tmp_path: Path, tree: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway:

        def add(name: str, folder: Path) -> int:
            return call(gateway, "POST", "/v1/workspaces", {"name": name, "path": str(folder)}).status

        for number in range(10):
            assert add("brief", tree) == 201
            if number % 2:
                assert call(gateway, "GET", "/v1/context/brief/graph/symbols?name=good").status == 200
            assert call(gateway, "DELETE", "/v1/workspaces/brief").status == 204
        assert [add("one", tree), add("two", tree), add("outer", tmp_path)] == [201, 201, 201]
        for name, path in (("one", "good.py"), ("two", "good.py"), ("outer", f"{WS}/good.py")):
            graph(gateway, name)
            assert names(gateway, "good", name) == [f"{path}::good"]
        assert_problem(
            call(gateway, "GET", "/v1/context/brief/graph/symbols?name=x"), 404, "unknown_workspace"
        )


# Sessions, artifacts, blobs


def long_session(gateway: GatewayProcess, count: int) -> None:
    for start in range(0, count, LIMIT):
        numbers = range(start, min(start + LIMIT, count))
        bodies = [
            {"role": ("user", "assistant")[n % 2], "content": f"Step {n}: look at src/m{n % 500}.py."}
            for n in numbers
        ]
        assert say(gateway, "long", *bodies).status == 201
    for _ in range(count // 1000):  # the fold may be behind; each question waits some seconds for it
        if (answer := call(gateway, "GET", "/v1/sessions/long?tokens=2048")).status == 200:
            break
        assert_problem(answer, 503, "context_unavailable")
    window = answer.json()
    assert window["messages"] == count
    assert window["tokens"] <= 2048 < window["full_tokens"]
    assert window["newest"][-1]["text"].startswith(f"Step {count - 1}:")
    page = call(gateway, "GET", "/v1/sessions/long/messages?limit=1000").json()
    assert (len(page["messages"]), page["more"]) == (1000, True)


def test_a_session_of_5_000_messages_has_a_window(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        long_session(gateway, 5_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_session_of_100_000_messages_has_a_window(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        long_session(gateway, 100_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_200_000_files_are_indexed(tmp_path: Path, tree: Path) -> None:
    many_files(tmp_path, tree, 200_000)


def test_5_000_files_are_indexed(tmp_path: Path, tree: Path) -> None:
    many_files(tmp_path, tree, 5_000)


def many_files(tmp_path: Path, tree: Path, count: int) -> None:
    for number in range(count):
        if number % 500 == 0:
            folder = tree / f"d{number // 500}"
            folder.mkdir()
        (folder / f"m{number}.py").write_text(f"def m{number}(): pass\n")
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        for _ in range(count // 1000):  # each look waits its time
            with contextlib.suppress(AssertionError):
                graph(gateway)
                break
        assert graph(gateway)["parsed"] == count + 1
        last = f"m{count - 1}"
        assert names(gateway, last) == [f"{folder.name}/{last}.py::{last}"]


@pytest.mark.parametrize(
    "query",
    [
        "context/tree/graph/map?tokens=0",
        "context/tree/graph/map?tokens=-1",
        "sessions/s?tokens=0",
        "sessions/s?tokens=1e99",
    ],
)
def test_a_budget_of_nothing_is_refused(gateway: GatewayProcess, query: str) -> None:
    assert say(gateway, "s", {"role": "user", "content": "hello"}).status == 201
    answer = call(gateway, "GET", f"/v1/{query}")
    assert_problem(answer, 400, "invalid_request")
    assert "whole number from" in answer.json()["errors"][0]["message"]


def test_a_blob_whose_hash_is_wrong_is_not_served(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as gateway:
        kept = call(gateway, "PUT", "/v1/artifacts/kept", b"kept " * 100).json()["ref"]
        bad = call(gateway, "PUT", "/v1/artifacts/bad", b"bad " * 2000).json()["ref"]
        long = {"role": "user", "content": "a long message " * 600}
        assert say(gateway, "s", {"role": "user", "content": "first"}, long).status == 201
        assert call(gateway, "GET", "/v1/sessions/s").status == 200
        gateway.stop()
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "context.db")) as db:
        damage = "UPDATE blobs SET body = CAST(x'00' || body AS BLOB) WHERE sha != ?"
        changed = db.execute(damage, (bytes.fromhex(kept),))
        assert changed.rowcount >= 2
        db.commit()
    with running_gateway(tmp_path / "data") as gateway:
        for path in (f"blobs/{bad}", "artifacts/bad"):
            answer = call(gateway, "GET", f"/v1/{path}")
            assert answer.status in (500, 503) and "damaged" in answer.json()["detail"], answer
        assert call(gateway, "GET", "/v1/artifacts/kept").body == b"kept " * 100
        assert call(gateway, "GET", "/v1/sessions/s").json()["messages"] == 2
        said = call(gateway, "GET", "/v1/sessions/s/messages").json()["messages"]
        assert said[0]["content"] == "first" and len(said) == 2
        assert call(gateway, "PUT", "/v1/artifacts/bad", b"bad " * 2000).status == 200
        assert call(gateway, "GET", "/v1/artifacts/bad").body == b"bad " * 2000, "storing again mends it"


def test_an_artifact_over_a_limit_is_refused_and_the_others_stay(tmp_path: Path) -> None:
    config = tmp_path / "herdr.yaml"
    config.write_text("context:\n  artifact_cache_size: 1\n")
    with running_gateway(tmp_path / "data", "--config", str(config)) as gateway:
        assert call(gateway, "PUT", "/v1/artifacts/small", b"x").status == 201
        assert_problem(
            call(gateway, "PUT", "/v1/artifacts/a", b"x" * (1024 * 1024 + 1)), 413, "artifact_too_large"
        )
        declared = b"PUT /v1/artifacts/b HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99999999999\r\n\r\n"
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=20) as sock:
            sock.sendall(declared)
            assert b" 413 " in sock.recv(1000)
        assert call(gateway, "GET", "/v1/artifacts/small").body == b"x"


def test_maps_of_700_other_budgets_take_no_memory(gateway: GatewayProcess, tree: Path) -> None:
    def resident() -> int:
        pids = [gateway.pid, *processes(gateway.pid, "")]
        fields = [Path(f"/proc/{pid}/statm").read_text().split() for pid in pids]
        return sum(int(row[1]) * 4096 for row in fields)

    for tokens in range(16, 316):
        assert ask(gateway, "map", tokens=tokens)["text"]
    before = resident()
    for tokens in range(316, 1016):
        assert ask(gateway, "map", tokens=tokens)["text"]
    assert resident() - before < 32 * 1024 * 1024
