"""Pure: VS Code, with its agent hooks in a file of their own."""

from typing import Any

from herdr.connect.edits import Edit
from herdr.connect.recipe import SERVER, TOKEN_ENV, File, Recipe, Wish, command, hook

CLIENT = "vscode"
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStop", "Stop")


def _project(wish: Wish) -> list[File]:
    server: dict[str, Any] = {"type": "http", "url": f"{wish.url}/mcp"}
    if wish.token:
        server["headers"] = {"Authorization": f"Bearer ${{env:{TOKEN_ENV}}}"}
    hooks = tuple(hook(wish, CLIENT, event, command(wish, CLIENT)) for event in EVENTS)
    return [
        File(".vscode/mcp.json", (Edit("server", ("servers", SERVER), server),)),
        File(".github/hooks/herdr.json", hooks),
    ]


RECIPE = Recipe(
    CLIENT, "VS Code", {"project": _project}, "start the MCP server `herdr` in VS Code when it asks"
)
