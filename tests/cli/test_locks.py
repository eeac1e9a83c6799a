import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from lock_answers import LOCK, Answer, Call, LockAnswers, lock_answers

from herdr.cli.locks import describe

NOON_US = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z
HELD: dict[str, Any] = {
    "lock": LOCK,
    "paths": ["src/cart.py", "src/shop.py", "docs/", "a", "b"],
    "mode": "write",
    "owner": "cursor",
    "workspace": "shop",
    "purpose": "a new cart",
    "session": None,
    "token": 17,
    "since": "2026-01-01T11:57:30.000Z",
    "expires": "2026-01-01T12:00:42.000Z",
    "ttl_s": 60.0,
    "waiters": ["ann", "bob"],
}
ALL: dict[str, Any] = {
    "locks": [
        HELD,
        {**HELD, "lock": "L2", "paths": ["x\x1b"], "workspace": "default", "waiters": [], "purpose": None},
    ],
    "waiting": [
        {
            "owner": "ann",
            "paths": ["src/cart.py"],
            "mode": "intent",
            "workspace": "shop",
            "since": "2026-01-01T11:59:59.000Z",
            "purpose": None,
            "blockers": ["cursor"],
        }
    ],
    "waits": [{"wait": "W1", "owner": "cursor", "on": "ann", "purpose": "the review"}],
}
TABLES = """\
paths                                              owner   mode   since            expires  waiting   purpose     lock
src/cart.py, src/shop.py, docs/ and 2 more (shop)  cursor  write  2 min 30 s ago   in 42 s  ann, bob  a new cart  LOCK
x\\u001b                                            cursor  write  2 min 30 s ago   in 42 s  -         -           L2

in line
paths               owner  mode    since    waits for  purpose
src/cart.py (shop)  ann    intent  1 s ago  cursor     -

waiting for results
owner   waits for  purpose
cursor  ann        the review
"""


@pytest.fixture
def answers() -> Iterator[LockAnswers]:
    with lock_answers() as running:
        running.script = lambda call: (200, ALL) if call.path.startswith("/v1/locks") else running.grant(call)
        yield running


@pytest.fixture
def herdr(answers: LockAnswers, tmp_path: Path) -> Cli:
    return Cli(answers.url, tmp_path)


def test_who_holds_what_and_who_waits_for_whom() -> None:
    shown = [line.replace(LOCK, "LOCK").split() for line in describe(ALL, NOON_US)]
    assert shown == [line.split() for line in TABLES.splitlines()]


def test_nothing_is_held(herdr: Cli, answers: LockAnswers) -> None:
    answers.script = lambda call: (200, {"locks": [], "waiting": [], "waits": []})
    done = herdr("locks")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no locks are held\n", "")


def test_json_is_the_answer_as_it_is(herdr: Cli) -> None:
    done = herdr("locks", "--json")
    assert (done.returncode, json.loads(done.stdout), done.stdout.count("\n")) == (0, ALL, 1)


def test_filters(herdr: Cli, answers: LockAnswers) -> None:
    answers.workspaces = [{"name": "a b", "path": str(herdr.cwd), "roots": []}]
    assert herdr("locks", "--workspace", "w&x").returncode == 0
    (herdr.cwd / "sub").mkdir()
    assert Cli(answers.url, herdr.cwd / "sub")("locks", "--path", "c d.py").returncode == 0
    asked = [call.path for call in answers.asked if call.path.startswith("/v1/locks")]
    assert asked == ["/v1/locks?workspace=w%26x", "/v1/locks?workspace=a+b&path=sub%2Fc+d.py"]


@pytest.mark.parametrize("early", [True, False])
def test_a_lock_is_released_by_force_with_a_reason(answers: LockAnswers, tmp_path: Path, early: bool) -> None:
    def script(call: Call) -> Answer | None:
        return (200, HELD) if call.method == "GET" else (204, None)

    answers.script = script
    herdr = Cli("http://127.0.0.1:1", tmp_path)
    release = ("release", LOCK, "--reason", "it has crashed")
    there = ("--url", answers.url)
    done = herdr("locks", *there, *release) if early else herdr("locks", *release, *there)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"released {LOCK} of cursor: src/cart.py, src/shop.py, docs/, a, b\n"
    assert answers.asked[-1][:2] == ("DELETE", f"/v1/locks/{LOCK}?force=true&reason=it+has+crashed")


def test_a_release_needs_a_lock_and_a_reason(herdr: Cli, answers: LockAnswers) -> None:
    assert herdr("locks", "release", LOCK).returncode == 2
    answers.script = lambda call: (404, {"code": "unknown_lock", "detail": "no such lock is held"})
    done = herdr("locks", "release", "../x", "--reason", "r", "--json")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "herdr: no such lock is held\n")
    assert [call.path for call in answers.asked] == ["/v1/locks/..%2Fx"]


def test_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("locks").returncode == 3
    assert nowhere("locks", "release", LOCK, "--reason", "r").returncode == 3
