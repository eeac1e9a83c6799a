"""The how-tos on connecting: each names what its recipe writes, and its commands run as they are printed."""

import re
import subprocess
from pathlib import Path

import pytest
from git_repo import make_repo

from herdr.cli.client import TOKEN_VARIABLE
from herdr.connect.recipe import TOKEN_ENV, Wish
from herdr.connect.recipes import RECIPES

HOW_TO = Path(__file__).parents[2] / "docs/how-to"
NOWHERE = "http://127.0.0.1:1"


def page(client: str) -> str:
    return (HOW_TO / f"connect-{client}.md").read_text()


@pytest.mark.parametrize("client", RECIPES)
def test_a_page_names_every_file_and_every_hook_with_its_tools(client: str) -> None:
    text = page(client)
    for scope, make in RECIPES[client].files.items():
        for file in make(Wish(NOWHERE, model=True)):
            shown = f"~/{file.path}" if scope == "user" and client not in ("cursor",) else file.path
            assert f"`{shown}`" in text, shown
            for edit in file.edits:
                if edit.kind == "hook":
                    assert f"`{edit.path[-1]}`" in text, edit.path
                    tools = str(edit.value.get("matcher", "")).split("|")
                    assert not [tool for tool in tools if tool and f"`{tool}`" not in text]
                if edit.path[:1] == ("env",):
                    assert edit.path[1] in text or edit.path[1] == "API_TIMEOUT_MS"
            for name in re.findall(r'"((?:tool|chat|session)\.[a-z.]+)"', file.whole or ""):
                assert f"`{name}`" in text, name


def test_the_token_has_one_name() -> None:
    assert TOKEN_ENV == TOKEN_VARIABLE


@pytest.mark.parametrize("client", RECIPES)
def test_the_commands_run_as_they_are_printed(client: str, tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", page(client), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("herdr ")]
    assert lines[0] == f"herdr connect {client}" and lines[-1] == f"herdr connect {client} --undo"
    home = tmp_path / "home"
    home.mkdir()
    moved = {name: "" for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    repo = make_repo(tmp_path / "repo", NOWHERE, HOME=str(home), **moved)
    before = files_in(repo.top) | files_in(home)
    for line in lines:
        done: subprocess.CompletedProcess[str] = repo.run("sh", "-c", line)
        assert done.returncode == 0, done.stderr
    assert files_in(repo.top) | files_in(home) == before


def files_in(folder: Path) -> set[Path]:
    return {p for p in folder.rglob("*") if p.is_file() and not {".git", ".local"} & set(p.parts)}
