"""Everything of the shared context that runs in the gateway, opened and closed in order."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from herdr.bus.bus import Bus
from herdr.clock import Clock
from herdr.config import ContextSection
from herdr.context.tokens import Counter
from herdr.errors import HerdrError
from herdr.pool.backends.llamacpp import LlamaCpp
from herdr.pool.pool import Pool
from herdr.sharing.counting import BackendCounter, local_counter, preferred_counter
from herdr.sharing.folding import Folder
from herdr.sharing.graphs import Announce, Graphs
from herdr.sharing.pictures import Pictures
from herdr.sharing.sessions import Sessions
from herdr.sharing.shelf import ArtifactShelf
from herdr.sharing.snapshots import Snapshots
from herdr.sharing.store import Store
from herdr.sharing.written import Summariser

MIB = 1024 * 1024
GRAPHS_FOLDER = "graph"
TIDY_S = 60.0  # between slices of upkeep while nothing is due; used times are written as often

_log = logging.getLogger("herdr.context")


class Shared(NamedTuple):
    """The parts that others need, in the order in which the surface takes them."""

    pictures: Pictures
    sessions: Sessions
    shelf: ArtifactShelf
    snapshots: Snapshots


def build_graphs(
    folder: Path, section: ContextSection, clock: Clock, bus: Bus, watcher_source: str
) -> Graphs:
    """Build the graphs, which must be there before the first workspace is watched."""
    return Graphs(folder / GRAPHS_FOLDER, section.project_graph_ttl, clock, _announcer(bus), watcher_source)


@contextlib.asynccontextmanager
async def shared_context(
    store: Store,
    graphs: Graphs,
    section: ContextSection,
    bus: Bus,
    clock: Clock,
    pool: Pool,
    *,
    read_only: bool = False,
) -> AsyncIterator[Shared]:
    """Run the shared context over an open store; the pool's backends count tokens and, if asked to, summarise.

    `read_only`: for CI. Nothing that is said or stored is kept.
    """
    announce = _announcer(bus)
    async with contextlib.AsyncExitStack() as closing:
        sessions = Sessions(
            store.histories, bus.subscriptions, bus.publisher, Folder(), local_counter(), read_only
        )
        closing.push_async_callback(sessions.stop)
        await sessions.start(bus.epoch)
        shelf = ArtifactShelf(store.artifacts, clock, announce, read_only)
        closing.push_async_callback(shelf.stop)
        shelf.start()
        summariser = Summariser(pool) if section.summariser == "model" else None
        if summariser is not None:
            closing.push_async_callback(summariser.stop)
        counter = preferred_counter(backend_counters(pool, clock))
        pictures = Pictures(graphs, sessions, shelf, store.blobs, counter, section.session_window, summariser)
        snapshots = Snapshots(graphs, shelf, sessions, graphs.folder, clock, announce)
        await asyncio.to_thread(snapshots.clear)
        tidying = asyncio.create_task(_tidy(store), name="context upkeep")
        closing.callback(tidying.cancel)
        yield Shared(pictures, sessions, shelf, snapshots)


def backend_counters(pool: Pool, clock: Clock) -> list[Counter]:
    """Return counters that ask the backends which have a tokenizer of their own."""
    backends = [line.backend for line in pool.lines.values()]
    return [BackendCounter(b.name, b.tokenize, clock) for b in backends if isinstance(b, LlamaCpp)]


async def _tidy(store: Store) -> None:
    while True:
        try:
            more = await store.tidy()
        except HerdrError as error:
            _log.error("the context's file cannot be tidied: %s", error.detail)
            more = False
        await asyncio.sleep(0 if more else TIDY_S)


def _announcer(bus: Bus) -> Announce:
    def announce(type_: str, data: Any, workspace: str, subject: str | None) -> None:
        bus.publisher.announce(type_, data, workspace=workspace, subject=subject)

    return announce
