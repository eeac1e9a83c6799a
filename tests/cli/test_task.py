"""`herdr task`, with a real gateway in between."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from gateway import GatewayProcess

from herdr.cli.task import VERBS
from herdr.cli.task_texts import describe, listed

NOON_US = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z
AT = "2026-01-01T11:59:18.000Z"
VIEW: dict[str, Any] = {
    "task": "T1",
    "title": "Sum the cart once\x1b",
    "description": "first line\nsecond line",
    "role": "coder",
    "state": "input_required",
    "holder": "bob",
    "token": 7,
    "workspace": "shop",
    "session": "S",
    "created_by": "ann",
    "created": AT,
    "updated": AT,
    "expires": "2026-01-01T12:02:00.000Z",
    "question": "which?",
    "asked": "ann",
    "steps": [
        {
            **{"type": "handoff.created", "by": "ann", "time": AT, "role": "coder"},
            "note": {"summary": "so\nfar", "files": ["a.py"], "open_questions": ["why?"]},
        },
        {
            "type": "handoff.asked",
            "by": "bob",
            "time": AT,
            "role": "coder",
            "to": "ann",
            "question": "which?",
        },
    ],
}
TEXT = """\
Sum the cart once\x1b
  T1: input required by bob
  its lease ends in 2 min unless it is renewed
  ann is asked: which?
  created by ann, workspace shop, session S
  first line
  second line

42 s ago: created for coder by ann
  so
  far
  file: a.py
  open question: why?
42 s ago: asked of ann by bob
  which?
