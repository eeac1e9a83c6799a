"""How each client is run without an account and without a terminal, and what its calls look like in the records."""

import json
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

TERSE = "You are a terse helper."
FILE, INSIDE = "zoo.txt", "The zoo has three animals."
HELPER = {"helper": {"description": "Looks things up", "prompt": TERSE, "tools": ["Read"]}}


class Recipe(NamedTuple):
    """One client. `first` and `again` are its arguments before the prompt: for a new conversation, and to go on."""

    program: str
    first: tuple[str, ...]
    again: tuple[str, ...]
    environ: Mapping[str, str]
    files: Mapping[str, str]
    """Path, below the client's home, to content; the working folder is `work`."""
    tool: str
    """The cue of a call that reads the file."""
    agent: Callable[[str], str]
    """What it said to a regular expression of its agent's name."""
    too_long: str = ""
    """What it says when its own prompt does not fit, as a regular expression; empty: its prompt fits."""
    keeps: float = 1.0
    """How much of a turn's prompt it leaves as it was in the next."""
    kinds: int = 1
    """Conversations that it holds under one name: with another system prompt, in another slot."""


def claude_code(url: str, home: Path, whole: bool) -> Recipe:
    """Claude Code; with `whole`, its own prompt and all of its tools (12,000 tokens)."""
    session = str(uuid.uuid4())
    few = () if whole else ("--system-prompt", TERSE, "--tools", "Read", "Agent")
    options = ("-p", "--agents", json.dumps(HELPER), *few, "--")
    path = json.dumps(str(home / "work" / FILE))
    return Recipe(
        "claude",
        ("--session-id", session, *options),
        ("--resume", session, *options),
        {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "local",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        {},
        f'<<call Read {{"file_path": {path}}}>>',
        lambda said: session,
        too_long="Prompt is too long",
    )


def codex(url: str, home: Path, whole: bool) -> Recipe:
    """Codex; with `whole`, its own instructions (10,000 tokens with its tools)."""
    lines = ['model = "local"', 'model_provider = "herdr"']
    if not whole:
        lines.append(f"model_instructions_file = {json.dumps(str(home / 'terse.md'))}")
    lines += ["[model_providers.herdr]", 'name = "Herdr"', f'base_url = "{url}/v1"']
    lines += ['env_key = "HERDR_GATEWAY_TOKEN"', 'wire_api = "responses"', ""]
    return Recipe(
        "codex",
        ("exec", "--skip-git-repo-check"),
        ("exec", "resume", "--skip-git-repo-check", "--last"),
        {"HERDR_GATEWAY_TOKEN": "local"},
        {".codex/config.toml": "\n".join(lines), "terse.md": TERSE},
        f'<<call exec_command {{"cmd": "cat {FILE}"}}>>',
        lambda said: (
            re.escape(found[1]) if (found := re.search(r"session id: (\S+)", said)) else "no session id"
        ),
        too_long="ran out of room in the model's context window",
    )


def opencode(url: str, home: Path, whole: bool) -> Recipe:
    """Opencode; with `whole`, its own prompt and all of its tools (8,000 tokens)."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "local"},
        "models": {"local": {"name": "local"}},
    }
    config = {
        "model": "herdr/local",
        "provider": {"herdr": provider},
        "autoupdate": False,
        "share": "disabled",
    }
    few = {"agent": {"build": {"prompt": TERSE}}, "tools": {"*": False, "read": True}}
    path = json.dumps(str(home / "work" / FILE))
    return Recipe(
        "opencode",
        ("run",),
        ("run", "-c"),
        {},
        {"work/opencode.json": json.dumps(config if whole else config | few)},
        f'<<call read {{"filePath": {path}}}>>',
        lambda said: r"ses_\w+",
    )


def qwen_code(url: str, home: Path, whole: bool) -> Recipe:
    """Qwen Code; with `whole`, its own prompt and tools (10,000 tokens), and what it does about its memory.

    It says nothing about itself, so it is given a name. Going on, it takes the date out of its last message.
    """
    settings = {"model": {"generationConfig": {"customHeaders": {"X-Agent-Id": "qwen"}}}}
    few = {
        "tools": {"core": ["read_file"], "exclude": ["agent", "skill"]},
        "memory": {"enableManagedAutoMemory": False},
    }
    options = ("--auth-type", "openai", *(() if whole else ("--system-prompt", TERSE)))
    path = json.dumps(str(home / "work" / FILE))
    return Recipe(
        "qwen",
        (*options, "-p"),
        (*options, "-c", "-p"),
        {
            "OPENAI_API_KEY": "local",
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_MODEL": "local",
            "QWEN_CODE_API_TIMEOUT_MS": "0",  # else it gives up after two minutes, which its prompt may take
        },
        {".qwen/settings.json": json.dumps(settings if whole else settings | few)},
        f'<<call read_file {{"file_path": {path}}}>>',
        lambda said: "qwen",
        too_long="prompt is too long",
        keeps=0.9,
        kinds=2 if whole else 1,
    )


RECIPES: Mapping[str, Callable[[str, Path, bool], Recipe]] = {
    "claude-code": claude_code,
    "codex": codex,
    "opencode": opencode,
    "qwen-code": qwen_code,
}
