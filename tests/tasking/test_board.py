"""Tasks over a real bus and a log in memory, in virtual time: answers, leases, those in line, faults, restarts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import count
from typing import Any

import msgspec
import pytest
from buses import FaultyLog, until
from virtual_time import VirtualClock, pass_time, run

from herdr.app.bus import build_bus
from herdr.bus.bus import Bus
from herdr.bus.log import Batch
from herdr.config import BusSection
from herdr.errors import HerdrError, LogUnavailable, NotFound
from herdr.event import Draft
from herdr.tasking.board import Board, View
from herdr.tasking.endings import RETRY_S
from herdr.tasking.held import HeldTasks
from herdr.tasks.events import new_of, step_of
from herdr.tasks.refusals import NotHolder, TaskConflict
from herdr.tasks.state import State
from herdr.tasks.task import New, Note


class World:
    def __init__(self, bus: Bus, board: Board, held: HeldTasks, log: FaultyLog, clock: VirtualClock) -> None:
        self.bus, self.board, self.held, self.log, self.clock = bus, board, held, log, clock

    async def create(self, task: str = "T1", role: str = "coder", **more: Any) -> View:
        new = New(task=task, title=f"Title of {task}", role=role, by="ann", **more)
        return (await self.board.create(new)).view

    async def next(
        self, owner: str, role: str = "coder", ttl_s: float = 60, wait_s: float = 0
    ) -> View | None:
        return await self.board.claim_next(owner, role, "default", ttl_s, wait_s)

    async def take(self, owner: str, role: str = "coder", **more: Any) -> View:
        found = await self.next(owner, role, **more)
        assert found is not None
        return found

    def begin(self, owner: str, **more: Any) -> "asyncio.Task[View | None]":
        return asyncio.create_task(self.next(owner, wait_s=100, **more))

    async def in_line(self, number: int) -> None:
        await until(lambda: len(self.held.table.in_line) == number)

    async def hold_up(self) -> "asyncio.Task[Any]":
        """Have one event's commit wait until `go_on`, so that what comes now shares a batch."""
        self.log.held = asyncio.Event()
        task = asyncio.create_task(self.bus.publisher.publish([Draft("tool.result")], "t"))
        await until(lambda: self.log.holds)
        return task

    def go_on(self) -> None:
        assert self.log.held is not None
        self.log.held.set()

    @property
    def told(self) -> list[tuple[str, str]]:
        """(What, by) of every step so far."""
        found = [e for e in self.log._events.values() if e.type.startswith("handoff.")]
        return [(e.type.removeprefix("handoff."), _data(e.body)["by"]) for e in found]


def _data(body: bytes) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.json.decode(body)["data"]
    return data


@contextlib.asynccontextmanager
async def world_over(log: FaultyLog, clock: VirtualClock) -> AsyncIterator[World]:
    """A gateway's tasks over this log, as a process would start over it."""
    held = HeldTasks(await log.load("task"), clock)
    bus = await build_bus(log, BusSection(p2_per_s=0), (), clock, held)
    await bus.start()
    held.start(bus.publisher)
    ids = count(log.head * 1000)
    try:
        yield World(bus, Board(held, lambda: f"I{next(ids)}"), held, log, clock)
    finally:
        log.fails = lambda: False
        await held.stop()
        await bus.stop()


def play(story: Callable[[World], Coroutine[Any, Any, None]], log: FaultyLog | None = None) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with world_over(log or FaultyLog(), clock) as world:
            await story(world)

    run(main(), clock)


def test_a_task_from_hand_to_hand() -> None:
    async def story(world: World) -> None:
        await world.create(description="all", note=Note(summary="begin"))
        first = await world.take("bob")
        assert (first["task"], first["state"], first["token"]) == ("T1", "working", 2)
        over = await world.board.hand_over("T1", 2, "tester", Note(files=("a.py",)))
        assert (over["state"], over["role"], over["holder"]) == ("submitted", "tester", None)
        second = await world.take("eve", "tester")
        asked = await world.board.ask("T1", second["token"], "which?", None)
        assert (asked["question"], asked["asked"], asked["holder"]) == ("which?", "bob", "eve")
        assert (await world.board.answer("T1", "bob", "that"))["question"] is None
        done = await world.board.end("T1", "finished", second["token"], None, None)
        assert (done["state"], done["expires"], len(done["steps"])) == ("completed", None, 7)
        assert await world.board.one("T1") == done
        assert [step["type"] for step in done["steps"]] == [f"handoff.{what}" for what, _ in world.told]

    play(story)


