"""Pure: Claude Code. Its hooks post to the gateway themselves; only SessionStart knows no HTTP and runs curl."""

from collections.abc import Iterator
from typing import Any

from herdr.connect.edits import Edit
from herdr.connect.recipe import HOOK_S, SERVER, TOKEN_ENV, File, Recipe, Wish, command_hooks, mark

CLIENT = "claude-code"
WRITES = "Edit|Write|MultiEdit|NotebookEdit"
EVENTS = (
    *(("PreToolUse", WRITES), ("PostToolUse", WRITES), ("PostToolUseFailure", WRITES)),
    *(("PermissionDenied", WRITES), ("UserPromptSubmit", None), ("Stop", None), ("SubagentStop", None)),
    *(("PostCompact", None), ("SessionEnd", None)),
)


def _hooks(wish: Wish) -> Iterator[Edit]:
    handler: dict[str, Any] = {"type": "http", "url": f"{wish.url}/hooks/{CLIENT}", "timeout": HOOK_S}
    if wish.token:
        handler |= {"headers": {"Authorization": f"Bearer ${TOKEN_ENV}"}, "allowedEnvVars": [TOKEN_ENV]}
    for event, matcher in EVENTS:
        group: dict[str, Any] = {"hooks": [handler]}
        if matcher is not None:
            group = {"matcher": matcher, **group}
        yield Edit("append", ("hooks", event), group, mark(CLIENT))
    yield from command_hooks(CLIENT, wish, (("SessionStart", None),))


def _model(wish: Wish) -> Iterator[Edit]:
    if wish.model:
        yield Edit("put", ("env", "ANTHROPIC_BASE_URL"), wish.url)
        if wish.token:
            yield Edit("put", ("apiKeyHelper",), f'printf %s "${TOKEN_ENV}"')
        else:
            yield Edit("put", ("env", "ANTHROPIC_AUTH_TOKEN"), "local")  # any will do, but it wants one


def _server(wish: Wish) -> Edit:
    server: dict[str, Any] = {"type": "http", "url": f"{wish.url}/mcp"}
    if wish.token:
        server["headers"] = {"Authorization": f"Bearer ${{{TOKEN_ENV}}}"}
    return Edit("put", ("mcpServers", SERVER), server)


def _project(wish: Wish) -> list[File]:
    trusted = Edit("append", ("enabledMcpjsonServers",), SERVER, f'"{SERVER}"')
    return [
        File(".claude/settings.local.json", (*_hooks(wish), *_model(wish), trusted)),
        File(".mcp.json", (_server(wish),)),
    ]


def _user(wish: Wish) -> list[File]:
    return [
        File(".claude/settings.json", (*_hooks(wish), *_model(wish))),
        File(".claude.json", (_server(wish),)),
    ]


RECIPE = Recipe(CLIENT, "Claude Code", {"project": _project, "user": _user}, "start a new session")
