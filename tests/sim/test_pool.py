"""A whole pool from one seed: agents that ask, leave and ask again, and a server that stalls, dies and comes back.

A failure names its seed; the same seed plays the same again. Time is virtual (`virtual_time`).
"""

import asyncio
import contextlib
import random
from collections import Counter
from dataclasses import dataclass, field

import msgspec
import pytest
from model_server import Faults, ModelServer, common, words
from virtual_time import VirtualClock, pass_time, run

from herdr.ids import UlidFactory
from herdr.pool.canonical import canonical
from herdr.pool.chunk import Chunk, End, TextDelta
from herdr.pool.failures import STATUSES, ModelError
from herdr.pool.identity import Caller
from herdr.pool.line import Line
from herdr.pool.lookout import Lookout
from herdr.pool.names import Names
from herdr.pool.pool import Pool
from herdr.pool.request import ChatRequest, Message, Sampling, Text
from herdr.pool.run import Inquiry, Outcome
from herdr.pool.schedule import Schedule

SEEDS = 60
QUEUE_TIMEOUT_S = 30.0
LATE_S = 1.0  # what a look at a server that was silent may add to a wait
ROUTES = ("primary_agent", "primary_agent", "background", "review")
CALM = Faults()
STORMY = Faults(stall=0.03, die=0.03, cut=0.04, refuse=0.04, limit=0.03, resize=0.5)


@dataclass(eq=False)
class World:
    """One simulated gateway, and what happened in it."""

    clock: VirtualClock
    servers: list[ModelServer]
    lines: dict[str, Line]
    outcomes: list[Outcome] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    seen_ended: set[str] = field(default_factory=set)
    answers: dict[str, list[Chunk]] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    pool: Pool = field(init=False)

    @property
    def server(self) -> ModelServer:
        return self.servers[0]

    @property
    def line(self) -> Line:
        return self.lines[self.server.name]

    async def record(self, outcome: Outcome) -> None:
        assert outcome.call not in self.seen_ended, "an end was seen before its record"
        await pass_time(0.002)
        self.outcomes.append(outcome)


def build(
    rng: random.Random, clock: VirtualClock, total: int, faults: Faults, *, spill: bool = False
) -> World:
    world = World(clock, [ModelServer("sim", rng, total, faults, restores=rng.random() < 0.7)], {})
    open_pool(world, rng, spill=spill)
    return world


def build_two(rng: random.Random, clock: VirtualClock, faults: Faults) -> World:
    """One that often dies, with a fallback that never does and that others ask by its own name."""
    first = ModelServer("sim", rng, rng.randint(1, 3), faults, restores=True)
    second = ModelServer("other", rng, rng.randint(1, 3), CALM, restores=True)
    world = World(clock, [first, second], {})
    open_pool(world, rng, spill=rng.random() < 0.5)
    return world


def open_pool(world: World, rng: random.Random, *, spill: bool) -> None:
    clock = world.clock
    for server in world.servers:
        schedule = Schedule(1, shares={"primary_agent": 0.6}, background_max=2, spill=spill)
        world.lines[server.name] = Line(server, Lookout(server, clock), schedule, clock, QUEUE_TIMEOUT_S)
    names = [server.name for server in world.servers]
    world.pool = Pool(
        world.lines,
        Names({"any": names[0], "other": names[-1]}, names, {names[0]: names[-1]}),
        queue_timeout_s=QUEUE_TIMEOUT_S,
        default_max_tokens=1000,
        record=world.record,
        clock=clock,
        new_id=UlidFactory(clock, rng.getrandbits),
        is_stopping=lambda: False,
    )


def inquiry(request: ChatRequest, agent: str | None, rng: random.Random, *, retry: bool = False) -> Inquiry:
    side = rng.random() < 0.1
    caller = Caller(
        agent=agent,
        session=None,
        route=rng.choice(ROUTES),
        priority=rng.randrange(10),
        side=side,
        sub_agent=False,
        retry=retry,
    )
    return Inquiry(canonical(request), caller, len(words(request)))


