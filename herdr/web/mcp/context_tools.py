"""The tools about the project: its map, its symbols, what was said, and artifacts."""

from typing import Any

from herdr.context.artifacts import Draft
from herdr.errors import InvalidInput
from herdr.web.context_desk import Artifacts, Graphs, Pictures, Sessions
from herdr.web.mcp import arguments, words
from herdr.web.mcp.agents import Who
from herdr.web.mcp.around import Said, Tool, Workspaces, without_nothing
from herdr.web.mcp.schemas import missing

SCOPE = "context"
TEXT_MAX = 40_000  # characters of an artifact in one answer: about 10,000 tokens, at which clients warn
LISTED_MAX = 50  # sessions, artifacts
KIND, CONTENT_TYPE = "other", "text/plain; charset=utf-8"


class ContextTools:
    """What is known of a project."""

    def __init__(
        self,
        graphs: Graphs,
        pictures: Pictures,
        sessions: Sessions,
        artifacts: Artifacts,
        workspaces: Workspaces,
    ) -> None:
        self._graphs = graphs
        self._pictures = pictures
        self._sessions = sessions
        self._artifacts = artifacts
        self._workspaces = workspaces

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            Tool("project_map", arguments.ProjectMap, words.PROJECT_MAP, SCOPE, True, self.map),
            Tool("find_symbol", arguments.FindSymbol, words.FIND_SYMBOL, SCOPE, True, self.symbols),
            Tool("callers", arguments.Callers, words.CALLERS, SCOPE, True, self.callers),
            Tool("session_window", arguments.SessionWindow, words.SESSION_WINDOW, SCOPE, True, self.window),
            Tool("artifact", arguments.Artifact, words.ARTIFACT, SCOPE, False, self.artifact),
        ]

    async def map(self, who: Who, asked: arguments.ProjectMap) -> Said:
        """Return the ranked outline of the project."""
        workspace, focus = self._workspaces.spots(asked.workspace, who, asked.focus)
        found = await self._pictures.map_of(workspace, asked.tokens, focus, asked.names)
        size = f"{found['files']} of {found['of_files']} files, {found['tokens']} tokens"
        data = {"map": found["text"], **{name: found[name] for name in ("files", "of_files", "tokens")}}
        return Said(f"{found['text'].rstrip()}\n({size})", data)

    async def symbols(self, who: Who, asked: arguments.FindSymbol) -> Said:
        """Return the definitions of a name."""
        workspace, paths = self._workspaces.spots(asked.workspace, who, [asked.path] if asked.path else [])
        found = await self._graphs.ask(
            workspace,
            "symbols",
            name=asked.name,
            kind=asked.kind,
            path=paths[0] if paths else None,
            limit=asked.limit,
        )
        rows = [_symbol(symbol) for symbol in found["symbols"]]
        lines = [f"{row['symbol']}:{row['line']} {row['kind']}: {row.get('signature', '')}" for row in rows]
        text = (
            "\n".join(lines) or f"Nothing is called {asked.name!r}; a glob such as *{asked.name}* finds more."
        )
        return Said(
            text + _more(found["more"]), without_nothing({"symbols": rows, "more": found["more"] or None})
        )

    async def callers(self, who: Who, asked: arguments.Callers) -> Said:
        """Return who calls a symbol."""
        workspace = self._workspaces.of(asked.workspace, who)
        found = await self._graphs.ask(workspace, "callers", symbol=asked.symbol, limit=asked.limit)
        rows = [_caller(caller) for caller in found["callers"]]
        defined = [_symbol(symbol) for symbol in found["definitions"]]
        lines = [f"defined: {row['symbol']}:{row['line']} {row.get('signature', '')}" for row in defined]
        lines += [
            f"{row['by']}:{','.join(map(str, row['lines']))} {row['call']}"
            + ("" if row["sure"] else " (by name)")
            for row in rows
        ]
        lines += [] if rows else ["Nobody calls it, as far as the files tell."]
        data = {"definitions": defined, "callers": rows, "more": found["more"] or None}
        return Said("\n".join(lines) + _more(found["more"]), without_nothing(data))

    async def window(self, who: Who, asked: arguments.SessionWindow) -> Said:
        """Return one session's window, or which there are."""
        if asked.session is None:
            return await self._list_sessions(self._workspaces.of(asked.workspace, who))
        found = await self._pictures.window(asked.session, asked.tokens)
        data = {name: found[name] for name in ("session", "messages", "tokens", "text")}
        return Said(found["text"], data)

    async def artifact(self, who: Who, asked: arguments.Artifact) -> Said:
        """Save, read or list artifacts."""
        workspace = self._workspaces.of(asked.workspace, who)
        if asked.action == "list":
            return await self._list_artifacts(workspace, asked)
        if asked.name is None:
            raise missing(words.ARTIFACT, "name")
        if asked.action == "read":
            return await self._read(workspace, asked.name, asked.offset)
        if asked.content is None:
            raise missing(words.ARTIFACT, "content")
        draft = Draft(
            workspace=workspace,
            name=asked.name,
            kind=asked.kind or KIND,
            content_type=CONTENT_TYPE,
            ttl_s=asked.ttl_s,
            by=who.named(),
            session=asked.session or who.session,
        )
        stored = await self._artifacts.put(draft, asked.content.encode())
        kept = stored.artifact
        redacted = f"; {kept.redacted} secrets were taken out" if kept.redacted else ""
        text = f"{'Replaced' if stored.replaced else 'Saved'} {kept.name}, {kept.bytes} bytes{redacted}"
        return Said(
            text, {"name": kept.name, "bytes": kept.bytes, "ref": kept.ref, "redacted": kept.redacted}
        )

    async def _read(self, workspace: str, name: str, offset: int) -> Said:
        found, content = await self._artifacts.get(workspace, name)
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{name[:200]} is no text ({found.content_type}, {found.bytes} bytes); get it over HTTP: "
                f"GET /v1/artifacts/{name[:200]}",
            ) from None
        piece = text[offset : offset + TEXT_MAX]
        after = offset + len(piece)
        data: dict[str, Any] = {"name": found.name, "kind": found.kind, "by": found.by, "content": piece}
        if after >= len(text):
            return Said(piece, data)
        rest = f"\n({len(text) - after} more characters: read again with offset={after})"
        return Said(piece + rest, {**data, "offset": after})

    async def _list_artifacts(self, workspace: str, asked: arguments.Artifact) -> Said:
        shelf = await self._artifacts.listed(workspace, asked.kind, asked.session, LISTED_MAX)
        rows = [
            {"name": one.name, "kind": one.kind, "bytes": one.bytes, "by": one.by} for one in shelf.artifacts
        ]
        lines = [f"{row['name']} ({row['kind']}, {row['bytes']} bytes, by {row['by']})" for row in rows]
        return Said(
            "\n".join(lines or ["None."]) + _more(shelf.more), {"artifacts": rows, "more": shelf.more}
        )

    async def _list_sessions(self, workspace: str) -> Said:
        listed = await self._sessions.listed(workspace, LISTED_MAX)
        names = ("session", "messages", "updated", "sources")
        rows = [{name: session[name] for name in names} for session in listed["sessions"]]
        lines = [
            f"{row['session']}: {row['messages']} messages, last {row['updated']}, by {', '.join(row['sources'])}"
            for row in rows
        ]
        return Said("\n".join(lines) or "None.", {"sessions": rows})


def _symbol(symbol: dict[str, Any]) -> dict[str, Any]:
    kept = {name: symbol[name] for name in ("symbol", "kind", "line", "signature")}
    return {name: value for name, value in kept.items() if value != ""}


def _caller(caller: dict[str, Any]) -> dict[str, Any]:
    return {
        "by": caller["symbol"] or caller["path"],
        "lines": list(caller["lines"]),
        "call": caller["call"],
        "sure": caller["resolution"] == "exact",
    }


def _more(count: int) -> str:
    return f"\n({count} more)" if count else ""
