"""A backend, a line and a pool for unit tests: every answer is what the test says, and nothing has a socket."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from virtual_time import VirtualClock, pass_time

from herdr.pool.backend import Emit, Job, Sight
from herdr.pool.canonical import canonical
from herdr.pool.chunk import Chunk, End, Progress, TextDelta, Usage
from herdr.pool.failures import ModelError
from herdr.pool.generation import Reader
from herdr.pool.identity import Caller
from herdr.pool.line import Line
from herdr.pool.lookout import Lookout
from herdr.pool.names import Names
from herdr.pool.pool import Pool
from herdr.pool.request import ChatRequest, Message, Sampling, Text
from herdr.pool.run import Inquiry, Outcome
from herdr.pool.schedule import Schedule

Answer = Callable[[Job, Emit], Awaitable[bool]]

HELLO: tuple[Chunk, ...] = (Progress(10, 0, 10), TextDelta("Hello"), End("end_turn", Usage(10, 0, 1)))
QUEUE_TIMEOUT_S = 30.0


def saying(*chunks: Chunk, whole: bool = True, after_s: float = 0.0) -> Answer:
    """An answer of these chunks at once."""

    async def answer(job: Job, emit: Emit) -> bool:
        if after_s:
            await pass_time(after_s)
        emit(list(chunks))
        return whole

    return answer


def failing(code: str, *before: Chunk, wait_s: float | None = None) -> Answer:
    """An answer that fails after these chunks."""

    async def answer(job: Job, emit: Emit) -> bool:
        await pass_time(0)
        if before:
            emit(list(before))
        raise ModelError(code, f"scripted: {code}", wait_s)

    return answer


def held(until: asyncio.Event, *chunks: Chunk) -> Answer:
    """An answer that waits for the test before its last chunk."""

    async def answer(job: Job, emit: Emit) -> bool:
        said = list(chunks or HELLO)
        emit(said[:-1])
        await until.wait()
        emit(said[-1:])
        return True

    return answer


class Scripted:
    """Implements `Backend`: first what was scripted, then that all is well."""

    def __init__(
        self, clock: VirtualClock, name: str = "local", total: int = 1, *, kind: str = "llamacpp"
    ) -> None:
        self.name, self.kind, self.url = name, kind, f"http://{name}.invalid:1"
        self.has_slots = kind == "llamacpp"
        self.sight = Sight(total, None, False)
        self.to_look: deque[Sight | ModelError] = deque()
        self.to_say: deque[Answer] = deque()
        self.to_settle: deque[ModelError | asyncio.Event] = deque()
        self.to_count: int | ModelError | None = None
        self.claims = 1000
        """Tokens that a restore says it brought back."""
        self.look_s = 0.01
        self.looks = 0
        self.jobs: list[Job] = []
        self.asked_at: list[float] = []
        """When each job came."""
        self.settled: list[int] = []
        self.saved: list[tuple[int, int]] = []
        self.restored: list[tuple[int, int]] = []
        self._clock = clock

    async def look(self) -> Sight:
        self.looks += 1
        if self.look_s:
            await pass_time(self.look_s)
        said = self.to_look.popleft() if self.to_look else self.sight
        if isinstance(said, ModelError):
            raise said.again()
        return said

    async def generate(self, job: Job, emit: Emit) -> bool:
        self.jobs.append(job)
        self.asked_at.append(self._clock.now)
        return await (self.to_say.popleft() if self.to_say else saying(*HELLO))(job, emit)

    async def settle(self, slot: int) -> None:
        self.settled.append(slot)
        await pass_time(0)
        how = self.to_settle.popleft() if self.to_settle else None
        if isinstance(how, ModelError):
            raise how.again()
        if how is not None:
            await how.wait()

    async def save(self, slot: int, file: int) -> bool:
        self.saved.append((slot, file))
        return True

    async def restore(self, slot: int, file: int) -> int:
        self.restored.append((slot, file))
        return self.claims

    async def count(self, request: ChatRequest) -> int | None:
        if isinstance(self.to_count, ModelError):
            raise self.to_count
        return self.to_count


@dataclass(eq=False)
class Desk:
    """A pool over scripted backends, and what it recorded."""

    pool: Pool
    lines: dict[str, Line]
    backends: dict[str, Scripted]
    clock: VirtualClock
    outcomes: list[Outcome] = field(default_factory=list)
    stopping: bool = False
    fails_to_record: bool = False

    @property
    def line(self) -> Line:
        return next(iter(self.lines.values()))

    @property
    def backend(self) -> Scripted:
        return next(iter(self.backends.values()))

    async def record(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if self.fails_to_record:
            raise RuntimeError("planted: the record cannot be made")

    async def open_up(self) -> "Desk":
        """Start, and wait until every backend is ready."""
        self.pool.start()
        for line in self.lines.values():
            assert line._lookout._watch is not None
            await line._lookout._watch  # ends once the backend is ready
        return self

    async def read(self, asked: Inquiry) -> list[Chunk]:
        """Ask, and read to the end."""
        with self.pool.open(asked) as reader:
            return await read(reader)

    def busy(self) -> list[int]:
        """The slots that are taken."""
        views = self.line.schedule.snapshot(self.clock.now).slots
        return [view.slot for view in views if view.state == "busy"]


def desk(
    clock: VirtualClock,
    *backends: Scripted,
    fallbacks: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    **schedule: Any,
) -> Desk:
    """Build a pool over backends (one, when none is given), the first of them the default."""
    all_ = {backend.name: backend for backend in backends or (Scripted(clock),)}
    lines = {name: line_to(backend, clock, **schedule) for name, backend in all_.items()}
    numbers = count(1)
    pool = Pool(
        lines,
        Names(names or {}, list(lines), fallbacks or {}),
        queue_timeout_s=QUEUE_TIMEOUT_S,
        default_max_tokens=512,
        record=lambda outcome: made.record(outcome),
        clock=clock,
        new_id=lambda: f"call-{next(numbers):03}",
        is_stopping=lambda: made.stopping,
    )
    made = Desk(pool, lines, all_, clock)
    return made


def line_to(backend: Scripted, clock: VirtualClock, **schedule: Any) -> Line:
    """Build the line before one backend."""
    given = {"shares": {}, "background_max": 2, "sticky": backend.has_slots, **schedule}
    return Line(backend, Lookout(backend, clock), Schedule(1, **given), clock, QUEUE_TIMEOUT_S)


def request(*turns: str, temperature: float | None = None, **more: Any) -> ChatRequest:
    """A conversation whose turns are the user's and the model's in alternation."""
    said = tuple(
        Message(("user", "assistant")[n % 2], (Text(turn),))  # type: ignore[arg-type]
        for n, turn in enumerate(turns or ("Hi",))
    )
    return ChatRequest("any", said, sampling=Sampling(temperature=temperature), **more)


def inquiry(
    asked: ChatRequest | str = "Hi",
    agent: str | None = "agent",
    *,
    priority: int = 5,
    route: str = "primary_agent",
    retry: bool = False,
    verbatim: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    is_prewarm: bool = False,
) -> Inquiry:
    """What an agent asks."""
    asked = request(asked) if isinstance(asked, str) else asked
    caller = Caller(agent, None, route, priority, side=False, sub_agent=False, retry=retry)
    return Inquiry(canonical(asked), caller, 7, "said", verbatim, headers or {}, is_prewarm)


async def read(reader: Reader) -> list[Chunk]:
    """Read an answer to its end; raises its failure."""
    chunks: list[Chunk] = []
    while True:
        chunks += reader.take()
        if reader.finished:
            return chunks
        await reader.moved()


async def until(true: Callable[[], object], within_s: float = 100.0) -> None:
    """Wait for something that nobody announces; in virtual time that takes none."""
    async with asyncio.timeout(within_s):
        while not true():
            await pass_time(0.001)


def text(chunks: Sequence[Chunk]) -> str:
    """The text of an answer."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
