"""Processes of the shared context that die, files of its that are damaged: the rest goes on, and all mends itself."""

import contextlib
import io
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zstandard
from context_faults import is_alive, processes, report, say, skipped, symbols, wait_for
from gateway import GatewayProcess, running_gateway
from graphs import WS, ask, graph, manifest, names, watching
from refusals import assert_problem
from wire import call, wait_until

from herdr.context.snapshot import MAGIC, Kind, read_records, write_records


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


# Processes


def with_parser(tmp_path: Path, parser: str) -> tuple[str, ...]:
    """Return a program that is the gateway with another parse worker: `parser` runs before each file."""
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import os, sys, time, signal, herdr.indexer.parse_worker as worker\n"
        "read = worker.read_file\n"
        f"def read_file(chunk, path, readers):\n    {parser}\n    return read(chunk, path, readers)\n"
        "worker.read_file = read_file\nworker.main()\n"
    )
    fake = tmp_path / "python"
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *parse_worker) exec {sys.executable} {worker} ;; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    fake.chmod(0o755)
    # Whoever starts children by `sys.executable` starts `fake`; the indexer has to say so to its own
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(f"import sys\nsys.executable = {str(fake)!r}\n")
    return (str(site),)


def test_a_file_that_crashes_its_parser_costs_only_that_file(tmp_path: Path, tree: Path) -> None:
    (site,) = with_parser(tmp_path, "if 'crash' in path: os.kill(os.getpid(), signal.SIGSEGV)")
    for number in range(100):
        (tree / f"m{number}.py").write_text(f"def m{number}(): pass\n")
    (tree / "crash.py").write_text("def crash(): pass\n")
    with running_gateway(tmp_path / "data", *watching(tree), env={"PYTHONPATH": site}) as gateway:
        assert graph(gateway)["parsed"] == 101
        assert skipped(gateway) == {"crash.py": "parser_crashed"}
        assert not any("Unknown child" in line for line in gateway.log), gateway.log
        (tree / "m7.py").write_text("def other(): pass\n")
        report(gateway, "m7.py")
        report(gateway, "crash.py")
        assert names(gateway, "other") == ["m7.py::other"]


def test_workers_that_are_killed_leave_a_whole_graph(tmp_path: Path, tree: Path) -> None:
    for number in range(600):
        (tree / f"m{number}.py").write_text("".join(f"def m{number}_{k}(): pass\n" for k in range(50)))
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        for _ in range(5):
            for pid in processes(gateway.pid, "parse_worker"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            assert call(gateway, "POST", f"/v1/context/{WS}/index", {"fresh": True}).status in (202, 503)
        assert graph(gateway)["files"] == 601
        assert call(gateway, "POST", f"/v1/context/{WS}/index", {"fresh": True}).status == 202
        found = graph(gateway)
        assert (found["parsed"], found["skipped"]) == (601, {})


def test_an_indexer_killed_again_and_again_ends_in_a_whole_graph(tmp_path: Path, tree: Path) -> None:
    for number in range(600):
        (tree / f"m{number}.py").write_text("".join(f"def m{number}_{k}(): pass\n" for k in range(50)))
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        for _ in range(2):
            wait_until(lambda: processes(gateway.pid, "parse_worker"), "the workers")
            pid, *_ = processes(gateway.pid, "herdr.indexer")  # one that forks shows twice
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not is_alive(pid), "its end")  # noqa: B023 (called at once)
        wait_until(lambda: manifest(gateway)["graph"]["state"] == "ready", "the graph")
        assert graph(gateway)["parsed"] == 601
        assert names(gateway, "m599_49") == ["m599.py::m599_49"]


def test_no_process_outlives_a_gateway_that_is_killed(tmp_path: Path, tree: Path) -> None:
    for number in range(600):
        (tree / f"m{number}.py").write_text("".join(f"def m{number}_{k}(): pass\n" for k in range(50)))
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        wait_until(lambda: processes(gateway.pid, "parse_worker"), "the workers")
        children = processes(gateway.pid, "")
        gateway.kill()
        wait_until(lambda: not any(map(is_alive, children)), "the children's end")


