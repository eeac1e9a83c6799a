"""Publish to and follow a Herdr gateway.

    async with Hub(name="my-tool") as hub:
        receipt = await hub.publish("tool.result", {"exit_code": 0})
        async with hub.follow(type="user.*") as events:
            async for event in events:
                print(event.type, event.data)

`herdr_sdk.blocking.Hub` is the same without asyncio; `herdr_sdk.sse` parses server-sent events.
"""

from herdr_sdk.errors import (
    Conflict,
    ConnectionFailed,
    FieldError,
    HerdrError,
    InvalidEvent,
    OutcomeUnknown,
    ServerError,
    Stale,
    Unauthorized,
)
from herdr_sdk.event import Draft, Event, Receipt
from herdr_sdk.follow import Follow
from herdr_sdk.hub import Hub
from herdr_sdk.sse_client import follow_sse

__version__ = "0.1.0"

__all__ = [
    "Conflict",
    "ConnectionFailed",
    "Draft",
    "Event",
    "FieldError",
    "Follow",
    "HerdrError",
    "Hub",
    "InvalidEvent",
    "OutcomeUnknown",
    "Receipt",
    "ServerError",
    "Stale",
    "Unauthorized",
    "follow_sse",
]
