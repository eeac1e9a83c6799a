"""`herdr config`, and what the command line promises for every group, with real processes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from herdr import __version__
from herdr.cli import main as frame
from herdr.config import load
from herdr.errors import HerdrError

BROKEN = "server: {prot: 1}\nbus: {durability: ful}\n"
GOOD = """\
server: {port: 9001}
routes:
  - {event: "test.*", target: "yes", match: {data.level: [error, 3], source: "ci/**"}}
auth:
  tokens:
    - {name: ci, token: hunter2, scopes: ["events:publish"]}
    - {name: dev, token_env: DEV_TOKEN}
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def herdr(tmp_path: Path) -> Run:
    (tmp_path / "broken.yaml").write_text(BROKEN)
    (tmp_path / "good.yaml").write_text(GOOD)

    def run(*args: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        clean = {name: text for name, text in os.environ.items() if not name.startswith("HERDR_")}
        return subprocess.run(
            [sys.executable, "-m", "herdr", *args],
            cwd=tmp_path,
            env={**clean, "DEV_TOKEN": "hidden", **environ},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def test_check_says_ok_and_what_is_set(herdr: Run) -> None:
    done = herdr("config", "check", "good.yaml", HERDR_GATEWAY_BUS__P2_PER_S="5")
    assert done.returncode == 0
    assert done.stdout == "ok: good.yaml (12 values set, 1 by the environment, 1 route, 2 tokens)\n"


def test_check_of_one_value_and_two_rules(herdr: Run, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("server: {port: 1}\n")
    assert herdr("config", "check", "one.yaml").stdout == "ok: one.yaml (1 value set)\n"
    (tmp_path / "two.yaml").write_text("routes: [{event: a, target: b}, {event: c, target: d}]\n")
    assert herdr("config", "check", "two.yaml").stdout == "ok: two.yaml (4 values set, 2 routes)\n"


def test_check_warns_of_short_tokens_and_never_shows_them(herdr: Run) -> None:
    done = herdr("config", "check", "good.yaml")
    assert [line.partition(" characters")[0] for line in done.stderr.splitlines()] == [
        "herdr: warning: auth.tokens: the token of 'ci' has 7",
        "herdr: warning: auth.tokens: the token of 'dev' has 6",
    ]
    assert "hunter2" not in done.stderr
    (warning,) = json.loads(herdr("config", "check", "--json", "good.yaml", DEV_TOKEN="x" * 16).stdout)[
        "warnings"
    ]
    assert "'ci'" in warning


def test_check_without_a_file_looks_at_the_environment(herdr: Run) -> None:
    assert herdr("config", "check").stdout == "ok: no file (0 values set)\n"
    assert herdr("config", "check", HERDR_GATEWAY_CONFIG="broken.yaml").returncode == 1
    assert herdr("config", "check", "--config", "broken.yaml").returncode == 1


def test_check_lists_every_problem(herdr: Run) -> None:
    done = herdr("config", "check", "broken.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "herdr: the configuration cannot be used, 2 problems:",
        "  broken.yaml:1:10: server.prot: unknown key; did you mean port?",
        "  broken.yaml:2:19: bus.durability: got the text 'ful', expected one of full, os; "
        "did you mean full?",
    ]


def test_check_as_json(herdr: Run) -> None:
    done = herdr("config", "check", "--json", "broken.yaml")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["ok"] is False
    assert found["problems"][0] == {
        "origin": "broken.yaml:1:10",
        "path": "server.prot",
        "message": "unknown key; did you mean port?",
    }
    assert json.loads(herdr("config", "check", "--json").stdout) == {
        "ok": True,
        "problems": [],
        "warnings": [],
    }


def test_show_is_yaml_that_loads_to_the_same(herdr: Run, tmp_path: Path) -> None:
    done = herdr("config", "show", "--origin", "good.yaml", HERDR_GATEWAY_BUS__P2_PER_S="5")
    shown = tmp_path / "shown.yaml"
    shown.write_text(done.stdout.replace('"********"', "hunter2"))
    environ = {"DEV_TOKEN": "hidden"}
    original = load(tmp_path / "good.yaml", {**environ, "HERDR_GATEWAY_BUS__P2_PER_S": "5"})
    assert load(shown, environ).config == original.config
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert yaml.safe_load(done.stdout)["routes"][0]["target"] == "yes"  # in quotes, for YAML 1.1 too
    assert "port: 9001  # good.yaml:1:16" in lines
    assert "p2_per_s: 5  # HERDR_GATEWAY_BUS__P2_PER_S" in lines
    assert "max_age_s: 604800  # default" in lines


def test_show_masks_secrets_everywhere(herdr: Run) -> None:
    for args in ((), ("--origin",), ("--json",), ("--json", "--origin")):
        done = herdr("config", "show", *args, "good.yaml")
        assert done.returncode == 0
        assert "hunter2" not in done.stdout
        assert "hidden" not in done.stdout
        assert "DEV_TOKEN" in done.stdout


def test_show_as_json(herdr: Run) -> None:
    config = json.loads(herdr("config", "show", "--json", "good.yaml").stdout)
    assert config["server"]["port"] == 9001
    assert yaml.safe_load(herdr("config", "show", "good.yaml").stdout)["server"] == config["server"]
    with_origins = json.loads(herdr("config", "show", "--json", "--origin", "good.yaml").stdout)
    assert with_origins["config"] == config
    assert with_origins["origins"]["server.port"] == "good.yaml:1:16"


def test_schema_is_json(herdr: Run) -> None:
    schema = json.loads(herdr("config", "schema").stdout)
    assert schema["$defs"]["ServerSection"]["properties"]["port"]["maximum"] == 65535


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("help", "confg"), "unknown command 'confg'; did you mean config?"),
        (("confg",), "unknown command 'confg'; did you mean config?"),
        (("config", "chek"), "unknown part 'chek'; did you mean check?"),
        (("config", "show", "--orign"), "unknown option --orign; did you mean --origin?"),
        (("config", "show", "--orig"), "unknown option --orig; did you mean --origin?"),
        (("config", "show", "--zzz"), "unknown option --zzz\n"),
        (("config", "show", "a", "b"), "unknown argument b"),
        (("--versoin",), "COMMAND"),
    ],
)
def test_a_wrong_command_line_exits_with_2(herdr: Run, args: tuple[str, ...], message: str) -> None:
    done = herdr(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.rstrip().endswith("--help`.")


def test_version_and_help(herdr: Run) -> None:
    assert herdr("--version").stdout == f"herdr {__version__}\n"
    shown = herdr("--help").stdout
    assert "check, show or describe the configuration" in shown
    assert herdr("help").stdout == shown
    assert herdr("help", "publish").stdout == herdr("publish", "--help").stdout != shown
    bare = herdr()
    assert (bare.returncode, bare.stdout, bare.stderr) == (2, "", shown)


def test_an_option_and_what_it_means_stand_on_one_line(herdr: Run) -> None:
    assert "    workspace    watch folders" in herdr("help").stdout.splitlines()
    lines = herdr("help", "serve").stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("  --log-format {text,json} "))
    assert line.endswith("else json")


