"""The composition root: the only place that builds objects. Configuration in, a running gateway out."""

import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from herdr import config as settings
from herdr.app.bus import running_bus
from herdr.app.front import build_access, build_front, build_health
from herdr.app.parts import load_snapshot, open_context, running_pool, watched_folders
from herdr.app.tools import Ground, tools_and_people
from herdr.bus.beside import Beside
from herdr.bus.bus import Bus
from herdr.clock import Clock
from herdr.ids import UlidFactory
from herdr.locking.desk import Desk
from herdr.locking.names import Names
from herdr.locking.register import Register
from herdr.sharing.shared import shared_context
from herdr.tasking.board import Board
from herdr.watching import Watching
from herdr.web.context_routes import context_endpoints
from herdr.web.health import Health
from herdr.web.lock_routes import lock_endpoints
from herdr.web.model_numbers import ModelNumbers
from herdr.web.model_routes import model_endpoints
from herdr.web.routes import endpoints, websockets
from herdr.web.streams import Streams
from herdr.web.surface import Front
from herdr.web.task_routes import task_endpoints


@dataclass(frozen=True, slots=True)
class Gateway:
    """What a server, or a test, needs of a running gateway."""

    app: Front
    bus: Bus
    streams: Streams
    watching: Watching
    health: Health


@contextlib.asynccontextmanager
async def gateway(
    config: settings.Config,
    clock: Clock,
    *,
    peers_allowed: frozenset[str] | None = None,
    warnings: tuple[str, ...] = (),
    environ: Mapping[str, str] = MappingProxyType({}),
    snapshot: Path | None = None,
    read_only: bool = False,
) -> AsyncIterator[Gateway]:
    """Open everything in order, and close it in the opposite one; raises StartupError.

    `snapshot`: what the first workspace's graph begins with. `read_only`: keep nothing that is said or stored.

    `environ` has the keys of the backends.
    `peers_allowed`: the only addresses that are answered while there are no tokens (None: all).
    `warnings`: what `/healthz` should say about the way that the gateway was started.
    """
    path = Path(config.bus.persist_path)
    async with contextlib.AsyncExitStack() as closing:
        log, bus, held, tasks = await closing.enter_async_context(running_bus(config, clock))
        streams = Streams(config.server.max_connections, config.server.send_timeout_s, clock, random.random)
        closing.callback(streams.stop)
        streams.start()
        watched = await closing.enter_async_context(watched_folders(config, clock, log, bus, held))
        desk = Desk(held, Names(watched.naming), UlidFactory(clock))
        pool, recording = await closing.enter_async_context(
            running_pool(config.models, path.parent, environ, clock, log, bus, streams)
        )
        store = await open_context(path, config.context, config.bus.durability, clock)
        closing.push_async_callback(store.close)
        shared = await closing.enter_async_context(
            shared_context(store, watched.graphs, config.context, bus, clock, pool, read_only=read_only)
        )
        if snapshot is not None:
            await load_snapshot(shared.snapshots, watched.graphs, snapshot)
        watching, numbers = watched.watching, ModelNumbers(pool, recording)
        health = build_health(bus, path, streams, watching, numbers, desk.counts, clock, warnings)
        register, board = Register(held, Names(watched.naming)), Board(tasks, UlidFactory(clock))
        ground = Ground(log, bus, streams, watched, shared, desk, register, board, numbers.backends)
        joined, sessions = await closing.enter_async_context(tools_and_people(config, clock, ground))
        window = config.context.session_window
        others = [
            *model_endpoints(pool, recording, streams, clock, UlidFactory(clock), shared.pictures, window),
            *lock_endpoints(desk, register, streams),
            *task_endpoints(board, streams),
            *context_endpoints(watched.graphs, *shared, config.bus.data_max_bytes),
            *joined,
        ]
        beside, sizes = Beside(shared.pictures), (config.server.body_max_bytes, config.bus.data_max_bytes)
        listed = endpoints(bus, streams, health, watching, others, *sizes, beside)
        access = build_access(config.auth, peers_allowed, sessions.by_cookie)
        sockets = websockets(bus, streams, access, config.bus.data_max_bytes, desk, beside)
        app = build_front(listed, sockets, access, desk, config.server.allowed_hosts)
        yield Gateway(app, bus, streams, watching, health)
