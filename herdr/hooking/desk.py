"""What hooks need of the rest of the gateway."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from herdr.bus.inbox import Waiting
from herdr.event import Draft, Receipt
from herdr.locks.lock import Wanted
from herdr.locks.views import Taken


class Locks(Protocol):
    """The write locks."""

    async def lock(self, wanted: Wanted) -> Taken:
        """Lock all paths, or none; raises Locked, TooMany, NotFound, InvalidInput, LogUnavailable."""
        ...

    async def release(self, lock: str, token: int) -> None:
        """Give a lock back; raises NotFound, Fenced, LogUnavailable."""
        ...


class Register(Protocol):
    """What is locked."""

    async def listed(self, workspace: str | None, path: str | None, owner: str | None) -> dict[str, Any]:
        """Return `locks` as the API shows them."""
        ...


class Publisher(Protocol):
    """Takes events."""

    async def publish(self, drafts: Sequence[Draft], source: str) -> list[Receipt]:
        """Publish; raises LogUnavailable."""
        ...


class Inbox(Protocol):
    """What waits for a name."""

    async def take(self, name: str, limit: int = 10) -> Waiting:
        """Return it, once."""
        ...


class Surroundings(NamedTuple):
    """All that hooks touch."""

    locks: Locks
    register: Register
    publisher: Publisher
    inbox: Inbox
    folders: Callable[[], Mapping[str, Sequence[str]]]
    """Each workspace's folder, under every path that clients know it by."""
    head: Callable[[], int]
    """Newest committed `seq`."""
    hash_of: Callable[[str, str], Awaitable[str | None]]
    """The content hash of a workspace's file as watchers write it, or None."""
