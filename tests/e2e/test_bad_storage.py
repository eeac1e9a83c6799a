"""What a bad data folder gets: at start one line and exit code 1; while running, 503 and no lost event."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from gateway import GatewayProcess, refused_start, running_gateway
from refusals import assert_problem, assert_serves
from wire import Socket, Stream, accept, all_events, call, health, post, publish, wait_until


@contextmanager
def tmpfs(path: Path, size: str) -> Iterator[Path]:
    """Mount a small file system of our own."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root; scripts/test runs it as root")
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(
            f"no file system can be mounted here; a virtual machine's root can: {mounted.stderr.strip()}"
        )
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(folder: Path) -> Path:
    """Take all the space that is left."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 512):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                pass
    return ballast


def test_two_gateways_on_one_data_folder(tmp_path: Path) -> None:
    with running_gateway(tmp_path / "data") as first:
        accept(first, type="tool.result")
        said = refused_start(tmp_path / "data")
        assert f"pid {first.pid} " in said and str(tmp_path / "data") in said
        assert_serves(first)
        first.kill()
    with running_gateway(tmp_path / "data") as third:  # the lock ends with the process, however that ends
        assert [event["seq"] for event in all_events(third)] == [1, 2]


def test_a_read_only_disk_at_start(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", "8m") as disk:
        with running_gateway(disk / "data") as gateway:
            accept(gateway, type="tool.result")
            assert gateway.stop() == 0
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        said = refused_start(disk / "data")
        assert "read-only" in said and str(disk) in said
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        with running_gateway(disk / "data") as gateway:
            assert [event["seq"] for event in all_events(gateway)] == [1]


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    said = refused_start(tmp_path / "data")
    assert str(tmp_path / "data") in said and "is a file" in said


def test_a_full_disk_at_start(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", "1m") as disk:
        ballast = fill(disk)
        said = refused_start(disk / "data")
        assert "No space left" in said or "disk is full" in said
        ballast.unlink()
        with running_gateway(disk / "data") as gateway:
            assert_serves(gateway)


def publish_until_full(gateway: GatewayProcess) -> list[str]:
    """Publish until the log refuses, and return the accepted ids."""
    accepted = []
    for number in range(1000):
        answer = post(gateway, {"type": "tool.result", "id": f"e{number}", "data": "x" * 20_000})
        if answer.status != 200:
            assert_problem(answer, 503, "log_unavailable")
            assert int(answer.headers["retry-after"]) >= 1
            return accepted
        accepted.append(answer.json()["id"])
    raise AssertionError("the disk never filled up")


def test_a_disk_that_fills_up_while_running(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", "4m") as disk, running_gateway(disk / "data") as gateway:
        accepted = publish_until_full(gateway)
        ballast = fill(disk)
        assert call(gateway, "GET", "/healthz").status == 503
        assert health(gateway)["status"] == "failing" and health(gateway)["reasons"]
        assert call(gateway, "GET", "/readyz").status == 503
        assert call(gateway, "GET", "/livez").status == 200
        assert_problem(post(gateway, [{"type": "user.message"}]), 503, "log_unavailable")
        with Socket(gateway) as connection:
            said = connection.ask("publish", ref=1, events=[{"type": "tool.result"}])
            assert (said["op"], said["code"], said["ref"]) == ("error", "log_unavailable", 1)
        assert [event["id"] for event in all_events(gateway)] == accepted, "reads go on"
        ballast.unlink()
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        wait_until(lambda: health(gateway)["status"] == "ok", "the log to recover by itself")
        last = post(gateway, {"type": "tool.result", "id": "last"})
        assert last.status == 200
        assert [event["id"] for event in all_events(gateway)] == [*accepted, "last"]
        with Stream(gateway, "after=0") as stream:
            seqs = [event["seq"] for event in stream.take(len(accepted) + 1)]
        assert seqs == list(range(1, len(accepted) + 2))
        assert gateway.stop() == 0
        assert not [line for line in gateway.log if "Traceback" in line]
        with running_gateway(disk / "data") as again:
            assert [event["id"] for event in all_events(again)] == [*accepted, "last"]


def test_a_deferred_event_survives_a_disk_that_was_full(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", "4m") as disk, running_gateway(disk / "data") as gateway:
        publish_until_full(gateway)
        ballast = fill(disk)
        answer = post(gateway, {"type": "file.changed", "subject": "a.py", "id": "saved"})
        assert (answer.status, answer.json()["status"]) == (202, "deferred")
        ballast.unlink()
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        wait_until(lambda: all_events(gateway, "type=file.changed"), "the deferred event")


def prepared(tmp_path: Path, *statements: str) -> Path:
    """Return a data folder whose log has three events and was then changed by the statements."""
    data = tmp_path / "data"
    with running_gateway(data) as gateway:
        publish(gateway, *({"type": "tool.result", "id": str(n), "data": n} for n in (1, 2, 3)))
        assert gateway.stop() == 0
    with closing(sqlite3.connect(data / "events.db", isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)
    return data


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    data = prepared(tmp_path, "PRAGMA user_version = 99")
    before = (data / "events.db").read_bytes()
    said = refused_start(data)
    assert "99" in said and str(data / "events.db") in said
    assert (data / "events.db").read_bytes() == before


def test_another_program_s_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with closing(sqlite3.connect(data / "events.db")) as db:
        db.execute("CREATE TABLE notes (text)")
    said = refused_start(data)
    assert "another program" in said
    with closing(sqlite3.connect(data / "events.db")) as db:
        assert db.execute("SELECT name FROM sqlite_schema").fetchall() == [("notes",)]


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "events.db").write_text("my notes " * 1000)
    assert "not a database" in refused_start(data)
    assert (data / "events.db").read_text() == "my notes " * 1000


def test_a_schema_from_before_the_first_is_brought_up_to_date(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "events.db").touch()
    with running_gateway(data) as gateway:
        assert_serves(gateway)


FLIP = """UPDATE events SET body = CAST(substr(body, 1, length(body) - 2) || char(
    (unicode(substr(body, length(body) - 1, 1)) | 8) - (unicode(substr(body, length(body) - 1, 1)) & 8))
    || substr(body, length(body)) AS BLOB) WHERE seq = 2"""


def test_a_flipped_bit_in_a_row_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    data = prepared(tmp_path, FLIP)
    with running_gateway(data) as gateway:
        events = all_events(gateway)
        assert [(event["seq"], event["type"]) for event in events] == [
            (1, "tool.result"),
            (2, "herdr.corrupt"),
            (3, "tool.result"),
        ]
        assert "data" not in events[1] and events[1]["detail"]
        assert call(gateway, "GET", "/v1/events/2").json()["type"] == "herdr.corrupt"
        with Stream(gateway, "after=0&type=tool.result") as stream, Socket(gateway) as connection:
            blocks = [stream.next() for _ in range(3)]
            assert [block.event for block in blocks] == ["tool.result", "herdr.corrupt", "tool.result"]
            connection.send("follow", ref=1, after=0, type="tool.*")
            assert [event["seq"] for event in connection.events(3)] == [1, 2, 3]
        with Stream(gateway, headers={"last-event-id": blocks[1].id or ""}) as stream:
            assert stream.next().json()["seq"] == 3, "a resume from the damaged event goes on after it"
        assert_serves(gateway)
        assert health(gateway)["head"] == 4
