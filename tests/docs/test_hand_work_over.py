"""docs/how-to/hand-work-over.md: what it prints is run, with a stand-in for the agent."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gateway import GatewayProcess

PAGE = Path(__file__).parents[2] / "docs/how-to/hand-work-over.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
AGENT = 'echo "$2" > said; git commit -q --allow-empty -m "Cache the sums"'


class Shell:
    """Runs blocks of the page in the project's folder."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        commands = folder / "bin"
        self._script(commands / "claude", AGENT)
        self._script(commands / "herdr", f'exec "{sys.executable}" -m herdr "$@"')
        self._script(folder / "scripts/test", "cat > task.json")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("HERDR_", "GIT_"))}
        who = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "EMAIL"), "me@shop.example")
        path = f"{commands}:{clean['PATH']}"
        self._environ = {**clean, **who, "PATH": path, "HERDR_GATEWAY_URL": url, "HERDR_OWNER": "me"}
        self("git init -q")

    @staticmethod
    def _script(path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def __call__(self, script: str) -> str:
        command = ["bash", "-e", "-c", script]
        done = subprocess.run(
            command, cwd=self.folder, env=self._environ, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done
        return done.stdout


@pytest.fixture
def shell(gateway: GatewayProcess, tmp_path: Path) -> Shell:
    return Shell(tmp_path, gateway.url)


def test_a_task_goes_from_hand_to_hand(shell: Shell) -> None:
    create, works, claims, answers = BLOCKS
    assert shell(create) == "issue-42\n"
    work, _, test = works.replace("task work", "task work --once").partition("\nherdr")
    assert shell(work) == "issue-42: submitted for reviewer\nissue-42: exit code 0\n"
    assert (shell.folder / "said").read_text() == "Sum the cart once: do it, then commit\n"

    claim, show, ask, finish = claims.splitlines()
    said = shell("\n".join([claim, "echo $HERDR_TASK_TOKEN", show, ask])).splitlines()
    assert "  Cache the sums" in said and "  file: src/cart.py" in said
    assert said[-1] == "issue-42: input required by me"
    answered = shell(answers).splitlines()
    assert answered[1].startswith("issue-42  input_required  reviewer  me")
    assert answered[2] == "issue-42: working by me"
    names = f"export HERDR_TASK=issue-42 HERDR_TASK_TOKEN={said[0]}"
    assert shell(f"{names}\n{finish}") == "issue-42: completed\n"

    shell("herdr task create 'Run all' --role tester --id run")
    assert shell(f"herdr{test}") == "run: exit code 0\n"
    assert json.loads((shell.folder / "task.json").read_text())["task"] == "run"
