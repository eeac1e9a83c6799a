"""What the tools need of the rest of the gateway, and what they share among themselves."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from herdr.bus.bus import Bus
from herdr.bus.inbox import Inbox
from herdr.errors import FieldError
from herdr.hooks.places import Places
from herdr.web.asgi import Message
from herdr.web.bodies import wrong
from herdr.web.context_desk import Artifacts, Graphs, Pictures, Sessions
from herdr.web.lock_desk import Desk, Register
from herdr.web.mcp.agents import Who
from herdr.web.task_desk import Board

DEFAULT = "default"
"""The workspace of everything, where none is watched."""


class Around(NamedTuple):
    """The rest of the gateway."""

    bus: Bus
    inbox: Inbox
    desk: Desk
    register: Register
    graphs: Graphs
    pictures: Pictures
    sessions: Sessions
    artifacts: Artifacts
    board: Board
    folders: Callable[[], Mapping[str, Sequence[str]]]
    """Each workspace's folder, under every path that clients know it by."""


class Said(NamedTuple):
    """A tool's answer: to read, and for programs. Each says all of it: some clients show models only the second."""

    text: str
    data: dict[str, Any]


class Tool(NamedTuple):
    """One tool."""

    name: str
    arguments: type[Any]
    words: Mapping[str, str]
    """What models are told about each argument."""
    scope: str | None
    """What a token needs for it."""
    reads: bool
    """Whether it changes nothing."""
    run: Callable[[Who, Any], Awaitable[Said]]


class Workspaces:
    """Which workspace a call is about, and what its paths are called there."""

    def __init__(self, folders: Callable[[], Mapping[str, Sequence[str]]]) -> None:
        self._folders = folders

    def names(self) -> list[str]:
        """Return the names of the watched workspaces."""
        return sorted(self._folders())

    def of(self, asked: str | None, who: Who) -> str:
        """Return the one that is asked for, or the agent's own, or the only one; raises InvalidInput."""
        found = asked or who.workspace
        if found is not None:
            return found
        names = self.names()
        if len(names) > 1:
            raise wrong(FieldError("workspace", f"required: one of {', '.join(names)[:500]}"))
        return names[0] if names else DEFAULT

    def holding(self, folder: str) -> str:
        """Return the workspace that a folder lies in; raises InvalidInput."""
        spot = Places(self._folders()).find(folder)
        if spot is None:
            known = ", ".join(self.names())[:500] or "none"
            raise wrong(
                FieldError(
                    "folder",
                    f"{folder[:200]!r} lies in no workspace that Herdr watches ({known}); a user can add it: "
                    f"herdr workspace add {folder[:200]}",
                )
            )
        return spot.workspace

    def spots(self, asked: str | None, who: Who, paths: Sequence[str]) -> tuple[str, list[str]]:
        """Return the workspace, and the paths as it calls them; clients may give them absolute."""
        places = Places(self._folders())
        found: set[str] = set()
        plain = []
        for path in paths:
            spot = places.find(path)
            if spot is None:  # relative, or somewhere else: those who take it say what is wrong
                plain.append(path)
                continue
            found.add(spot.workspace)
            is_folder = path.endswith(("/", "\\")) or not spot.path
            plain.append(f"{spot.path or '.'}/" if is_folder else spot.path)
        if len(found) > 1:
            raise wrong(
                FieldError("paths", f"lie in several workspaces: {', '.join(sorted(found))}; one a call")
            )
        if not found:
            return self.of(asked, who), plain
        (workspace,) = found
        if asked is not None and asked != workspace:
            raise wrong(FieldError("paths", f"lie in {workspace}, not in {asked}"))
        return workspace, plain


async def stays() -> Message:
    """Stand for a client that does not leave, where somebody else watches it."""
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never


def without_nothing(value: Any) -> Any:
    """Return a JSON value without members that are null or empty: models pay for them, too."""
    if isinstance(value, dict):
        return {
            k: without_nothing(v) for k, v in value.items() if v is not None and v not in ("", [], {}, ())
        }
    return [without_nothing(one) for one in value] if isinstance(value, list | tuple) else value
