"""The log and the bus over it."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from herdr import config as settings
from herdr.bus.bus import AfterCommit, Bus, load_recent_ids, load_versions
from herdr.bus.deadlines import Deadlines
from herdr.bus.debounce import Debounce
from herdr.bus.decide import Judge
from herdr.bus.errand import Errand, Tentative
from herdr.bus.follow import Pages
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
from herdr.ids import UlidFactory, new_epoch
from herdr.locking.held import HeldLocks
from herdr.storage.retention import Retention
from herdr.storage.sqlite.log import SqliteLog
from herdr.tasking.held import HeldTasks


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
