"""The composition root: the only place that builds objects. Configuration in, a running gateway out."""

import asyncio
import contextlib
import logging
import random
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec
from prometheus_client.core import Metric
from starlette.applications import Starlette

from herdr import config as settings
from herdr.bus.beside import Beside
from herdr.bus.bus import AfterCommit, Bus, load_recent_ids, load_versions
from herdr.bus.deadlines import Deadlines
from herdr.bus.debounce import Debounce
from herdr.bus.decide import Judge
from herdr.bus.errand import Errand, Tentative
from herdr.bus.follow import Pages
from herdr.bus.inbox import Inbox
from herdr.bus.intake import Intake
from herdr.bus.lanes import Lanes
from herdr.bus.log import Log
from herdr.bus.overflow import Overflow
from herdr.bus.pending import Pending
from herdr.bus.publish import Publisher
from herdr.bus.rate_limit import FairBucket
from herdr.bus.recent_ids import RecentIds
from herdr.bus.rulebook import Rulebook
from herdr.bus.settle import Settlement
from herdr.bus.subscriptions import Subscriptions
from herdr.bus.tail import Tail
from herdr.bus.targets import Targets
from herdr.bus.writer import Writer
from herdr.clock import Clock
from herdr.errors import HerdrError, StartupError
from herdr.hooking.build import build_hooks
from herdr.ids import UlidFactory, new_epoch
from herdr.local_model.server import SLOTS_FOLDER, local_model
from herdr.locking.desk import Counts, Desk
from herdr.locking.held import HeldLocks
from herdr.locking.names import Names
from herdr.locking.register import Register
from herdr.locking.unlocked_writes import UnlockedWrites
from herdr.locks.naming import Naming
from herdr.pool.pool import Pool
from herdr.pool.prewarm import prewarm
from herdr.pool.upstream import client_session
from herdr.pooling import api_keys, build_pool, read_prompts
from herdr.recording import Recording
from herdr.sharing.graphs import Graphs
from herdr.sharing.shared import GRAPHS_FOLDER, MIB, build_graphs, shared_context
from herdr.sharing.snapshots import Snapshots
from herdr.storage.retention import Retention
from herdr.storage.sqlite.context.store import ContextStore
from herdr.storage.sqlite.folder import LOCK_NAME
from herdr.storage.sqlite.log import SqliteLog
from herdr.tasking.held import HeldTasks
from herdr.watching import SOURCE as WATCHER
from herdr.watching import Watching
from herdr.web.auth import Access, make_token
from herdr.web.context_routes import context_endpoints
from herdr.web.guard import Guard
from herdr.web.health import Health
from herdr.web.hook_routes import hook_endpoints
from herdr.web.lock_numbers import lock_health, lock_metrics
from herdr.web.lock_routes import lock_endpoints
from herdr.web.model_numbers import ModelNumbers
from herdr.web.model_routes import model_endpoints
from herdr.web.routes import endpoints, websockets
from herdr.web.streams import Streams
from herdr.web.surface import Endpoint, Front, build_methods, not_found, starlette_routes

CONTEXT_NAME = "context.db"  # beside the log
LOG_ENDS = ("", "-wal", "-shm")  # what SQLite calls the files of one database


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
        log, bus, held, _tasks = await closing.enter_async_context(running_bus(config, clock))
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
        inbox, register = Inbox(bus), Register(held, Names(watched.naming))
        hooks = build_hooks(bus, inbox, desk, register, watching.paths, watching.roots, clock, WATCHER)
        others = [
            *model_endpoints(
                pool,
                recording,
                streams,
                clock,
                UlidFactory(clock),
                shared.pictures,
                config.context.session_window,
            ),
            *lock_endpoints(desk, register, streams),
            *hook_endpoints(hooks, config.server.body_max_bytes),
            *context_endpoints(watched.graphs, *shared, config.bus.data_max_bytes),
        ]
        sizes = config.server.body_max_bytes, config.bus.data_max_bytes
        beside = Beside(shared.pictures)
        listed = endpoints(bus, streams, health, watching, others, *sizes, beside)
        access = build_access(config.auth, peers_allowed)
        sockets = websockets(bus, streams, access, config.bus.data_max_bytes, desk, beside)
        app = build_front(listed, sockets, access, desk, config.server.allowed_hosts)
        yield Gateway(app, bus, streams, watching, health)


