import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli, read_until
from pool_answers import POOL, PoolAnswers, pool_answers

from herdr.cli.pool import describe, frame

TABLE = """\
local  ready, llamacpp, http://127.0.0.1:8080
  2 slots of 32768 tokens, 1 running, saved slots are restored
  slot  state  agent     route          prompt    cached  idle  call
  0     busy   reviewer  primary_agent  01234567  1812    -     01M8
  1     free   -         -              -         0       12s   -
  queue   3 waiting (priority 5: 2, priority 9: 1)
  shares  primary_agent 1 of 1

cloud  paused for 42 s (429: quota), openai, https://api.example.com
  no slots to choose from, 0 running
  queue   nobody waits

names   gpt-* → cloud, * → local
"""


@pytest.fixture
def pool() -> Iterator[PoolAnswers]:
    with pool_answers() as answers:
        yield answers


def changed(**backend: Any) -> dict[str, Any]:
    """The pool with fields of its first backend replaced."""
    return {**POOL, "backends": [{**POOL["backends"][0], **backend}]}


@pytest.mark.parametrize("options", [("--once",), ()], ids=["once", "not at a terminal"])
def test_the_table(pool: PoolAnswers, tmp_path: Path, options: tuple[str, ...]) -> None:
    done = Cli(pool.url, tmp_path)("pool", *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, TABLE, "")


def test_json_is_the_answer_as_it_is(pool: PoolAnswers, tmp_path: Path) -> None:
    done = Cli(pool.url, tmp_path)("pool", "--json")
    assert (done.returncode, json.loads(done.stdout), done.stdout.count("\n")) == (0, POOL, 1)


def test_without_a_model_it_says_how_to_get_one() -> None:
    assert "herdr serve --model" in "".join(describe({"backends": [], "names": {}}))


def test_what_comes_from_outside_cannot_drive_the_terminal() -> None:
    shown = "\n".join(describe(changed(detail="\x1b[2J", name="a\nb")))
    assert "\x1b" not in shown and "a\\nb" in shown


def test_a_slot_that_does_not_restore_says_so() -> None:
    assert "does not restore saved slots" in "\n".join(describe(changed(restores=False)))


def test_at_a_terminal_it_follows_the_pool(pool: PoolAnswers, tmp_path: Path) -> None:
    with Cli(pool.url, tmp_path).terminal("pool", COLUMNS="200", LINES="50") as (process, terminal):
        assert b"reviewer" in read_until(terminal, b"names   gpt-*")
        pool.answers["/v1/pool"] = (200, changed(state="unreachable", detail="connection refused"))
        read_until(terminal, b"local  unreachable (connection refused)")
        os.write(terminal, b"\x03")
        assert process.wait(30) == 130


def test_a_gateway_that_goes_away_is_waited_for(tmp_path: Path) -> None:
    with ExitStack() as live:
        with pool_answers() as pool:
            at = Cli(pool.url, tmp_path).terminal("pool", COLUMNS="200", LINES="50")
            process, terminal = live.enter_context(at)
            read_until(terminal, b"names   gpt-*")
        read_until(terminal, b"nothing listens at")
        os.write(terminal, b"\x03")
        assert process.wait(30) == 130


def test_a_refusal_ends_it(pool: PoolAnswers, tmp_path: Path) -> None:
    pool.answers["/v1/pool"] = (403, {"code": "missing_scope", "detail": "the token lacks models:read"})
    done = Cli(pool.url, tmp_path)("pool")
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "herdr: the token lacks models:read\n")


def test_without_a_gateway_it_says_what_to_do(nowhere: Cli) -> None:
    done = nowhere("pool")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("herdr: nothing listens at http://127.0.0.1:1: start the gateway")


def test_a_frame_fits_the_terminal() -> None:
    drawn = frame(["short", "x" * 30, *("more",) * 9], (20, 6))
    lines = drawn.removeprefix("\x1b[H").removesuffix("\x1b[J").split("\x1b[K\n")
    assert lines == ["short", "x" * 19 + "…", "more", "more", "… 7 lines more", ""]
    assert "lines more" not in frame(["a"] * 5, (20, 6))


def plan(herdr: Cli, *options: str) -> "subprocess.CompletedProcess[str]":
    return herdr("pool", "plan", "--concurrency", "10", "--seconds-per-call", "20", *options)


def test_a_plan_without_slots_takes_those_it_needs(nowhere: Cli) -> None:
    done = plan(nowhere, "--interval", "100")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "load    2 slots busy on average; it needs 3 slots",
        "slots   3, busy 67%: a call waits with a chance of 44%, 8.89 s on average",
        "share   no share of 3 slots is enough for a route that has all of this load to itself",
        "",
        "route          slots  calls a minute  agents",
        "primary_agent  2      6               10",
        "(others)       1      3               5",
    ]


def test_an_impossible_plan_says_what_is_possible(nowhere: Cli) -> None:
    done = plan(nowhere, "--interval", "10", "--slots", "4")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:3] == [
        "load    20 slots busy on average; it needs 21 slots",
        "slots   4: impossible, the queue would grow for ever",
        "        they carry 1 such agent instead of 10, or an interval above 50 s instead of 10 s",
    ]


def test_a_plan_with_shares(nowhere: Cli) -> None:
    shares = ("--share", "a=0.5", "--share", "b=.25")
    lines = plan(nowhere, "--interval", "100", "--slots", "4", *shares).stdout.splitlines()
    assert lines[2] == "share   a route with all of this load needs 0.75 for itself"
    assert [line.split()[:2] for line in lines[5:]] == [["a", "2"], ["b", "1"], ["(others)", "1"]]


def test_a_plan_as_json(nowhere: Cli) -> None:
    found = json.loads(plan(nowhere, "--interval", "10", "--slots", "4", "--json").stdout)
    assert (found["possible"], found["slots_needed"], found["wait_s"]) == (False, 21, None)
    assert found["routes"]["primary_agent"]["part"] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--interval", "0"), "is not a number of seconds above 0"),
        (("--interval", "nan"), "is not a number of seconds above 0"),
        (("--interval", "10", "--slots", "0"), "is not a number from 1"),
        (("--interval", "10", "--share", "a"), "is not ROUTE=SHARE"),
        (("--interval", "10", "--share", "a=1.5"), "is not ROUTE=SHARE"),
        (("--interval", "10", "--share", "a=0.6", "--share", "b=0.6"), "the shares add up to 1.2"),
        (
            (
                "--interval",
                "0.000001",
            ),
            "beyond what can be planned",
        ),
        ((), "required: --interval"),
    ],
)
def test_a_plan_that_is_none(nowhere: Cli, options: tuple[str, ...], said: str) -> None:
    done = plan(nowhere, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
