"""What tools and people come in by beside the plain API: hooks, MCP, and the dashboard."""

import contextlib
import secrets
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any, NamedTuple

from herdr import config as settings
from herdr.app.front import tokens_of
from herdr.app.parts import Watched
from herdr.bus.bus import Bus
from herdr.bus.inbox import Inbox
from herdr.clock import Clock
from herdr.hooking.build import build_hooks
from herdr.locking.desk import Desk
from herdr.locking.register import Register
from herdr.sharing.shared import Shared
from herdr.storage.sqlite.log import SqliteLog
from herdr.tasking.board import Board
from herdr.watching import SOURCE as WATCHER
from herdr.web.browser_sessions import BrowserSessions
from herdr.web.clients import Clients
from herdr.web.dashboard_routes import dashboard_endpoints
from herdr.web.hook_routes import hook_endpoints
from herdr.web.live import Live
from herdr.web.mcp.agents import KIND as MCP_AGENTS
from herdr.web.mcp.around import Around
from herdr.web.mcp.late import LateMcp
from herdr.web.samples import Samples
from herdr.web.static_files import StaticFiles, load
from herdr.web.streams import Streams
from herdr.web.surface import Endpoint


class Ground(NamedTuple):
    """The running parts that these stand on."""

    log: SqliteLog
    bus: Bus
    streams: Streams
    watched: Watched
    shared: Shared
    desk: Desk
    register: Register
    board: Board
    backends: Callable[[], list[dict[str, Any]]]
    """What is told of each model backend."""


@contextlib.asynccontextmanager
async def tools_and_people(
    config: settings.Config, clock: Clock, on: Ground
) -> AsyncIterator[tuple[list[Endpoint], BrowserSessions]]:
    """Run them; yields their endpoints, and who is signed in with a browser."""
    body_max, data_max = config.server.body_max_bytes, config.bus.data_max_bytes
    bus, watching, shared, inbox = on.bus, on.watched.watching, on.shared, Inbox(on.bus)
    hooks = build_hooks(bus, inbox, on.desk, on.register, watching.paths, watching.folders, clock, WATCHER)
    around = Around(
        bus,
        inbox,
        on.desk,
        on.register,
        on.watched.graphs,
        shared.pictures,
        shared.sessions,
        shared.shelf,
        on.board,
        watching.folders,
    )
    agents = await on.log.load(MCP_AGENTS)

    def build_mcp(module: ModuleType) -> Any:
        sizes = {"body_max": body_max, "data_max": data_max}
        return module.build_mcp(around, agents, on.streams, clock, **sizes, random_bits=secrets.randbits)

    mcp = LateMcp(build_mcp)
    sessions = BrowserSessions(tokens_of(config.auth), clock, lambda: secrets.token_urlsafe(32))
    live = Live(bus, Samples(bus, on.streams, on.desk.counts, on.backends, clock), on.streams)
    files = StaticFiles(load())

    def behind() -> list[tuple[str, int | None]]:
        # Who takes from an inbox acknowledges only what was in it, however much there was for others since
        return [*{**dict(bus.subscriptions.behind()), **inbox.waiting()}.items()]

    clients = Clients(bus, behind, lambda: {"hooks": hooks.names(), "mcp": mcp.names()})
    live.start()
    try:
        yield (
            [
                *hook_endpoints(hooks, bus.publisher.decoding_turn, body_max),
                *mcp.endpoints(),
                *dashboard_endpoints(bus, live, clients, sessions, files, data_max),
            ],
            sessions,
        )
    finally:
        live.stop()
        await mcp.stop()
