"""Locks over a real bus and a log in memory, in virtual time: answers, leases, delays, faults, restarts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from itertools import count
from typing import Any

import msgspec
import pytest
from buses import FaultyLog, until
from virtual_time import VirtualClock, pass_time, run

from herdr.app.bus import build_bus
from herdr.bus.bus import Bus
from herdr.bus.log import Batch
from herdr.bus.timers import SLICE, STILL_S
from herdr.config import BusSection
from herdr.errors import HerdrError, LogUnavailable, NotFound
from herdr.event import Draft
from herdr.locking.desk import Desk
from herdr.locking.held import HeldLocks
from herdr.locking.names import Names
from herdr.locking.register import Register
from herdr.locks.events import outcome_of
from herdr.locks.lock import Lock, Wanted
from herdr.locks.naming import Naming
from herdr.locks.refusals import Deadlock, Fenced, Locked
from herdr.locks.table import Table
from herdr.locks.views import Leased

DELAY_S = 3.0


class World:
    def __init__(
        self, bus: Bus, desk: Desk, register: Register, held: HeldLocks, log: FaultyLog, clock: VirtualClock
    ) -> None:
        self.bus, self.desk, self.register = bus, desk, register
        self.held, self.log, self.clock = held, log, clock

    async def lock(self, owner: str, *paths: str, **more: Any) -> Leased:
        return (await self.desk.lock(Wanted(paths=paths, owner=owner, **more))).leased

    def begin(self, owner: str, *paths: str, **more: Any) -> "asyncio.Task[Leased]":
        return asyncio.create_task(self.lock(owner, *paths, **more))

    async def hold_up(self) -> "asyncio.Task[Any]":
        """Have one event's commit wait until `log.held` is set, so that what comes now shares a batch."""
        self.log.held = asyncio.Event()
        task = asyncio.create_task(self.bus.publisher.publish([Draft("tool.result")], "t"))
        await until(lambda: self.log.holds)
        return task

    def go_on(self) -> None:
        assert self.log.held is not None
        self.log.held.set()

    async def in_line(self, number: int) -> None:
        await until(lambda: len(self.held.table.waiters()) == number)

    @property
    def told(self) -> list[tuple[str, str]]:
        """(Type, owner) of every lock event so far."""
        return [
            (e.type, _data(e.body).get("owner", ""))
            for e in self.log._events.values()
            if e.type.startswith("lock.")
        ]

    async def owners(self) -> list[str]:
        return [lock["owner"] for lock in (await self.register.listed(None, None, None))["locks"]]


def _data(body: bytes) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.json.decode(body)["data"]
    return data


@contextlib.asynccontextmanager
async def world_over(log: FaultyLog, clock: VirtualClock) -> AsyncIterator[World]:
    """A gateway's locks over this log, as a process would start over it."""
    held = HeldLocks(await log.load("lock"), clock, DELAY_S)
    bus = await build_bus(log, BusSection(p2_per_s=0), (), clock, held)
    await bus.start()
    held.start(bus.publisher)
    ids = count(log.head * 1000)
    names = Names(Naming(dict))
    desk = Desk(held, names, lambda: f"L{next(ids)}")
    try:
        yield World(bus, desk, Register(held, names), held, log, clock)
    finally:
        log.fails = lambda: False
        await held.stop()
        await bus.stop()


