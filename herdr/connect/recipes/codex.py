"""Pure: Codex. Its configuration is the user's, not the project's; its hooks wait for the user's trust."""

from herdr.connect.edits import Edit
from herdr.connect.recipe import SERVER, TOKEN_ENV, File, Recipe, Wish, command_hooks

CLIENT = "codex"
WRITES = "apply_patch|Edit|Write"
EVENTS = (
    *(("SessionStart", None), ("UserPromptSubmit", None), ("PreToolUse", WRITES), ("PostToolUse", WRITES)),
    *(("PostCompact", None), ("Stop", None), ("SessionEnd", None)),
)


def _block(wish: Wish) -> str:
    lines = [f"[mcp_servers.{SERVER}]", f'url = "{wish.url}/mcp"']
    if wish.token:
        lines.append(f'bearer_token_env_var = "{TOKEN_ENV}"')
    if wish.model:
        lines += ["", f"[model_providers.{SERVER}]", 'name = "Herdr"', f'base_url = "{wish.url}/v1"']
        lines += [f'env_key = "{TOKEN_ENV}"'] if wish.token else []
        lines += ['wire_api = "responses"', "", f"[profiles.{SERVER}]", f'model_provider = "{SERVER}"']
        lines += ['model = "local"']
    return "\n".join(lines)


def _user(wish: Wish) -> list[File]:
    return [
        File(".codex/config.toml", (Edit("block", value=_block(wish)),)),
        File(".codex/hooks.json", tuple(command_hooks(CLIENT, wish, EVENTS))),
    ]


RECIPE = Recipe(
    CLIENT,
    "Codex",
    {"user": _user},
    "start Codex and let it trust the new hooks (/hooks); with --model, `codex --profile herdr` asks the gateway",
)
