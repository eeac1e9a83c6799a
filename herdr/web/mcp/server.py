"""Puts the MCP server together: the tools and resources over the official SDK, for both eras of the protocol."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import ListenHandler
from mcp.types import (
    CallToolRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

from herdr import __version__
from herdr.clock import Clock
from herdr.web.mcp.agents import Agents
from herdr.web.mcp.around import Around, Workspaces
from herdr.web.mcp.asking import Asking
from herdr.web.mcp.bus_tools import BusTools
from herdr.web.mcp.context_tools import ContextTools
from herdr.web.mcp.endpoint import BODY_MAX, McpEndpoint
from herdr.web.mcp.freed import Freed
from herdr.web.mcp.lock_tools import LockTools
from herdr.web.mcp.notices import Notices
from herdr.web.mcp.resources import Resources
from herdr.web.mcp.sessions import Sessions
from herdr.web.mcp.task_tools import TaskTools
from herdr.web.mcp.words import INSTRUCTIONS
from herdr.web.streams import Streams
from herdr.web.surface import Endpoint

LISTENERS_MAX = 256  # streams of `subscriptions/listen`, as many as `server.max_connections` by default
NOTICES_MAX = 1000  # that wait for a slow one of them
LISTED_MS = 60_000  # what clients may keep a list for; tools change with the gateway's version only
HINTS: Mapping[Any, CacheHint] = MappingProxyType(
    {
        "tools/list": CacheHint(LISTED_MS),
        "resources/templates/list": CacheHint(LISTED_MS),
        "resources/list": CacheHint(0),
        "resources/read": CacheHint(0),
        "server/discover": CacheHint(LISTED_MS),
    }
)
SESSION_BITS = 128
HANDLE_BITS = 50  # ten characters of five bits: a thousand agents never share their first four but by chance
_ALPHABET = "abcdefghjkmnpqrstuvwxyz023456789"  # without what is easily read as another


def new_handle(random_bits: Callable[[int], int]) -> str:
    """Return the handle of an agent: ten lower-case letters and digits."""
    bits = random_bits(HANDLE_BITS)
    return "".join(_ALPHABET[(bits >> shift) & 31] for shift in range(0, HANDLE_BITS, 5))


class McpServer:
    """The MCP server of one gateway. Its endpoints answer while `running`."""

    def __init__(
        self,
        endpoint: McpEndpoint,
        agents: Agents,
        managers: tuple[StreamableHTTPSessionManager, StreamableHTTPSessionManager],
        notices: Notices,
        listen: ListenHandler,
        streams: Streams,
    ) -> None:
        self._endpoint = endpoint
        self._agents = agents
        self._managers = managers
        self._notices = notices
        self._listen = listen
        self._streams = streams

    def endpoints(self) -> list[Endpoint]:
        """Return the methods of `/mcp`."""
        return self._endpoint.endpoints()

    def names(self) -> Collection[str]:
        """Return the names of the agents that have registered."""
        return self._agents.names()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer, and tell of changes, for as long as the context lasts."""
        logging.getLogger("mcp").setLevel(logging.WARNING)  # it tells of each request
        async with contextlib.AsyncExitStack() as closing:
            for manager in self._managers:
                await closing.enter_async_context(manager.run())
            for task in (self._notices.run(), self._say_goodbye()):
                closing.callback(asyncio.create_task(task, name="mcp notices").cancel)
            yield

    async def _say_goodbye(self) -> None:
        await self._streams.goodbye.wait()
        self._listen.close()


class _Protocol(Server[Any]):
    """The SDK's server, which says in the older era, too, that the list of resources may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """See `Server`."""
        options = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


def build_mcp(
    around: Around,
    agents: Mapping[str, bytes],
    streams: Streams,
    clock: Clock,
    *,
    body_max: int,
    data_max: int,
    random_bits: Callable[[int], int],
) -> McpServer:
    """Build the server. `agents`: what the log has of `herdr.web.mcp.agents.KIND`.

    `body_max`: bytes of a request. `data_max`: of an event's payload. `random_bits`: so many that nobody can guess.
    """
    workspaces = Workspaces(around.folders)
    known = Agents(agents, around.bus.remember, lambda: new_handle(random_bits), clock)
    freed, notices = Freed(), Notices(workspaces.names)
    sessions = Sessions(lambda: f"{random_bits(SESSION_BITS):032x}")
    tools = [
        *BusTools(around.bus, known, workspaces, data_max).tools(),
        *LockTools(around.desk, around.register, workspaces, freed, streams).tools(),
        *ContextTools(around.graphs, around.pictures, around.sessions, around.artifacts, workspaces).tools(),
        *TaskTools(around.board, workspaces, streams).tools(),
    ]
    asking = Asking(tools, known, around.inbox, freed)
    resources = Resources(around.pictures, around.sessions, around.register, around.board, workspaces)
    listen = ListenHandler(notices.bus, max_subscriptions=LISTENERS_MAX, max_buffered_events=NOTICES_MAX)
    server = build_protocol(asking, resources, sessions, listen)
    for listener in (freed.committed, notices.committed):
        around.bus.tell_commits(listener)
    modern, legacy = (
        # Host and Origin are checked by the guard in front of every endpoint
        StreamableHTTPSessionManager(
            server, json_response=is_json, stateless=True, max_request_body_size=body_max
        )
        for is_json in (False, True)
    )
    endpoint = McpEndpoint(
        modern,
        legacy,
        sessions,
        notices,
        streams,
        around.bus.publisher.decoding_turn,
        min(body_max, BODY_MAX),
    )
    return McpServer(endpoint, known, (modern, legacy), notices, listen, streams)


def build_protocol(
    asking: Asking, resources: Resources, sessions: Sessions, listen: ListenHandler
) -> Server[Any]:
    """Build the SDK's server over the handlers."""
    server = _Protocol(
        "herdr",
        version=__version__,
        title="Herdr",
        instructions=INSTRUCTIONS,
        cache_hints=HINTS,
        get_tool_input_schema=asking.schema,
        on_subscriptions_listen=listen,
    )
    server.middleware.clear()  # OpenTelemetry spans, which nobody collects
    add = server.add_request_handler
    add("tools/list", PaginatedRequestParams, asking.list)
    add("tools/call", CallToolRequestParams, asking.call)
    add("resources/list", PaginatedRequestParams, resources.list)
    add("resources/templates/list", PaginatedRequestParams, resources.templates)
    add("resources/read", ReadResourceRequestParams, resources.read)
    add("resources/subscribe", SubscribeRequestParams, sessions.subscribe)
    add("resources/unsubscribe", UnsubscribeRequestParams, sessions.unsubscribe)
    return server
