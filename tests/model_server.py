"""A model server for simulations, inside the test: KV slots, faults from a seed, and no sockets.

It stands where a `herdr.pool.backend.Backend` stands, and keeps a list of what no backend should be asked.
"""

import asyncio
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from virtual_time import pass_time

from herdr.pool.backend import Emit, Job, Sight
from herdr.pool.chunk import Chunk, End, Progress, TextDelta, ToolDelta, ToolEnd, ToolStart, Usage
from herdr.pool.failures import ModelError
from herdr.pool.request import ChatRequest, Text

TOKEN_S, PREFILL_S = 0.02, 0.001  # for each token written and read
LINGER_MAX_S = 1.4  # how long llama.cpp's slot stays busy in prefill after its client has left
LOOK_S = 0.01


class Faults(NamedTuple):
    """How likely each thing is, for each generation."""

    stall: float = 0.0
    die: float = 0.0
    cut: float = 0.0
    refuse: float = 0.0
    limit: float = 0.0
    resize: float = 0.0
    """At a restart: another number of slots."""


class Died(Exception):
    """The server is gone."""


@dataclass(eq=False)
class KvSlot:
    """What a slot holds, and who runs in it."""

    tokens: list[str] = field(default_factory=list)
    busy: int | None = None


def words(request: ChatRequest) -> list[str]:
    """Return the tokens of a prompt."""
    tokens: list[str] = []
    for message in request.messages:
        said = " ".join(part.text for part in message.parts if isinstance(part, Text))
        tokens += [f"<{message.role}>", *said.split()]
    return [*tokens, "<assistant>"]  # as templates do, so that the answer goes on from there


def common(one: Iterable[str], two: Iterable[str]) -> int:
    """Return how many tokens two prompts share at their beginning."""
    count = 0
    for a, b in zip(one, two, strict=False):
        if a != b:
            break
        count += 1
    return count


