import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli, read_terminal, read_until
from lock_answers import FENCED, GONE, HELD, LOCK, Answer, Call, LockAnswers, lock_answers

PYTHON = sys.executable
SHOW = "import json, os; print(json.dumps({n: v for n, v in os.environ.items() if n.startswith('HERDR_')}))"


@pytest.fixture
def answers() -> Iterator[LockAnswers]:
    with lock_answers() as running:
        yield running


@pytest.fixture
def herdr(answers: LockAnswers, tmp_path: Path) -> Cli:
    return Cli(answers.url, tmp_path)


def asked(answers: LockAnswers) -> dict[str, Any]:
    body: dict[str, Any] = answers.calls("POST", "/v1/locks")[-1]
    return body


def test_the_command_runs_between_taking_and_giving_back(herdr: Cli, answers: LockAnswers) -> None:
    options = ("--owner", "ann", "--ttl", "90", "--mode", "intent", "--purpose", "why", "--session", "s")
    done = herdr("lock", "run", *options, "src/a.py", "docs/", "--", PYTHON, "-c", SHOW)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["HERDR_LOCK"], found["HERDR_LOCK_TOKEN"], found["HERDR_OWNER"]) == (LOCK, "17", "ann")
    assert asked(answers) == {
        "paths": ["src/a.py", "docs/"],
        "owner": "ann",
        "workspace": "default",
        "ttl_s": 90.0,
        "mode": "intent",
        "purpose": "why",
        "session": "s",
        "wait_s": 0.0,
        "reports": False,
    }
    assert answers.asked[-1] == Call("DELETE", f"/v1/locks/{LOCK}", {"token": 17})


def test_streams_and_the_exit_code_are_the_commands(herdr: Cli) -> None:
    script = r"printf 'out\000\377'; printf 'err\377' >&2; cat; exit 7"
    with herdr.start("lock", "run", "a", "--", "sh", "-c", script) as process:
        out, err = process.communicate(b"in\xfe", 60)
    assert (process.returncode, out, err) == (7, b"out\0\xffin\xfe", b"err\xff")


def test_a_program_has_the_terminal(herdr: Cli) -> None:
    script = "test -t 0 && test -t 1 && test -t 2 && stty -echo && echo at a terminal"
    assert herdr.at_terminal("lock", "run", "a", "--", "sh", "-c", script) == (0, "at a terminal\r\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_passed_on_and_the_lock_is_given_back(
    herdr: Cli, answers: LockAnswers, number: signal.Signals
) -> None:
    command = ("lock", "run", "a", "--", "sh", "-c", "echo ready; exec sleep 60")
    with herdr.start(*command, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert answers.asked[-1].method == "DELETE"


def test_ctrl_c_at_a_terminal_reaches_the_command_once(herdr: Cli, answers: LockAnswers) -> None:
    script = "trap 'echo interrupted' INT; echo ready; read line; read line; exit 4"
    with herdr.terminal("lock", "run", "a", "--", "bash", "-c", script) as (process, terminal):
        shown = read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        shown += read_until(terminal, b"interrupted")
        os.write(terminal, b"\n\n")
        assert process.wait(30) == 4
        shown += read_terminal(terminal)
    assert shown.count(b"interrupted") == 1
    assert answers.asked[-1].method == "DELETE"


@pytest.mark.parametrize(
    ("command", "code", "said"), [("./nosuch", 127, "spelling"), ("./text", 126, "executed")]
)
def test_what_cannot_be_run(herdr: Cli, answers: LockAnswers, command: str, code: int, said: str) -> None:
    (herdr.cwd / "text").write_text("no program")
    done = herdr("lock", "run", "a", "--", command)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"herdr: cannot run {command}: ") and said in done.stderr
    assert answers.asked[-1].method == "DELETE"


