"""What each tool is given, in the form that it reads."""

import json
import shlex
import tomllib
from typing import Any

import pytest

from herdr.connect.edits import applied
from herdr.connect.recipe import CURL_S, HOOK_S, TOKEN_ENV, Wish, curl
from herdr.connect.recipes import RECIPES

URL = "http://127.0.0.1:8787"


def contents(client: str, scope: str, wish: Wish) -> dict[str, Any]:
    """Return what the files hold when there was nothing before."""
    found: dict[str, Any] = {}
    for file in RECIPES[client].files[scope](wish):
        text = file.whole or applied("", file.edits)
        found[file.path] = (
            text if file.path.endswith(".js") else tomllib.loads(text) if file.is_toml else json.loads(text)
        )
    return found


@pytest.mark.parametrize(
    ("client", "scope", "file", "server"),
    [
        ("claude-code", "project", ".mcp.json", {"type": "http", "url": f"{URL}/mcp"}),
        ("cursor", "project", ".cursor/mcp.json", {"url": f"{URL}/mcp"}),
        ("codex", "user", ".codex/config.toml", {"url": f"{URL}/mcp"}),
        ("gemini", "user", ".gemini/settings.json", {"httpUrl": f"{URL}/mcp"}),
        ("vscode", "project", ".vscode/mcp.json", {"type": "http", "url": f"{URL}/mcp"}),
        ("opencode", "project", "opencode.json", {"type": "remote", "url": f"{URL}/mcp", "enabled": True}),
    ],
)
@pytest.mark.parametrize("token", [False, True])
def test_the_mcp_server(client: str, scope: str, file: str, server: dict[str, Any], token: bool) -> None:
    there = contents(client, scope, Wish(URL, token))[file]
    (servers,) = (there[name] for name in ("mcpServers", "mcp_servers", "servers", "mcp") if name in there)
    more: dict[str, Any] = {}
    if token and client == "codex":
        more = {"bearer_token_env_var": TOKEN_ENV}
    elif token:
        form = {"claude-code": "${%s}", "gemini": "${%s}", "opencode": "{env:%s}"}.get(client, "${env:%s}")
        more = {"headers": {"Authorization": f"Bearer {form % TOKEN_ENV}"}}
    assert servers == {"herdr": {**server, **more}}


def test_claude_code_posts_its_hooks_itself_but_for_the_start() -> None:
    hooks = contents("claude-code", "project", Wish(URL, token=True))[".claude/settings.local.json"]["hooks"]
    assert {event: group["hooks"][0]["type"] for event, (group,) in hooks.items()} == {
        **dict.fromkeys(("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied"), "http"),
        **dict.fromkeys(("UserPromptSubmit", "Stop", "StopFailure", "SubagentStop"), "http"),
        **{"PreCompact": "http", "PostCompact": "http", "SessionEnd": "http", "SessionStart": "command"},
    }
    (group,) = hooks["PreToolUse"]
    assert group["matcher"] == "Edit|Write|MultiEdit|NotebookEdit"
    assert group["hooks"] == [
        {
            "type": "http",
            "url": f"{URL}/hooks/claude-code",
            "timeout": HOOK_S,
            "headers": {"Authorization": f"Bearer ${TOKEN_ENV}"},
            "allowedEnvVars": [TOKEN_ENV],
        }
    ]
    assert "matcher" not in hooks["Stop"][0]


def test_time_limits_are_in_the_units_of_each_tool() -> None:
    gemini = contents("gemini", "user", Wish(URL))[".gemini/settings.json"]["hooks"]
    assert gemini["BeforeTool"][0]["hooks"][0]["timeout"] == HOOK_S * 1000
    codex = contents("codex", "user", Wish(URL))[".codex/hooks.json"]["hooks"]
    limits = {event: group["hooks"][0]["timeout"] for event, (group,) in codex.items()}
    assert limits.pop("SessionEnd") == 3 and set(limits.values()) == {HOOK_S}
    cursor = contents("cursor", "user", Wish(URL))[".cursor/hooks.json"]
    assert cursor["version"] == 1 and not any("timeout" in hook for (hook,) in cursor["hooks"].values())


def test_codex_gets_a_profile_in_a_file_of_its_own() -> None:
    files = contents("codex", "user", Wish(URL, token=True, model=True))
    profile = files[".codex/herdr.config.toml"]
    provider = {"name": "Herdr", "base_url": f"{URL}/v1", "env_key": TOKEN_ENV, "wire_api": "responses"}
    assert profile == {"model": "local", "model_provider": "herdr", "model_providers": {"herdr": provider}}
    assert "profiles" not in files[".codex/config.toml"]


def test_models_are_asked_of_the_gateway_only_when_that_is_wished() -> None:
    for client, recipe in RECIPES.items():
        for scope in recipe.files:
            plain = json.dumps(contents(client, scope, Wish(URL)))
            wished = json.dumps(contents(client, scope, Wish(URL, model=True)))
            assert (plain != wished) is bool(recipe.model), client
            assert "BASE_URL" not in plain and "base_url" not in plain and "baseURL" not in plain


def test_the_line_is_the_same_each_time_and_an_odd_address_does_nothing_to_the_shell() -> None:
    line = curl(Wish(URL), "codex")
    assert line == (
        f"curl -sf --max-time {CURL_S} -H 'Content-Type: application/json' --data-binary @- "
        f"{URL}/hooks/codex || true"
    )
    odd = curl(Wish("http://h/$(touch x);a'b&"), "codex")
    assert "http://h/$(touch x);a'b&/hooks/codex" in shlex.split(odd)
    assert curl(Wish(URL, token=True), "codex").count(f'-H "Authorization: Bearer ${TOKEN_ENV}"') == 1


def test_the_plugin_goes_to_the_address_and_reads_the_token_when_it_runs() -> None:
    plugin = contents("opencode", "project", Wish('http://h/"x'))[".opencode/plugins/herdr.js"]
    assert 'const GATEWAY = "http://h/\\"x";' in plugin and f"process.env.{TOKEN_ENV}" in plugin
    assert "%" not in plugin
