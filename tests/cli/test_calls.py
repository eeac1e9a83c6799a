import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from pool_answers import PoolAnswers, pool_answers

CALL: dict[str, Any] = {
    "call": "01M8",
    "time": "2026-11-30T12:00:01.500Z",
    "agent": "reviewer",
    "session": "s",
    "route": "main",
    "priority": 2,
    "backend": "local",
    "model": "smollm2",
    "slot": 0,
    "queue_ms": 12,
    "first_token_ms": 160.4,
    "total_ms": 2345,
    "prompt_tokens": 1516,
    "cached_tokens": 1508,
    "output_tokens": 64,
    "stop_reason": "end_turn",
    "changed": "tools",
    "error": None,
}
TABLE = """\
time            agent     route  prio  backend  slot  queue  first  total  prompt  cached  output  end       changed
11-30 12:00:01  reviewer  main   2     local    0     0.01s  0.16s  2.35s  1516    1508    64      end_turn  tools
11-30 12:00:01  -         main   2     local    -     0.01s  -      2.35s  -       -       -       timeout   -
"""


@pytest.fixture
def gone() -> dict[str, Any]:
    """A call that failed before it had a slot."""
    nothing = (
        "agent",
        "slot",
        "first_token_ms",
        "prompt_tokens",
        "cached_tokens",
        "output_tokens",
        "changed",
    )
    return {**CALL, **dict.fromkeys(nothing), "stop_reason": None, "error": "timeout"}


@pytest.fixture
def pool(gone: dict[str, Any]) -> Iterator[PoolAnswers]:
    with pool_answers() as answers:
        answers.answers["/v1/calls"] = (200, {"calls": [CALL, gone]})
        yield answers


def test_the_table(pool: PoolAnswers, tmp_path: Path) -> None:
    done = Cli(pool.url, tmp_path)("calls")
    assert (done.returncode, done.stdout, done.stderr) == (0, TABLE, "")
    assert pool.asked == ["/v1/calls?limit=20"]


def test_options_are_the_query(pool: PoolAnswers, tmp_path: Path) -> None:
    done = Cli(pool.url, tmp_path)("calls", "--agent", "a&b", "--route", "background", "--limit", "3")
    assert done.returncode == 0
    assert pool.asked == ["/v1/calls?limit=3&agent=a%26b&route=background"]


def test_json_is_one_call_a_line(pool: PoolAnswers, tmp_path: Path, gone: dict[str, Any]) -> None:
    done = Cli(pool.url, tmp_path)("calls", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [CALL, gone]


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "no model call is recorded yet"), (("--agent", "x"), "no model call is recorded for these")],
)
def test_no_calls(pool: PoolAnswers, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    pool.answers["/v1/calls"] = (200, {"calls": []})
    done = Cli(pool.url, tmp_path)("calls", *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"herdr: {said}\n")


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1", "²"])
def test_a_limit_that_is_none(nowhere: Cli, limit: str) -> None:
    done = nowhere("calls", f"--limit={limit}")
    assert done.returncode == 2 and "is not a number from 1 to 1000" in done.stderr


def test_without_a_gateway(nowhere: Cli) -> None:
    assert nowhere("calls").returncode == 3