def test_options_may_stand_among_the_paths_and_the_commands_are_its_own(
    herdr: Cli, answers: LockAnswers
) -> None:
    done = herdr("lock", "run", "a", "--wait", "0", "b", "--owner=x", "--", "echo", "--wait", "--", "--owner")
    assert (done.returncode, done.stdout) == (0, "--wait -- --owner\n")
    assert (asked(answers)["paths"], asked(answers)["owner"]) == (["a", "b"], "x")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("a",), "there is no command: "),
        (("a", "--"), "there is no command: "),
        (("--", "true"), "there is no path: "),
        (("a", "--ttl", "0", "--", "true"), "is not a number of seconds from 1 to 3600"),
        (("a", "--wait", "-1", "--", "true"), "is not a number of seconds from 0 to 604800"),
        (("a", "--wait", "nan", "--", "true"), "is not a number of seconds from 0 to 604800"),
        (("a", "--waait", "1", "--", "true"), "unknown option --waait; did you mean"),
        (("a", "--mode", "read", "--", "true"), "unknown"),
    ],
)
def test_a_wrong_command_line_runs_nothing(herdr: Cli, args: tuple[str, ...], said: str) -> None:
    done = herdr("lock", "run", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "Traceback" not in done.stderr


def test_without_a_gateway_nothing_runs(nowhere: Cli) -> None:
    done = nowhere("lock", "run", "--wait", "100", "a", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (3, "")
    assert "start the gateway with `herdr serve`" in done.stderr


def locked(*conflicts: dict[str, Any]) -> Answer:
    return 409, {"code": "locked", "detail": "is held", "conflicts": list(conflicts)}


def test_a_lock_of_another_is_said_with_who_why_and_until_when(herdr: Cli, answers: LockAnswers) -> None:
    others = (HELD, {**HELD, "path": "docs/\x1b", "asked": "docs/a.md", "owner": "b", "purpose": None})
    answers.script = lambda c: locked(*others) if c.path == "/v1/locks" else answers.grant(c)
    done = herdr("lock", "run", "src/a.py", "docs/a.md", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (75, "")
    first, second, third = done.stderr.splitlines()
    assert first == "herdr: others are in the way:"
    assert second.startswith("  src/a.py: cursor holds it until 12:01:00 (") and second.endswith(
        ": a new cart"
    )
    assert third.startswith("  docs/a.md: b holds docs/\\u001b until 12:01:00 (")


def test_it_waits_in_line_and_says_for_whom(herdr: Cli, answers: LockAnswers) -> None:
    def script(call: Call) -> Answer | None:
        waited = len(answers.calls("POST", "/v1/locks"))
        return answers.grant(call) if call.path != "/v1/locks" or waited > 3 else locked(HELD)

    answers.script = script
    done = herdr("lock", "run", "--wait", "3000", "src/a.py", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    (said,) = done.stderr.splitlines()
    assert said.startswith("herdr: waiting up to ") and "src/a.py: cursor holds it until 12:01:00" in said
    waits = [body["wait_s"] for body in answers.calls("POST", "/v1/locks")]
    assert waits == [0.0, 600.0, 600.0, 600.0]


def test_waiting_ends_in_time(herdr: Cli, answers: LockAnswers) -> None:
    answers.script = lambda c: locked(HELD) if c.path == "/v1/locks" else answers.grant(c)
    done = herdr("lock", "run", "--wait", "0.5", "src/a.py", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (75, "")
    assert "others are in the way" in done.stderr
    waits = [body["wait_s"] for body in answers.calls("POST", "/v1/locks")]
    assert waits[0] == 0 and all(0 < wait <= 0.5 for wait in waits[1:]) and len(waits) == 2


def test_a_gateway_that_goes_away_meanwhile_is_waited_for(herdr: Cli, answers: LockAnswers) -> None:
    full = (503, {"code": "too_many_waiters", "detail": "1,000 wait already"})

    def script(call: Call) -> Answer | None:
        if call.path != "/v1/locks":
            return answers.grant(call)
        number = len(answers.calls("POST", "/v1/locks"))
        return (locked(HELD), None, full, answers.grant(call))[number - 1]

    answers.script = script
    done = herdr("lock", "run", "--wait", "600", "src/a.py", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    for said in ("cursor holds it", "no answer from", "1,000 wait already"):
        assert said in done.stderr


def test_a_cycle_is_named_and_nothing_waits(herdr: Cli, answers: LockAnswers) -> None:
    cycle = (409, {"code": "deadlock", "detail": "it would never end", "cycle": ["a", "b", "a"]})
    answers.script = lambda c: cycle if c.path == "/v1/locks" else answers.grant(c)
    done = herdr("lock", "run", "--wait", "600", "--owner", "a", "x", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (75, "")
    assert "a waits for b waits for a" in done.stderr
    assert len(answers.calls("POST", "/v1/locks")) == 1


@pytest.mark.parametrize(
    ("refusal", "code", "said"),
    [
        ((404, {"code": "unknown_workspace", "detail": "no workspace is called 'w'"}), 1, "is called 'w'"),
        ((400, {"code": "bad_path", "detail": "leads out"}), 1, "leads out"),
        ((403, {"code": "missing_scope", "detail": "the token lacks locks"}), 4, "lacks locks"),
        ((201, {"lock": "x"}), 3, "is not a Herdr gateway"),
        ((201, []), 3, "is not a Herdr gateway"),
    ],
)
def test_refusals_run_nothing(
    herdr: Cli, answers: LockAnswers, refusal: Answer, code: int, said: str
) -> None:
    answers.script = lambda c: refusal if c.path == "/v1/locks" else answers.grant(c)
    done = herdr("lock", "run", "--wait", "600", "--workspace", "w", "x", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr and "Traceback" not in done.stderr


WAITS = ("sh", "-c", "echo ready; read line; exit 5")  # until the test has seen what it wants to see


@pytest.mark.parametrize("gone", [GONE, FENCED], ids=["unknown", "fenced"])
def test_a_lost_lease_is_said_at_once_and_at_the_end(herdr: Cli, answers: LockAnswers, gone: Answer) -> None:
    answers.script = lambda c: gone if c.method == "PUT" else answers.grant(c)
    with herdr.start("lock", "run", "--ttl", "1", "src/a.py", "--", *WAITS) as process:
        assert process.stderr is not None and process.stdin is not None
        at_once = process.stderr.readline().decode()
        assert at_once.startswith(
            f"herdr: LOST THE LOCK on src/a.py: {gone[1]['detail']}. The command goes on"
        )
        assert process.poll() is None
        process.stdin.write(b"\n")
        (last,) = process.stderr.read().decode().splitlines()
        assert process.wait(30) == 5
    assert last.startswith("herdr: the lock on src/a.py was lost meanwhile") and gone[1]["detail"] in last
    assert len([c for c in answers.asked if c.method == "PUT"]) == 1
    assert not [c for c in answers.asked if c.method == "DELETE"]


def test_a_lease_that_turns_out_lost_at_the_end_is_said(herdr: Cli, answers: LockAnswers) -> None:
    answers.script = lambda c: GONE if c.method == "DELETE" else answers.grant(c)
    done = herdr("lock", "run", "a", "--", "sh", "-c", "exit 5")
    assert done.returncode == 5
    assert "the lock on a was lost meanwhile" in done.stderr


def test_renewals_go_on_while_the_command_runs(herdr: Cli, answers: LockAnswers) -> None:
    with herdr.start("lock", "run", "--ttl", "1", "a", "--", *WAITS) as process:
        assert process.stdin is not None and process.stderr is not None
        for _ in range(3):
            assert answers.renewals.get(timeout=30) == Call("PUT", f"/v1/locks/{LOCK}", {"token": 17})
        process.stdin.write(b"\n")
        assert (process.stderr.read(), process.wait(30)) == (b"", 5)


def test_a_gateway_that_is_away_for_longer_than_the_lease(herdr: Cli, answers: LockAnswers) -> None:
    away = True

    def script(call: Call) -> Answer | None:
        return None if away and call.method == "PUT" else answers.grant(call)

    answers.script = script
    with herdr.start("lock", "run", "--ttl", "1", "a", "--", *WAITS) as process:
        assert process.stdin is not None and process.stderr is not None
        assert b"the lock on a cannot be renewed now (no answer from" in process.stderr.readline()
        assert b"LOST THE LOCK on a: not renewed in time: no answer from" in process.stderr.readline()
        away = False
        assert b"the lock on a is held again, and nobody else had it meanwhile" in process.stderr.readline()
        process.stdin.write(b"\n")
        assert (process.stderr.read(), process.wait(30)) == (b"", 5)
    assert answers.asked[-1].method == "DELETE"


def test_a_lock_that_cannot_be_given_back_ends_by_itself(herdr: Cli, answers: LockAnswers) -> None:
    answers.script = lambda c: None if c.method == "DELETE" else answers.grant(c)
    done = herdr("lock", "run", "a", "--", "sh", "-c", "exit 5")
    assert done.returncode == 5
    assert "could not be given back (no answer from" in done.stderr
    assert "it ends by itself within 1 min" in done.stderr


def test_two_runs_of_one_user_are_two_owners_unless_they_are_named(herdr: Cli, answers: LockAnswers) -> None:
    for _ in range(2):
        herdr("lock", "run", "a", "--", "true")
    herdr("lock", "run", "a", "--", "true", HERDR_OWNER="ann")
    first, second, third = (body["owner"] for body in answers.calls("POST", "/v1/locks"))
    assert first != second and "@" in first and "@" in second
    assert third == "ann"


def test_gits_own_setting_names_the_owner_and_the_workspace(herdr: Cli, answers: LockAnswers) -> None:
    git = ["git", "-C", str(herdr.cwd)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "config", "herdr.owner", "bob"], check=True)
    subprocess.run([*git, "config", "herdr.workspace", "shop"], check=True)
    (herdr.cwd / "sub").mkdir()
    Cli(answers.url, herdr.cwd / "sub")("lock", "run", "a.py", "../b.py", "git:HEAD", "--", "true")
    body = asked(answers)
    assert (body["owner"], body["workspace"]) == ("bob", "shop")
    assert body["paths"] == ["sub/a.py", "b.py", "git:HEAD"]


def test_paths_are_meant_from_where_we_are(herdr: Cli, answers: LockAnswers) -> None:
    answers.workspaces = [{"name": "shop", "path": str(herdr.cwd / "shop"), "roots": ["/seen/from/outside"]}]
    (herdr.cwd / "shop/src").mkdir(parents=True)
    inside = Cli(answers.url, herdr.cwd / "shop/src")
    paths = ("a.py", "./", "../docs/*.md", f"{herdr.cwd}/shop/", "/seen/from/outside/x", "c:d")
    assert inside("lock", "run", *paths, "--", "true").returncode == 0
    body = asked(answers)
    assert body["workspace"] == "shop"
    assert body["paths"] == ["src/a.py", "src/", "docs/*.md", "./", "x", "src/c:d"]
    outside = inside("lock", "run", "../../a.py", "--", "true")
    assert (outside.returncode, outside.stdout) == (2, "")
    assert "../../a.py lies in no watched workspace" in outside.stderr