@contextlib.asynccontextmanager
async def running_bus(
    config: settings.Config, clock: Clock
) -> AsyncIterator[tuple[SqliteLog, Bus, HeldLocks, HeldTasks]]:
    """Open the log and run the bus over it, with the locks and tasks that its writer decides about."""
    async with contextlib.AsyncExitStack() as closing:
        log = await open_log(config.bus, clock)
        closing.push_async_callback(log.close)
        held = HeldLocks(await log.load(HeldLocks.kind), clock, config.locks.expiry_delay_s)
        tasks = HeldTasks(await log.load(HeldTasks.kind), clock)
        bus = await build_bus(log, config.bus, config.routes, clock, held, tasks)
        await bus.start()
        closing.push_async_callback(bus.stop)
        for kept in (held, tasks):
            kept.start(bus.publisher)
            closing.push_async_callback(kept.stop)
        yield log, bus, held, tasks


class Watched(NamedTuple):
    """The watched folders, and what follows from what happens in them."""

    watching: Watching
    naming: Naming
    graphs: Graphs


@contextlib.asynccontextmanager
async def watched_folders(
    config: settings.Config, clock: Clock, log: Log, bus: Bus, held: HeldLocks
) -> AsyncIterator[Watched]:
    """Watch the workspaces: for the bus, for writes under others' locks, and for the project graphs."""
    path = Path(config.bus.persist_path)
    async with contextlib.AsyncExitStack() as closing:
        watching = Watching(bus.publisher, clock, path.parent, own_files(path), bus.remember)
        graphs = build_graphs(path.parent, config.context, clock, bus, WATCHER)
        closing.push_async_callback(graphs.stop)
        naming = Naming(watching.paths)
        unlocked = UnlockedWrites(held.table.find, naming.plain, bus.publisher, clock, WATCHER)
        closing.push_async_callback(unlocked.stop)
        unlocked.start()
        for listener in (unlocked, graphs):
            bus.publisher.tell_changes(listener.reported)
            watching.tell_changes(listener.saw)
        watching.tell_workspaces(graphs.followed, graphs.left)
        held.tell_grants(watching.look_at)
        closing.push_async_callback(watching.stop)
        watching.start(config.workspaces, await log.load("workspace"))
        yield Watched(watching, naming, graphs)


@contextlib.asynccontextmanager
async def running_pool(
    models: settings.ModelsSection,
    data: Path,
    environ: Mapping[str, str],
    clock: Clock,
    log: Log,
    bus: Bus,
    streams: Streams,
) -> AsyncIterator[tuple[Pool, Recording]]:
    """Run the model pool, with the gateway's own model server if it has one."""
    async with contextlib.AsyncExitStack() as closing:
        keys = api_keys(models, environ)
        models, own_key = await closing.enter_async_context(with_local_model(models, data))
        session = await closing.enter_async_context(client_session())
        recording = Recording(bus.publisher, bus.remember, clock, models.audit, await log.load("call"))
        new_id = UlidFactory(clock)
        pool = build_pool(models, keys | own_key, session, recording, clock, new_id, lambda: streams.stopping)
        closing.push_async_callback(pool.stop)
        prompts = await asyncio.to_thread(read_prompts, models.prewarm)
        pool.start()
        prewarming = asyncio.create_task(prewarm(pool, prompts), name="prewarm")
        closing.callback(prewarming.cancel)
        yield pool, recording


@contextlib.asynccontextmanager
async def with_local_model(
    models: settings.ModelsSection, data: Path
) -> AsyncIterator[tuple[settings.ModelsSection, dict[str, str]]]:
    """Start the gateway's own model server, if it has one.

    Yields the section with it as a backend, and its key: pages in a browser reach loopback ports too.
    """
    local = models.local
    if local.model is None:
        yield models, {}
        return
    log = logging.getLogger("herdr.pool")
    key = secrets.token_urlsafe(32)
    async with local_model(Path(local.model), local.slots, local.context, data, log, api_key=key) as url:
        own = settings.Backend(settings.LOCAL_NAME, "llamacpp", url)
        yield msgspec.structs.replace(models, backends=(own, *models.backends)), {own.name: key}


def own_files(log: Path) -> list[Path]:
    """Return the files that the gateway writes in its data folder."""
    others = (LOCK_NAME, SLOTS_FOLDER, GRAPHS_FOLDER)
    databases = (log.name, CONTEXT_NAME)
    return [log.with_name(name) for name in (*(f"{d}{end}" for d in databases for end in LOG_ENDS), *others)]


async def open_log(section: settings.BusSection, clock: Clock) -> SqliteLog:
    """Open the log that the configuration names."""
    kept = section.retention
    return await SqliteLog.open(
        Path(section.persist_path),
        clock=clock,
        durability=section.durability,
        retention=Retention(kept.max_age_s, kept.max_events, kept.max_bytes),
        new_epoch=new_epoch,
    )


