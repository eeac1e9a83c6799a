"""Locks around commands, and the guard, with a real gateway in between."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from gateway import GatewayProcess
from git_repo import Repo, make_repo

READY = ("sh", "-c", "echo ready; read line; exit 5")  # until the test lets it go on


def locks(herdr: Cli) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(herdr("locks", "--json").stdout)
    return found


@contextmanager
def holding(herdr: Cli, *args: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Hold a lock until the end, or until somebody writes a line to the command."""
    with herdr.start("lock", "run", *args, "--", *READY) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def let_go(process: "subprocess.Popen[bytes]") -> str:
    """Have the command end, and return what `lock run` said meanwhile."""
    _, said = process.communicate(b"\n", 30)
    assert process.returncode == 5
    return said.decode()


def test_one_after_the_other(herdr: Cli) -> None:
    with holding(herdr, "--owner", "ann", "--purpose", "the cart", "src/") as first:
        refused = herdr("lock", "run", "--owner", "bob", "src/a.py", "--", "echo", "ran")
        assert (refused.returncode, refused.stdout) == (75, "")
        assert "  src/a.py: ann holds src/ until " in refused.stderr and ": the cart" in refused.stderr
        assert herdr("lock", "run", "--owner", "bob", "docs/", "--", "echo", "ran").stdout == "ran\n"
        with herdr.start(
            "lock", "run", "--owner", "bob", "--wait", "60", "src/a.py", "--", "echo", "ran"
        ) as second:
            assert second.stderr is not None
            assert b"waiting up to 1 min: src/a.py: ann holds src/ until" in second.stderr.readline()
            while not locks(herdr)["waiting"]:
                pass
            shown = herdr("locks").stdout
            assert shown.splitlines()[1].split()[:3] == ["src/", "ann", "write"]
            assert "in line" in shown
            assert let_go(first) == ""
            assert second.communicate(timeout=30)[0] == b"ran\n"
    assert locks(herdr) == {"locks": [], "waiting": [], "waits": []}


def test_a_command_under_a_lock_is_not_in_its_own_way(herdr: Cli) -> None:
    inner = 'herdr() { "$0" -m herdr "$@"; }; herdr lock run src/a.py -- echo ran'
    done = herdr("lock", "run", "src/", "--", "bash", "-c", inner, sys.executable)
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_a_run_within_a_run_leaves_the_lock_to_the_outer_one(herdr: Cli) -> None:
    inner = '"$0" -m herdr lock run src/ -- true; "$0" -m herdr locks --json'
    done = herdr("lock", "run", "src/", "--", "bash", "-c", inner, sys.executable)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["locks"][0]["paths"] == ["src/"]
    assert locks(herdr)["locks"] == []


def test_two_runs_without_a_name_exclude_each_other(herdr: Cli) -> None:
    with holding(herdr, "a"):
        assert herdr("lock", "run", "a", "--", "true").returncode == 75


def test_who_gives_up_waiting_leaves_the_line(herdr: Cli) -> None:
    with holding(herdr, "--owner", "ann", "a"):
        command = ("lock", "run", "--owner", "bob", "--wait", "600", "a", "--", "true")
        with herdr.start(*command, start_new_session=True) as waiting:
            while not locks(herdr)["waiting"]:
                pass
            waiting.send_signal(signal.SIGINT)
            assert waiting.wait(30) == 130
        while locks(herdr)["waiting"]:
            pass


def test_a_lock_is_renewed_for_longer_than_its_lease(herdr: Cli) -> None:
    with holding(herdr, "--ttl", "1", "a") as process:
        (lock,) = locks(herdr)["locks"]
        renewals = 0
        while renewals < 4:  # a third of a second apart: more than the lease
            renewals = len(herdr.events("after=0&limit=1000&type=lock.renewed"))
        (still,) = locks(herdr)["locks"]
        assert (still["lock"], still["token"]) == (lock["lock"], lock["token"])
        assert let_go(process) == ""


def test_a_lock_that_is_taken_away_is_said(herdr: Cli) -> None:
    with holding(herdr, "--ttl", "1", "--owner", "ann", "a") as process:
        (lock,) = locks(herdr)["locks"]
        done = herdr("locks", "release", lock["lock"], "--reason", "it hangs")
        assert (done.returncode, done.stdout) == (0, f"released {lock['lock']} of ann: a\n")
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"herdr: LOST THE LOCK on a: ")
        assert "the lock on a was lost meanwhile" in let_go(process)
    (event,) = herdr.events("after=0&limit=1000&type=lock.released")
    assert event["data"]["reason"] == "it hangs"


