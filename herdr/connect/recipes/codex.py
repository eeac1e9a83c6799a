"""Pure: Codex. Its configuration is the user's, not the project's; its hooks wait for the user's trust.

A profile is a file beside the configuration: 0.169 refuses the older `[profiles.NAME]`.
"""

from herdr.connect.edits import Edit
from herdr.connect.recipe import SERVER, TOKEN_ENV, File, Recipe, Wish, command, grouped

CLIENT = "codex"
HOME = "CODEX_HOME"
WRITES = "apply_patch|Edit|Write"
EVENTS = (
    *(("SessionStart", None), ("UserPromptSubmit", None), ("PreToolUse", WRITES), ("PostToolUse", WRITES)),
    *(("PostCompact", None), ("Stop", None)),
)
END_S = 3  # Codex lets the hook at the end of a session take no longer, and complains of more


def _server(wish: Wish) -> str:
    lines = [f"[mcp_servers.{SERVER}]", f'url = "{wish.url}/mcp"']
    if wish.token:
        lines.append(f'bearer_token_env_var = "{TOKEN_ENV}"')
    return "\n".join(lines) + "\n"


def _profile(wish: Wish) -> str:
    lines = ["# Written by `herdr connect codex --model`; `--undo` removes it.", 'model = "local"']
    lines += [f'model_provider = "{SERVER}"', "", f"[model_providers.{SERVER}]", 'name = "Herdr"']
    lines += [f'base_url = "{wish.url}/v1"', *([f'env_key = "{TOKEN_ENV}"'] if wish.token else ())]
    return "\n".join([*lines, 'wire_api = "responses"']) + "\n"


def _user(wish: Wish) -> list[File]:
    at_end = grouped(wish, CLIENT, (("SessionEnd", None),), command(wish, CLIENT, END_S))
    hooks = (*grouped(wish, CLIENT, EVENTS, command(wish, CLIENT)), *at_end)
    files = [
        File(".codex/config.toml", (Edit("tables", ("mcp_servers", SERVER), _server(wish)),), home=HOME),
        File(".codex/hooks.json", hooks, home=HOME),
    ]
    if wish.model:
        files.append(File(f".codex/{SERVER}.config.toml", whole=_profile(wish), home=HOME))
    return files


RECIPE = Recipe(
    CLIENT,
    "Codex",
    {"user": _user},
    "start Codex and trust the new hooks when it asks (or with /hooks); it skips them until then",
    f"`codex --profile {SERVER}` asks the gateway's models",
)
