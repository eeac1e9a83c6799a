"""`herdr connect` as it is typed: what it writes, shows and asks, and that undo leaves no trace."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli, read_until
from gateway import running_gateway

from herdr.connect.recipe import Wish
from herdr.connect.recipes import RECIPES

SCOPES = [(recipe.client, scope) for recipe in RECIPES.values() for scope in recipe.files]
ODD_JSON = b'\xef\xbb\xbf// mine\r\n{\t"theme" : [1,2 ,], /* odd */\r\n\r\n   "theme":"dark" }'
ODD_TOML = b'# mine\r\nmodel=\'x\'   # odd\r\n[ mcp_servers . other ]\r\nurl="""\r\n[mcp_servers.herdr]"""'
TREE = dict[str, tuple[int, bytes | str | None]]


class Person:
    """Somebody with a home, in a repository."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        subprocess.run(["git", "init", "-q", str(self.work)], check=True)
        self.cli = Cli(cli.url, self.work)
        moved = {"CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
        self.environ = {"HOME": str(self.home), **{name: "" for name in moved}}

    def connect(self, *args: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        return self.cli("connect", *args, **self.environ, **environ)

    def connected(self, *args: str, **environ: str) -> str:
        """Run it, which must succeed, and return what it says."""
        done = self.connect(*args, **environ)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def tree(self) -> TREE:
        """Return everything that is there, without what is remembered for undo and git's own."""
        found: TREE = {}
        for top in (self.home, self.work):
            for path in sorted(top.rglob("*")):
                if not {".git", ".local"} & set(path.parts):
                    found[str(path.relative_to(top.parent))] = (path.lstat().st_mode, content(path))
        return found


def content(path: Path) -> bytes | str | None:
    if path.is_symlink():
        return os.readlink(path)
    return path.read_bytes() if path.is_file() else None


@pytest.fixture
def ann(nowhere: Cli, tmp_path: Path) -> Person:
    return Person(nowhere, tmp_path)


def paths(person: Person, client: str, scope: str) -> list[Path]:
    """Return the client's files."""
    top = person.home if scope == "user" else person.work
    return [top / file.path for file in RECIPES[client].files[scope](Wish("http://x"))]


@pytest.mark.parametrize(("client", "scope"), SCOPES)
def test_odd_files_are_put_back_byte_for_byte(client: str, scope: str, ann: Person) -> None:
    for path in paths(ann, client, scope):
        path.parent.mkdir(parents=True, exist_ok=True)
        odd = {".toml": ODD_TOML, ".js": b"// mine"}.get(path.suffix, ODD_JSON)
        path.write_bytes(odd)
        path.chmod(0o600)
    before = ann.tree()
    assert "is connected to http://127.0.0.1:1" in ann.connected(client, f"--{scope}")
    once = ann.tree()
    assert all(once[name] != was for name, was in before.items() if was[1] is not None)
    assert "nothing was changed" in ann.connected(client, f"--{scope}") and ann.tree() == once
    elsewhere = ann.connected(client, f"--{scope}", "--url", "http://127.0.0.1:2")
    assert "+" in elsewhere and ann.tree() != once
    ann.connected(client, f"--{scope}", "--url", "http://127.0.0.1:1")
    assert "is as it was" in ann.connected(client, f"--{scope}", "--undo")
    assert ann.tree() == before
    assert "nothing to undo" in ann.connected(client, f"--{scope}", "--undo")


@pytest.mark.parametrize(("client", "scope"), SCOPES)
def test_what_was_not_there_is_gone_again(client: str, scope: str, ann: Person) -> None:
    (ann.work / ".claude").mkdir()
    before = ann.tree()
    ann.connected(client, f"--{scope}")
    assert all(path.exists() for path in paths(ann, client, scope))
    ann.connected(client, f"--{scope}", "--undo")
    assert ann.tree() == before


def test_a_dry_run_shows_the_difference_and_changes_nothing(ann: Person) -> None:
    before = ann.tree()
    shown = ann.connected("cursor", "--dry-run")
    assert f"+++ {ann.work}/.cursor/mcp.json" in shown and '+      "url": "http://127.0.0.1:1/mcp"' in shown
    assert ann.tree() == before and not (ann.home / ".local").exists()


@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)])
def test_it_asks_at_a_terminal_after_it_has_shown_the_difference(
    typed: bytes, code: int, ann: Person
) -> None:
    ended, shown = ann.cli.at_terminal("connect", "gemini", typed=typed, **ann.environ)
    assert ended == code and shown.index("+++ ") < shown.index("Change 1 file like this? [y/N]")
    assert (ann.work / ".gemini/settings.json").exists() is (code == 0)
    assert ("nothing was changed" in shown) is (code == 1)


