"""Pure: Gemini CLI. It counts the time of its hooks in milliseconds, and `url` would mean SSE to it."""

from typing import Any

from herdr.connect.edits import Edit
from herdr.connect.recipe import HOOK_S, SERVER, TOKEN_ENV, File, Recipe, Wish, command, grouped

CLIENT = "gemini"
WRITES = "write_file|replace|edit"
EVENTS = (
    *(("SessionStart", None), ("BeforeAgent", None), ("BeforeTool", WRITES), ("AfterTool", WRITES)),
    *(("AfterAgent", None), ("SessionEnd", None)),
)


def _files(wish: Wish) -> list[File]:
    server: dict[str, Any] = {"httpUrl": f"{wish.url}/mcp"}
    if wish.token:
        server["headers"] = {"Authorization": f"Bearer ${{{TOKEN_ENV}}}"}
    hooks = grouped(wish, CLIENT, EVENTS, command(wish, CLIENT, HOOK_S * 1000))
    return [File(".gemini/settings.json", (Edit("server", ("mcpServers", SERVER), server), *hooks))]


RECIPE = Recipe(
    CLIENT,
    "Gemini CLI",
    {"project": _files, "user": _files},
    "start a new session; a folder that it does not trust yet has no hooks",
)
