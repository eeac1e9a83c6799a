"""An HTTP session whose answers take virtual time: what limits cut, to the second, and without waiting."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
from virtual_time import pass_time

from herdr.pool.upstream import Limits, Upstream

LIMITS = Limits(connect_s=5.0, first_byte_s=300.0, between_chunks_s=60.0, total_s=1800.0)


class VirtualSession:
    """Answers each request with these pieces, each after so many seconds. Stands for `aiohttp.ClientSession`."""

    def __init__(
        self,
        pieces: Sequence[tuple[float, bytes]],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        head_after_s: float = 0.0,
    ) -> None:
        self.pieces, self.status, self.headers = pieces, status, headers or {}
        self.head_after_s = head_after_s
        self.requests: list[tuple[str, str, Mapping[str, Any]]] = []
        self.over = 0
        """Answers that were left, in whatever way."""

    @contextlib.asynccontextmanager
    async def request(self, method: str, url: str, **more: Any) -> AsyncIterator["VirtualSession"]:
        self.requests.append((method, url, more))
        try:
            await pass_time(self.head_after_s)
            yield self
        finally:
            self.over += 1

    @property
    def content(self) -> "VirtualSession":
        return self

    async def iter_any(self) -> AsyncIterator[bytes]:
        for after_s, piece in self.pieces:
            await pass_time(after_s)
            yield piece


def upstream_over(
    session: "VirtualSession | aiohttp.ClientSession",
    *,
    url: str = "http://there:1",
    headers: Mapping[str, str] | None = None,
    limits: Limits = LIMITS,
) -> Upstream:
    """An upstream over such a session, or over a real one."""
    return Upstream("there", url, headers or {}, limits, session)  # type: ignore[arg-type]
