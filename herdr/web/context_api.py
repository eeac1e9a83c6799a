"""The handlers of `/v1/context` and `/v1/blobs`."""

from typing import Any

from herdr.context.paths import checked_path
from herdr.web.asgi import Receive, Reply, Scope, read_body, respond_json
from herdr.web.auth import Caller
from herdr.web.bodies import Body, read_body_as, read_query_as
from herdr.web.context_bodies import (
    EXPECTED,
    DependentsQuery,
    EdgesQuery,
    IndexBody,
    LimitQuery,
    MapQuery,
    SymbolsQuery,
)
from herdr.web.context_desk import Graphs, Pictures
from herdr.web.etag import respond_json_tagged, respond_tagged

SMALL_BODY_MAX = 64 * 1024
IMMUTABLE = b"private, max-age=31536000, immutable"  # what a hash names never changes


class ContextApi:
    """What is known of a workspace, and questions about its project graph."""

    def __init__(self, graphs: Graphs, pictures: Pictures) -> None:
        self._graphs = graphs
        self._pictures = pictures

    async def manifest(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with what there is: counts, sessions, artifacts, all by content hash."""
        await respond_json_tagged(scope, send, await self._pictures.manifest(_workspace(scope)))

    async def map(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the ranked outline of the project."""
        query = read_query_as(MapQuery, scope["query_string"], EXPECTED, frozenset({"focus", "name"}))
        found = await self._pictures.map_of(_workspace(scope), query.tokens, query.focus, query.name)
        await respond_json_tagged(scope, send, found)

    async def file(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the outline of one file."""
        await respond_json_tagged(
            scope, send, await self._pictures.file(_workspace(scope), scope["path_params"]["path"])
        )

    async def symbols(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the definitions of a name."""
        query = read(SymbolsQuery, scope)
        await self._ask(
            scope, send, "symbols", name=query.name, kind=query.kind, path=query.path, limit=query.limit
        )

    async def callers(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with who calls a symbol."""
        query = read(EdgesQuery, scope)
        await self._ask(scope, send, "callers", symbol=query.symbol, limit=query.limit)

    async def callees(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with what a symbol calls."""
        query = read(EdgesQuery, scope)
        await self._ask(scope, send, "callees", symbol=query.symbol, limit=query.limit)

    async def dependents(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the files that import a file, and those that import these."""
        query = read(DependentsQuery, scope)
        path = checked_path(query.path)
        await self._ask(scope, send, "dependents", path=path, depth=query.depth, limit=query.limit)

    async def skipped(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the files that were not read, and why."""
        await self._ask(scope, send, "skipped", limit=read(LimitQuery, scope).limit)

    async def index(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Look at all files again."""
        asked = read_body_as(IndexBody, await read_body(scope, receive, SMALL_BODY_MAX), EXPECTED)
        workspace = _workspace(scope)
        await self._graphs.index(workspace, asked.fresh)
        manifest = await self._pictures.manifest(workspace)
        await respond_json(send, 202, {"graph": manifest["graph"]})

    async def blob(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with the content that a hash names."""
        blob = await self._pictures.blob(scope["path_params"]["sha256"])
        headers = [
            (b"content-type", blob.content_type.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"content-disposition", b"attachment"),  # whoever stored it may have called it HTML
        ]
        await respond_tagged(scope, send, blob.ref, blob.content, headers, IMMUTABLE)

    async def _ask(self, scope: Scope, send: Reply, question: str, **args: Any) -> None:
        await respond_json_tagged(scope, send, await self._graphs.ask(_workspace(scope), question, **args))


def read(type_: type[Body], scope: Scope) -> Body:
    """Decode a query about the context; raises InvalidInput."""
    return read_query_as(type_, scope["query_string"], EXPECTED)


def _workspace(scope: Scope) -> str:
    return str(scope["path_params"]["workspace"])
