"""The MCP server, loaded by the first request to it.

Its libraries take 0.4 s to load and 36 MiB, which a gateway that no tool asks for MCP need not pay at each start.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

from herdr.web.asgi import Receive, Reply, Scope
from herdr.web.auth import SIGNED_IN, Caller
from herdr.web.surface import Endpoint, Handler

if TYPE_CHECKING:
    from herdr.web.mcp.server import McpServer

PATH = "/mcp"
SERVER = "herdr.web.mcp.server"
SUMMARIES: Mapping[str, str] = MappingProxyType(
    {
        "POST": "Speak MCP: tools, resources, change notices",
        "GET": "MCP 2025-11-25 and older: follow change notices",
        "DELETE": "MCP 2025-11-25 and older: end a session",
    }
)


class LateMcp:
    """Stands for the server until somebody asks it, and passes everything on from then on."""

    def __init__(self, build: Callable[[ModuleType], "McpServer"]) -> None:
        """`build`: builds the server with the module that has it."""
        self._build = build
        self._server: McpServer | None = None
        self._loading: asyncio.Task[None] | None = None
        self._closing = contextlib.AsyncExitStack()
        self._handlers: dict[str, Handler] = {}

    def endpoints(self) -> list[Endpoint]:
        """Return the methods of `/mcp`."""
        return [
            Endpoint(method, PATH, SIGNED_IN, self._answer, summary) for method, summary in SUMMARIES.items()
        ]

    def names(self) -> Collection[str]:
        """Return the names of the agents that have registered, once anybody has asked."""
        return () if self._server is None else self._server.names()

    async def stop(self) -> None:
        """End the server, if it was ever loaded."""
        if self._loading is not None:
            await asyncio.wait([self._loading])
        await self._closing.aclose()

    async def _answer(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        if self._loading is None:
            self._loading = asyncio.create_task(self._load(), name="load mcp")
        await asyncio.shield(self._loading)  # whoever asked first may go, and others wait for it
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self._handlers[method](scope, receive, send, caller)

    async def _load(self) -> None:
        server = self._build(await asyncio.to_thread(import_module, SERVER))
        await self._closing.enter_async_context(apart(server.running(), "mcp"))
        self._handlers = {endpoint.method: endpoint.handler for endpoint in server.endpoints()}
        self._server = server


@contextlib.asynccontextmanager
async def apart(inner: AbstractAsyncContextManager[None], name: str) -> AsyncIterator[None]:
    """Hold a context open in a task of its own: a task group in it would wrap whatever is raised in ours."""
    begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with inner:
            begun.set_result(None)
            await over.wait()

    task = asyncio.create_task(hold(), name=name)
    await asyncio.wait((begun, task), return_when=asyncio.FIRST_COMPLETED)
    try:
        if begun.done():
            yield
    finally:
        over.set()
        await task
