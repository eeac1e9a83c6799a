"""Named values on their way to the log, and whoever waits for them: acknowledgements, rules, workspaces."""

import asyncio
from collections.abc import Iterable

from herdr.bus.log import Put

PUTS_MAX = 256  # a batch; they are small and rare

Waiting = list["asyncio.Future[None]"]


class PutQueue:
    """First in, first out by key; a newer value of a key takes the place of the older, for both who wait.

    Bounded by what callers await: each of them has one future in here.
    """

    def __init__(self) -> None:
        self._puts: dict[tuple[str, str], tuple[bytes | None, Waiting]] = {}

    def __len__(self) -> int:
        return len(self._puts)

    def add(self, kind: str, key: str, value: bytes | None) -> "asyncio.Future[None]":
        """Queue a value; the future is done once it is committed."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        _, waiting = self._puts.get((kind, key), (None, []))
        self._puts[kind, key] = (value, [*(f for f in waiting if not f.done()), done])
        return done

    def take(self) -> tuple[list[Put], Waiting]:
        """Remove and return the oldest values for one batch, and who waits for them."""
        puts: list[Put] = []
        waiting: Waiting = []
        for kind, key in list(self._puts)[:PUTS_MAX]:
            value, futures = self._puts.pop((kind, key))
            puts.append(Put(kind, key, value))
            waiting.extend(futures)
        return puts, waiting


def finish(waiting: Iterable["asyncio.Future[None]"], error: Exception | None = None) -> None:
    """Wake whoever waits."""
    for future in waiting:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
