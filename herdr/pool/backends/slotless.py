"""What backends without KV slots have in common: so many requests at once, and nothing to keep warm."""

from urllib.parse import urlsplit

from herdr.pool.backend import Sight
from herdr.pool.request import ChatRequest
from herdr.pool.upstream import Upstream


class Slotless:
    """The part of `Backend` that is the same for all of them."""

    has_slots = False

    def __init__(self, upstream: Upstream, concurrency: int) -> None:
        self.name = upstream.name
        self.url = upstream.url
        self._upstream = upstream
        self._concurrency = concurrency
        self._root = "/v1" if urlsplit(self.url).path in ("", "/") else ""
        """What stands before the API's own paths; an address that has a path has all of it."""

    async def look(self) -> Sight:
        """See `Backend.look`. Whether it takes connections is all that is asked: a request might be paid for."""
        await self._upstream.reach()
        return Sight(self._concurrency, None, True)

    async def settle(self, slot: int) -> None:
        """See `Backend.settle`: closing the connection is all that can be done."""

    async def save(self, slot: int, file: int) -> bool:
        """See `Backend.save`: there is nothing to save."""
        return False

    async def restore(self, slot: int, file: int) -> int:
        """See `Backend.restore`: there is nothing to restore."""
        return 0

    async def count(self, request: ChatRequest) -> int | None:
        """See `Backend.count`: OpenAI's protocol has no way to count."""
        return None