def test_a_holder_that_is_killed_blocks_nobody_for_long(herdr: Cli) -> None:
    with holding(herdr, "--ttl", "1", "a") as process:
        process.kill()
        process.wait(30)
        done = herdr("lock", "run", "--wait", "60", "a", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_a_gateway_that_restarts_meanwhile_knows_the_lock(herdr: Cli, gateway: GatewayProcess) -> None:
    with holding(herdr, "--ttl", "60", "a") as process:
        (lock,) = locks(herdr)["locks"]
        port = gateway.port
        gateway.kill()
        gateway.args = ("--port", str(port))
        gateway.start()
        assert [held["lock"] for held in locks(herdr)["locks"]] == [lock["lock"]]
        assert let_go(process) == ""
    assert locks(herdr)["locks"] == []


@pytest.fixture
def repo(herdr: Cli, gateway: GatewayProcess, tmp_path: Path) -> Repo:
    """A watched repository with the guard and one commit, in which bob works."""
    made = make_repo(tmp_path / "shop", gateway.url, HERDR_OWNER="bob")
    made.stage("src/a.py", "b.py", "app/[id]/page.py")
    assert made.commit().returncode == 0
    assert herdr("workspace", "add", str(made.top), "--name", "shop").returncode == 0
    assert made.herdr("guard", "install").returncode == 0
    return made


def in_repo(herdr: Cli, repo: Repo) -> Cli:
    return Cli(herdr.url, repo.top / "src")


def test_the_guard_refuses_what_another_holds(herdr: Cli, repo: Repo) -> None:
    repo.stage("src/a.py", "b.py")
    with holding(in_repo(herdr, repo), "--owner", "ann", "--purpose", "mine", "../src/"):
        done = repo.commit()
        assert done.returncode == 1 and "  src/a.py: ann holds src/ until " in done.stderr
        assert repo.commit(HERDR_OWNER="ann").returncode == 0
        repo.stage("b.py")
        assert repo.commit().returncode == 0
        repo.git("mv", "src/a.py", "c.py")
        assert repo.commit().returncode == 1
    assert repo.commits() == 3


def test_the_guard_lets_ones_own_lock_run(herdr: Cli, repo: Repo) -> None:
    repo.stage("src/a.py", "app/[id]/page.py")
    command = ("git", "-C", str(repo.top), "commit", "-q", "-m", "mine")
    done = repo.herdr("lock", "run", "src/", "app/", "git:HEAD", "--", *command, HERDR_OWNER="")
    assert (done.returncode, done.stderr) == (0, "")
    assert repo.commits() == 2


@pytest.mark.parametrize("mode", ["write", "intent"])
def test_who_has_the_branch_for_himself_keeps_commits_off(herdr: Cli, repo: Repo, mode: str) -> None:
    repo.stage("b.py")
    with holding(in_repo(herdr, repo), "--owner", "ann", "--mode", mode, "git:HEAD"):
        done = repo.commit()
    if mode == "intent":
        assert done.returncode == 0
    else:
        assert done.returncode == 1 and done.stderr.count("git:HEAD: ann holds it until") == 1


def test_names_with_brackets_are_names(herdr: Cli, repo: Repo) -> None:
    repo.stage("app/[id]/page.py")
    with holding(Cli(herdr.url, repo.top), "--owner", "ann", "app/i/page.py"):
        assert repo.commit().returncode == 0
    repo.stage("app/[id]/page.py")
    with holding(Cli(herdr.url, repo.top), "--owner", "ann", "app/[id]/page.py"):
        assert repo.commit().returncode == 1


def test_what_no_lock_can_name_does_not_keep_the_rest_from_being_checked(herdr: Cli, repo: Repo) -> None:
    repo.stage("back\\slash", "b.py", "git:HEAD", "c:x", "a*b")
    done = repo.commit()
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1 and r"not checked against locks: back\slash: " in done.stderr
    repo.stage("back\\slash", "b.py")
    with holding(Cli(herdr.url, repo.top), "--owner", "ann", "b.py"):
        assert repo.commit().returncode == 1


def test_the_guard_and_a_gateway_that_dies(herdr: Cli, repo: Repo, gateway: GatewayProcess) -> None:
    gateway.kill()
    repo.stage("b.py")
    done = repo.commit()
    assert done.returncode == 0 and "guard: NOT CHECKED against locks, it goes on" in done.stderr
    assert repo.herdr("guard", "install", "--strict").returncode == 0
    repo.stage("b.py")
    done = repo.commit()
    assert done.returncode == 1 and "guard: NOT CHECKED against locks, and so refused" in done.stderr


def test_a_repository_that_nobody_watches_is_the_default_workspace(
    herdr: Cli, gateway: GatewayProcess, tmp_path: Path
) -> None:
    repo = make_repo(tmp_path / "lone", gateway.url, HERDR_OWNER="bob")
    assert repo.herdr("guard", "install").returncode == 0
    repo.stage("src/a.py")
    with holding(in_repo(herdr, repo), "--owner", "ann", "a.py"):
        done = repo.commit()
        assert done.returncode == 1 and "  src/a.py: ann holds it until" in done.stderr
    with holding(in_repo(herdr, repo), "--owner", "ann", "git:HEAD"):
        assert repo.commit().returncode == 1
