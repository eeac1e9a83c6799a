import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest
from command_line import Cli, read_until

PYTHON = sys.executable
TEST_FILE = """\
import pytest

@pytest.mark.parametrize("text", ["a - b", "c[1]"])
def test_param(text):
    print("FAILED not::a_test - said by the test")
    assert text == "no - [x]"

def test_fine():
    pass
"""


def run(
    herdr: Cli, *command: str, stdin: bytes = b"", options: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[bytes]":
    with herdr.start("exec", *options, "--", *command) as process:
        out, err = process.communicate(stdin, 60)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def event_of(herdr: Cli, source: str = "exec") -> dict[str, Any]:
    event: dict[str, Any] = herdr.events(f"after=0&limit=1000&source={source}")[-1]
    return event


def test_output_passes_unchanged_and_the_result_is_published(herdr: Cli) -> None:
    script = r"printf 'out\000\377\n'; printf 'err\377' >&2; cat; exit 7"
    done = run(herdr, "sh", "-c", script, stdin=b"from stdin\xfe")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\0\xff\nfrom stdin\xfe", b"err\xff")
    event = event_of(herdr)
    assert (event["type"], event["source"], event["data"]["exit_code"]) == ("tool.result", "exec", 7)
    assert event["data"]["command"].startswith("sh -c 'printf ")
    assert event["data"]["duration_ms"] >= 0
    for part in ("out\0\ufffd\n", "err\ufffd", "from stdin"):
        assert part in event["data"]["output_tail"]


def test_options_become_fields(shared: Cli) -> None:
    options = ("--source", "ci", "--subject", "a.py", "--workspace", "w", "--session", "s")
    assert run(shared, "true", options=options).returncode == 0
    event = event_of(shared, "ci")
    assert (event["subject"], event["workspace"], event["session"]) == ("a.py", "w", "s")


def test_output_is_live(shared: Cli) -> None:
    with shared.start("exec", "--", "sh", "-c", "echo ready; read line; echo got $line") as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"it\n")
        assert process.stdout.readline() == b"got it\n"


def test_large_output_is_whole_and_the_event_is_bounded(shared: Cli) -> None:
    lines = 200_000
    done = run(shared, "sh", "-c", f"seq {lines}", options=("--source", "large"))
    assert done.stdout == b"".join(b"%d\n" % n for n in range(1, lines + 1))
    tail = event_of(shared, "large")["data"]["output_tail"]
    assert tail.endswith(f"\n{lines}\n") and len(tail.encode()) <= 8192


def test_without_a_gateway_only_one_line_is_added(nowhere: Cli) -> None:
    done = run(nowhere, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, b"out\n")
    ours, theirs = done.stderr.splitlines()[::-1]
    assert theirs == b"err"
    assert ours.startswith(b"herdr: not published: nothing listens at http://127.0.0.1:1")