"""


def test_a_task_in_words() -> None:
    assert "\n".join(describe(VIEW, NOON_US)) + "\n" == TEXT
    assert listed(VIEW, NOON_US) == ["T1", "input_required", "coder", "bob", "42 s ago", VIEW["title"]]


def told(done: "subprocess.CompletedProcess[str]", code: int = 0) -> Any:
    assert done.returncode == code, done
    return json.loads(done.stdout)


def create(herdr: Cli, task: str, role: str, *more: str) -> None:
    made = herdr("task", "create", f"Title of {task}", "--role", role, "--id", task, "--owner", "ann", *more)
    assert (made.returncode, made.stdout) == (0, f"{task}\n"), made


def test_from_hand_to_hand(shared: Cli) -> None:
    create(
        shared,
        "A1",
        "a-coder",
        "--summary",
        "begin",
        "--file",
        "a.py",
        "--file",
        "b.py",
        "--description",
        "-",
    )
    claimed = shared("task", "claim", "--role", "a-coder", "--owner", "bob", "--ttl", "600")
    assert claimed.returncode == 0 and "Title of A1: held until" in claimed.stderr
    task, token = (pair.partition("=")[2] for pair in claimed.stdout.split())
    assert claimed.stdout == f"HERDR_TASK=A1 HERDR_TASK_TOKEN={token}\n" and task == "A1"
    asked = shared("task", "ask", "A1", "--task-token", token, "which?", "--to", "ann")
    assert asked.stdout == "A1: input required by bob\n"
    shown = shared("task", "show", "A1").stdout
    assert "ann is asked: which?" in shown and "  file: b.py\n" in shown
    answered = shared("task", "answer", "A1", "-", "--owner", "ann", "--json", stdin="that\none\n")
    assert told(answered)["steps"][-1]["answer"] == "that\none"
    assert told(shared("task", "renew", "A1", "--json", HERDR_TASK_TOKEN=token))["holder"] == "bob"
    over = shared("task", "hand-over", "A1", "--role", "a-tester", "--decision", "x", HERDR_TASK_TOKEN=token)
    assert over.stdout == "A1: submitted for a-tester\n"
    taken = told(shared("task", "claim", "A1", "--owner", "eve", "--json"))
    assert taken["steps"][-2]["note"] == {"decisions": ["x"]} and taken["holder"] == "eve"
    done = shared("task", "finish", "A1", "--task-token", str(taken["token"]), "--artifact", "log")
    assert done.stdout == "A1: completed\n"
    rows = shared("task", "list", "--role", "a-tester").stdout.splitlines()
    assert rows[0].split() == ["task", "state", "role", "holder", "changed", "title"]
    assert rows[1].split()[:4] == ["A1", "completed", "a-tester", "-"] and len(rows) == 2
    found = told(shared("task", "list", "--state", "completed", "--state", "failed", "--json"))
    assert [task["task"] for task in found["tasks"]] == ["A1"]
    assert shared("task", "list", "--role", "nobody").stdout == "no tasks\n"


@pytest.mark.parametrize(
    ("verb", "state"), [("fail", "failed"), ("reject", "rejected"), ("release", "submitted")]
)
def test_reasons(shared: Cli, verb: str, state: str) -> None:
    create(shared, f"R-{verb}", verb)
    token = told(shared("task", "claim", "--role", verb, "--json"))["token"]
    args = ("task", verb, f"R-{verb}", "--reason", "broken", "--json")
    view = told(shared(*args, HERDR_TASK_TOKEN=str(token)))
    assert view["state"] == state and view["steps"][-1]["reason"] == "broken"


def test_who_we_are(shared: Cli) -> None:
    view = told(shared("task", "create", "t", "--role", "who", "--json"))
    assert "@" in view["created_by"] and ":" not in view["created_by"]
    assert told(shared("task", "cancel", view["task"], "--reason", "no", "--json"))["state"] == "canceled"
    assert (
        told(shared("task", "create", "t", "--role", "x", "--json", HERDR_OWNER="me"))["created_by"] == "me"
    )


def test_refusals(shared: Cli) -> None:
    create(shared, "N1", "n-coder")
    assert shared("task", "claim", "N1", "--owner", "bob").returncode == 0
    held = shared("task", "claim", "N1", "--owner", "eve")
    assert held.returncode == 75 and "bob holds it since" in held.stderr
    nothing = shared("task", "claim", "--role", "nobody", "--wait", "0")
    assert nothing.returncode == 75 and "no task for nobody" in nothing.stderr and nothing.stdout == ""
    wrong = shared("task", "finish", "N1", "--task-token", "1")
    assert wrong.returncode == 1 and "stop working on it" in wrong.stderr
    assert "there is no task 'nope'" in shared("task", "show", "nope").stderr


@pytest.mark.parametrize(
    "args",
    [
        ["claim"],
        ["claim", "T1", "--role", "coder"],
        ["finish", "T1"],
        ["finish", "T1", "--task-token", "x"],
        ["claim", "--role", "r", "--wait", "601"],
        ["list", "--state", "done"],
        ["create", "no role"],
        ["work", "--role", "coder"],
    ],
)
def test_wrong_command_lines(nowhere: Cli, args: list[str]) -> None:
    done = nowhere("task", *args)
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stdout == ""


@pytest.mark.parametrize("part", [*VERBS, "show"])
def test_no_gateway(nowhere: Cli, part: str) -> None:
    more = {"ask": ["q"], "answer": ["a"], "hand-over": ["--role", "r"]}.get(part, [])
    done = nowhere("task", part, "T1", *more, HERDR_TASK_TOKEN="1")
    assert done.returncode == 3 and "herdr serve" in done.stderr


# --- work --------------------------------------------------------------------------------------------

SEEN = "import json, os, sys; print(os.environ['HERDR_TASK_TITLE'], json.load(sys.stdin)['steps'][0]['note'])"


def work(herdr: Cli, role: str, *command: str, ttl: str = "120") -> "subprocess.CompletedProcess[str]":
    args = ("--role", role, "--owner", "bob", "--once", "--ttl", ttl)
    return herdr("task", "work", *args, "--", *command)


def state(herdr: Cli, task: str) -> tuple[str, list[str]]:
    """The task's state, and what happened to it."""
    view = told(herdr("task", "show", task, "--json"))
    return view["state"], [step["type"].removeprefix("handoff.") for step in view["steps"]]


def test_work_finishes_what_went_well(shared: Cli) -> None:
    create(shared, "W1", "w1", "--summary", "so far")
    done = work(shared, "w1", sys.executable, "-c", SEEN)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Title of W1 {'summary': 'so far'}\nW1: exit code 0\n"
    assert state(shared, "W1") == ("completed", ["created", "claimed", "finished"])


