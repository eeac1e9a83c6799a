"""What backends without KV slots have in common: so many requests at once, and nothing to keep warm."""

from herdr.pool.backend import Sight
from herdr.pool.request import ChatRequest
from herdr.pool.upstream import Upstream


class Places:
    """The part of `Backend` that is the same for all of them."""

    has_slots = False

    def __init__(self, upstream: Upstream, concurrency: int) -> None:
        self.name = upstream.name
        self.url = upstream.url
        self._concurrency = concurrency
        self._root = "" if self.url.endswith("/v1") else "/v1"

    async def look(self) -> Sight:
        """See `Backend.look`; a cloud is not asked, since that would count against its quota."""
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
        """See `Backend.count`: these servers have no common way to count, and some take money for it."""
        return None
