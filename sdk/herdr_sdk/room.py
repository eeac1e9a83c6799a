"""A bound on how much is under way, in events and in bytes; who finds it full waits in line."""

import asyncio
from collections import deque


class Room:
    """Counts what is taken. One thing larger than all the bytes still gets in, alone."""

    def __init__(self, events_max: int, bytes_max: int) -> None:
        self._events_left = events_max
        self._bytes_left = self._bytes_max = bytes_max
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    def try_take(self, size: int) -> bool:
        """Take room for one event if there is some and nobody waits; True when it was taken."""
        if self._line or not self._fits(size):
            return False
        self._events_left -= 1
        self._bytes_left -= size
        return True

    async def take(self, size: int) -> None:
        """Take room for one event, waiting in line for it."""
        if self.try_take(size):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was given the room and cancelled before it could run
                self.give(1, size)
            raise

    def give(self, events: int, size: int) -> None:
        """Give room back and let the next in line have it."""
        self._events_left += events
        self._bytes_left += size
        while self._line and (self._line[0][1].cancelled() or self._fits(self._line[0][0])):
            taken, turn = self._line.popleft()
            if not turn.cancelled():
                self._events_left -= 1
                self._bytes_left -= taken
                turn.set_result(None)

    def _fits(self, size: int) -> bool:
        alone = self._bytes_left == self._bytes_max
        return self._events_left > 0 and (self._bytes_left >= size or alone)
