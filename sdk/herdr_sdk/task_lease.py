"""The lease of a task: renewed in the background, and known to be lost in time, as that of a lock is.

It is counted by our own clock from when the last confirmed renewal was *sent*, so it never ends later here than at
the gateway.
"""

import asyncio
from collections.abc import Awaitable, Callable

from herdr_sdk.backoff import Backoff
from herdr_sdk.errors import ConnectionFailed, HerdrError, OutcomeUnknown, ServerError, TaskLost

RENEWALS = 3  # in the time of a lease: one may come late, and the next one is still in time
GONE = frozenset({"fenced", "task_final", "unknown_task"})
"""What the gateway says to a holder that is none any more."""
PASSING = frozenset({"log_unavailable", "overloaded"})
"""What may be over when one asks again."""

_LATE = "no renewal was confirmed in time"
_GONE = "its lease ran out, or it was taken away"


class TaskLease:
    """The right to work on one task. `renew` asks the gateway to begin the lease anew."""

    def __init__(
        self, task: str, token: int, ttl_s: float, asked_at: float, renew: Callable[[], Awaitable[object]]
    ) -> None:
        self.lost = asyncio.Event()
        self.talking = asyncio.Lock()
        """Held by whoever speaks for the holder: what ends the work would look like a loss to a renewal."""
        self._task, self._token, self._ttl_s = task, token, ttl_s
        self._renew = renew
        self._reason: str | None = None
        self._begun_at = asked_at
        loop = asyncio.get_running_loop()
        self._end = loop.call_at(asked_at + ttl_s, self.lose, _LATE)
        self._keeping = loop.create_task(self._keep(), name=f"lease of task {task}")

    @property
    def error(self) -> TaskLost | None:
        """What to raise when it was lost; None while it is held."""
        return None if self._reason is None else TaskLost(self._reason, self._task, self._token)

    def lose(self, reason: str = _GONE) -> None:
        """Take note that somebody else may have the task. Once lost it stays so."""
        if self._reason is None:
            self._reason = reason
            self.lost.set()
            self.stop()

    def stop(self) -> None:
        """Renew it no more."""
        self._end.cancel()
        self._keeping.cancel()

    async def _keep(self) -> None:
        backoff, loop = Backoff(), asyncio.get_running_loop()
        pause_s = self._begun_at + self._ttl_s / RENEWALS - loop.time()
        while True:
            await asyncio.sleep(pause_s)
            if await self._renewed():
                backoff.reset()
                pause_s = self._begun_at + self._ttl_s / RENEWALS - loop.time()
            else:
                pause_s = backoff.next_s()

    async def _renewed(self) -> bool:
        """Renew it once; False where one should try again soon."""
        async with self.talking:
            asked_at = asyncio.get_running_loop().time()
            try:
                await self._renew()
            except (ConnectionFailed, OutcomeUnknown):
                return False
            except HerdrError as error:
                if is_passing(error):
                    return False
                self.lose(_GONE if is_gone(error) else error.detail)
                return False
        self._begun_at = asked_at
        self._end.cancel()
        self._end = asyncio.get_running_loop().call_at(asked_at + self._ttl_s, self.lose, _LATE)
        return True


def is_gone(error: HerdrError) -> bool:
    """Tell whether the gateway says that one does not hold the task any more."""
    return isinstance(error, ServerError) and error.code in GONE


def is_passing(error: HerdrError) -> bool:
    """Tell whether the same request may succeed in a moment."""
    if isinstance(error, ConnectionFailed | OutcomeUnknown):
        return True
    return isinstance(error, ServerError) and error.code in PASSING