async def ask(world: World, asked: Inquiry, slow_s: float = 0.0) -> str | None:
    """Ask as the web does, and return the text; None when it failed. `slow_s`: between two looks at it."""
    arrived = world.clock.now
    chunks: list[Chunk] = []
    try:
        with world.pool.open(asked) as reader:
            call = reader.generation.call
            world.asked.add(call)
            while reader.generation.place is None and not reader.finished:
                await reader.moved()
                assert world.clock.now - arrived <= QUEUE_TIMEOUT_S + LATE_S, "waited too long"
            while True:
                chunks += reader.take()
                if reader.finished:
                    break
                await reader.moved()
                await pass_time(slow_s)
            world.seen_ended.add(call)
    except ModelError as error:
        assert error.code in STATUSES
        assert error.code != "client_gone", "one who stayed was told that the client left"
        world.failures[error.code] += 1
        return None
    assert [type(chunk) for chunk in chunks].count(End) == 1
    assert isinstance(chunks[-1], End)
    assert chunks == world.answers.setdefault(call, chunks), "those who joined got something else"
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


async def ask_and_maybe_leave(world: World, asked: Inquiry, rng: random.Random) -> str | None:
    if rng.random() < 0.8:
        return await ask(world, asked, rng.choice([0.0, 0.0, 0.0, 0.7]))
    asking = asyncio.create_task(ask(world, asked))
    await leaving(world, rng)
    asking.cancel()
    (said,) = await asyncio.gather(asking, return_exceptions=True)
    if isinstance(said, str | None):
        return said
    assert isinstance(said, asyncio.CancelledError), said
    world.failures["left"] += 1
    if rng.random() < 0.5:
        return None
    caller = msgspec.structs.replace(asked.caller, retry=True)  # as clients do that lost their connection
    return await ask(world, msgspec.structs.replace(asked, caller=caller))


async def ask_later(world: World, asked: Inquiry, rng: random.Random) -> str | None:
    """Ask for what was asked for before, when that waits, runs or is over."""
    await pass_time(rng.choice([0.0, 0.01, 0.2, 1.0, 3.0]))
    return await ask_and_maybe_leave(world, asked, rng)


async def leaving(world: World, rng: random.Random) -> None:
    """Wait until a client leaves: at any time, or just when a slot gets free."""
    if rng.random() < 0.5:
        await pass_time(rng.choice([0.0, 0.005, 0.3, 3.0]))
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(10.0):
            await world.server.freed.wait()
    for _ in range(rng.randrange(8)):
        await pass_time(0)


async def agent(world: World, rng: random.Random, name: str | None) -> None:
    """Hold a conversation, sometimes with the same request sent twice."""
    model = rng.choice(["any", "any", "other"])
    history = [Message("system", (Text(f"You are {name or rng.random()}."),))]
    for turn in range(rng.randint(1, 8)):
        await pass_time(rng.choice([0.0, 0.01, 0.5, 4.0]))
        history.append(Message("user", (Text(f"Turn {turn}: " + "please " * rng.randint(0, 300)),)))
        request = ChatRequest(
            model, tuple(history), sampling=Sampling(temperature=rng.choice([None, 0.0])), stream=True
        )
        first = ask_and_maybe_leave(world, inquiry(request, name, rng), rng)
        again = []
        if rng.random() < 0.2:
            again = [
                ask_later(world, inquiry(request, name, rng, retry=True), rng)
                for _ in range(rng.randint(1, 2))
            ]
        said = next((text for text in await asyncio.gather(first, *again) if text is not None), None)
        if said is not None:
            history.append(Message("assistant", (Text(said),)))


async def watch(world: World) -> None:
    """See to it that nobody waits who could run."""
    while True:
        await pass_time(0.0501)
        now = world.clock.now - 0.01  # a timer that is due now has not run yet
        for server in world.servers:
            line = world.lines[server.name]
            if line.state == "ready":
                watch_line(line.schedule, server, now)


