"""What clients may read beside the tools: the map, sessions, locks and tasks, each under an address of its own."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)

from herdr.errors import HerdrError, NotFound
from herdr.tasks.task import OPEN
from herdr.web.context_desk import Pictures, Sessions
from herdr.web.lock_desk import Register
from herdr.web.mcp.around import Workspaces
from herdr.web.mcp.asking import COMPLETE, Context, caller_of, check_scope
from herdr.web.task_desk import Board

SCHEME = "herdr://"
LOCKS, TASKS, SESSIONS = f"{SCHEME}locks", f"{SCHEME}tasks", f"{SCHEME}sessions"
MAP_TOKENS = 2048  # of the map; the tool takes a budget
LISTED_MAX = 100  # of each kind; the API has all

JSON, TEXT = "application/json", "text/plain"

_encode = msgspec.json.Encoder().encode


def map_uri(workspace: str) -> str:
    """Return the address of a workspace's map."""
    return f"{SCHEME}{quote(workspace, safe='')}/map"


def session_uri(session: str) -> str:
    """Return the address of a session's window."""
    return f"{SESSIONS}/{quote(session, safe='')}"


class _Fixed(NamedTuple):
    """A resource that there is always one of."""

    name: str
    description: str
    scope: str
    read: Callable[[], Awaitable[Any]]


class Resources:
    """Answers `resources/list`, `resources/templates/list` and `resources/read`."""

    def __init__(
        self,
        pictures: Pictures,
        sessions: Sessions,
        register: Register,
        board: Board,
        workspaces: Workspaces,
    ) -> None:
        self._pictures = pictures
        self._sessions = sessions
        self._register = register
        self._board = board
        self._workspaces = workspaces
        self._fixed = {
            LOCKS: _Fixed("locks", "Who holds which files, and who waits for them.", "locks", self._locks),
            TASKS: _Fixed("tasks", "The open tasks, newest change first.", "tasks", self._tasks),
            SESSIONS: _Fixed("sessions", "The conversations of all tools.", "context", self._list_sessions),
        }

    async def list(self, ctx: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        """Return the resources with an address of their own; sessions have a template."""
        fixed = [
            {"uri": uri, "name": one.name, "description": one.description, "mimeType": JSON}
            for uri, one in self._fixed.items()
        ]
        maps = [
            {
                "uri": map_uri(name),
                "name": f"map of {name}",
                "description": f"The outline of the project {name}.",
                "mimeType": TEXT,
            }
            for name in self._workspaces.names()
        ]
        return {**COMPLETE, "resources": [*fixed, *maps]}

    async def templates(self, ctx: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        """Return the forms of the other addresses."""
        return {
            **COMPLETE,
            "resourceTemplates": [
                {
                    "uriTemplate": f"{SESSIONS}/{{session}}",
                    "name": "session",
                    "description": "A conversation: its summary and newest messages.",
                    "mimeType": TEXT,
                },
                {
                    "uriTemplate": f"{SCHEME}{{workspace}}/map",
                    "name": "map",
                    "description": "The outline of a project.",
                    "mimeType": TEXT,
                },
            ],
        }

    async def read(self, ctx: Context, params: ReadResourceRequestParams) -> dict[str, Any]:
        """Return what is at an address."""
        uri = str(params.uri)
        try:
            mime, text = await self._read(uri, ctx)
        except NotFound as error:
            raise MCPError(INVALID_PARAMS, error.detail, {"uri": uri}) from None
        except HerdrError as error:
            code = INVALID_PARAMS if error.code == "missing_scope" else INTERNAL_ERROR
            raise MCPError(code, f"{error.code}: {error.detail}", {"uri": uri}) from None
        return {**COMPLETE, "contents": [{"uri": uri, "mimeType": mime, "text": text}]}

    async def _read(self, uri: str, ctx: Context) -> tuple[str, str]:
        caller = caller_of(ctx)
        if (fixed := self._fixed.get(uri)) is not None:
            check_scope(caller, fixed.scope)
            return JSON, _encode(await fixed.read()).decode()
        rest = uri.removeprefix(SCHEME)
        if not uri.startswith(SCHEME):
            raise _unknown(uri)
        if rest.startswith("sessions/"):
            check_scope(caller, "context")
            found = await self._pictures.window(unquote(rest.removeprefix("sessions/")), None)
        elif rest.endswith("/map"):
            check_scope(caller, "context")
            found = await self._pictures.map_of(unquote(rest.removesuffix("/map")), MAP_TOKENS, (), ())
        else:
            raise _unknown(uri)
        return TEXT, str(found["text"])

    async def _locks(self) -> dict[str, Any]:
        found = await self._register.listed(None, None, None)
        return {kind: rows[:LISTED_MAX] for kind, rows in found.items()}

    async def _tasks(self) -> dict[str, Any]:
        return {"tasks": await self._board.listed(None, None, OPEN, None, LISTED_MAX)}

    async def _list_sessions(self) -> dict[str, Any]:
        found = await self._sessions.listed(None, LISTED_MAX)
        rows = [{**session, "uri": session_uri(session["session"])} for session in found["sessions"]]
        return {**found, "sessions": rows}


def _unknown(uri: str) -> NotFound:
    return NotFound(f"nothing is at {uri[:200]}; resources/list has what there is", "unknown_resource")