def test_the_envelope_has_task_session_and_workspace() -> None:
    async def story(world: World) -> None:
        await world.create(session="S", workspace="shop")
        envelope = msgspec.json.decode(world.log._events[1].body)
        assert (envelope["task"], envelope["session"], envelope["workspace"]) == ("T1", "S", "shop")
        assert (envelope["class"], envelope["priority"], envelope["source"]) == ("tool", "P1", "herdr")
        assert [d.target for d in world.log._events[1].deliveries] == ["coder"]

    play(story)


def test_creating_it_again_changes_nothing() -> None:
    async def story(world: World) -> None:
        first = await world.board.create(New(task="T1", title="t", role="r", by="ann"))
        again = await world.board.create(New(task="T1", title="t", role="r", by="ann"))
        assert (first.is_new, again.is_new) == (True, False) and first.view == again.view
        with pytest.raises(TaskConflict):
            await world.board.create(New(task="T1", title="other", role="r", by="ann"))
        assert world.told == [("created", "ann")]
        made = await world.board.create(New(title="t", role="r", by="ann"))
        assert made.view["task"].startswith("I")

    play(story)


def test_a_lease_that_runs_out_returns_the_task_to_its_role() -> None:
    async def story(world: World) -> None:
        await world.create()
        first = await world.take("bob", ttl_s=10)
        await pass_time(9.9)
        assert (await world.board.one("T1"))["holder"] == "bob"
        await pass_time(0.2)
        back = await world.board.one("T1")
        assert (back["state"], back["role"], back["holder"]) == ("submitted", "coder", None)
        assert back["steps"][-1]["reason"] == "lease_expired" and back["steps"][-1]["by"] == "herdr"
        with pytest.raises(NotHolder) as error:
            await world.board.renew("T1", first["token"], None)
        assert error.value.code == "fenced" and "Claim it again" in error.value.detail
        assert (await world.take("eve"))["token"] > first["token"]

    play(story)


def test_a_renewed_lease_runs_its_new_time() -> None:
    async def story(world: World) -> None:
        await world.create()
        token = (await world.take("bob", ttl_s=10))["token"]
        await pass_time(9)
        assert (await world.board.renew("T1", token, 20))["token"] == token
        await pass_time(19.9)
        assert (await world.board.one("T1"))["holder"] == "bob"
        await world.board.renew("T1", token, None)
        await pass_time(19.9)
        assert (await world.board.one("T1"))["holder"] == "bob"
        await pass_time(0.2)
        assert (await world.board.one("T1"))["holder"] is None

    play(story)


def test_a_question_renews_the_lease_and_another_ones_answer_does_not() -> None:
    async def story(world: World) -> None:
        await world.create()
        token = (await world.take("bob", ttl_s=10))["token"]
        await pass_time(9)
        await world.board.ask("T1", token, "which?", None)
        await pass_time(9)
        await world.board.answer("T1", "ann", "that")
        await pass_time(0.9)
        assert (await world.board.one("T1"))["holder"] == "bob"
        await pass_time(0.2)
        assert (await world.board.one("T1"))["holder"] is None

    play(story)


def test_who_claims_again_what_it_holds_extends_it() -> None:
    async def story(world: World) -> None:
        await world.create()
        first = await world.board.claim("T1", "bob", 10)
        await pass_time(8)
        again = await world.board.claim("T1", "bob", 5)
        assert again["token"] == first["token"]
        await pass_time(9.9)
        assert (await world.board.one("T1"))["holder"] == "bob"
        with pytest.raises(NotHolder) as error:
            await world.board.claim("T1", "eve", 10)
        assert error.value.code == "task_held" and again["expires"] in error.value.detail

    play(story)