def watch_line(schedule: Schedule, server: ModelServer, now: float) -> None:
    for waiting in schedule._queue:
        if schedule._slots.idle and schedule._shares.allows(waiting.ask.route):
            assert schedule._place(waiting, now) is None, f"{waiting.ask.call} waits for nothing"
        assert waiting.ask.deadline > now, f"{waiting.ask.call} waits past its deadline"
    if server.is_as_seen:
        for slot in schedule._slots.all:
            assert slot.call or not slot.chain or server.holds(slot.number), "not warm any more"


def assert_all_over(world: World) -> None:
    """Nothing runs, waits or is held any more, and each call has one record."""
    for server in world.servers:
        line = world.lines[server.name]
        shown = line.snapshot()
        assert shown["running"] == 0
        assert shown["queue"]["total"] == 0
        assert [slot["state"] for slot in shown["slots"] if slot["state"] == "busy"] == []
        assert not line._waiting
        assert server.is_idle
        assert server.violations == []
    assert not world.pool._under_way
    assert not world.pool._all
    assert Counter(outcome.call for outcome in world.outcomes) == Counter(world.asked)


async def play(world: World, rng: random.Random, agents: int) -> None:
    world.pool.start()
    watching = asyncio.create_task(watch(world))
    async with asyncio.TaskGroup() as group:
        for number in range(agents):
            name = None if rng.random() < 0.15 else f"agent-{number}"
            group.create_task(agent(world, rng, name))
    await pass_time(200.0)
    assert not watching.done(), watching.exception()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert_all_over(world)
    await world.pool.stop()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_call_ends_once_and_frees_its_slot(seed: int) -> None:
    rng = random.Random(seed)
    clock = VirtualClock()
    faults = rng.choice([CALM, STORMY, STORMY])
    world = build(rng, clock, rng.randint(1, 4), faults, spill=rng.random() < 0.5)
    run(play(world, rng, rng.randint(1, 10)), clock)


