import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli, read_terminal
from pool_answers import POOL, PoolAnswers, pool_answers

from herdr.cli.run import Wanted, context_of, environment, merged_headers, shell_lines

PYTHON = sys.executable
URL = "http://127.0.0.1:8787"
WANTED = Wanted(URL, "", {"X-Agent-Id": "reviewer"}, None)
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.fixture
def pool() -> Iterator[PoolAnswers]:
    with pool_answers() as answers:
        yield answers


@pytest.fixture
def herdr(pool: PoolAnswers, tmp_path: Path) -> Cli:
    return Cli(pool.url, tmp_path)


def child(herdr: Cli, *options: str, **environ: str) -> dict[str, str]:
    """The environment of a program that `herdr run` starts."""
    done = herdr("run", *options, "--", PYTHON, "-c", SHOW, **environ)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_a_client_of_either_kind_finds_the_gateway(herdr: Cli) -> None:
    options = ("--agent", "reviewer", "--priority", "2", "--route", "background", "--session", "s 1")
    found = child(herdr, *options)
    headers = "X-Agent-Id: reviewer\nX-Priority: 2\nX-Herdr-Route: background\nX-Herdr-Session: s 1"
    wanted = {
        "HERDR_GATEWAY_URL": herdr.url,
        "HERDR_GATEWAY_TOKEN": "local",
        "ANTHROPIC_BASE_URL": herdr.url,
        "ANTHROPIC_AUTH_TOKEN": "local",
        "ANTHROPIC_CUSTOM_HEADERS": headers,
        "OPENAI_BASE_URL": f"{herdr.url}/v1",
        "OPENAI_API_KEY": "local",
        "OPENAI_CUSTOM_HEADERS": headers,
        "OPENAI_MODEL": "local",
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        "CLAUDE_CODE_GATEWAY_HINT_HEADERS": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
        "API_TIMEOUT_MS": "3600000",
        "CLAUDE_STREAM_IDLE_TIMEOUT_MS": "1800000",
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "32768",
        "QWEN_CODE_API_TIMEOUT_MS": "0",
        "HERDR_AGENT": "reviewer",
        "HERDR_PRIORITY": "2",
        "HERDR_ROUTE": "background",
        "HERDR_SESSION": "s 1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192",
    }
    assert {name: found.get(name) for name in wanted} == wanted
    assert "ANTHROPIC_MODEL" not in found
    assert "CLAUDE_CODE_AUTO_COMPACT_WINDOW" not in found  # it takes less than 100,000 for 100,000


