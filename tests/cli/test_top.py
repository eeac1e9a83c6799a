import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli, read_until
from gateway import GatewayProcess, running_gateway
from pool_answers import POOL, PoolAnswers, pool_answers
from rich.console import Console

from herdr.cli.client import Gateway
from herdr.cli.panels import ROWS_MAX, Look, bars, screen
from herdr.cli.top import Looks
from herdr.errors import HerdrError

NOW_US = 1_767_268_830_000_000  # 2026-01-01 12:00:30
HEALTH = {
    **{"status": "degraded", "reasons": ["local is away"], "version": "9", "uptime_s": 300},
    "connections": {"sse": 2, "websocket": 3},
    "queue_depth": {"P0": 1, "P1": 22, "P2": 333, "total": 356},
    "throughput": {"published_per_s": 1234.5, "delivered_per_s": 6.0},
    "dropped": {"rate_limited": 7, "overloaded": 0, "expired": 0},
}
LOCK = {
    **{"paths": ["src/a.py", "b.py", "c.py"], "owner": "cursor", "purpose": "a new cart"},
    **{
        "since": "2026-01-01T12:00:00.000Z",
        "expires": "2026-01-01T12:01:00.000Z",
        "waiters": ["claude", "ci"],
    },
}
TASK = {"task": "t1", "title": "Add VAT", "role": "coder", "state": "working", "holder": "codex/1"}
CLIENT = {"name": "codex/1", "kinds": ["mcp", "hooks"], "last_seen": "2026-01-01T12:00:25Z", "behind": 4}
READINGS: dict[str, Any] = {
    **{"health": HEALTH, "locks": {"locks": [LOCK], "waiting": [{}]}, "models": POOL},
    **{"tasks": {"tasks": [TASK, {**TASK, "state": "completed"}]}, "clients": {"clients": [CLIENT]}},
}


def drawn(look: Look, width: int = 100, *, paused: bool = False) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(screen(look, "http://here", width, NOW_US, paused=paused))
    return [line.rstrip() for line in captured.get().splitlines()]


def words(lines: list[str], start: str) -> list[str]:
    return next(line for line in lines if line.startswith(start)).split()


def test_everything_at_a_glance() -> None:
    lines = drawn(Look(READINGS, (0.0, 5.0, 10.0), (1.0,)), 120)
    assert lines[:2] == ["degraded: herdr 9 at http://here, up 5 min", "  local is away"]
    assert words(lines, "published") == ["published", "1,234.5/s", "▁▅█"]
    assert words(lines, "delivered") == ["delivered", "6.0/s", "█"]
    assert words(lines, "queue") == ["queue", "P0", "1", "P1", "22", "P2", "333"]
    assert "dropped      7 rate limited" in lines
    assert "connected    2 over SSE, 3 over WebSocket" in lines
    assert "locks  1 held, 1 in line" in lines
    assert " ".join(words(lines, "src/a.py")).startswith("src/a.py, b.py and 1 more cursor 30 s ago in 30 s")
    assert "claude, ci" in "".join(lines) and "a new cart" in "".join(lines)
    assert "models  1 of 2 slots busy, 3 in line" in lines
    assert words(lines, "local  ")[1:] == ["ready", "3", "0", "busy", "reviewer", "primary_agent", "1812"]
    assert "tasks  1 open" in lines
    assert words(lines, "Add VAT") == ["Add", "VAT", "coder", "working", "codex/1", "-", "-"]
    assert words(lines, "codex/1") == ["codex/1", "mcp,", "hooks", "5", "s", "ago", "-", "4", "-"]


@pytest.mark.parametrize("width", [20, 40, 59, 60, 200])
def test_it_fits_any_width(width: int) -> None:
    lines = drawn(Look(READINGS, (1.0,) * 60, (1.0,) * 60), width)
    assert max(map(len, lines)) <= width
    assert any("▁" in line or "█" in line for line in lines) == (width >= 60)
    assert ("  pur" in "".join(lines)) == (width >= 60)


def test_what_comes_from_outside_cannot_drive_the_terminal() -> None:
    evil = "a\x1b[2J\x9b1m\u202eb\n[red]c"
    lock, task = {**LOCK, "owner": evil, "paths": [evil]}, {**TASK, "title": evil}
    readings = {
        **{"health": {**HEALTH, "reasons": [evil], "version": evil}, "locks": {"locks": [lock]}},
        **{"models": {"backends": [{"name": evil, "state": evil}]}, "tasks": {"tasks": [task]}},
        "clients": HerdrError(evil),
    }
    for look in (Look(readings), Look(readings, trouble=evil)):
        shown = "\n".join(drawn(look, 300))
        assert not set(shown) & set("\x1b\x9b\u202e") and "[red]c" in shown


def test_long_lists_are_cut_and_counted() -> None:
    lines = drawn(Look({"locks": {"locks": [LOCK] * (ROWS_MAX + 3)}}))
    assert len([line for line in lines if line.startswith("src/a.py")]) == ROWS_MAX
    assert "… and 3 more" in lines


def test_a_panel_without_an_answer_says_why() -> None:
    refused = HerdrError("the token 'ci' lacks the scope 'locks'", "missing_scope")
    lines = drawn(Look({**READINGS, "locks": refused, "tasks": HerdrError("nothing is there", "not_found")}))
    assert lines[lines.index("locks") + 1] == refused.detail
    assert lines[lines.index("tasks") + 1] == "this gateway does not tell of them"