async def open_context(
    path: Path, section: settings.ContextSection, durability: Literal["full", "os"], clock: Clock
) -> ContextStore:
    """Open the context's file beside the log."""
    return await ContextStore.open(
        path.with_name(CONTEXT_NAME),
        clock=clock,
        artifact_bytes=section.artifact_cache_size * MIB,
        durability=durability,
    )


async def load_snapshot(snapshots: Snapshots, graphs: Graphs, file: Path) -> None:
    """Begin the first workspace's graph with a snapshot; raises StartupError."""
    names = graphs.names()
    if not names:
        raise StartupError("a snapshot needs a workspace: name its folder with --workspace PATH")
    try:
        await snapshots.load_file(names[0], file)
    except OSError as error:
        raise StartupError(f"the snapshot {file} cannot be read: {error.strerror}") from error
    except HerdrError as error:
        raise StartupError(f"the snapshot {file}: {error.detail}") from error


async def build_bus(
    log: Log,
    section: settings.BusSection,
    file_rules: tuple[settings.RouteRule, ...],
    clock: Clock,
    *tentatives: Tentative,
) -> Bus:
    """Build the bus over an open log, with what the log remembers of earlier runs.

    `tentatives`: what errands change.
    """
    new_id = UlidFactory(clock)
    ids = RecentIds()
    await load_recent_ids(log, ids)
    versions = await load_versions(log)
    lanes: Lanes[Pending | Errand] = Lanes(section.buffer_size)
    debounce: Debounce[Pending] = Debounce(
        section.debounce_ms / 1000, section.debounce_max_ms / 1000, section.buffer_size
    )
    bucket = FairBucket(section.p2_per_s)
    intake = Intake(lanes, debounce, Overflow(), bucket, new_id, ids.find, section.debounce_ms > 0)
    tail = Tail(log.head, section.buffer_size)
    pages = Pages(log, tail, clock)
    deadlines = Deadlines(clock)
    judge = Judge(log.epoch, versions, intake.own)
    after = AfterCommit(tail, pages, deadlines)
    settlement = Settlement(ids, versions, clock, log.head, after, tentatives)
    writer = Writer(log, lanes, judge, settlement, clock)
    publisher = Publisher(lanes, intake, writer, settlement.committed, clock)
    rulebook = Rulebook(await log.load("route"), file_rules)
    publisher.use_table(rulebook.table)
    targets = Targets(await log.load("target"))
    subscriptions = Subscriptions(log, pages, targets, rulebook, writer, deadlines, clock)
    return Bus(log, publisher, subscriptions, rulebook, writer, after)


def build_health(
    bus: Bus,
    path: Path,
    streams: Streams,
    watching: Watching,
    models: ModelNumbers,
    locks: Counts,
    clock: Clock,
    warnings: tuple[str, ...],
) -> Health:
    """Build the health endpoints over all parts."""

    def store() -> Mapping[str, Any]:
        sizes = [Path(f"{path}{end}").stat().st_size for end in ("", "-wal") if Path(f"{path}{end}").exists()]
        return {"kind": "sqlite", "first": bus.log.first, "head": bus.log.head, "bytes": sum(sizes)}

    def extra() -> Mapping[str, Any]:
        troubles = [*watching.troubles(), *models.troubles]
        return {
            "workspaces": watching.state(),
            "troubles": troubles,
            "warnings": list(warnings),
            "locks": lock_health(locks),
        }

    def families() -> Iterator[Metric]:
        yield from models.metrics()
        yield from lock_metrics(locks)

    return Health(
        bus, streams, models, started=clock.monotonic(), store=store, extra=extra, families=families
    )


def build_access(section: settings.AuthSection, peers_allowed: frozenset[str] | None) -> Access:
    """Build what tells who may call."""
    tokens = [make_token(t.name, t.token or "", t.scopes) for t in section.tokens]
    return Access(tokens, None if section.open else peers_allowed)


def build_front(
    listed: list[Endpoint],
    sockets: dict[str, Any],
    access: Access,
    desk: Desk,
    allowed_hosts: tuple[str, ...],
) -> Front:
    """Build the web application over all endpoints."""
    by_path = build_methods(listed, access, desk.carried)
    starlette = Starlette(routes=starlette_routes(by_path, sockets))
    starlette.router.default = not_found
    starlette.router.redirect_slashes = False
    fixed = {path: methods for path, methods in by_path.items() if "{" not in path}
    return Front(fixed, starlette, Guard(allowed_hosts))