def test_yes_is_not_asked_at_a_terminal(ann: Person) -> None:
    ended, shown = ann.cli.at_terminal("connect", "gemini", "--yes", typed=b"n\n", **ann.environ)
    assert ended == 0 and "[y/N]" not in shown


def test_what_changes_while_it_asks_is_not_written_over(ann: Person) -> None:
    file = ann.work / ".gemini/settings.json"
    file.parent.mkdir()
    file.write_bytes(b"{}")
    with ann.cli.terminal("connect", "gemini", **ann.environ) as (process, terminal):
        read_until(terminal, b"[y/N]")
        file.write_bytes(b'{"mine": 1}')
        os.write(terminal, b"y\n")
        read_until(terminal, b"was changed at this moment")
        assert process.wait(60) == 1
    assert file.read_bytes() == b'{"mine": 1}'


def test_a_broken_file_is_refused_with_its_line_and_no_other_is_changed(ann: Person) -> None:
    (ann.work / ".mcp.json").write_text('{\n  "mcpServers": {\n    oops\n')
    before = ann.tree()
    done = ann.connect("claude-code")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"{ann.work}/.mcp.json cannot be changed: line 3:" in done.stderr
    assert ann.tree() == before


def test_what_was_changed_since_stays_and_a_changed_plugin_is_named(ann: Person) -> None:
    ann.connected("opencode")
    file, plugin = ann.work / "opencode.json", ann.work / ".opencode/plugins/herdr.js"
    file.write_text(json.dumps({**json.loads(file.read_text()), "theme": "dark"}))
    plugin.write_text(plugin.read_text() + "// mine\n")
    said = ann.connected("opencode", "--undo")
    assert f"{plugin} was changed since it was written, and stays" in said
    left = json.loads(file.read_text())
    assert left == {"$schema": "https://opencode.ai/config.json", "theme": "dark"} and plugin.exists()


def test_links_are_written_through(ann: Person) -> None:
    real = ann.home / "dotfiles.json"
    real.write_bytes(ODD_JSON)
    (ann.home / ".gemini").mkdir()
    (ann.home / ".gemini/settings.json").symlink_to("../dotfiles.json")
    before = ann.tree()
    ann.connected("gemini", "--user")
    assert b"/mcp" in real.read_bytes() and (ann.home / ".gemini/settings.json").is_symlink()
    ann.connected("gemini", "--user", "--undo")
    assert ann.tree() == before


def test_model_comes_and_goes_and_stays_as_it_was_when_nothing_is_said(ann: Person) -> None:
    before = ann.tree()
    settings, profile = ann.home / ".claude/settings.json", ann.home / ".codex/herdr.config.toml"

    def base() -> Any:
        return json.loads(settings.read_text()).get("env", {}).get("ANTHROPIC_BASE_URL")

    ann.connected("claude-code", "--user")
    assert base() is None
    ann.connected("claude-code", "--user", "--model")
    assert base() == "http://127.0.0.1:1"
    assert "nothing was changed" in ann.connected("claude-code", "--user")
    ann.connected("claude-code", "--user", "--no-model")
    assert base() is None
    assert "codex --profile herdr" in ann.connected("codex", "--model") and profile.exists()
    ann.connected("codex", "--no-model")
    assert not profile.exists()
    for client in ("claude-code", "codex"):
        ann.connected(client, "--user", "--undo")
    assert ann.tree() == before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("cursor", "--model"), "cannot ask the gateway's models: leave out --model"),
        (("codex", "--project"), "with --user only: leave out --project"),
        (("vscode", "--user"), "with --project only: leave out --user"),
        (("claude-code", "--user", "--project"), "not allowed with"),
        (("cursor", "--url", "http://h/$(x)"), "use an address without"),
        (("emacs",), "unknown client 'emacs'"),
    ],
)
def test_what_cannot_be_is_said(args: tuple[str, ...], said: str, ann: Person) -> None:
    done = ann.connect(*args)
    assert done.returncode == 2 and said in done.stderr
    assert ann.tree() == {}


def test_undo_says_that_it_is_the_users_connection_that_there_is(ann: Person) -> None:
    ann.connected("cursor", "--user")
    assert "use --undo --user" in ann.connected("cursor", "--undo")


def test_an_address_of_another_form_is_written_and_taken_back(ann: Person) -> None:
    before = ann.tree()
    for client in RECIPES:
        ann.connected(client, "--url", "http://[::1]:9/herdr")
        assert "nothing was changed" in ann.connected(client, "--url", "http://[::1]:9/herdr")
        ann.connected(client, "--undo")
    assert ann.tree() == before


def test_scopes_are_apart(ann: Person) -> None:
    ann.connected("cursor", "--user")
    ann.connected("cursor", "--project")
    ann.connected("cursor", "--undo")
    assert not (ann.work / ".cursor").exists() and (ann.home / ".cursor/mcp.json").exists()


