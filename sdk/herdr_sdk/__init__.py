"""Publish to and follow a Herdr gateway, and lock files through it.

    async with Hub(name="my-tool") as hub:
        receipt = await hub.publish("tool.result", {"exit_code": 0})
        async with hub.follow(type="user.*") as events:
            async for event in events:
                print(event.type, event.data)
        async with hub.lock("src/a.py", wait=10) as lock:
            print("nobody else edits it now", lock.token)

`herdr_sdk.blocking.Hub` is the same without asyncio; `herdr_sdk.sse` parses server-sent events.
"""

from herdr_sdk.errors import (
    Conflict,
    ConnectionFailed,
    Deadlock,
    FieldError,
    HerdrError,
    Holder,
    InvalidEvent,
    LockLost,
    OutcomeUnknown,
    ServerError,
    Stale,
    Unauthorized,
    VersionConflict,
)
from herdr_sdk.event import Draft, Event, Receipt
from herdr_sdk.follow import Follow
from herdr_sdk.hub import Hub
from herdr_sdk.lock_queries import LockInfo
from herdr_sdk.locks import Lock
from herdr_sdk.sse_client import follow_sse
from herdr_sdk.waits import WaitingFor

__version__ = "0.1.0"

__all__ = [
    "Conflict",
    "ConnectionFailed",
    "Deadlock",
    "Draft",
    "Event",
    "FieldError",
    "Follow",
    "HerdrError",
    "Holder",
    "Hub",
    "InvalidEvent",
    "Lock",
    "LockInfo",
    "LockLost",
    "OutcomeUnknown",
    "Receipt",
    "ServerError",
    "Stale",
    "Unauthorized",
    "VersionConflict",
    "WaitingFor",
    "follow_sse",
]
