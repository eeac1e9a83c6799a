"""Pure: locks as the API shows them."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from herdr.clock import rfc3339
from herdr.locks.line import Waiter
from herdr.locks.lock import Answer, Blocker, Cycle, Denied, Full, Lock, Mode, Wait
from herdr.locks.refusals import Deadlock, Locked, TooMany

RETRY_MAX_S = 60  # what clients of models take as a Retry-After, too; a lock may be released any time
BLOCKERS_SAID = 3  # in a message for people; the rest is counted
_ADVICE = "Wait in line with wait_s, work on something else, or ask the owner"
_STATE = {"held": "is held", "expired": "was held until a moment ago", "waiting": "is waited for"}


class Leased(msgspec.Struct, frozen=True):
    """A lock, as its holder is told of it."""

    lock: str
    paths: tuple[str, ...]
    token: int
    expires: str
    """RFC 3339: when the lease ends unless it is renewed, as the gateway's wall clock stands now."""
    mode: Mode
    owner: str
    workspace: str
    purpose: str | None
    session: str | None
    since: str
    ttl_s: float


class Taken(NamedTuple):
    """What somebody gets who asks for a lock."""

    leased: Leased
    is_new: bool
    """False: its owner held it before, and it was extended."""


def leased(lock: Lock, expires_us: int) -> Leased:
    """Return what a holder is told."""
    return Leased(
        lock.lock,
        lock.paths,
        lock.token,
        rfc3339(expires_us),
        lock.mode,
        lock.owner,
        lock.workspace,
        lock.purpose,
        lock.session,
        rfc3339(lock.since_us),
        lock.ttl_s,
    )


def conflicts(blockers: Sequence[Blocker], expires_us: Callable[[str], int]) -> list[dict[str, Any]]:
    """Return the entries of `conflicts`; `expires_us`: when a lock ends, by its id."""
    return [
        {
            "path": blocker.path,
            "asked": blocker.asked,
            "owner": blocker.owner,
            "purpose": blocker.purpose,
            "since": rfc3339(blocker.since_us),
            "expires": rfc3339(expires_us(blocker.lock)),
            "state": blocker.kind,
            "lock": blocker.lock,
        }
        for blocker in blockers
    ]


def refusal(
    answer: Answer, expires_us: Callable[[str], int], left_s: Callable[[str], float]
) -> Locked | Deadlock | TooMany:
    """Return the error for a request that was not granted: who, why, until when, and what to do."""
    if isinstance(answer, Cycle):
        chain = " waits for ".join(answer.owners)
        return Deadlock(
            f"waiting would never end: {chain}. Release what you hold, or go on without", answer.owners
        )
    if isinstance(answer, Full):
        code = "too_many_locks" if answer.what == "locks" else "too_many_waiters"
        return TooMany(f"the gateway has as many {answer.what} as it keeps; try again later", code)
    assert isinstance(answer, Denied)
    entries = conflicts(answer.blockers, expires_us)
    said = [_sentence(b, c["expires"]) for b, c in zip(answer.blockers, entries, strict=True)]
    more = f" and {len(said) - BLOCKERS_SAID} more" if len(said) > BLOCKERS_SAID else ""
    detail = "; ".join(said[:BLOCKERS_SAID]) + more + f". {_ADVICE}"
    first = min((left_s(blocker.lock) for blocker in answer.blockers), default=0.0)
    return Locked(detail, entries, min(RETRY_MAX_S, max(1, math.ceil(first))))


def _sentence(blocker: Blocker, expires: str) -> str:
    why = f" ({blocker.purpose})" if blocker.purpose else ""
    return f"{blocker.path} {_STATE[blocker.kind]} by {blocker.owner}{why}, until {expires} if not longer"


def line_view(waiter: Waiter, blockers: Sequence[Blocker]) -> dict[str, Any]:
    """Return somebody who stands in line, and for whom."""
    return {
        "owner": waiter.owner,
        "paths": list(waiter.ask.paths),
        "mode": waiter.mode,
        "workspace": waiter.ask.workspace,
        "purpose": waiter.purpose,
        "since": rfc3339(waiter.since_us),
        "blockers": list(dict.fromkeys(blocker.owner for blocker in blockers)),
    }


def wait_view(wait: Wait, expires_us: int) -> dict[str, Any]:
    """Return a declared wait as the API shows it."""
    return {
        "wait": wait.wait,
        "owner": wait.owner,
        "on": wait.on,
        "purpose": wait.purpose,
        "expires": rfc3339(expires_us),
    }


def lock_view(lock: Lock, waiters: Sequence[str], expires_us: int) -> dict[str, Any]:
    """Return a lock as the list shows it."""
    shown: dict[str, Any] = msgspec.to_builtins(leased(lock, expires_us))
    return {**shown, "waiters": list(waiters)}