def play(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with world_over(FaultyLog(), clock) as world:
            await story(world)

    run(main(), clock)


async def refused(attempt: Awaitable[object]) -> Locked:
    with pytest.raises(Locked) as error:
        await attempt
    return error.value


def test_a_lease_that_runs_out_keeps_others_off_a_moment_longer() -> None:
    async def story(world: World) -> None:
        first = await world.lock("a", "x.py", ttl_s=10)
        await pass_time(10.5)
        assert world.told == [("lock.granted", "a"), ("lock.expired", "a")]
        late = await refused(world.lock("b", "x.py"))
        assert late.conflicts[0]["state"] == "expired" and late.retry_after_s == 3
        with pytest.raises(NotFound):
            await world.desk.renew(first.lock, first.token)
        with pytest.raises(NotFound):
            await world.desk.release(first.lock, first.token)
        await pass_time(DELAY_S)
        assert await world.log.load("lock") == {}
        second = await world.lock("b", "x.py")
        assert second.token > first.token

    play(story)


def test_those_who_give_no_name_exclude_each_other() -> None:
    async def story(world: World) -> None:
        first = (await world.desk.lock(Wanted(paths=("x.py",), owner=None))).leased
        error = await refused(world.desk.lock(Wanted(paths=("x.py",), owner=None)))
        assert error.conflicts[0]["owner"] == first.owner == f"anonymous-{first.lock}"

    play(story)


def test_a_release_keeps_nobody_off() -> None:
    async def story(world: World) -> None:
        first = await world.lock("a", "x.py")
        await world.desk.release(first.lock, first.token)
        await world.lock("b", "x.py")
        assert await world.owners() == ["b"]
        assert first.lock not in world.held.endings.timers and len(await world.log.load("lock")) == 1

    play(story)


def test_a_renewed_lease_runs_its_new_time() -> None:
    async def story(world: World) -> None:
        first = await world.lock("a", "x.py", ttl_s=10)
        await pass_time(9)
        again = await world.desk.renew(first.lock, first.token, 20)
        assert (again.token, again.ttl_s) == (first.token, 20)
        await pass_time(19.9)
        assert await world.owners() == ["a"]
        await pass_time(0.2)
        assert await world.owners() == []

    play(story)


def test_who_asks_again_for_what_it_holds_extends_it() -> None:
    async def story(world: World) -> None:
        first = await world.lock("a", "src/", ttl_s=10)
        await pass_time(8)
        again = await world.lock("a", "src/deep/x.py", ttl_s=30)
        assert (again.lock, again.token, again.paths) == (first.lock, first.token, first.paths)
        await pass_time(29)
        assert await world.owners() == ["a"]

    play(story)


def test_who_waits_gets_it_with_the_release() -> None:
    async def story(world: World) -> None:
        first = await world.lock("a", "x.py")
        second, third = world.begin("b", "x.py", wait_s=50), world.begin("c", "x.py", wait_s=50)
        await world.in_line(2)
        listed = await world.register.listed(None, None, None)
        assert listed["locks"][0]["waiters"] == ["b", "c"]
        assert [(w["owner"], w["blockers"]) for w in listed["waiting"]] == [("b", ["a"]), ("c", ["a", "b"])]
        await world.desk.release(first.lock, first.token)
        got = await second
        assert not third.done()
        await world.desk.release(got.lock, got.token)
        assert (await third).token > got.token > first.token

    play(story)


def test_who_waits_too_long_is_told_who_holds_it() -> None:
    async def story(world: World) -> None:
        await world.lock("a", "x.py", purpose="rename")
        before = world.clock.now
        error = await refused(world.lock("b", "x.py", wait_s=7))
        assert world.clock.now - before == pytest.approx(7, abs=0.01)
        assert [(c["owner"], c["purpose"]) for c in error.conflicts] == [("a", "rename")]
        assert world.held.table.waiters() == ()
        assert "rename" in error.detail and "wait_s" in error.detail

    play(story)


def test_who_is_cancelled_leaves_the_line_and_lets_those_behind_pass() -> None:
    async def story(world: World) -> None:
        await world.lock("a", "x.py")
        second = world.begin("b", "x.py", "y.py", wait_s=50)
        await world.in_line(1)
        third = world.begin("c", "y.py", wait_s=50)
        await world.in_line(2)
        second.cancel()
        assert (await third).owner == "c"
        assert world.held.table.waiters() == ()

    play(story)


def test_what_is_granted_to_one_that_has_just_gone_is_given_back() -> None:
    async def story(world: World) -> None:
        world.log.held = asyncio.Event()
        asking = world.begin("a", "x.py")
        await until(lambda: world.log.holds)  # decided, and not yet committed
        asking.cancel()
        await asyncio.wait([asking])
        world.go_on()
        await world.lock("b", "x.py")
        assert world.told == [("lock.granted", "a"), ("lock.released", "a"), ("lock.granted", "b")]

    play(story)


def test_a_cycle_is_named_to_who_closes_it_and_to_the_others() -> None:
    async def story(world: World) -> None:
        await world.lock("a", "x.py")
        await world.lock("b", "y.py")
        waiting = world.begin("a", "y.py", wait_s=100)
        await world.in_line(1)
        with pytest.raises(Deadlock) as error:
            await world.lock("b", "x.py", wait_s=100)
        assert error.value.cycle == ["b", "a", "b"]
        event = next(e for e in world.log._events.values() if e.type == "lock.deadlock")
        assert _data(event.body) == {"cycle": ["b", "a", "b"], "closed_by": "b"}
        assert [d.target for d in event.deliveries] == ["a"]
        assert (await refused(world.lock("b", "x.py"))).conflicts  # without waiting it is only locked
        waiting.cancel()

    play(story)


def test_declared_waits_count_and_end_by_themselves() -> None:
    async def story(world: World) -> None:
        await world.lock("b", "x.py", ttl_s=3000)
        declared = await world.desk.declare("b", "a", "needs the report", 100)
        with pytest.raises(Deadlock):
            await world.lock("a", "x.py", wait_s=5)
        again = await world.desk.declare("b", "a", None, 200)
        assert again["wait"] == declared["wait"]
        await pass_time(150)
        with pytest.raises(Deadlock):
            await world.lock("a", "x.py", wait_s=5)
        await pass_time(60)
        await refused(world.lock("a", "x.py", wait_s=5))
        with pytest.raises(NotFound):
            await world.desk.end_wait(declared["wait"])

    play(story)


def test_a_declared_wait_can_close_the_cycle() -> None:
    async def story(world: World) -> None:
        await world.lock("b", "x.py")
        waiting = world.begin("a", "x.py", wait_s=50)
        await world.in_line(1)
        with pytest.raises(Deadlock) as error:
            await world.desk.declare("b", "a", None, 100)
        assert error.value.cycle == ["b", "a", "b"]
        assert (await world.register.listed(None, None, None))["waits"] == []
        waiting.cancel()

    play(story)


def test_a_token_carried_by_a_call_renews_and_one_that_is_gone_is_refused() -> None:
    async def story(world: World) -> None:
        lease = await world.lock("a", "x.py", ttl_s=100)
        await world.desk.carried([lease.token])
        assert len(world.told) == 1  # fresh enough
        await pass_time(50)
        await world.desk.carried([lease.token])
        await pass_time(99)
        assert await world.owners() == ["a"]
        await pass_time(2)
        with pytest.raises(Fenced):
            await world.desk.carried([lease.token])

    play(story)


def test_a_token_that_comes_twice_renews_once() -> None:
    async def story(world: World) -> None:
        lease = await world.lock("a", "x.py", ttl_s=100)
        await pass_time(90)
        await world.desk.carried([lease.token] * 16)
        assert [told for told, _ in world.told] == ["lock.granted", "lock.renewed"]

    play(story)


def test_a_token_whose_lease_has_just_run_out_is_not_taken_for_a_fresh_one() -> None:
    """The call comes between the moment in which the lease ends and its expiry's commit."""

    async def story(world: World) -> None:
        lease = await world.lock("a", "x.py", ttl_s=10)
        await pass_time(9.99)
        holding = await world.hold_up()
        await pass_time(0.02)  # the expiry waits for the commit that is under way
        assert world.held.left_s(lease.lock) == 0
        carrying = asyncio.create_task(world.desk.carried([lease.token]))
        await pass_time(0.01)
        world.go_on()
        await holding
        with pytest.raises(Fenced):
            await carrying

    play(story)


def test_leases_that_end_together_end_in_few_commits() -> None:
    async def story(world: World) -> None:
        for n in range(300):
            await world.lock(f"o{n}", f"d{n}.py", ttl_s=50)
        world.clock.now += 100
        before = len(world.log.batches)
        await pass_time(STILL_S + DELAY_S + 1)
        assert await world.owners() == [] and await world.log.load("lock") == {}
        assert len(world.log.batches) - before <= 2 * (300 // SLICE + 1)

    play(story)


def test_after_a_standstill_those_who_wait_to_renew_go_first() -> None:
    """The process was halted, not its clients: what they sent meanwhile lies in its sockets."""

    async def story(world: World) -> None:
        lease = await world.lock("a", "x.py", ttl_s=10)
        gone = await world.lock("b", "y.py", ttl_s=10)
        world.clock.now += 60
        await pass_time(0.5)  # until its sockets are read
        await world.desk.renew(lease.lock, lease.token)
        await pass_time(5)
        assert await world.owners() == ["a"] and gone.lock not in await world.log.load("lock")

    play(story)


def test_asking_again_never_shortens_a_lease() -> None:
    async def story(world: World) -> None:
        await world.lock("a", "src/", ttl_s=100)
        again = await world.lock("a", "src/x.py", ttl_s=1)
        assert again.ttl_s == 100
        await pass_time(99)
        assert await world.owners() == ["a"]

    play(story)


def test_a_lease_that_ran_out_leaves_nothing_behind() -> None:
    async def story(world: World) -> None:
        for n in range(20):
            await world.lock("a", f"{n}.py", ttl_s=1)
        await pass_time(1 + DELAY_S + 1)
        assert world.held._tokens == {} and len(world.held.endings.timers._leases) == 0

    play(story)


def test_a_wait_that_is_declared_again_as_it_ends_goes_on() -> None:
    async def story(world: World) -> None:
        await world.desk.declare("a", "b", None, 10)
        await pass_time(9.99)
        holding = await world.hold_up()
        again = asyncio.create_task(world.desk.declare("a", "b", None, 100))
        await pass_time(0.02)  # its end and its renewal wait for one and the same commit
        world.go_on()
        await holding
        declared = (await again)["wait"]
        await pass_time(99)
        assert [wait["wait"] for wait in await world.register.waits()] == [declared]
        await pass_time(2)
        assert await world.register.waits() == []

    play(story)


def test_a_declaration_whose_caller_has_gone_ends_all_the_same() -> None:
    async def story(world: World) -> None:
        holding = await world.hold_up()
        first = world.begin("x", "x.py")  # something to commit together with it
        declaring = asyncio.create_task(world.desk.declare("a", "b", None, 10))
        world.go_on()
        await until(lambda: len(world.held.table.waits()) == 1)
        declaring.cancel()
        await asyncio.wait([declaring, holding, first])
        await pass_time(11)
        assert await world.register.waits() == []

    play(story)


def test_who_leaves_the_line_while_the_log_fails_has_left_it_when_it_is_back() -> None:
    async def story(world: World) -> None:
        first = await world.lock("a", "x.py")
        second = world.begin("b", "x.py", "y.py", wait_s=500)
        await world.in_line(1)
        third = world.begin("c", "y.py", wait_s=500)
        await world.in_line(2)
        world.log.fails = lambda: True
        second.cancel()
        await pass_time(5)
        assert len(world.held.table.waiters()) == 2, (
            "its leaving would grant something, which cannot be stored"
        )
        world.log.fails = lambda: False
        assert (await third).owner == "c"
        await world.desk.release(first.lock, first.token)
        await pass_time(5)
        assert await world.owners() == ["c"]

    play(story)


def test_the_same_cycle_is_told_once_however_often_it_is_tried() -> None:
    async def story(world: World) -> None:
        await world.lock("b", "x.py")
        await world.desk.declare("b", "a", None, 3000)
        for _ in range(20):
            with pytest.raises(Deadlock):
                await world.lock("a", "x.py", wait_s=5)
        assert [told for told, _ in world.told].count("lock.deadlock") == 1
        await pass_time(11)
        with pytest.raises(Deadlock):
            await world.lock("a", "x.py", wait_s=5)
        assert [told for told, _ in world.told].count("lock.deadlock") == 2
        assert world.desk.counts.deadlocks == 21

    play(story)


def test_a_mistake_of_the_table_harms_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        renew = world.held.table.renew

        def renew_and_stumble(*args: Any) -> Any:
            renew(*args)
            raise KeyError("a mistake of the table (planted)")

        lease = await world.lock("a", "x.py", ttl_s=100)
        monkeypatch.setattr(world.held.table, "renew", renew_and_stumble)
        holding = await world.hold_up()
        stumbling = asyncio.create_task(world.desk.renew(lease.lock, lease.token, 7))
        beside = world.begin("b", "y.py")
        world.go_on()
        with pytest.raises(HerdrError, match="its log says which"):
            await stumbling
        await holding
        assert (await beside).owner == "b"
        assert [lock.ttl_s for lock in world.held.table.held()] == [100, 60]

    play(story)


def test_a_log_that_is_well_again_is_noticed_though_nobody_writes() -> None:
    async def story(world: World) -> None:
        world.log.fails = lambda: True
        with pytest.raises(LogUnavailable):
            await world.lock("a", "x.py")
        world.log.fails = lambda: False
        for _ in range(10):  # as a dashboard would, more often than the writer tries by itself
            with contextlib.suppress(LogUnavailable):
                await world.register.listed(None, None, None)
            await pass_time(0.2)
        assert world.bus.failure is None

    play(story)


def test_whoever_goes_takes_no_lock_along_that_another_request_was_told_of() -> None:
    async def story(world: World) -> None:
        holder = await world.lock("b", "x.py")
        first, again = world.begin("a", "x.py", wait_s=50), world.begin("a", "x.py", wait_s=50)
        await world.in_line(2)
        world.log.held = asyncio.Event()
        releasing = asyncio.create_task(world.desk.release(holder.lock, holder.token))
        await until(lambda: world.log.holds)
        first.cancel()
        world.go_on()
        await releasing
        lease = await again
        await pass_time(5)
        assert (await world.desk.renew(lease.lock, lease.token)).owner == "a"
        assert "lock.released" not in [told for told, owner in world.told if owner == "a"]

    play(story)


def test_asks_given_up_while_the_log_fails_hold_nothing_up_when_it_is_back() -> None:
    async def story(world: World) -> None:
        await world.lock("b", "y.py", ttl_s=10)
        world.log.fails = lambda: True
        for _ in range(300):
            with pytest.raises(LogUnavailable):
                await world.lock("a", "x.py")
        world.log.fails = lambda: False
        await pass_time(3)
        assert world.held.endings._gone == {} and await world.owners() in ([], ["b"])
        await pass_time(15)
        assert await world.owners() == [] and len(world.held.endings.timers._leases) == 0

    play(story)


def test_a_standstill_during_a_commit_counts_too() -> None:
    async def story(world: World) -> None:
        await world.lock("b", "y.py", ttl_s=10)
        lease = await world.lock("a", "x.py", ttl_s=30)
        await pass_time(9.99)
        world.log.held = asyncio.Event()
        await pass_time(0.02)
        await until(lambda: world.log.holds)  # b's end is being committed
        world.clock.now += 60
        world.go_on()
        await pass_time(0.5)
        await world.desk.renew(lease.lock, lease.token)
        await pass_time(5)
        assert await world.owners() == ["a"]

    play(story)


def test_a_cycle_whose_event_was_not_stored_is_told_the_next_time() -> None:
    async def story(world: World) -> None:
        await world.lock("b", "x.py")
        await world.desk.declare("b", "a", None, 3000)
        world.log.fails = lambda: True
        with pytest.raises(LogUnavailable):
            await world.lock("a", "x.py", wait_s=5)
        world.log.fails = lambda: False
        await pass_time(2)
        with pytest.raises(Deadlock):
            await world.lock("a", "x.py", wait_s=5)
        assert [told for told, _ in world.told].count("lock.deadlock") == 1

    play(story)


def test_many_calls_at_once_with_one_token_renew_once() -> None:
    async def story(world: World) -> None:
        lease = await world.lock("a", "x.py", ttl_s=100)
        await pass_time(90)
        await asyncio.gather(*(world.desk.carried([lease.token]) for _ in range(200)))
        assert [told for told, _ in world.told] == ["lock.granted", "lock.renewed"]

    play(story)


def test_a_lock_just_granted_is_shown_with_its_own_end() -> None:
    """Not with the end of its holder's wait in line, which is over."""

    async def story(world: World) -> None:
        first = await world.lock("c", "x.py")
        granted = world.begin("a", "x.py", ttl_s=10, wait_s=500)
        await world.in_line(1)
        holding = await world.hold_up()
        releasing = asyncio.create_task(world.desk.release(first.lock, first.token))
        denied = world.begin("b", "x.py")
        await pass_time(0.01)
        world.go_on()
        error = await refused(denied)
        await asyncio.wait([holding, granted, releasing])
        assert error.retry_after_s == 10

    play(story)


def test_who_gave_no_name_cannot_be_expected_to_report_under_it() -> None:
    async def story(world: World) -> None:
        await world.desk.lock(Wanted(paths=("x.py",), owner=None))
        await world.desk.lock(Wanted(paths=("y.py",), owner="a"))
        assert [lock.reports for lock in world.held.table.held()] == [False, True]

    play(story)


def test_force_tells_the_holder_who_did_it_and_why() -> None:
    async def story(world: World) -> None:
        lease = await world.lock("a", "x.py")
        await world.desk.force(lease.lock, "it hangs", "operator")
        event = next(e for e in world.log._events.values() if e.type == "lock.released")
        data = _data(event.body)
        assert (data["reason"], data["by"], [d.target for d in event.deliveries]) == (
            "it hangs",
            "operator",
            ["a"],
        )
        with pytest.raises(NotFound):
            await world.desk.release(lease.lock, lease.token)

    play(story)


def test_a_wrong_token_changes_nothing() -> None:
    async def story(world: World) -> None:
        lease = await world.lock("a", "x.py")
        for attempt in (
            world.desk.release(lease.lock, lease.token + 1),
            world.desk.renew(lease.lock, lease.token - 1),
        ):
            with pytest.raises(Fenced):
                await attempt
        assert await world.owners() == ["a"] and len(world.told) == 1

    play(story)


def test_nothing_is_granted_that_could_not_be_committed() -> None:
    async def story(world: World) -> None:
        world.log.fails = lambda: True
        with pytest.raises(LogUnavailable):
            await world.lock("a", "x.py")
        world.log.fails = lambda: False
        await pass_time(2)
        assert world.bus.failure is None
        assert (await world.lock("b", "x.py")).owner == "b"
        assert world.told == [("lock.granted", "b")]

    play(story)


def test_an_expiry_that_the_log_does_not_take_comes_later() -> None:
    async def story(world: World) -> None:
        await world.lock("a", "x.py", ttl_s=10)
        world.log.fails = lambda: True
        await pass_time(30)
        world.log.fails = lambda: False
        await pass_time(5)
        assert world.told == [("lock.granted", "a"), ("lock.expired", "a")]

    play(story)


def test_waiters_survive_a_commit_that_fails() -> None:
    async def story(world: World) -> None:
        first = await world.lock("a", "x.py")
        waiting = world.begin("b", "x.py", wait_s=500)
        await world.in_line(1)
        world.log.fails = lambda: True
        with pytest.raises(LogUnavailable):
            await world.desk.release(first.lock, first.token)
        world.log.fails = lambda: False
        await pass_time(2)
        assert world.bus.failure is None
        assert not waiting.done() and await world.owners() == ["a"]
        await world.desk.release(first.lock, first.token)
        assert (await waiting).owner == "b"

    play(story)


def test_a_release_that_had_happened_after_all_lets_the_next_in_line_have_it() -> None:
    """Its commit reported an error, and the log, opened again, has it: release and grant."""

    async def story(world: World) -> None:
        first = await world.lock("a", "x.py")
        waiting, behind = world.begin("b", "x.py", wait_s=500), world.begin("c", "x.py", wait_s=500)
        await world.in_line(2)
        append = world.log.append

        async def append_and_report_an_error(batch: Batch) -> None:
            world.log.append = append  # type: ignore[method-assign]
            await append(batch)
            raise LogUnavailable("the fsync failed (planted)")

        world.log.append = append_and_report_an_error  # type: ignore[method-assign]
        with pytest.raises(LogUnavailable):
            await world.desk.release(first.lock, first.token)
        assert (await waiting).owner == "b"
        assert await world.owners() == ["b"] and not behind.done()
        got = waiting.result()
        await world.desk.release(got.lock, got.token)
        assert (await behind).owner == "c"

    play(story)


def restarted(clock: VirtualClock, stories: Sequence[Callable[[World], Coroutine[Any, Any, None]]]) -> None:
    """Play the stories over one log, with a restart between them."""

    async def main() -> None:
        log = FaultyLog()
        for story in stories:
            async with world_over(log, clock) as world:
                await story(world)

    run(main(), clock)


def test_after_a_restart_leases_run_their_full_time_and_waiters_ask_anew() -> None:
    clock = VirtualClock()
    tokens: list[int] = []

    async def before(world: World) -> None:
        tokens.append((await world.lock("a", "x.py", ttl_s=100)).token)
        waiting = world.begin("b", "x.py", wait_s=500)
        await world.in_line(1)
        await pass_time(90)
        waiting.cancel()
        await asyncio.wait([waiting])
        clock.now += 10_000  # the gateway is away, or the wall clock jumps: no lease ends by it

    async def after(world: World) -> None:
        assert await world.owners() == ["a"] and world.held.table.waiters() == ()
        await pass_time(99)
        assert (await world.lock("a", "x.py", ttl_s=100)).token == tokens[0]
        await pass_time(101)
        assert await world.owners() == []

    restarted(clock, [before, after])


def test_the_delay_after_an_expiry_begins_anew_after_a_restart() -> None:
    clock = VirtualClock()

    async def before(world: World) -> None:
        await world.lock("a", "x.py", ttl_s=10)
        await pass_time(11)

    async def after(world: World) -> None:
        await refused(world.lock("b", "x.py"))
        await pass_time(DELAY_S + 0.1)
        await world.lock("b", "x.py")

    restarted(clock, [before, after])


def test_the_log_alone_gives_the_same_locks_as_the_stored_ones() -> None:
    async def story(world: World) -> None:
        leases = [await world.lock(f"o{n}", f"d{n}/", ttl_s=5 + n) for n in range(20)]
        for lease in leases[::3]:
            await world.desk.release(lease.lock, lease.token)
        for lease in leases[1::3]:
            await world.desk.renew(lease.lock, lease.token, 500)
        await pass_time(15 + DELAY_S)
        table = Table()
        for event in world.log._events.values():
            body = msgspec.json.encode(_data(event.body))
            known = {lock.lock: lock for lock in table.held()}
            if (outcome := outcome_of(event.type, body, event.seq, known)) is not None:
                table.apply(outcome)
        stored = [msgspec.json.decode(raw, type=Lock) for raw in (await world.log.load("lock")).values()]
        kept = sorted((lock for lock in stored if not lock.expired), key=lambda lock: lock.token)
        assert list(table.held()) == kept == list(world.held.table.held())
        assert 0 < len(kept) < 20

    play(story)