def test_empty_panels_say_so() -> None:
    lines = drawn(Look({"health": HEALTH}))
    for said in ("nothing is locked", "no model is configured", "no task is open", "nobody was here yet"):
        assert said in lines


def test_a_gateway_that_is_away_leaves_what_was_there() -> None:
    lines = drawn(Look(READINGS, trouble="nothing listens there"), paused=True)
    assert lines[0] == "unreachable: nothing listens there (waiting for it)  paused, p goes on"
    assert "locks  1 held, 1 in line" in lines


def test_bars() -> None:
    assert (bars([]), bars([0, 0]), bars([1, 2, 4])) == ("", "▁▁", "▃▅█")


@pytest.fixture
def answers() -> Iterator[PoolAnswers]:
    with pool_answers() as answers:
        paths = {"health": "/healthz", "locks": "/v1/locks", "tasks": "/v1/tasks", "clients": "/v1/clients"}
        answers.answers.update({path: (200, READINGS[name]) for name, path in paths.items()})
        yield answers


@pytest.mark.parametrize("options", [("--once",), ()], ids=["once", "not at a terminal"])
def test_one_plain_snapshot(answers: PoolAnswers, tmp_path: Path, options: tuple[str, ...]) -> None:
    done = Cli(answers.url, tmp_path)("top", *options, COLUMNS="70")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == f"degraded: herdr 9 at {answers.url}, up 5 min"
    assert "\x1b" not in done.stdout and max(map(len, lines)) <= 70
    assert {"locks  1 held, 1 in line", "tasks  1 open", "clients  1"} <= set(lines)


def test_an_output_that_knows_no_bars(answers: PoolAnswers, tmp_path: Path) -> None:
    done = Cli(answers.url, tmp_path)("top", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "") and "\\u2588" in done.stdout


def test_json(answers: PoolAnswers, tmp_path: Path) -> None:
    answers.answers["/v1/locks"] = (403, {"code": "missing_scope", "detail": "no"})
    told = json.loads(Cli(answers.url, tmp_path)("top", "--json").stdout)
    assert told == {**READINGS, "locks": {"code": "missing_scope", "detail": "no"}}


def test_without_a_gateway_it_says_what_to_do(nowhere: Cli, tmp_path: Path) -> None:
    done = nowhere("top", "--once")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("herdr: nothing listens at http://127.0.0.1:1: start the gateway")
    with pool_answers() as stranger:
        done = Cli(stranger.url, tmp_path)("top")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no such path" in done.stderr


def test_keys(answers: PoolAnswers, tmp_path: Path) -> None:
    with Cli(answers.url, tmp_path).terminal("top", COLUMNS="100", LINES="60") as (process, terminal):
        read_until(terminal, b"degraded")
        os.write(terminal, b"p")
        read_until(terminal, b"paused, p goes on")
        os.write(terminal, b"xp")
        answers.answers["/healthz"] = (200, {**HEALTH, "status": "ok"})
        read_until(terminal, b"ok\x1b[0m: herdr")
        assert b"p goes on" not in read_until(terminal, b"clients")
        os.write(terminal, b"q")
        read_until(terminal, b"\x1b[?1049l")
        assert process.wait(30) == 0


class Ticks:
    """Ends after so many ticks, each of which is over at once."""

    def __init__(self, left: int) -> None:
        self.left = left

    def wait(self, seconds: float) -> bool:
        self.left -= 1
        return self.left < 0


def test_nothing_is_asked_while_it_is_paused(answers: PoolAnswers, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(Gateway(answers.url, None))
    monkeypatch.setattr(looks, "_over", Ticks(3))
    looks.paused.set()
    looks._look()
    assert answers.asked == []
    monkeypatch.setattr(looks, "_over", Ticks(3))
    looks.paused.clear()
    looks._look()
    assert len(looks.newest.published) == 3


def test_ctrl_c_leaves_the_terminal_as_it_was(answers: PoolAnswers, tmp_path: Path) -> None:
    with Cli(answers.url, tmp_path).terminal("top", COLUMNS="100", LINES="60") as (process, terminal):
        read_until(terminal, b"clients")
        os.write(terminal, b"\x03")
        read_until(terminal, b"\x1b[?1049l")
        assert process.wait(30) == 130


def test_a_restart_is_survived(tmp_path: Path) -> None:
    with ExitStack() as live:
        process = live.enter_context(running_gateway(tmp_path / "data"))
        at = Cli(process.url, tmp_path).terminal("top", COLUMNS="100", LINES="60")
        top, terminal = live.enter_context(at)
        read_until(terminal, b"ok")
        process.stop()
        read_until(terminal, b"waiting for it")
        again = GatewayProcess(tmp_path / "data", ("--port", str(process.port))).start()
        live.callback(again.kill)
        read_until(terminal, b"ok")
        os.write(terminal, b"q")
        read_until(terminal, b"\x1b[?1049l")
        assert top.wait(30) == 0


def test_only_top_loads_what_draws() -> None:
    script = "import sys\nfrom herdr.cli.main import main\nmain(['status', '--url', 'http://127.0.0.1:1'])\n"
    script += "print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n"
