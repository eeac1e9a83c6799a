"""How a test and the server's thread wait for each other."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from fake_llama.slots import Call, State

PATIENCE_S = 20.0  # for whatever is waited for; reaching it is a failure
BEFORE_HEADERS = -1


class Cues:
    """Says when something changes, and holds requests until the test lets them go on."""

    def __init__(self) -> None:
        self.held_at: int | None = None
        self.resume = asyncio.Event()
        self.let_go = asyncio.Event()
        self._condition = threading.Condition()

    def changed(self) -> None:
        """Tell whoever waits for something."""
        with self._condition:
            self._condition.notify_all()

    def until(self, happened: Callable[[], Any], timeout_s: float) -> bool:
        """Wait until something is so, and return whether it is."""
        with self._condition:
            return bool(self._condition.wait_for(happened, timeout_s))

    def now(self, call: Call, state: State) -> None:
        """Note the state of a request."""
        call.state = state
        self.changed()

    def ended(self, call: Call, state: State) -> None:
        """Note the state in which a request ends."""
        call.ended = time.monotonic()
        self.now(call, state)

    async def gate(self, call: Call, place: int) -> None:
        """Wait here if requests are held at this place."""
        if self.held_at == place:
            self.now(call, "held")
            await call.go.wait()
            self.now(call, "running")

    async def last_gate(self, call: Call, pieces: int) -> None:
        """Wait here if requests are held at any place that this one did not reach."""
        if self.held_at is not None and self.held_at >= pieces:
            await self.gate(call, self.held_at)


def pulse(event: asyncio.Event) -> None:
    """Wake up whoever waits, and nobody who comes later."""
    event.set()
    event.clear()