@pytest.mark.parametrize(("context", "compacts"), [(99_999, False), (100_000, True)])
def test_claude_code_is_told_to_compact_where_it_listens(context: int, compacts: bool) -> None:
    wanted = Wanted("http://127.0.0.1:1", "", {}, None)
    changes = environment(wanted, context, {})
    assert changes["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == str(context)
    assert ("CLAUDE_CODE_AUTO_COMPACT_WINDOW" in changes) is compacts


def test_the_token_goes_along(herdr: Cli, pool: PoolAnswers) -> None:
    found = child(herdr, "--agent", "a", HERDR_GATEWAY_TOKEN=" hrd_secret ")
    assert pool.tokens == ["Bearer hrd_secret"]
    names = ("HERDR_GATEWAY_TOKEN", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")
    assert [found[name] for name in names] == ["hrd_secret"] * 3


def test_a_named_model_is_asked_for_everywhere(herdr: Cli) -> None:
    found = child(herdr, "--model", "gpt-5", ANTHROPIC_MODEL="mine", OPENAI_MODEL="mine")
    names = ("ANTHROPIC_MODEL", "OPENAI_MODEL", *(f"ANTHROPIC_DEFAULT_{n}_MODEL" for n in ("OPUS", "SONNET")))
    assert [found[name] for name in (*names, "ANTHROPIC_DEFAULT_HAIKU_MODEL")] == ["gpt-5"] * 5
    assert "CLAUDE_CODE_MAX_CONTEXT_TOKENS" not in found  # that backend does not say how much it holds


def test_settings_of_the_user_win() -> None:
    mine = {"API_TIMEOUT_MS": "5", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "9", "OPENAI_MODEL": "q"}
    changes = environment(WANTED, 8192, mine)
    assert not mine.keys() & changes.keys()
    assert changes["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "2048"


def test_no_cloud_key_reaches_the_gateway() -> None:
    cloud = {
        "ANTHROPIC_API_KEY": "sk-a",
        "ANTHROPIC_AUTH_TOKEN": "sk-b",
        "OPENAI_API_KEY": "sk-c",
        "OPENAI_BASE_URL": "https://api.example.com",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "ANTHROPIC_CUSTOM_HEADERS": "Authorization: Bearer sk-d\nX-Mine: 1",
    }
    left = {**cloud, **environment(WANTED, None, cloud)}
    assert "sk-" not in repr(left)
    assert left["ANTHROPIC_API_KEY"] is None and left["CLAUDE_CODE_USE_BEDROCK"] is None
    assert left["OPENAI_BASE_URL"] == f"{URL}/v1"
    assert left["ANTHROPIC_CUSTOM_HEADERS"] == "X-Mine: 1\nX-Agent-Id: reviewer"


@pytest.mark.parametrize(
    ("present", "merged"),
    [
        ("", "X-Agent-Id: me"),
        ("X-A: 1\r\n\r\n  X-B: 2", "X-A: 1\nX-B: 2\nX-Agent-Id: me"),
        ("x-agent-id : other\nX-A: 1", "X-A: 1\nX-Agent-Id: me"),
        ("x-api-key: sk-1", "X-Agent-Id: me"),
    ],
)
def test_headers_are_merged(present: str, merged: str) -> None:
    assert merged_headers(present, {"X-Agent-Id": "me"}) == merged


def test_without_headers_the_variable_is_left_alone() -> None:
    changes = environment(WANTED._replace(headers={}), None, {})
    assert "ANTHROPIC_CUSTOM_HEADERS" not in changes


@pytest.mark.parametrize(
    ("present", "hosts"),
    [
        ({}, None),
        ({"HTTP_PROXY": "http://proxy"}, "127.0.0.1"),
        ({"https_proxy": "http://proxy", "NO_PROXY": "a.example"}, "a.example,127.0.0.1"),
    ],
)
def test_no_proxy_stands_in_between(present: dict[str, str], hosts: str | None) -> None:
    changes = environment(WANTED, None, present)
    assert (changes.get("no_proxy"), changes.get("NO_PROXY")) == (hosts, hosts)


def test_the_context_is_that_of_the_model_s_backend() -> None:
    assert context_of(POOL, "claude") == 32768
    assert context_of(POOL, "gpt-5") is None
    assert context_of({**POOL, "names": {}}, "gpt-5") == 32768
    assert context_of({"backends": []}, "claude") is None


def test_what_is_printed_sets_a_shell_up(herdr: Cli) -> None:
    done = herdr("run", "--agent", "it's", "--priority", "0", "--print", ANTHROPIC_API_KEY="sk-a")
    assert (done.returncode, done.stderr) == (0, "")
    assert "sk-a" not in done.stdout
    script = f'{done.stdout}\nprintf %s "${{ANTHROPIC_API_KEY-gone}} $ANTHROPIC_BASE_URL $ANTHROPIC_CUSTOM_HEADERS"'
    shell = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, env={"ANTHROPIC_API_KEY": "x"}
    )
    assert shell.stdout == f"gone {herdr.url} X-Agent-Id: it's\nX-Priority: 0"


def test_shell_lines_are_quoted() -> None:
    assert list(shell_lines({"A": "$(x)\n'", "B": None})) == [
        f"export A={shlex.quote(chr(36) + '(x)' + chr(10) + chr(39))}",
        "unset B",
    ]


def test_output_and_exit_code_are_the_command_s_own(herdr: Cli) -> None:
    with herdr.start("run", "--agent", "a", "--", "sh", "-c", "cat; echo err >&2; exit 7") as process:
        out, err = process.communicate(b"\0from stdin\xff", 60)
    assert (process.returncode, out, err) == (7, b"\0from stdin\xff", b"err\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_its_own(herdr: Cli, number: signal.Signals) -> None:
    script = f"trap 'echo got it; exit 5' {number.name.removeprefix('SIG')}; echo ready; while :; do sleep 0.05; done"
    with herdr.start("run", "--", "sh", "-c", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.read() == b"got it\n"
        assert process.wait(30) == 5


def test_a_pipe_that_breaks_ends_it_as_without_us(herdr: Cli) -> None:
    line = f"{{ {PYTHON} -m herdr run -- yes; echo $? >&3; }} 3>&2 | head -c 2"
    done = subprocess.run(
        ["bash", "-c", line], cwd=herdr.cwd, env=herdr.environ(), capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("y\n", "141\n")


def test_it_has_the_terminal(herdr: Cli) -> None:
    with herdr.terminal("run", "--", "sh", "-c", "test -t 0 && test -t 1 && echo at a terminal") as (
        _,
        terminal,
    ):
        shown = b""
        while chunk := read_terminal(terminal):
            shown += chunk
    assert shown == b"at a terminal\r\n"


@pytest.mark.parametrize(
    ("command", "code", "said"), [("./nosuch", 127, "spelling"), ("./text", 126, "executed")]
)
def test_what_cannot_be_run(herdr: Cli, command: str, code: int, said: str) -> None:
    (herdr.cwd / "text").write_text("no program")
    done = herdr("run", "--", command)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"herdr: cannot run {command}: ") and said in done.stderr


def test_options_after_the_command_are_its_own(herdr: Cli) -> None:
    assert herdr("run", "--", "echo", "--print", "--", "--url").stdout == "--print -- --url\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--agent", "a\nX-Priority: 0"), "cannot be sent as a header"),
        (("--session", "a\rb"), "cannot be sent as a header"),
        (("--route", ""), "cannot be sent as a header"),
        (("--agent", "é"), "cannot be sent as a header"),
        (("--agent", "a" * 201), "cannot be sent as a header"),
        (("--priority", "10"), "is not a priority from 0 (first) to 9"),
        (("--priority", "-1"), "is not a priority from 0 (first) to 9"),
        (("--print",), "--print runs nothing"),
    ],
)
def test_a_wrong_command_line_runs_nothing(herdr: Cli, options: tuple[str, ...], said: str) -> None:
    done = herdr("run", *options, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_command_is_needed(nowhere: Cli) -> None:
    for args in ((), ("--",)):
        done = nowhere("run", *args)
        assert (done.returncode, done.stderr) == (
            2,
            "herdr: there is no command: herdr run --agent reviewer -- claude\n",
        )


def test_without_a_gateway_nothing_runs(nowhere: Cli) -> None:
    done = nowhere("run", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (3, "")
    assert "start the gateway with `herdr serve`" in done.stderr


@pytest.mark.parametrize(
    ("context", "said"), [(8192, "a slot holds 8192 tokens"), (None, "is not known yet"), (32768, "")]
)
def test_claude_code_is_warned_of_a_slot_that_is_too_small(
    herdr: Cli, pool: PoolAnswers, context: int | None, said: str
) -> None:
    program = herdr.cwd / "claude"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    backend: dict[str, Any] = {**POOL["backends"][0], "context": context}
    pool.answers["/v1/pool"] = (200, {"backends": [backend], "names": {}})
    done = herdr("run", "--", str(program))
    assert done.stdout == "ran\n"
    assert said in done.stderr and bool(said) == bool(done.stderr)


def test_a_program_is_found_on_path(herdr: Cli, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/my-agent"
    program.write_text("#!/bin/sh\necho $1 $OPENAI_BASE_URL\n")
    program.chmod(0o755)
    done = herdr("run", "--", "my-agent", "hi", PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert done.stdout == f"hi {herdr.url}/v1\n"
