"""Pure: Cursor."""

from typing import Any

from herdr.connect.edits import Edit
from herdr.connect.recipe import HOOK_S, SERVER, TOKEN_ENV, File, Recipe, Wish, curl, mark

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
    edits = [Edit("put", ("version",), 1)]
    for event, matcher in EVENTS:
        hook: dict[str, Any] = {"command": curl(wish, CLIENT), "timeout": HOOK_S}
        if matcher is not None:
            hook["matcher"] = matcher
        edits.append(Edit("append", ("hooks", event), hook, mark(CLIENT)))
    return [
        File(".cursor/mcp.json", (Edit("put", ("mcpServers", SERVER), server),)),
        File(".cursor/hooks.json", tuple(edits)),
    ]


RECIPE = Recipe(
    CLIENT,
    "Cursor",
    {"project": _files, "user": _files},
    "switch the MCP server `herdr` on in Cursor's settings; Cursor takes no model endpoint on this machine",
)
