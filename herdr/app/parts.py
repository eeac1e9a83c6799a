"""What runs beside the bus: watched folders, the model pool, the shared context's file."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from herdr import config as settings
from herdr.bus.bus import Bus
from herdr.bus.log import Log
from herdr.clock import Clock
from herdr.errors import HerdrError, StartupError
from herdr.ids import UlidFactory
from herdr.local_model.server import SLOTS_FOLDER, local_model
from herdr.locking.held import HeldLocks
from herdr.locking.unlocked_writes import UnlockedWrites
from herdr.locks.naming import Naming
from herdr.pool.pool import Pool
from herdr.pool.prewarm import prewarm
from herdr.pool.upstream import client_session
from herdr.pooling import api_keys, build_pool, read_prompts
from herdr.recording import Recording
from herdr.sharing.graphs import Graphs
from herdr.sharing.shared import GRAPHS_FOLDER, MIB, build_graphs
from herdr.sharing.snapshots import Snapshots
from herdr.storage.sqlite.context.store import ContextStore
from herdr.storage.sqlite.folder import LOCK_NAME
from herdr.watching import SOURCE as WATCHER
from herdr.watching import Watching
from herdr.web.streams import Streams

CONTEXT_NAME = "context.db"  # beside the log
LOG_ENDS = ("", "-wal", "-shm")  # what SQLite calls the files of one database


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
