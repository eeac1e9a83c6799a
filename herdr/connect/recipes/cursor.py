"""Pure: Cursor. Its hooks get no time limit: sources disagree whether it counts in seconds; curl has one."""

from typing import Any

from herdr.connect.edits import Edit
from herdr.connect.recipe import SERVER, TOKEN_ENV, File, Recipe, Wish, curl, hook

CLIENT = "cursor"
WRITES = "Write|Edit|MultiEdit|StrReplace|Delete"
EVENTS = (
    *(("sessionStart", None), ("beforeSubmitPrompt", None), ("preToolUse", WRITES), ("postToolUse", WRITES)),
    *(("postToolUseFailure", WRITES), ("afterFileEdit", None), ("afterAgentResponse", None), ("stop", None)),
    ("sessionEnd", None),
)


def _files(wish: Wish) -> list[File]:
    server: dict[str, Any] = {"url": f"{wish.url}/mcp"}
    if wish.token:
        server["headers"] = {"Authorization": f"Bearer ${{env:{TOKEN_ENV}}}"}
    edits = [Edit("missing", ("version",), 1)]
    for event, matcher in EVENTS:
        handler = {"command": curl(wish, CLIENT), **({} if matcher is None else {"matcher": matcher})}
        edits.append(hook(wish, CLIENT, event, handler))
    return [
        File(".cursor/mcp.json", (Edit("server", ("mcpServers", SERVER), server),)),
        File(".cursor/hooks.json", tuple(edits)),
    ]


RECIPE = Recipe(
    CLIENT, "Cursor", {"project": _files, "user": _files}, "switch `herdr` on in Cursor's MCP settings"
)