class ModelServer:
    """The server and its client in one. Implements `Backend`."""

    kind = "llamacpp"
    url = "http://simulated"
    has_slots = True

    def __init__(self, name: str, rng: random.Random, total: int, faults: Faults, *, restores: bool) -> None:
        self.name = name
        self.violations: list[str] = []
        self.prefilled = 0
        self.generations = 0
        self.busy = asyncio.Event()
        """Set once anything runs."""
        self.freed = asyncio.Event()
        """Pulsed whenever a generation ends well."""
        self._rng = rng
        self._faults = faults
        self._restores = restores
        self._slots = [KvSlot() for _ in range(total)]
        self._files: dict[int, list[str]] = {}
        self._up = True
        self._restarted = False
        self._dying: set[asyncio.Future[None]] = set()
        self._numbers = 0

    async def look(self) -> Sight:
        await pass_time(LOOK_S)
        self._check_up()
        restarted, self._restarted = self._restarted, False
        return Sight(len(self._slots), 100_000, False, restarted)

    async def generate(self, job: Job, emit: Emit) -> bool:
        self._check_up()
        self.generations += 1
        fate = self._fate()
        if fate == "refuse":
            raise ModelError("backend_refused", "simulated: refused")
        if fate == "limit":
            raise ModelError("rate_limited", "simulated: too many", self._rng.choice([0.0, 0.5, 3.0, 200.0]))
        slot = self._slot(job.slot)
        self._numbers += 1
        slot.busy = number = self._numbers
        self.busy.set()
        try:
            await self._answer(job, slot, emit, fate)
        except asyncio.CancelledError:
            self._linger(slot, number)
            raise
        except Died:
            raise ModelError("backend_failed", "simulated: broke off") from None
        except ModelError:
            self._linger(slot, number)
            raise
        if slot.busy == number:
            slot.busy = None
        self.freed.set()
        self.freed.clear()
        return True

    def _fate(self) -> str:
        point = self._rng.random()
        for name in ("stall", "die", "cut", "refuse", "limit"):
            point -= getattr(self._faults, name)
            if point < 0:
                return name
        return "fine"

    async def _answer(self, job: Job, slot: KvSlot, emit: Emit, fate: str) -> None:
        prompt = words(job.request)
        cached = min(common(slot.tokens, prompt), len(prompt) - 1)
        self.prefilled += len(prompt) - cached
        slot.tokens = list(prompt)
        emit([Progress(len(prompt), cached, cached)])
        await self._pass((len(prompt) - cached) * PREFILL_S)
        count = self._rng.randint(1, 30)
        bad_at = self._rng.randrange(count)
        for number in range(count):
            await self._pass(TOKEN_S)
            if number == bad_at:
                await self._go_wrong(fate)
            word = f"w{self._rng.randrange(1000)}"
            emit([TextDelta(word + " ")])
            slot.tokens.append(word)
        usage = Usage(len(prompt), cached, count)
        emit([*self._call(), End("end_turn", usage)])

    def _call(self) -> list[Chunk]:
        if self._rng.random() < 0.8:
            return []
        return [ToolStart("call_1", "look"), ToolDelta("{}"), ToolEnd()]

    async def _go_wrong(self, fate: str) -> None:
        if fate == "stall":
            await self._pass(60.0)  # the client of a real server gives up by itself
            raise ModelError("backend_timeout", "simulated: stalled")
        if fate == "cut":
            raise ModelError("backend_failed", "simulated: the stream ended early")
        if fate == "die":
            self._die()
            raise Died

    def _die(self) -> None:
        """Lose everything, also what others run, and be away for longer than a silence that is believed."""
        self._up = False
        for dying in self._dying:
            if not dying.done():
                dying.set_exception(Died())
        total = len(self._slots)
        if self._rng.random() < self._faults.resize:
            total = self._rng.randint(1, 5)
        self._slots = [KvSlot() for _ in range(total)]
        asyncio.get_running_loop().call_later(self._rng.uniform(2.5, 9.0), self._rise)

    def _rise(self) -> None:
        self._up, self._restarted = True, True

    async def settle(self, slot: int) -> None:
        self._check_up()
        while slot < len(self._slots) and self._slots[slot].busy is not None:
            await pass_time(0.05)
            self._check_up()

    async def save(self, slot: int, file: int) -> bool:
        held = self._file_action("save", slot)
        if held is None:
            return False
        self._files[file] = list(held.tokens)
        return True

    async def restore(self, slot: int, file: int) -> int:
        held = self._file_action("restore", slot)
        if held is None:
            return 0
        tokens = self._files.get(file, [])
        held.tokens = list(tokens) if self._restores else []
        return len(tokens)

    async def count(self, request: ChatRequest) -> int | None:
        return len(words(request))

    def _file_action(self, action: str, slot: int) -> KvSlot | None:
        if not self._up or slot >= len(self._slots):
            return None
        held = self._slots[slot]
        if held.busy is not None:
            self.violations.append(f"{action} of slot {slot}, which is busy")
        return held

    def _slot(self, number: int | None) -> KvSlot:
        assert number is not None
        if number >= len(self._slots):
            self.violations.append(f"slot {number} of {len(self._slots)}")
        slot = self._slots[number % len(self._slots)]
        if slot.busy is not None:
            self.violations.append(f"two requests at once in slot {number}")
        return slot

    def _linger(self, slot: KvSlot, number: int) -> None:
        """Stay busy for a while although nobody listens."""

        def free() -> None:
            if slot.busy == number:
                slot.busy = None

        asyncio.get_running_loop().call_later(self._rng.uniform(0.0, LINGER_MAX_S), free)

    def _check_up(self) -> None:
        if not self._up:
            raise ModelError("backend_unreachable", "simulated: no connection")

    async def _pass(self, seconds: float) -> None:
        """Let time pass, unless the server dies meanwhile."""
        dying: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._dying.add(dying)
        try:
            async with asyncio.timeout(seconds):
                await dying
        except TimeoutError:
            pass
        finally:
            self._dying.discard(dying)

    def holds(self, slot: int) -> bool:
        """Whether there is anything in a slot."""
        return bool(self._slots[slot].tokens)

    @property
    def is_as_seen(self) -> bool:
        """Whether it runs, and was looked at since it last started."""
        return self._up and not self._restarted

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs."""
        return all(slot.busy is None for slot in self._slots)