def test_work_gives_back_what_failed(shared: Cli) -> None:
    create(shared, "W2", "w2")
    assert work(shared, "w2", "sh", "-c", "exit 7").returncode == 7
    view = told(shared("task", "show", "W2", "--json"))
    assert (view["state"], view["steps"][-1]["reason"]) == ("submitted", "exit code 7")


def test_work_leaves_alone_what_the_command_has_handed_over(shared: Cli) -> None:
    create(shared, "W3", "w3")
    over = f'exec {sys.executable} -m herdr task hand-over "$HERDR_TASK" --role w3-next --summary ok'
    done = work(shared, "w3", "sh", "-c", over)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert state(shared, "W3") == ("submitted", ["created", "claimed", "handed_over"])


def test_work_says_when_the_task_was_lost(shared: Cli) -> None:
    create(shared, "W4", "w4")
    cancel = f'exec {sys.executable} -m herdr task cancel "$HERDR_TASK" --owner ann'
    done = work(shared, "w4", "sh", "-c", cancel)
    assert done.returncode == 0 and "task W4: exit code 0, and it was canceled by ann" in done.stderr
    assert done.stdout == "W4: canceled\n"


def test_work_renews_while_the_command_runs(shared: Cli) -> None:
    """The command ends only once it has seen two renewals of its own task."""
    create(shared, "W5", "w5")
    follow = "import sys, urllib.request as r, os, json\n" + (
        "for line in r.urlopen(r.Request(os.environ['HERDR_GATEWAY_URL'] + '/v1/events?type=handoff.*&after=0',"
        " headers={'accept': 'text/event-stream'}), timeout=30):\n"
        "    if line.startswith(b'data:') and b'handoff.renewed' in line and b'\"W5\"' in line:\n"
        "        seen = globals().get('seen', 0) + 1\n"
        "        if seen == 2: sys.exit(0)\n"
    )
    assert work(shared, "w5", sys.executable, "-c", follow, ttl="3").returncode == 0
    assert state(shared, "W5") == ("completed", ["created", "claimed", "finished"])


def test_work_goes_on_with_the_next_task_until_it_is_told_to_stop(
    shared: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # what it says has to come at once all the same
    create(shared, "W6", "w6")
    command = ("sh", "-c", 'echo "got $HERDR_TASK"; test "$HERDR_TASK" = W6 || sleep 60')
    with shared.start("task", "work", "--role", "w6", "--owner", "bob", "--", *command) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"got W6\n" and process.stdout.readline() == b"W6: exit code 0\n"
        create(shared, "W7", "w6")
        assert process.stdout.readline() == b"got W7\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    assert state(shared, "W7") == ("submitted", ["created", "claimed", "released"])


def test_work_without_a_command_that_can_be_run(shared: Cli) -> None:
    create(shared, "W8", "w8")
    done = shared("task", "work", "--role", "w8", "--", "no-such-command")
    assert done.returncode == 127 and "cannot run no-such-command" in done.stderr
    assert state(shared, "W8")[0] == "submitted"


def test_work_without_a_gateway(nowhere: Cli) -> None:
    done = nowhere("task", "work", "--role", "r", "--", "true")
    assert done.returncode == 3 and "herdr serve" in done.stderr


def test_work_survives_a_restart_of_the_gateway(gateway: GatewayProcess, tmp_path: Path) -> None:
    herdr = Cli(gateway.url, tmp_path)
    create(herdr, "W9", "w9")
    args = ("task", "work", "--role", "w9", "--", "echo", "ran")
    with herdr.start(*args) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"ran\n" and process.stdout.readline() == b"W9: exit code 0\n"
        gateway.args = (*gateway.args, "--port", str(gateway.port))
        gateway.stop()
        assert process.stderr.readline().startswith(b"herdr: waiting for the gateway: ")
        gateway.start()
        create(herdr, "W10", "w9")
        assert process.stdout.readline() == b"ran\n"
        process.kill()
