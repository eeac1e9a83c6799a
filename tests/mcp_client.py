"""Models' side of MCP for tests: the official SDK's own client, in either era of the protocol."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from gateway import GatewayProcess
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ResourceUpdatedNotification, TextContent
from wire import PATIENCE_S, Answer, call

LEGACY, MODERN = "legacy", "2026-07-28"
ERAS = (LEGACY, MODERN)
VERSIONS = {LEGACY: "2025-11-25", MODERN: MODERN}


class Agent:
    """One client that has registered, or not (no handle)."""

    def __init__(self, client: Client, handle: str | None = None, name: str = "") -> None:
        self.client = client
        self.handle = handle
        self.name = name
        self.updated: asyncio.Queue[str] = asyncio.Queue()
        """Addresses of resources that a client of the older era is told of."""

    async def ask(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a tool, whatever comes back."""
        handle = {} if self.handle is None or tool == "register" else {"agent": self.handle}
        return await self.client.call_tool(tool, {**handle, **arguments})

    async def get(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must answer, and return what programs get."""
        result = await self.ask(tool, **arguments)
        assert not result.is_error, texts(result)
        assert result.structured_content is not None
        return dict(result.structured_content)

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must refuse, and return what it says."""
        result = await self.ask(tool, **arguments)
        assert result.is_error and result.structured_content is None, result
        said = texts(result)[0]
        assert "Traceback" not in said and ": " in said, said
        return said

    async def register(self, name: str, **more: Any) -> "Agent":
        found = await self.get("register", name=name, **more)
        self.handle, self.name = found["agent"], found["name"]
        return self


def texts(result: CallToolResult) -> list[str]:
    return [part.text for part in result.content if isinstance(part, TextContent)]


@contextlib.asynccontextmanager
async def connected(gateway: GatewayProcess, era: str, token: str | None = None) -> AsyncIterator[Agent]:
    """Connect the SDK's client."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    updated: asyncio.Queue[str] = asyncio.Queue()

    async def heard(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            updated.put_nowait(str(message.params.uri))

    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        transport = streamable_http_client(f"{gateway.url}/mcp", http_client=http)
        async with Client(transport, mode=era, message_handler=heard, cache=None) as client:
            agent = Agent(client)
            agent.updated = updated
            yield agent


def post(gateway: GatewayProcess, message: Any, era: str = LEGACY, **headers: str) -> Answer:
    """Send one message by hand; header names are given with underscores."""
    sent = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSIONS[era],
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return call(
        gateway, "POST", "/mcp", message if isinstance(message, bytes) else json.dumps(message).encode(), sent
    )


def tool_call(tool: str, id_: int = 1, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}