def test_a_reader_that_goes_away_is_no_error(herdr: Run) -> None:
    done = herdr_in_shell("config schema", "head -c 1")
    assert done == ("{", "")


def herdr_in_shell(command: str, reader: str) -> tuple[str, str]:
    line = f"{{ {sys.executable} -m herdr {command}; echo $? >&3; }} 3>&2 | {reader}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    status = done.stderr.strip()
    assert status in ("0", "141"), done.stderr  # 0: all of it fitted into the pipe
    return done.stdout, done.stderr.replace(status, "").strip()


@pytest.mark.parametrize("args", [("config", "schema"), ("config", "check", "--json"), ("--version",)])
def test_a_closed_pipe_exits_with_141(args: tuple[str, ...]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "herdr", *args],
        stdout=write_end,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(write_end)
    assert done.stderr == b""
    # argparse itself swallows the error of an unbuffered stdout
    assert done.returncode == 141 or (args == ("--version",) and done.returncode == 0)


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (HerdrError("the gateway does not answer", "unreachable"), 3, "herdr: the gateway does not answer\n"),
        (HerdrError("no token", "unauthorized"), 4, "herdr: no token\n"),
        (HerdrError("no scope", "forbidden"), 4, "herdr: no scope\n"),
        (HerdrError("anything else"), 1, "herdr: anything else\n"),
        (FileNotFoundError(2, "No such file or directory", "x"), 1, "herdr: x: No such file or directory\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_are_one_message_and_a_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    code: int,
    said: str,
) -> None:
    def run(args: object) -> int:
        raise raised

    monkeypatch.setattr("herdr.cli.config.run", run)
    assert frame.main(["config", "check"]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", said)


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_only_on_a_terminal_and_without_no_color(herdr: Run, no_color: str, coloured: bool) -> None:
    terminal, other_end = os.openpty()
    subprocess.run(
        [sys.executable, "-m", "herdr", "confg"],
        stderr=other_end,
        env={**os.environ, "NO_COLOR": no_color},
        timeout=60,
    )
    said = os.read(terminal, 4096)
    os.close(terminal)
    os.close(other_end)
    assert said.startswith(b"\x1b[31mherdr:") is coloured
    assert "\x1b" not in herdr("confg").stderr
