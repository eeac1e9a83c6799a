"""How one backend is: looked at when the gateway starts, after a failure, after a silence, and while it is away."""

import asyncio
import logging
from collections.abc import Callable
from typing import Literal

from herdr.clock import Clock
from herdr.pool.backend import Backend, Sight
from herdr.pool.failures import ModelError

LOOK_AGAIN_S = 2.0  # of silence; a server needs longer to start anew and load even a small model
RETRY_FIRST_S, RETRY_MAX_S = 0.25, 2.0  # between looks at a backend that is away

_log = logging.getLogger("herdr.pool")


class Lookout:
    """Keeps the state of one backend. A server that came back may have another number of slots, and llama.cpp
    takes any slot number modulo that, so nothing is sent to one that has not been looked at since.
    """

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self.state: Literal["starting", "ready", "unreachable"] = "starting"
        self.trouble: ModelError | None = None
        """Why it is unreachable."""
        self.sight = Sight(0, None, False)
        self._backend = backend
        self._clock = clock
        self._heard_at = float("-inf")
        self._turn = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self._found: Callable[[bool], None] = lambda is_new: None
        self._lost: Callable[[ModelError], None] = lambda error: None

    def start(self, found: Callable[[bool], None], lost: Callable[[ModelError], None]) -> None:
        """Begin to look. `found` hears of each good look, and whether the backend's slots are cold or others
        since; `lost` that calls should not wait any longer.
        """
        self._found, self._lost = found, lost
        self._keep_looking()

    async def stop(self) -> None:
        """Look no more."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    def heard(self) -> None:
        """Note that the backend has just answered something."""
        self._heard_at = self._clock.monotonic()

    def is_silent(self) -> bool:
        """Tell whether a ready backend has not been heard of for so long that it may be another one now."""
        if not self._backend.has_slots or self.state != "ready":
            return False
        return self._clock.monotonic() - self._heard_at > LOOK_AGAIN_S

    async def look(self, only_if: Callable[[], bool] = lambda: True) -> None:
        """Look now, one at a time; not at all if `only_if`, asked when it is our turn, says no."""
        async with self._turn:
            if not only_if():
                return
            try:
                sight = await self._backend.look()
            except ModelError as error:
                self._note_failure(error)
            else:
                self._note(sight)

    def _note(self, sight: Sight) -> None:
        self.heard()
        is_new = self.state != "ready" or sight.restarted or sight.total != self.sight.total
        self.sight, self.state, self.trouble = sight, "ready", None
        if is_new:
            _log.info("%s is ready: %s", self._backend.name, _described(self._backend, sight))
        self._found(is_new)

    def _note_failure(self, error: ModelError) -> None:
        if error.code == "backend_timeout" and self.state == "ready":
            return  # `/props` and `/slots` queue behind a long batch: slow is not gone
        self.heard()
        if error.code == "overloaded":  # it loads its model: calls may wait for that
            self.state, self.trouble = "starting", None
        else:
            if self.state != "unreachable":
                _log.warning("%s", error.detail)
            self.state, self.trouble = "unreachable", error.again()
            self._lost(error)
        if self._watch is None or self._watch.done():
            self._keep_looking()

    def _keep_looking(self) -> None:
        self._watch = asyncio.create_task(self._look_until_ready(), name=f"lookout for {self._backend.name}")

    async def _look_until_ready(self) -> None:
        pause = RETRY_FIRST_S
        await self.look()
        while self.state != "ready":
            await asyncio.sleep(pause)  # nothing tells us when a server comes up; asking is all there is
            pause = min(RETRY_MAX_S, 2 * pause)
            await self.look()


def _described(backend: Backend, sight: Sight) -> str:
    if not backend.has_slots:
        return f"{sight.total} requests at once"
    return f"{sight.total} slots of {sight.context or 'unknown'} tokens"
