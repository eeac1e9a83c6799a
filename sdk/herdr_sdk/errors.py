"""The errors that the SDK raises on purpose. Each message says what happened, why, and what to do next.

HerdrError
├── ConnectionFailed   no gateway answers, or the hub is closed; nothing was sent
├── Unauthorized       the gateway refuses the token; retrying will not help
├── InvalidEvent       the gateway (or the encoder) refused an event; nothing of it was stored
├── Stale              another source changed the subject first (only with `raise_on_stale=True`)
├── OutcomeUnknown     sent, but unanswered in time; safe to publish again with the same ids
├── Conflict           others hold the lock that was asked for
├── Deadlock           waiting would never end: somebody in the cycle waits for whoever asked
├── LockLost           a lock was not held to the end of its block
├── NoTask             no task for the role came in time
├── TaskLost           a task was not held to the end of its block
└── ServerError        anything else that the gateway reports, with its `code`
    ├── NotFound       there is no such workspace, file, symbol, session, artifact …
    └── NotReady       the first index is being built, the folder is away …: ask again later
"""

from collections.abc import Sequence

import msgspec


class FieldError(msgspec.Struct, frozen=True):
    """One wrong field. `index` is the event's place in what was published, None for a single event."""

    field: str = ""
    message: str = ""
    index: int | None = None


class VersionConflict(msgspec.Struct, frozen=True):
    """The version that an event collided with: who changed the subject, as which `seq`, and when."""

    subject: str
    seq: int
    source: str
    time: str


class Holder(msgspec.Struct, frozen=True):
    """Who is in the way of a lock. `state` is `held`, `expired` (a moment ago) or `waiting` (asked earlier)."""

    path: str
    """The path as the other has it."""
    owner: str
    asked: str = ""
    """The path that was asked for and collides with it."""
    purpose: str | None = None
    since: str | None = None
    expires: str | None = None
    """RFC 3339: when the lease ends unless it is renewed."""
    state: str = "held"
    lock: str = ""

    def __str__(self) -> str:
        why = f" ({self.purpose})" if self.purpose else ""
        until = f", until {self.expires} if not longer" if self.expires else ""
        return f"{self.path} {_STATES.get(self.state, self.state)} by {self.owner}{why}{until}"


_STATES = {"held": "is held", "expired": "was held until a moment ago", "waiting": "is waited for"}
_HOLDERS_SAID = 3  # in a message for people; the rest is counted


class HerdrError(Exception):
    """Base of all of them."""

    results: Sequence[object] = ()
    """Set by `publish_many`: for each event, in order, its `Receipt` or the error that it met."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class ConnectionFailed(HerdrError):
    """The gateway cannot be reached. What was being published has not been sent."""


class Unauthorized(HerdrError):
    """The gateway refuses the token, or the token lacks a scope. Final: the hub does not retry."""


class InvalidEvent(HerdrError):
    """The event is not acceptable; `errors` names each wrong field. Nothing of it was stored."""

    def __init__(self, detail: str, errors: Sequence[FieldError] = ()) -> None:
        fields = "; ".join(_describe(error) for error in errors)
        super().__init__(f"{detail} ({fields})" if fields else detail)
        self.errors = list(errors)


class Stale(HerdrError):
    """The event was made against an old version of its subject and was not stored."""

    def __init__(self, conflict: VersionConflict | None) -> None:
        where = (
            f"{conflict.source} changed {conflict.subject} as seq {conflict.seq}"
            if conflict
            else "it changed"
        )
        super().__init__(
            f"The event is stale: {where} since its based_on, so it was not stored. "
            "Look at the newer version, then publish again with the new based_on."
        )
        self.conflict = conflict


class OutcomeUnknown(HerdrError):
    """Events were sent and not answered in time: each may be in the log or not.

    Publishing them again with the same `source` and `id` is safe: what is there already comes back as
    `duplicate`.
    """

    def __init__(self, detail: str, ids: Sequence[str]) -> None:
        super().__init__(detail)
        self.ids = list(ids)


class Conflict(HerdrError):
    """Others hold what was asked for, or asked for it earlier; `conflicts` names each. Nothing was locked."""

    def __init__(self, conflicts: Sequence[Holder], retry_after_s: float | None = None) -> None:
        said = "; ".join(str(holder) for holder in conflicts[:_HOLDERS_SAID])
        more = f" and {len(conflicts) - _HOLDERS_SAID} more" if len(conflicts) > _HOLDERS_SAID else ""
        super().__init__(
            f"The lock was not granted: {said or 'others hold it'}{more}. "
            "Wait in line for it (wait=SECONDS), work on something else, or ask the owner."
        )
        self.conflicts = list(conflicts)
        self.retry_after_s = retry_after_s
        """When asking again makes sense, in seconds, as far as the gateway said."""


class Deadlock(HerdrError):
    """Waiting would close a cycle of owners who wait for each other; `cycle` begins and ends with one's own."""

    def __init__(self, cycle: Sequence[str]) -> None:
        super().__init__(
            f"Waiting would never end: {' waits for '.join(cycle) or 'owners wait for each other'}. "
            "Give back what you hold yourself, then begin anew."
        )
        self.cycle = list(cycle)


class LockLost(HerdrError):
    """The lock was not, or not for certain, held all the time: somebody else may have had it meanwhile."""

    def __init__(self, reason: str, lock: str, token: int, paths: Sequence[str]) -> None:
        super().__init__(
            f"The lock on {', '.join(paths)} (token {token}) was lost: {reason}. Somebody else may have had it "
            "since. Look at what it protects before you go on; to go on, take it again."
        )
        self.lock = lock
        self.token = token
        self.paths = list(paths)


class NoTask(HerdrError):
    """No task for the role came within the time that one was ready to wait."""


class TaskLost(HerdrError):
    """The task was not, or not for certain, held all the time: somebody else may be at work on it."""

    def __init__(self, reason: str, task: str, token: int) -> None:
        super().__init__(
            f"The task {task} (token {token}) was lost: {reason}. Somebody else may have taken it over since. "
            "Look at its steps before you go on; to go on, claim it again."
        )
        self.task = task
        self.token = token


class ServerError(HerdrError):
    """The gateway reports an error; `code` is stable and listed in the gateway's documentation."""

    def __init__(self, code: str, detail: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(f"{detail} [{code}]")
        self.code = code
        self.errors = list(errors)


class NotFound(ServerError):
    """What was asked for is not there; `code` says what: `unknown_workspace`, `unknown_symbol` …"""


class NotReady(ServerError):
    """What is known cannot be looked at now: the first index is being built (`indexing`), the folder is away
    (`workspace_lost`), or a part of the gateway is being started anew (`graph_unavailable`, `context_unavailable`).
    """

    def __init__(
        self,
        code: str,
        detail: str,
        errors: Sequence[FieldError] = (),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(code, detail, errors)
        self.retry_after_s = retry_after_s
        """When asking again makes sense, in seconds, as far as the gateway said."""


def _describe(error: FieldError) -> str:
    place = f"event {error.index}: " if error.index is not None else ""
    return f"{place}{error.field}: {error.message}" if error.field else f"{place}{error.message}"
