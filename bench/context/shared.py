"""The shared context as tools of a replay take it in: what a tool has already costs it no tokens again."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from bench.context.indexed import Indexed

SESSION = "task"
WINDOW_TOKENS = 2048
COMMAND_S = 30.0
UNCHANGED = "unchanged"


class SharedContext:
    """Answers of one gateway: texts as texts, lists of symbols and callers as the command line prints them."""

    def __init__(self, herdr: Indexed, tree: Path) -> None:
        self._herdr = herdr
        self._tree = tree
        self._graph = f"/v1/context/{herdr.workspace}/graph"
        self._known: dict[str, set[str]] = {}
        """The `ref`s of the texts that each tool was given."""
        self._newest: dict[str, int] = {}

    def say(self, tool: str, role: str, text: str) -> None:
        """Put a message into the session, as a tool's hook does."""
        message = {"role": role, "content": text, "workspace": self._herdr.workspace, "tool": tool}
        self._herdr.post(f"/v1/sessions/{SESSION}/messages", message)

    def saved(self, tool: str, path: str) -> None:
        """Report a changed file, as a tool's hook does."""
        event = {
            "type": "file.changed",
            "source": tool,
            "workspace": self._herdr.workspace,
            "subject": path,
        }
        self._herdr.post("/v1/events", event)

    def window(self, tool: str) -> str:
        """Return the session's window."""
        self._newest[tool] = self._last()
        return self._text(tool, f"/v1/sessions/{SESSION}?tokens={WINDOW_TOKENS}")

    def messages(self, tool: str) -> str:
        """Return what the others have said since this tool had the window or messages."""
        after, self._newest[tool] = self._newest[tool], self._last()
        found = self._herdr.get(f"/v1/sessions/{SESSION}/messages?after={after}")["messages"]
        return "\n\n".join(f"{one['tool']}: {one['content']}" for one in found if one["tool"] != tool)

    def look(self, tool: str, action: Mapping[str, Any]) -> str:
        """Return what one look-up of a recording gives."""
        match action:
            case {"map": tokens, **more}:
                query = urlencode({"tokens": tokens, "name": more.get("names", [])}, doseq=True)
                return self._text(tool, f"{self._graph}/map?{query}")
            case {"outline": path}:
                return self._text(tool, f"{self._graph}/files/{quote(path)}")
            case {"symbols": name, "path": path}:
                return self._listed("symbols", name, "--path", path)
            case {"symbols": name}:
                return self._listed("symbols", name)
            case {"callers": symbol}:
                return self._listed("callers", symbol)
        raise RuntimeError(f"a look-up that is not known: {action}")

    def _text(self, tool: str, path: str) -> str:
        """Return a text, or that it is one that the tool had: then it stands in its prompt already."""
        answer = self._herdr.get(path)
        known = self._known.setdefault(tool, set())
        if answer["ref"] in known:
            return UNCHANGED
        known.add(answer["ref"])
        return str(answer["text"])

    def _listed(self, *command: str) -> str:
        """Return what a command of the command line prints, run in the tree as a tool's shell would."""
        url = f"http://127.0.0.1:{self._herdr.port}"
        arguments = [sys.executable, "-m", "herdr", *command, "--url", url]
        done = subprocess.run(
            arguments, cwd=self._tree, capture_output=True, text=True, timeout=COMMAND_S, check=True
        )
        return f"{done.stdout}{done.stderr}".strip()

    def _last(self) -> int:
        found = self._herdr.get(f"/v1/sessions/{SESSION}/messages?limit=1000")["messages"]
        return max((int(one["seq"]) for one in found), default=0)