def test_those_in_line_are_served_as_they_came() -> None:
    async def story(world: World) -> None:
        first, second = world.begin("p"), world.begin("q")
        await world.in_line(2)
        other = world.begin("r", role="tester")
        await world.in_line(3)
        await world.create("T1")
        assert (await first or {})["task"] == "T1" and not second.done()
        await world.board.release("T1", world.held.table.get("T1").token, "tired")  # type: ignore[union-attr, arg-type]
        got = await second or {}
        assert (got["task"], got["holder"], got["steps"][-2]["reason"]) == ("T1", "q", "tired")
        await world.board.hand_over("T1", got["token"], "tester", None)
        assert (await other or {})["holder"] == "r"

    play(story)


def test_nothing_came_in_time() -> None:
    async def story(world: World) -> None:
        assert await world.next("bob") is None
        before = world.clock.now
        assert await world.next("bob", wait_s=7) is None
        assert world.clock.now - before == pytest.approx(7, abs=0.01)
        assert not world.held.table.in_line
        await world.create()
        assert await world.next("bob", wait_s=7) is not None

    play(story)


def test_who_is_cancelled_leaves_the_line() -> None:
    async def story(world: World) -> None:
        first, second = world.begin("p"), world.begin("q")
        await world.in_line(2)
        first.cancel()
        await world.in_line(1)
        await world.create()
        assert (await second or {})["holder"] == "q"

    play(story)


def test_what_is_claimed_for_one_that_has_just_gone_is_given_back() -> None:
    async def story(world: World) -> None:
        await world.create()
        world.log.held = asyncio.Event()
        asking = world.begin("p")
        await until(lambda: world.log.holds)  # decided, and not yet committed
        asking.cancel()
        await asyncio.wait([asking])
        world.go_on()
        await until(lambda: len(world.told) == 3)
        assert world.told[1:] == [("claimed", "p"), ("released", "p")]
        assert (await world.take("q"))["task"] == "T1"

    play(story)


def test_what_came_in_the_moment_in_which_the_client_left_is_given_back_unless_it_was_renewed() -> None:
    async def story(world: World) -> None:
        await world.create()
        world.board.give_back(await world.take("p"))
        await until(lambda: len(world.told) == 3)
        assert (await world.board.one("T1"))["steps"][-1]["reason"] == "given_up"
        claimed = await world.take("p")
        await world.board.renew("T1", claimed["token"], None)
        world.board.give_back(claimed)
        await pass_time(1)
        assert (await world.board.one("T1"))["holder"] == "p"

    play(story)


def test_a_batch_that_is_not_committed_leaves_no_trace() -> None:
    async def story(world: World) -> None:
        await world.create("T1")
        waiting = world.begin("p", role="tester")
        await world.in_line(1)
        token = (await world.take("bob"))["token"]
        world.log.fails = lambda: True
        for attempt in (
            world.board.hand_over("T1", token, "tester", None),
            world.board.end("T1", "finished", token, None, None),
            world.create("T2", "tester"),
        ):
            with pytest.raises(LogUnavailable):
                await attempt
        world.log.fails = lambda: False
        await pass_time(1)
        assert (await world.board.one("T1"))["holder"] == "bob"
        assert [asked.owner for asked in world.held.table.in_line] == ["p"]
        with pytest.raises(NotFound):
            await world.board.one("T2")
        await world.board.hand_over("T1", token, "tester", None)
        assert (await waiting or {})["holder"] == "p"

    play(story)


def test_an_expiry_that_the_log_does_not_take_is_tried_again() -> None:
    async def story(world: World) -> None:
        await world.create()
        await world.take("bob", ttl_s=10)
        world.log.fails = lambda: True
        await pass_time(15)
        assert (world.held.table.get("T1") or _nothing()).holder == "bob"
        world.log.fails = lambda: False
        await pass_time(3 * RETRY_S)
        assert (await world.board.one("T1"))["state"] == "submitted"

    play(story)


def _nothing() -> Any:
    raise AssertionError("there is no such task")


class LyingLog(FaultyLog):
    """Commits, and says that it could not, once for each time that `lies` is set."""

    lies = False

    async def append(self, batch: Batch) -> None:
        await super().append(batch)
        if self.lies and batch.events:
            self.lies = False
            raise LogUnavailable("the fsync failed (planted)")