@pytest.mark.parametrize("seed", range(SEEDS // 4))
def test_so_it_does_with_a_second_backend_to_fall_back_on(seed: int) -> None:
    rng = random.Random(seed)
    clock = VirtualClock()
    world = build_two(rng, clock, STORMY._replace(die=0.1))
    run(play(world, rng, rng.randint(2, 8)), clock)
    for outcome in world.outcomes:
        asked, went_to = outcome.inquiry.canonical.request.model, outcome.backend
        assert went_to in (None, "other") or asked == "any"
        assert outcome.error != "backend_unreachable", "the fallback never went away"


REACHED = ("promoted a call", "paused", "fell back", "gave a place back", "settled", "restored", "saved")


def test_the_seeds_reach_what_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no seed reaches is tested by none of them."""
    seen: Counter[str] = Counter()

    def count(owner: type, method: str, what: str) -> None:
        whole = getattr(owner, method)

        def counted(self: object, *args: object, **more: object) -> object:
            seen[what] += 1
            return whole(self, *args, **more)

        monkeypatch.setattr(owner, method, counted)

    count(Schedule, "promote", "promoted a call")
    count(Line, "pause", "paused")
    count(Line, "give_back", "gave a place back")
    count(Line, "leave_when_idle", "settled")
    count(ModelServer, "save", "saved")
    count(ModelServer, "restore", "restored")
    for seed in range(SEEDS // 4):
        rng = random.Random(seed)
        clock = VirtualClock()
        world = build_two(rng, clock, STORMY._replace(die=0.1))
        run(play(world, rng, rng.randint(2, 8)), clock)
        for outcome in world.outcomes:
            if outcome.backend == "other" and outcome.inquiry.canonical.request.model == "any":
                seen["fell back"] += 1
    assert [what for what in REACHED if not seen[what]] == []


async def stop_in_the_middle(world: World, rng: random.Random) -> None:
    world.pool.start()
    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(agent(world, rng, f"agent-{number}"))
        await pass_time(rng.uniform(0.0, 6.0))
        await world.pool.stop()
    assert set(world.failures) <= {*STATUSES, "left"}
    assert Counter(outcome.call for outcome in world.outcomes) == Counter(world.asked)
    assert not any(line._waiting for line in world.lines.values())
    await pass_time(200.0)


@pytest.mark.parametrize("seed", range(SEEDS // 5))
def test_a_stop_in_the_middle_ends_every_call(seed: int) -> None:
    rng = random.Random(seed)
    clock = VirtualClock()
    world = build(rng, clock, rng.randint(1, 3), STORMY, spill=True)
    run(stop_in_the_middle(world, rng), clock)


async def converse(world: World, rng: random.Random, name: str, turns: int) -> int:
    """Hold a plain conversation; returns how many tokens no server could have had before."""
    history = [Message("system", (Text(f"You are {name}. " + "Rule. " * 300),))]
    held: list[str] = []
    unavoidable = 0
    for turn in range(turns):
        await pass_time(rng.uniform(0.0, 3.0))
        history.append(Message("user", (Text(f"Turn {turn}: " + "please " * rng.randint(0, 50)),)))
        request = ChatRequest("any", tuple(history))
        caller = Caller(
            agent=name,
            session=None,
            route="primary_agent",
            priority=5,
            side=False,
            sub_agent=False,
            retry=False,
        )
        said = await ask(world, Inquiry(canonical(request), caller, len(words(request))))
        assert said is not None
        unavoidable += len(words(request)) - common(held, words(request))
        held = [*words(request), *said.split()]
        history.append(Message("assistant", (Text(said),)))
    return unavoidable


async def converse_all(world: World, rng: random.Random, agents: int) -> int:
    world.pool.start()
    talks = [converse(world, rng, f"agent-{number}", 4) for number in range(agents)]
    unavoidable = sum(await asyncio.gather(*talks))
    await world.pool.stop()
    return unavoidable


@pytest.mark.parametrize("seed", range(SEEDS // 10))
def test_as_many_agents_as_slots_read_nothing_twice(seed: int) -> None:
    rng = random.Random(seed)
    clock = VirtualClock()
    slots = rng.randint(1, 4)
    world = build(rng, clock, slots, CALM)
    assert run(converse_all(world, rng, slots), clock) == world.server.prefilled


async def jump_the_queue(world: World, rng: random.Random) -> list[int]:
    """Let eight calls of priority 9 queue behind one, then one of priority 0; returns the order of their ends."""
    ends: list[int] = []

    async def once(number: int, priority: int) -> None:
        request = ChatRequest("any", (Message("user", (Text(f"Question {number}"),)),))
        made = inquiry(request, f"agent-{number}", rng)
        caller = msgspec.structs.replace(made.caller, priority=priority, route="primary_agent", side=False)
        assert await ask(world, msgspec.structs.replace(made, caller=caller)) is not None
        ends.append(number)

    world.pool.start()
    async with asyncio.TaskGroup() as group:
        for number in range(9):
            group.create_task(once(number, 9))
        await world.server.busy.wait()
        group.create_task(once(100, 0))
    await world.pool.stop()
    return ends


@pytest.mark.parametrize("seed", range(5))
def test_priority_0_waits_for_one_generation_at_most(seed: int) -> None:
    rng = random.Random(seed)
    clock = VirtualClock()
    assert run(jump_the_queue(build(rng, clock, 1, CALM), rng), clock)[1] == 100


async def read_slowly(world: World, rng: random.Random) -> tuple[float, float]:
    """Let one slow and one quick reader share an answer; returns when the slot was free and the slow one done."""
    request = ChatRequest("any", (Message("user", (Text("Tell me"),)),), sampling=Sampling(temperature=0.0))
    world.pool.start()
    slow = asyncio.create_task(ask(world, inquiry(request, "slow", rng), slow_s=5.0))
    assert await ask(world, inquiry(request, "quick", rng)) is not None
    freed_at = world.clock.now
    assert world.line.snapshot()["running"] == 0
    assert await slow is not None
    await world.pool.stop()
    return freed_at, world.clock.now


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_reader_holds_up_neither_the_slot_nor_the_others(seed: int) -> None:
    rng = random.Random(seed)
    clock = VirtualClock()
    world = build(rng, clock, 1, CALM)
    freed_at, done_at = run(read_slowly(world, rng), clock)
    assert freed_at < 1.0 and done_at >= 5.0
    assert world.server.generations == 1
