"""Pure: Claude Code. Its hooks post to the gateway themselves; only SessionStart knows no HTTP and runs curl."""

from collections.abc import Iterator
from typing import Any

from herdr.connect.edits import Edit
from herdr.connect.recipe import (
    HOOK_S,
    SERVER,
    TOKEN_ENV,
    File,
    Recipe,
    Wish,
    address,
    command,
    grouped,
)

CLIENT = "claude-code"
HOME = "CLAUDE_CONFIG_DIR"
WRITES = "Edit|Write|MultiEdit|NotebookEdit"
EVENTS = (
    *(("PreToolUse", WRITES), ("PostToolUse", WRITES), ("PostToolUseFailure", WRITES)),
    *(
        ("PermissionDenied", WRITES),
        ("UserPromptSubmit", None),
        ("Stop", None),
        ("StopFailure", None),
        ("SubagentStop", None),
    ),
    *(("StopFailure", None), ("PreCompact", None), ("PostCompact", None), ("SessionEnd", None)),
)
PATIENCE_MS = "3600000"  # a queue and a long prefill are no failure


def _hooks(wish: Wish) -> Iterator[Edit]:
    handler: dict[str, Any] = {"type": "http", "url": address(wish, CLIENT), "timeout": HOOK_S}
    if wish.token:
        handler |= {"headers": {"Authorization": f"Bearer ${TOKEN_ENV}"}, "allowedEnvVars": [TOKEN_ENV]}
    yield from grouped(wish, CLIENT, EVENTS, handler)
    yield from grouped(wish, CLIENT, (("SessionStart", None),), command(wish, CLIENT))


def _model(wish: Wish) -> Iterator[Edit]:
    if wish.model:
        yield Edit("put", ("env", "ANTHROPIC_BASE_URL"), wish.url)
        yield Edit("put", ("env", "API_TIMEOUT_MS"), PATIENCE_MS)
        if wish.token:
            yield Edit("put", ("apiKeyHelper",), f'printf %s "${TOKEN_ENV}"')
        else:
            yield Edit("put", ("env", "ANTHROPIC_AUTH_TOKEN"), "local")  # any will do, but it wants one


def _server(wish: Wish) -> Edit:
    server: dict[str, Any] = {"type": "http", "url": f"{wish.url}/mcp"}
    if wish.token:
        server["headers"] = {"Authorization": f"Bearer ${{{TOKEN_ENV}}}"}
    return Edit("server", ("mcpServers", SERVER), server)


def _project(wish: Wish) -> list[File]:
    trusted = Edit("item", ("enabledMcpjsonServers",), SERVER)
    return [
        File(".claude/settings.local.json", (*_hooks(wish), *_model(wish), trusted)),
        File(".mcp.json", (_server(wish),)),
    ]


def _user(wish: Wish) -> list[File]:
    return [
        File(".claude/settings.json", (*_hooks(wish), *_model(wish)), home=HOME),
        File(".claude.json", (_server(wish),), home=HOME),
    ]


RECIPE = Recipe(
    CLIENT,
    "Claude Code",
    {"project": _project, "user": _user},
    "start a new session",
    "it asks the gateway's models from its next session on",
)
