"""Pure: the answers about locks and waits, as the API's description shows them."""

from typing import Literal

import msgspec

from herdr.locks.lock import Mode
from herdr.locks.views import Leased


class LockConflict(msgspec.Struct):
    """What is in the way of a lock."""

    path: str
    """The path as the other has it."""
    asked: str
    """The path that was asked for and collides with it."""
    owner: str
    purpose: str | None
    since: str
    expires: str
    state: Literal["held", "expired", "waiting"]
    """Held; held until a moment ago; or asked for earlier."""
    lock: str


class HeldLock(Leased, frozen=True):
    """A lock that is held, and who stands in line behind it."""

    waiters: list[str]


class Waiting(msgspec.Struct):
    """Somebody who stands in line."""

    owner: str
    paths: list[str]
    mode: Mode
    workspace: str
    since: str
    purpose: str | None
    blockers: list[str]


class WaitDeclared(msgspec.Struct):
    """A declared wait: `owner` goes on only when `on` has delivered something."""

    wait: str
    owner: str
    on: str
    purpose: str | None
    expires: str


class WaitList(msgspec.Struct):
    """Answer to `GET /v1/waits`."""

    waits: list[WaitDeclared]


class LockList(msgspec.Struct):
    """Answer to `GET /v1/locks`."""

    locks: list[HeldLock]
    waiting: list[Waiting]
    waits: list[WaitDeclared]


class Checked(msgspec.Struct):
    """Answer to `POST /v1/locks/check`: nothing is in the way when it is empty."""

    conflicts: list[LockConflict]
