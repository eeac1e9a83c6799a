"""Standing in line for a client: only for as long as it is there, and the gateway does not stop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from herdr.web.asgi import ClientGone, Receive, until_gone
from herdr.web.problems import Refused
from herdr.web.streams import Streams

T = TypeVar("T")


async def stand_in_line(
    asking: Coroutine[Any, Any, T], receive: Receive, streams: Streams, give_back: Callable[[T], None]
) -> T:
    """Return what is waited for; the waiting is cancelled when the client goes or the gateway stops.

    `give_back` is called with what came in the moment when the client went. Raises ClientGone, Refused, and
    what the waiting raises.
    """
    is_wanted = False
    asked = asyncio.create_task(asking)
    leaving = asyncio.create_task(until_gone(receive))
    stopping = asyncio.create_task(streams.goodbye.wait())
    try:
        await asyncio.wait((asked, leaving, stopping), return_when=asyncio.FIRST_COMPLETED)
        is_wanted = not leaving.done()
    finally:
        for task in (asked, leaving, stopping):
            task.cancel()
        await asyncio.wait((asked,))
        if not (is_wanted or asked.cancelled() or asked.exception()):
            give_back(asked.result())
    if not is_wanted:
        raise ClientGone
    if asked.cancelled():
        raise Refused("overloaded", "the gateway stops; ask again in a moment", {"retry-after": "2"})
    return asked.result()
