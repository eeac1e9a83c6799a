"""Publish to and follow a Herdr gateway, lock files through it, and share what is known of a project.

    async with Hub(name="my-tool") as hub:
        receipt = await hub.publish("tool.result", {"exit_code": 0})
        async with hub.follow(type="user.*") as events:
            async for event in events:
                print(event.type, event.data)
        async with hub.lock("src/a.py", wait=10) as lock:
            print("nobody else edits it now", lock.token)
        print((await hub.context("shop").map(tokens=1024)).text)

`herdr_sdk.blocking.Hub` is the same without asyncio; `herdr_sdk.sse` parses server-sent events.
"""

from herdr_sdk.artifacts import Artifact, ArtifactList
from herdr_sdk.context import Context
from herdr_sdk.errors import (
    Conflict,
    ConnectionFailed,
    Deadlock,
    FieldError,
    HerdrError,
    Holder,
    InvalidEvent,
    LockLost,
    NoTask,
    NotFound,
    NotReady,
    OutcomeUnknown,
    ServerError,
    Stale,
    TaskLost,
    Unauthorized,
    VersionConflict,
)
from herdr_sdk.event import Draft, Event, Receipt
from herdr_sdk.follow import Follow
from herdr_sdk.graph import (
    Callees,
    Callers,
    Dependents,
    FileOutline,
    GraphState,
    Manifest,
    Map,
    Skipped,
    Symbol,
    Symbols,
)
from herdr_sdk.hub import Hub
from herdr_sdk.lock_queries import LockInfo
from herdr_sdk.locks import Lock
from herdr_sdk.sessions import Messages, Session, Sessions, Window
from herdr_sdk.snapshots import SnapshotReport
from herdr_sdk.sse_client import follow_sse
from herdr_sdk.task_views import Note, Step, Task
from herdr_sdk.task_work import Work
from herdr_sdk.waits import WaitingFor

__version__ = "0.1.0"

__all__ = [
    "Artifact",
    "ArtifactList",
    "Callees",
    "Callers",
    "Conflict",
    "ConnectionFailed",
    "Context",
    "Deadlock",
    "Dependents",
    "Draft",
    "Event",
    "FieldError",
    "FileOutline",
    "Follow",
    "GraphState",
    "HerdrError",
    "Holder",
    "Hub",
    "InvalidEvent",
    "Lock",
    "LockInfo",
    "LockLost",
    "Manifest",
    "Map",
    "Messages",
    "NoTask",
    "NotFound",
    "NotReady",
    "Note",
    "OutcomeUnknown",
    "Receipt",
    "ServerError",
    "Session",
    "Sessions",
    "Skipped",
    "SnapshotReport",
    "Stale",
    "Step",
    "Symbol",
    "Symbols",
    "Task",
    "TaskLost",
    "Unauthorized",
    "VersionConflict",
    "WaitingFor",
    "Window",
    "Work",
    "follow_sse",
]
