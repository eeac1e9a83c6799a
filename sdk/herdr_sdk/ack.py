"""Acknowledging: one at a time, the newest position wins, repeated after a lost connection."""

import asyncio

from herdr_sdk.errors import HerdrError

Waiter = asyncio.Future[None]


class Acks:
    """Which position is to be acknowledged, which is on its way, and who waits for it.

    With one under way and only the newest kept, a fast consumer sends at most one acknowledgement a round
    trip, and nothing piles up.
    """

    def __init__(self) -> None:
        self._wanted: str | None = None
        self._sent: str | None = None
        self._newest: str | None = None
        self._wanted_by: list[Waiter] = []
        self._sent_by: list[Waiter] = []

    def want(self, cursor: str) -> bool:
        """Ask for a position to be acknowledged; False when it was asked for already."""
        if cursor == self._newest:
            return False
        self._wanted = self._newest = cursor
        return True

    async def wait(self) -> None:
        """Wait until the newest wanted position is acknowledged."""
        if self._wanted is None and self._sent is None:
            return
        waiter: Waiter = asyncio.get_running_loop().create_future()
        (self._wanted_by if self._wanted is not None else self._sent_by).append(waiter)
        await waiter

    def take(self) -> str | None:
        """Return the position to send now, if there is one and none is on its way."""
        if self._sent is not None or self._wanted is None:
            return None
        self._sent, self._wanted = self._wanted, None
        self._sent_by, self._wanted_by = self._wanted_by, []
        return self._sent

    def answered(self) -> None:
        """Take note that what was sent is remembered."""
        self._sent = None
        for waiter in self._sent_by:
            if not waiter.done():
                waiter.set_result(None)
        self._sent_by = []

    def lost(self) -> None:
        """Take note that what was sent may not have arrived: it is wanted again, unless a newer one is."""
        self._wanted = self._wanted or self._sent
        self._wanted_by += self._sent_by
        self._sent, self._sent_by = None, []

    def failed(self, error: HerdrError) -> None:
        """Tell everyone who waits that it will not be."""
        self.lost()
        for waiter in self._wanted_by:
            if not waiter.done():
                waiter.set_exception(error)
        self._wanted, self._wanted_by = None, []