def test_a_commit_that_was_said_to_have_failed_and_has_happened_is_taken_over() -> None:
    log = LyingLog()

    async def story(world: World) -> None:
        waiting = world.begin("p")
        await world.in_line(1)
        log.lies = True
        with pytest.raises(LogUnavailable):
            await world.create("T1")
        got = await waiting or {}
        assert (got["task"], got["holder"], got["token"]) == ("T1", "p", 2)
        assert world.told == [("created", "ann"), ("claimed", "p")]
        await pass_time(59)
        assert (await world.board.one("T1"))["holder"] == "p"
        await pass_time(2)
        assert (await world.board.one("T1"))["holder"] is None

    play(story, log)


def test_after_a_restart_holders_keep_their_tokens_and_leases_run_their_full_time() -> None:
    log, clock = FaultyLog(), VirtualClock()

    async def main() -> None:
        async with world_over(log, clock) as world:
            await world.create("T1", note=Note(summary="s"))
            await world.create("T2")
            first = await world.take("bob", ttl_s=10)
            await world.board.ask("T1", first["token"], "which?", None)
            await pass_time(9)
            line = world.begin("p", role="tester")
            await world.in_line(1)
            line.cancel()
            await asyncio.wait([line])
        async with world_over(log, clock) as world:
            again = await world.board.one("T1")
            assert (again["holder"], again["token"], again["question"]) == ("bob", first["token"], "which?")
            assert not world.held.table.in_line
            await pass_time(9)
            assert (await world.board.one("T1"))["holder"] == "bob"
            assert (await world.board.renew("T1", first["token"], None))["token"] == first["token"]
            await pass_time(10.1)
            assert (await world.board.one("T1"))["state"] == "submitted"
            assert (await world.take("eve"))["task"] == "T2"

    run(main(), clock)


def test_the_log_alone_says_the_same() -> None:
    async def story(world: World) -> None:
        for number in range(8):
            await world.create(f"T{number}", session=f"S{number}")
            claimed = await world.take("bob", ttl_s=10 if number % 2 else 60)
            if number % 3 == 0:
                await world.board.hand_over(f"T{number}", claimed["token"], "tester", Note(summary="x"))
            elif number % 3 == 1:
                await world.board.end(f"T{number}", "failed", claimed["token"], "broken", None)
        await pass_time(11)
        folded = State()
        for event in world.log._events.values():
            envelope = msgspec.json.decode(event.body)
            told = step_of(event.type, msgspec.json.encode(envelope["data"]), event.seq, event.accepted_us)
            assert told is not None
            made = None
            if told[1].what == "created":
                data = msgspec.json.encode(envelope["data"])
                made = new_of(data, told[1], envelope["workspace"], envelope.get("session"))
            folded.apply(*told, made)
        assert sorted(folded.all(), key=str) == sorted(world.held.table.all(), key=str)
        assert len(folded.all()) == 8

    play(story)


def test_lists() -> None:
    async def story(world: World) -> None:
        for number in range(600):
            await world.create(f"T{number}", "coder" if number % 2 else "tester", workspace=f"w{number % 3}")
        listed = await world.board.listed(limit=5)
        assert [view["task"] for view in listed] == ["T599", "T598", "T597", "T596", "T595"]
        assert listed[0]["steps"] == 1
        assert len(await world.board.listed(limit=1000)) == 600
        assert {v["role"] for v in await world.board.listed(role="tester")} == {"tester"}
        assert {v["workspace"] for v in await world.board.listed("w1")} == {"w1"}
        await world.board.claim("T7", "bob", 10)
        assert [v["task"] for v in await world.board.listed(holder="bob")] == ["T7"]
        assert [v["task"] for v in await world.board.listed(states=["working", "failed"])] == ["T7"]
        assert (await world.board.listed(limit=1))[0]["task"] == "T7"
        await world.board.renew("T7", (await world.board.one("T7"))["token"], None)
        await world.create("T600")
        assert (await world.board.listed(limit=1))[0]["task"] == "T600"

    play(story)


def test_a_mistake_of_the_table_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        await world.create()

        def break_down(seq: int, now_us: int) -> Any:
            world.held.table.cancel("T1", "ann", None, seq, now_us, forced=False)
            raise ZeroDivisionError

        with pytest.raises(HerdrError, match="made a mistake"):
            await world.board._decide(break_down)
        assert (await world.board.one("T1"))["state"] == "submitted"

    play(story)
    assert "a table made a mistake" in caplog.text