def test_a_refusal_is_one_line_too(shared: Cli) -> None:
    done = run(shared, "true", options=("--source", "a\tb"))
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1
    assert b"not published: event 0: source: expected" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_passed_on(shared: Cli, number: signal.Signals) -> None:
    # In a session of its own, as under a CI runner: at a terminal Ctrl-C reaches the command without us
    with shared.start(
        "exec", "--source", number.name, "--", "sh", "-c", "echo ready; exec sleep 60", start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert event_of(shared, number.name)["data"]["signal"] == number.name


def test_a_command_may_handle_the_signal(shared: Cli) -> None:
    script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with shared.start("exec", "--", "sh", "-c", script, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == b"bye\n"
        assert process.wait(30) == 5


COUNTER = """\
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print("ready", flush=True)
count = 0
while signal.sigtimedwait([signal.SIGINT], 1.0 if count else 30.0):
    count += 1
    print(f"interrupt {count}", flush=True)
print("the end", flush=True)
"""


def test_ctrl_c_at_a_terminal_reaches_the_command_once(shared: Cli) -> None:
    # Two signals that come at the same moment count as one, so one try would not tell
    tries = 10
    with shared.terminal("exec", "--", PYTHON, "-c", COUNTER) as (process, terminal):
        shown = read_until(terminal, b"ready")
        for number in range(1, tries + 1):
            os.write(terminal, b"\x03")
            shown += read_until(terminal, b"interrupt %d\r\n" % number)
        shown += read_until(terminal, b"the end")
        assert process.wait(30) == 0
    assert shown.count(b"interrupt ") == tries


def test_an_ignored_signal_stays_ignored(shared: Cli) -> None:
    script = f"trap '' HUP; exec {PYTHON} -m herdr exec -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo alive'"
    done = subprocess.run(
        ["sh", "-c", script], cwd=shared.cwd, env=shared.environ(), capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, b"alive\n")


def test_a_process_left_behind_does_not_hold_it(shared: Cli) -> None:
    done = run(shared, "sh", "-c", "sleep 1000 & echo $!")  # longer than a test may take
    os.kill(int(done.stdout), signal.SIGTERM)
    assert done.returncode == 0


def test_a_reader_that_goes_away_ends_the_command(shared: Cli) -> None:
    line = f"{{ {PYTHON} -m herdr exec --source yes -- yes; echo $? >&3; }} 3>&2 | head -c 2"
    done = subprocess.run(
        ["bash", "-c", line], cwd=shared.cwd, env=shared.environ(), capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("y\n", "141\n")
    assert event_of(shared, "yes")["data"]["signal"] == "SIGPIPE"


@pytest.mark.parametrize(
    ("command", "code", "said"), [("./nosuch", 127, "spelling"), ("./text", 126, "executed")]
)
def test_what_cannot_be_run(shared: Cli, command: str, code: int, said: str) -> None:
    (shared.cwd / "text").write_text("no program")
    done = run(shared, command)
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.startswith(f"herdr: cannot run {command}: ".encode())
    assert said in event_of(shared)["data"]["output_tail"]


def test_a_command_is_needed(nowhere: Cli) -> None:
    for args in ((), ("--",)):
        done = nowhere("exec", *args)
        assert (done.returncode, done.stderr) == (2, "herdr: there is no command: herdr exec -- pytest -q\n")
    assert nowhere("exec", "--timeout-publish", "0", "--", "true").returncode == 2


def test_options_of_the_command_are_its_own(shared: Cli) -> None:
    assert run(shared, "echo", "--json", "--", "--url").stdout == b"--json -- --url\n"


def test_a_failing_pytest_is_reported_by_name(herdr: Cli) -> None:
    (herdr.cwd / "test_it.py").write_text(TEST_FILE)
    command = (PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=yes", "test_it.py")
    done = run(herdr, *command)
    assert done.returncode == 1
    assert b"\x1b[31mFAILED" in done.stdout
    event = event_of(herdr)
    assert (event["type"], event["class"], event["data"]["tool"]) == ("test.failed", "environment", "pytest")
    assert event["data"]["failed"] == ["test_it.py::test_param[a - b]", "test_it.py::test_param[c[1]]"]
    assert event["data"]["summary"] == {"failed": 2, "passed": 1}
    assert "\x1b" not in event["data"]["output_tail"]
    passed = run(herdr, *command[:-1], "test_it.py::test_fine")
    assert (passed.returncode, event_of(herdr)["type"]) == (0, "tool.result")


@pytest.mark.parametrize("form", ["full", "concise", "json"])
def test_a_failing_ruff_is_reported_by_finding(herdr: Cli, form: str) -> None:
    (herdr.cwd / "src").mkdir()
    (herdr.cwd / "src/bad.py").write_text("import os\n\nx = undefined\n")
    done = run(
        herdr, PYTHON, "-m", "ruff", "check", "--isolated", "--no-cache", "--output-format", form, "src"
    )
    assert done.returncode == 1
    event = event_of(herdr)
    assert (event["type"], event["data"]["tool"]) == ("lint.error", "ruff")
    wanted = [
        ("src/bad.py", 1, "F401", "`os` imported but unused"),
        ("src/bad.py", 3, "F821", "Undefined name `undefined`"),
    ]
    assert [(f["path"], f["line"], f["code"], f["message"]) for f in event["data"]["findings"]] == wanted


def test_a_gateway_that_hangs_delays_the_end_by_the_timeout(gateway: Any, herdr: Cli) -> None:
    gateway.pause()
    done = run(herdr, "sh", "-c", "exit 4", options=("--timeout-publish", "0.2"))
    gateway.resume()
    assert done.returncode == 4
    assert re.fullmatch(
        rb"herdr: not published: the gateway at \S+ does not answer within 0.2 s: .*\n", done.stderr
    )
