"""Pure: VS Code, with its agent hooks in a file of their own."""

from typing import Any

from herdr.connect.edits import Edit, shown
from herdr.connect.recipe import HOOK_S, SERVER, TOKEN_ENV, File, Recipe, Wish, curl

CLIENT = "vscode"
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStop", "Stop")


def _project(wish: Wish) -> list[File]:
    server: dict[str, Any] = {"type": "http", "url": f"{wish.url}/mcp"}
    if wish.token:
        server["headers"] = {"Authorization": f"Bearer ${{env:{TOKEN_ENV}}}"}
    handler = {"type": "command", "command": curl(wish, CLIENT), "timeout": HOOK_S}
    return [
        File(".vscode/mcp.json", (Edit("put", ("servers", SERVER), server),)),
        File(".github/hooks/herdr.json", whole=shown({"hooks": {event: [handler] for event in EVENTS}})),
    ]


RECIPE = Recipe(
    CLIENT, "VS Code", {"project": _project}, "start the MCP server `herdr` in VS Code when it asks"
)
