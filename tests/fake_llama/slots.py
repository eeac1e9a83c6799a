"""The KV slots of `fake_llama`: who has one, who waits for one, and what they hold."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from fake_llama.script import Json, Piece, common

SIMILAR = 0.1  # llama.cpp's default of --slot-prompt-similarity

State = Literal["deferred", "running", "held", "done", "refused", "broken", "cancelled"]


@dataclass(eq=False)
class Call:
    """One chat request. Times are monotonic seconds."""

    body: Json
    headers: dict[str, str]
    """With names in lower case."""
    connection: int
    """The client's port."""
    arrived: float
    state: State = "deferred"
    slot: int | None = None
    started: float | None = None
    ended: float | None = None
    prompt: str = ""
    prompt_tokens: int = 0
    cached: int = 0
    sent: list[Piece] = field(default_factory=list)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def over(self) -> bool:
        return self.ended is not None


@dataclass(eq=False)
class Slot:
    """One KV slot, and what it holds."""

    id: int
    tokens: list[str] = field(default_factory=list)
    busy: bool = False
    call: Call | None = None
    """The last one."""
    task: int | None = None
    used: int = 0
    """When, as the number of the last task."""


class Slots:
    """Who has which slot, who waits for one, and what they hold."""

    def __init__(self, count: int, ram_cache: bool, changed: Callable[[], None]) -> None:
        self.all = [Slot(number) for number in range(count)]
        self.tasks = 0
        self._waiting: list[tuple[int | None, asyncio.Future[Slot]]] = []
        self._ram: list[list[str]] | None = [] if ram_cache else None
        self._changed = changed

    def __iter__(self) -> Iterator[Slot]:
        return iter(self.all)

    @property
    def deferred(self) -> int:
        return len(self._waiting)

    async def take(self, wanted: int | None, tokens: list[str]) -> Slot:
        """Wait for the slot that was asked for, or for any; nobody gives way, and nothing is refused."""
        slot = self._choose(tokens) if wanted is None else self.all[wanted]
        if slot is None or slot.busy:
            place: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
            self._waiting.append((wanted, place))
            self._changed()
            try:
                slot = await place
            except asyncio.CancelledError:
                self._left(wanted, place)
                raise
        else:
            slot.busy = True
        self.tasks += 1
        slot.task = slot.used = self.tasks
        self._changed()
        return slot

    def free(self, slot: Slot) -> None:
        """Hand a slot to the first who waits for it, else to the first who takes any."""
        slot.busy = False
        waiting = [item for item in self._waiting if item[0] in (slot.id, None)]
        for item in sorted(waiting, key=lambda item: item[0] is None)[:1]:
            self._waiting.remove(item)
            slot.busy = True
            item[1].set_result(slot)
        self._changed()

    def evaluate(self, slot: Slot, tokens: list[str]) -> int:
        """Bring a prompt into a slot; returns how many of its tokens were there. At least one is evaluated."""
        if self._ram is not None:
            self._through_ram(slot, tokens)
        cached = min(common(slot.tokens, tokens), len(tokens) - 1)
        slot.tokens = tokens
        return cached

    def _through_ram(self, slot: Slot, tokens: list[str]) -> None:
        """Keep what a new prompt replaces, and take back what fits it better, as `--cache-ram` does."""
        assert self._ram is not None
        kept = common(slot.tokens, tokens)
        if slot.tokens and kept / len(slot.tokens) < 0.5:
            self._ram.append(slot.tokens)
        best = max(self._ram, key=lambda held: common(held, tokens), default=[])
        if common(best, tokens) > kept:
            self._ram.remove(best)
            slot.tokens = best

    def _left(self, wanted: int | None, place: "asyncio.Future[Slot]") -> None:
        """Someone who waited has gone, perhaps at the moment when the slot was handed over."""
        if place.done() and not place.cancelled():
            self.free(place.result())
        else:
            self._waiting.remove((wanted, place))
            self._changed()

    def _choose(self, tokens: list[str]) -> Slot | None:
        idle = [slot for slot in self.all if not slot.busy]
        alike = max(idle, key=lambda slot: common(slot.tokens, tokens), default=None)
        if alike is not None and common(alike.tokens, tokens) > SIMILAR * len(tokens):
            return alike
        return min(idle, key=lambda slot: (slot.used, -slot.id), default=None)
