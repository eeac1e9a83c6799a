"""One project as all its tools see it: `hub.context("shop")`."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from herdr_sdk.graph import (
    Callees,
    Callers,
    Dependents,
    FileOutline,
    GraphState,
    Manifest,
    Map,
    Skipped,
    Symbols,
)
from herdr_sdk.plain_http import PlainHttp, Request, json_request, part, parts, several
from herdr_sdk.texts import Texts

TOKENS = 1024  # of a map, as the gateway has it
LIMIT = 100  # of lists, as the gateway has it

_T = TypeVar("_T")


class _Indexing(msgspec.Struct):
    graph: GraphState


class Context:
    """The graph of one workspace; made by `Hub.context`. Paths are relative to the workspace's folder.

    Every answer is of now: a file that a tool has reported as changed is parsed before the gateway answers.
    While the first index is built, the gateway waits up to 10 s with an answer; then, and when the folder is
    lost, NotReady is raised. A workspace that there is not raises NotFound.
    """

    def __init__(self, http: PlainHttp, texts: Texts, workspace: str) -> None:
        self.workspace = workspace
        self._http = http
        self._texts = texts
        self._base = f"/v1/context/{part(workspace)}"

    async def map(
        self, tokens: int = TOKENS, focus: str | Iterable[str] = (), names: str | Iterable[str] = ()
    ) -> Map:
        """Return a ranked outline of the project, of at most so many tokens (16 to 100,000).

        Files at the `focus` paths, what belongs to them, and definitions of the `names` weigh more.
        """
        query = {"tokens": tokens, "focus": several(focus), "name": several(names)}
        return await self._texts.read(Map, f"{self._base}/graph/map", query)

    async def file(self, path: str) -> FileOutline:
        """Return one file's symbols and imports, and who imports it; raises NotFound, or ServerError (`bad_path`)."""
        return await self._texts.read(FileOutline, f"{self._base}/graph/files/{parts(path)}", {})

    async def symbols(
        self, name: str, *, kind: str | None = None, path: str | None = None, limit: int = LIMIT
    ) -> Symbols:
        """Return the definitions of a name: `total`, `Cart.total`, or a glob such as `*_total`.

        `path` is that of a file, or a glob: `src/**`.
        """
        return await self._look(
            Symbols, "symbols", {"name": name, "kind": kind, "path": path, "limit": limit}
        )

    async def callers(self, symbol: str, *, limit: int = LIMIT) -> Callers:
        """Return who calls it: an id (`src/cart.py::Cart.total`), or a name, which stands for all its definitions.

        Raises NotFound.
        """
        return await self._look(Callers, "callers", {"symbol": symbol, "limit": limit})

    async def callees(self, symbol: str, *, limit: int = LIMIT) -> Callees:
        """Return what it calls; raises NotFound."""
        return await self._look(Callees, "callees", {"symbol": symbol, "limit": limit})

    async def dependents(self, path: str, *, depth: int = 1, limit: int = LIMIT) -> Dependents:
        """Return the files that import a file, up to `depth` imports away; raises NotFound."""
        return await self._look(Dependents, "dependents", {"path": path, "depth": depth, "limit": limit})

    async def skipped(self, *, limit: int = LIMIT) -> Skipped:
        """Return what is not in the graph, and why."""
        return await self._look(Skipped, "skipped", {"limit": limit})

    async def manifest(self) -> Manifest:
        """Return what the gateway has of the project; never waits for an index."""
        return await self._http.read(Manifest, Request("GET", self._base))

    async def index(self, fresh: bool = False) -> GraphState:
        """Have the folder compared with the graph now, or with `fresh` every file parsed anew.

        Returns at once; `manifest` tells how far it is.
        """
        request = json_request(f"{self._base}/index", {"fresh": fresh})
        return (await self._http.read(_Indexing, request)).graph

    async def _look(self, kind: type[_T], what: str, query: Mapping[str, object]) -> _T:
        return await self._http.read(kind, Request("GET", f"{self._base}/graph/{what}", query))