def test_folders_that_the_user_has_moved_are_found(ann: Person, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    for client, variable, name in (
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
    ):
        ann.environ[variable] = str(moved / client)
        ann.connected(client, "--user")
        assert (moved / client / name).exists()


def test_the_other_name_of_a_file_is_taken_when_it_is_there(ann: Person) -> None:
    (ann.work / "opencode.jsonc").write_bytes(b"{} // mine")
    ann.connected("opencode")
    assert b"/mcp" in (ann.work / "opencode.jsonc").read_bytes() and not (ann.work / "opencode.json").exists()


def test_json_tells_what_was_done(ann: Person) -> None:
    done = ann.connect("cursor", "--json")
    told = json.loads(done.stdout)
    assert {**told, "diff": ""} == {
        **{
            "client": "cursor",
            "scope": "project",
            "url": "http://127.0.0.1:1",
            "undo": False,
            "dry_run": False,
        },
        "changes": [
            {"path": f"{ann.work}/.cursor/{name}.json", "change": "created"} for name in ("mcp", "hooks")
        ],
        "diff": "",
    }
    assert told["diff"].startswith("--- /dev/null\n+++ ")
    undone = json.loads(ann.connect("cursor", "--json", "--undo").stdout)
    assert [change["change"] for change in undone["changes"]] == ["removed", "removed"]


def command_of(value: Any) -> str:
    """Return the only command line of a client's hooks."""
    found: set[str] = set()

    def look(node: Any) -> None:
        if isinstance(node, dict) and isinstance(node.get("command"), str):
            found.add(node["command"])
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            look(inner)

    look(value)
    assert len(found) == 1
    return found.pop()


HOOKS: dict[str, tuple[str, Callable[[Person], Path]]] = {
    "codex": ("user", lambda person: person.home / ".codex/hooks.json"),
    "cursor": ("project", lambda person: person.work / ".cursor/hooks.json"),
    "gemini": ("project", lambda person: person.work / ".gemini/settings.json"),
    "vscode": ("project", lambda person: person.work / ".github/hooks/herdr.json"),
    "claude-code": ("project", lambda person: person.work / ".claude/settings.local.json"),
}


@pytest.mark.parametrize("client", HOOKS)
def test_hooks_say_nothing_and_succeed_when_no_gateway_answers(client: str, ann: Person) -> None:
    ann.connected(client)
    line = command_of(json.loads(HOOKS[client][1](ann).read_text()))
    done = subprocess.run(["sh", "-c", line], input="{}", capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_with_a_gateway_the_folder_is_watched_and_hooks_are_answered(shared: Cli, tmp_path: Path) -> None:
    ann = Person(shared, tmp_path)
    said = ann.connected("codex", HERDR_GATEWAY_TOKEN="set, but not asked for")
    assert "watches" not in said
    said = ann.connected("gemini")
    assert f"watches {ann.work} now, as workspace work" in said
    assert "watches" not in ann.connected("gemini")
    line = command_of(json.loads((ann.home / ".codex/hooks.json").read_text()))
    assert "Authorization" not in line
    payload = {"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": str(ann.work)}
    done = subprocess.run(
        ["sh", "-c", line], input=json.dumps(payload), capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0 and isinstance(json.loads(done.stdout), dict)


def test_a_token_is_named_and_never_written(tmp_path: Path) -> None:
    config = tmp_path / "herdr.yaml"
    config.write_text(
        "auth:\n  tokens:\n    - {name: me, token: hrd_0123456789abcdef0123, scopes: [admin]}\n"
    )
    with running_gateway(tmp_path / "data", "--config", str(config)) as gateway:
        ann = Person(Cli(gateway.url, tmp_path), tmp_path)
        said = ann.connected("claude-code", HERDR_GATEWAY_TOKEN="hrd_0123456789abcdef0123")
        assert "set HERDR_GATEWAY_TOKEN" not in said and "as workspace work" in said
        said = ann.connected("cursor")
        assert "the gateway asks for a token: set HERDR_GATEWAY_TOKEN where Cursor is started" in said
    settings = (ann.work / ".claude/settings.local.json").read_text()
    handler = json.loads(settings)["hooks"]["PreToolUse"][0]["hooks"][0]
    assert handler["headers"] == {"Authorization": "Bearer $HERDR_GATEWAY_TOKEN"}
    assert handler["allowedEnvVars"] == ["HERDR_GATEWAY_TOKEN"]
    assert "hrd_0" not in settings + (ann.work / ".mcp.json").read_text()
    assert "Bearer ${env:HERDR_GATEWAY_TOKEN}" in (ann.work / ".cursor/mcp.json").read_text()
    assert "nothing was changed" in ann.connected("cursor")  # the gateway is gone, and what it said is known
