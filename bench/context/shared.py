"""The shared context as tools of a replay take it in: what a tool has already costs it no tokens again."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from bench.context.indexed import Indexed

SESSION = "task"
WINDOW_TOKENS = 2048
UNCHANGED = "unchanged"
NOT_MODIFIED = 304


class SharedContext:
    """Answers of one gateway. Texts come as texts, lists of symbols and callers as the JSON that they are sent in."""

    def __init__(self, herdr: Indexed) -> None:
        self._herdr = herdr
        self._graph = f"/v1/context/{herdr.workspace}/graph"
        self._known: dict[tuple[str, str], str] = {}
        """The `ref` of what a tool was last given for a question."""
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
            case {"symbols": name, **more}:
                return self._list("symbols", name=name, **more)
            case {"callers": symbol}:
                return self._list("callers", symbol=symbol)
        raise RuntimeError(f"a look-up that is not known: {action}")

    def _text(self, tool: str, path: str) -> str:
        """Return a text, or that it is the one that the tool had."""
        ref = self._known.get((tool, path))
        status, body = self._herdr.ask("GET", path, headers={"if-none-match": f'"{ref}"'} if ref else {})
        if status == NOT_MODIFIED:
            return UNCHANGED
        answer = self._herdr.decoded(path, status, body)
        self._known[tool, path] = answer["ref"]
        return str(answer["text"])

    def _list(self, question: str, **query: object) -> str:
        return self._herdr.good("GET", f"{self._graph}/{question}?{urlencode(query)}").decode().strip()

    def _last(self) -> int:
        found = self._herdr.get(f"/v1/sessions/{SESSION}/messages?limit=1000")["messages"]
        return max((int(one["seq"]) for one in found), default=0)