# The graph's file


def damage_pages(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for page in range(2, len(data) // 4096, 3):
        data[4096 * page : 4096 * (page + 1)] = os.urandom(4096)
    file.write_bytes(data)


def execute(sql: str) -> Callable[[Path], None]:
    def run(file: Path) -> None:
        with contextlib.closing(sqlite3.connect(file)) as db:
            db.execute(sql)
            db.commit()

    return run


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "cut off": lambda file: os.truncate(file, file.stat().st_size // 2),
    "pages of noise": damage_pages,
    "outlines of noise": execute("UPDATE files SET outline = x'c1c1'"),
    "a table is missing": execute("DROP TABLE calls"),
    "names twice": execute("INSERT INTO symbols SELECT name, file + 1 FROM symbols WHERE name = 'good'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_graph_damaged_while_stopped_is_begun_anew(tmp_path: Path, tree: Path, damage: str) -> None:
    for number in range(150):
        (tree / f"m{number}.py").write_text(f"from good import good\ndef m{number}(): good()\n")
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        version = graph(gateway)["version"]
        gateway.stop()
    (file,) = (tmp_path / "data" / "graph").glob("*.db")
    DAMAGES[damage](file)
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        for number in range(40, 60):
            (tree / f"m{number}.py").write_text(f"from good import good\ndef m{number}(): good()\n\n")
        (tree / "m7.py").write_text("def seven(): pass\n")
        report(gateway, "m7.py")
        callers = f"/v1/context/{WS}/graph/callers?symbol=good.py::good&limit=1000"

        def is_well() -> bool:
            answer = call(gateway, "GET", callers)
            return answer.status == 200 and len(answer.json()["callers"]) == 149

        wait_until(is_well, "a graph that answers")
        assert names(gateway, "seven") == ["m7.py::seven"]
        assert graph(gateway)["version"] != version
        assert not any("Traceback" in line or "herdr restore" in line for line in gateway.log), gateway.log


def test_a_graph_deleted_while_in_use_is_begun_anew(gateway: GatewayProcess, tree: Path) -> None:
    shutil.rmtree(gateway.data / "graph")
    (tree / "new.py").write_text("def new(): good()\n")
    wait_for(gateway, "new")
    assert ask(gateway, "map", tokens=100)["symbols"] == 2, "the ranking reads the same file"


def test_a_graph_that_cannot_be_written_is_said_and_tried_again(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "graph").write_text("in the way")
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        wait_until(lambda: manifest(gateway)["graph"]["state"] == "failed", "the failure")
        assert_problem(symbols(gateway), 503, "graph_unavailable")
        assert call(gateway, "GET", "/v1/artifacts").status == 200, "the rest goes on"
        (tmp_path / "data" / "graph").unlink()
        wait_for(gateway)


def test_a_full_disk_is_said_and_the_graph_goes_on_when_there_is_room(tmp_path: Path, tree: Path) -> None:
    folder = tmp_path / "data" / "graph"
    folder.mkdir(mode=0o700, parents=True)
    folder.parent.chmod(0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system; scripts/test runs it as root")
    try:
        with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
            graph(gateway)
            (folder / "filler").write_bytes(b"x")
            with contextlib.suppress(OSError), (folder / "filler").open("ab", buffering=0) as filler:
                while True:
                    filler.write(bytes(4096))
            for number in range(200):
                (tree / f"m{number}.py").write_text(
                    "".join(f"def m{number}_{k}(): pass\n" for k in range(20))
                )
            wait_until(lambda: manifest(gateway)["graph"]["state"] == "failed", "the failure")
            refused = symbols(gateway, "m199_19")
            assert_problem(refused, 503, "graph_unavailable")
            assert "disk is full" in refused.json()["detail"]
            (folder / "filler").unlink()
            wait_for(gateway, "m199_19")
            assert graph(gateway)["state"] == "ready"
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


# Snapshots


def leftovers(gateway: GatewayProcess) -> list[str]:
    return [path.name for path in (gateway.data / "graph").iterdir() if ".db" not in path.name]


def begin(gateway: GatewayProcess, head: str, body: bytes = b"") -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", gateway.port))
    sock.sendall(f"{head}\r\nhost: 127.0.0.1\r\n\r\n".encode() + body)
    return sock


def test_snapshots_that_break_off_leave_nothing_behind(tmp_path: Path, tree: Path) -> None:
    head = f"POST /v1/snapshots/{WS} HTTP/1.1\r\ncontent-length: 100000"
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        graph(gateway)
        for _ in range(20):
            begin(gateway, f"GET /v1/snapshots/{WS} HTTP/1.1").close()
        upload = begin(gateway, head, b"HERDR-SNAPSHOT-1\n")
        wait_until(lambda: leftovers(gateway), "the upload")
        upload.close()
        wait_until(lambda: not leftovers(gateway), "everything to be cleared away")
        with contextlib.closing(begin(gateway, head, b"HERDR-SNAPSHOT-1\n")):
            wait_until(lambda: leftovers(gateway), "the upload")
            gateway.kill()
        assert leftovers(gateway)
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        graph(gateway)
        assert not leftovers(gateway)


def test_imports_at_once_and_during_a_cold_index(tmp_path: Path, tree: Path) -> None:
    for number in range(300):
        (tree / f"m{number}.py").write_text(f"def m{number}(): pass\n")
    with running_gateway(tmp_path / "data", *watching(tree)) as gateway:
        version = graph(gateway)["version"]
        snapshot = call(gateway, "GET", f"/v1/snapshots/{WS}").body
    with running_gateway(tmp_path / "cold", *watching(tree)) as gateway, ThreadPoolExecutor(4) as threads:
        imports = threads.map(lambda _: call(gateway, "POST", f"/v1/snapshots/{WS}", snapshot), range(3))
        assert [answer.status for answer in imports] == [200, 200, 200]
        assert graph(gateway)["version"] == version
        assert not leftovers(gateway)


def test_messages_that_were_acknowledged_survive_a_kill_once_each(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    with running_gateway(tmp_path / "data") as gateway, ThreadPoolExecutor(4) as threads:

        def talk(thread: int) -> None:
            for number in range(10_000):
                id_ = f"{thread}-{number}"
                try:
                    answer = say(gateway, "s", {"role": "user", "content": f"say {id_}", "id": id_})
                except OSError:
                    return
                if answer.status == 201:
                    acknowledged.append(id_)

        talking = [threads.submit(talk, thread) for thread in range(4)]
        wait_until(lambda: len(acknowledged) > 60, "some messages")
        gateway.kill()
        for one in talking:
            with contextlib.suppress(Exception):  # a cut-off answer is none
                one.result()
    with running_gateway(tmp_path / "data") as gateway:
        again = [{"role": "user", "content": f"say {id_}", "id": id_} for id_ in acknowledged[-20:]]
        statuses = [row["status"] for row in say(gateway, "s", *again).json()["messages"]]
        assert statuses == ["duplicate"] * 20
        kept: list[str] = []
        after = 0
        while page := call(gateway, "GET", f"/v1/sessions/s/messages?after={after}&limit=1000").json()[
            "messages"
        ]:
            kept += [message["id"] for message in page]
            after = page[-1]["seq"]
        assert len(kept) == len(set(kept))
        assert set(acknowledged) <= set(kept)


def test_a_workspace_that_is_missing_takes_no_snapshot(gateway: GatewayProcess, tree: Path) -> None:
    snapshot = call(gateway, "GET", f"/v1/snapshots/{WS}").body
    away = tree.rename(tree.with_name("away"))
    for method, path, body in (
        ("POST", f"snapshots/{WS}", snapshot),
        ("GET", f"snapshots/{WS}", None),
        ("POST", f"context/{WS}/index", {}),
    ):
        assert_problem(call(gateway, method, f"/v1/{path}", body), 503, "workspace_lost")
    away.rename(tree)
    wait_for(gateway)
    assert not leftovers(gateway)


# Snapshots that somebody made up: every record has its hash


def made_up(gateway: GatewayProcess, *records: tuple[Kind, Any]) -> bytes:
    """Return a snapshot whose hashes are right, and that holds what no Herdr has written."""
    snapshot = io.BytesIO(call(gateway, "GET", f"/v1/snapshots/{WS}").body)
    real = [(record.kind, record.body) for record in read_records(snapshot)]
    file = io.BytesIO()
    write_records(file, [*real, *records])
    return file.getvalue()


ABOUT = {
    "workspace": WS, "name": "a", "kind": "patch", "ref": "0" * 64, "bytes": 1, "content_type": "text/plain",
    "created_us": 0, "expires_us": 10_000_000, "used_us": 0, "by": "x", "session": None, "based_on": None,
    "redacted": 0,
}  # fmt: skip
SESSION = {
    "session": "s", "workspace": WS, "messages": 1, "full_tokens": 1, "size": 1, "first_us": 0, "updated_us": 0,
    "sources": ["x"], "state": b"",
}  # fmt: skip
MESSAGE = {
    "session": "s", "workspace": WS, "seq": 1, "id": "m", "role": "user", "source": "x", "time_us": 0,
    "body": b'"hello"', "about": b"", "tokens": 1,
}  # fmt: skip

MADE_UP: dict[str, list[tuple[Kind, Any]]] = {
    "a header in the content type": [
        ("artifact", {"about": {**ABOUT, "content_type": "text/plain\r\nset-cookie: a=b"}, "content": b"x"})
    ],
    "a name of control characters": [("artifact", {"about": {**ABOUT, "name": "a\nb"}, "content": b"x"})],
    "a kind that is none": [("artifact", {"about": {**ABOUT, "kind": "No Kind"}, "content": b"x"})],
    "numbers beyond 64 bits": [("artifact", {"about": {**ABOUT, "redacted": 2**64 - 1}, "content": b"x"})],
    "content that is text": [("artifact", {"about": ABOUT, "content": "x"})],
    "an artifact that is a list": [("artifact", [])],
    "decisions that are a number": [("decisions", 5)],
    "a session from the year 300,000": [("session", {**SESSION, "updated_us": 2**63 - 1})],
    "a session without a name": [("session", {**SESSION, "session": ""})],
    "a state without end": [("session", {**SESSION, "state": bytes(5 * 1024**2)})],
    "a message that is no JSON": [("session", SESSION), ("message", {**MESSAGE, "body": b"{"})],
    "a message about nothing": [("session", SESSION), ("message", {**MESSAGE, "about": b"\xc1"})],
    "a message nested without end": [
        ("session", SESSION),
        ("message", {**MESSAGE, "body": b"[" * 100_000 + b"]" * 100_000}),
    ],
    "a message of no session": [("message", MESSAGE)],
    "a message whose time is none": [("session", SESSION), ("message", {**MESSAGE, "time_us": 2**64 - 1})],
}


@pytest.mark.parametrize("what", MADE_UP)
def test_a_made_up_snapshot_is_refused_in_words(gateway: GatewayProcess, what: str) -> None:
    answer = call(gateway, "POST", f"/v1/snapshots/{WS}", made_up(gateway, *MADE_UP[what]))
    assert answer.status == 400, answer
    for path in (
        "artifacts?workspace=tree",
        "artifacts/a?workspace=tree",
        "sessions",
        "sessions/s",
        "context/tree",
    ):
        assert call(gateway, "GET", f"/v1/{path}").status in (200, 404), path
    assert names(gateway, "good") == ["good.py::good"]
    assert not leftovers(gateway)


def test_a_snapshot_that_unpacks_without_end_is_stopped(gateway: GatewayProcess) -> None:
    packed = zstandard.ZstdCompressor(level=19).compress(bytes(64 * 1024**2))
    for body in (
        MAGIC + packed,
        MAGIC + packed[: len(packed) // 2],
        MAGIC + b"\x28\xb5\x2f\xfd" + b"\xff" * 100,
    ):
        assert_problem(call(gateway, "POST", f"/v1/snapshots/{WS}", body), 400, "snapshot_damaged")
    assert names(gateway, "good") == ["good.py::good"]
