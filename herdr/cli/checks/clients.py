"""Whether the tools on this machine are set up for the gateway at the address in use."""

import re
from collections.abc import Iterator
from pathlib import Path

from herdr.cli.checks.finding import Finding, ok, warn

HOME_FILES = (
    *(".claude.json", ".claude/settings.json", ".cursor/mcp.json", ".cursor/hooks.json"),
    *(".codex/config.toml", ".codex/hooks.json", ".gemini/settings.json", ".config/opencode/opencode.json"),
)
PROJECT_FILES = (
    *(".mcp.json", ".claude/settings.json", ".claude/settings.local.json", ".cursor/mcp.json"),
    *(
        ".cursor/hooks.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".vscode/mcp.json",
        "opencode.json",
    ),
)
FILE_MAX = 4 * 1024**2  # bytes that are read of one: `.claude.json` keeps a history
_OURS = re.compile(r"(https?://[^\s\"'/\\$]+)/hooks/(?:claude-code|cursor|codex|gemini|vscode|opencode)\b")
_MCP = re.compile(r"herdr[\"'\]]\s*:?\s*\{?[^{}\[]{0,300}?(https?://[^\s\"'/\\$]+)/mcp\b", re.IGNORECASE)
"""The server of our name in a client's JSON or TOML; other MCP servers have `/mcp` in their address too."""


def clients(url: str, home: Path, project: Path) -> Iterator[Finding]:
    """Look for addresses of gateways in the tools' own files."""
    here = url.rstrip("/")
    seen = 0
    for file in dict.fromkeys(
        [*(home / name for name in HOME_FILES), *(project / name for name in PROJECT_FILES)]
    ):
        named = _addresses(file)
        seen += bool(named)
        if strange := sorted(named - {here}):
            yield warn(
                "clients",
                f"{file} names the gateway {', '.join(strange)}; the one in use is {here}",
                "run `herdr connect` for that tool again with --url, or set HERDR_GATEWAY_URL",
            )
        elif named:
            yield ok("clients", f"{file} names this gateway")
    if not seen:
        yield ok("clients", "no tool's settings name a gateway; `herdr connect` writes them")


def _addresses(file: Path) -> set[str]:
    try:
        with file.open("rb") as opened:
            text = opened.read(FILE_MAX).decode(errors="replace")
    except OSError:
        return set()
    return {*_OURS.findall(text), *_MCP.findall(text)}
