"""The pool over real sockets, from one seed: clients that leave and stop sequences against an imitated llama.cpp.

Time is real, so the same seed does not play the same again; what is asked for always holds.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from fake_llama import Die, FakeLlama, Script, Tool, error
from fake_llama.script import Json, Piece
from scripted_backend import inquiry, read

from herdr.clock import SystemClock
from herdr.ids import UlidFactory
from herdr.pool.backends.chat import Chat
from herdr.pool.backends.llamacpp import LlamaCpp
from herdr.pool.chunk import Chunk, End
from herdr.pool.failures import STATUSES, ModelError
from herdr.pool.line import Line
from herdr.pool.lookout import Lookout
from herdr.pool.names import Names
from herdr.pool.pool import Pool
from herdr.pool.request import ChatRequest, Message, Sampling, Text
from herdr.pool.run import Outcome
from herdr.pool.schedule import Schedule
from herdr.pool.upstream import Limits, Upstream, client_session

SEEDS = 4
AGENTS, TURNS = 6, 4
LIMITS = Limits(connect_s=5.0, first_byte_s=20.0, between_chunks_s=20.0, total_s=60.0)
REFUSED = error(400, "invalid_request_error", "refused (planted)")


def script(rng: random.Random) -> Script:
    """One answer, mostly a good one."""
    pieces: list[Piece] = [f"w{n} " for n in range(rng.randint(1, 8))]
    fate = rng.random()
    if fate < 0.05:
        return Script(refuse=REFUSED)
    if fate < 0.12:
        return Script([*pieces, Die(reset=rng.random() < 0.5)])
    if fate < 0.3:
        pieces += [Tool(0, "c1", "look", '{"a"'), Tool(0, arguments=":1}")]
    return Script(pieces, pace_s=0.002)


class World:
    """The pool over one imitated server, and what happened."""

    def __init__(self, fake: FakeLlama, pool: Pool, line: Line, outcomes: list[Outcome]) -> None:
        self.fake, self.pool, self.line, self.outcomes = fake, pool, line, outcomes
        self.asked: set[str] = set()
        self.ends: Counter[str] = Counter()

    async def come_to_rest(self) -> None:
        """Wait for the calls and for the slots that they have left."""
        await asyncio.gather(*[one.task for one in self.pool._all])
        await asyncio.gather(*self.line._settling)
        shown = self.line.snapshot()
        assert not (shown["running"] or shown["queue"]["total"]) and not any(s.busy for s in self.fake.slots)


@asynccontextmanager
async def world(fake: FakeLlama) -> AsyncIterator[World]:
    clock = SystemClock()
    outcomes: list[Outcome] = []

    async def record(outcome: Outcome) -> None:
        outcomes.append(outcome)

    async with client_session() as session:
        new_id = UlidFactory(clock)
        chat = Chat(
            "llamacpp", model=None, tool_calls="buffer", recover=False, lower_schema=False, new_id=new_id
        )
        backend = LlamaCpp(Upstream("fake", fake.url, {}, LIMITS, session), chat)
        schedule = Schedule(
            1, shares={"primary_agent": 0.6}, background_max=2, affinity_wait_s=0.05, spill=True
        )
        line = Line(backend, Lookout(backend, clock), schedule, clock, 30.0)
        pool = Pool(
            {"fake": line},
            Names({}, ["fake"]),
            queue_timeout_s=30.0,
            default_max_tokens=100,
            record=record,
            clock=clock,
            new_id=new_id,
            is_stopping=lambda: False,
        )
        pool.start()
        try:
            yield World(fake, pool, line, outcomes)
        finally:
            await pool.stop()


async def ask(
    it: World, request: ChatRequest, name: str, leaves_after: int | None, rng: random.Random
) -> None:
    """Ask, and leave after so many looks; None: stay."""
    asked = inquiry(request, name, priority=rng.randrange(10))
    try:
        with it.pool.open(asked) as reader:
            it.asked.add(reader.generation.call)
            if leaves_after is None:
                chunks: list[Chunk] = await read(reader)
                assert [type(chunk) for chunk in chunks].count(End) == 1 and isinstance(chunks[-1], End)
                it.ends[chunks[-1].stop_reason] += 1
                return
            for _ in range(leaves_after):
                if reader.generation.ended:
                    return
                await reader.moved()
            it.ends["left"] += 1
    except ModelError as failure:
        assert failure.code in STATUSES and failure.code != "client_gone"
        it.ends[failure.code] += 1


async def agent(it: World, name: str, seed: str) -> None:
    rng = random.Random(seed)
    history = [Message("system", (Text(f"You are {name}. " + "Rule. " * 150),))]
    for turn in range(TURNS):
        history.append(Message("user", (Text(f"Turn {turn} of {name}"),)))
        stop = ("w3",) if rng.random() < 0.3 else ()
        request = ChatRequest("any", tuple(history), sampling=Sampling(stop=stop), stream=True)
        await ask(it, request, name, rng.choice([None, None, None, 0, 1, 3]), rng)
        history.append(Message("assistant", (Text("Said."),)))


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_no_slot_is_ever_asked_for_twice(seed: int) -> None:
    rng = random.Random(seed)
    answers = random.Random(seed + 1000)

    def answer(body: Json) -> Script:
        return script(answers)

    with FakeLlama(slots=rng.randint(1, 3), linger_s=0.05) as fake:
        fake.script(answer)
        async with world(fake) as it:
            async with asyncio.timeout(60.0), asyncio.TaskGroup() as group:
                for number in range(AGENTS):
                    group.create_task(agent(it, f"agent-{number}", f"{seed} {number}"))
            async with asyncio.timeout(20.0):
                await it.come_to_rest()
            assert fake.violations == []
            assert Counter(outcome.call for outcome in it.outcomes) == Counter(it.asked)
            assert it.ends["end_turn"] + it.ends["tool_use"] > 0 and it.ends["left"] > 0


async def test_stop_sequences_one_after_the_other_never_meet_in_a_slot() -> None:
    """Each answer is over here long before it is over there."""
    with FakeLlama(slots=1, linger_s=0.1) as fake:
        fake.script(Script(["one ", "END", *["more "] * 50], pace_s=0.002))
        async with world(fake) as it:
            asked = inquiry("Hi").canonical.request
            stopping = msgspec.structs.replace(asked, sampling=Sampling(stop=("END",)))
            for number in range(4):
                with it.pool.open(inquiry(stopping, f"agent {number}")) as reader:
                    end = (await read(reader))[-1]
                    assert isinstance(end, End) and end.stop_sequence == "END"
            async with asyncio.timeout(20.0):
                await it.come_to_rest()
        assert fake.violations == [] and len(fake.requests) == 4
