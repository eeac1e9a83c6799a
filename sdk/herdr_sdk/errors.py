"""The errors that the SDK raises on purpose. Each message says what happened, why, and what to do next.

HerdrError
├── ConnectionFailed   no gateway answers, or the hub is closed; nothing was sent
├── Unauthorized       the gateway refuses the token; retrying will not help
├── InvalidEvent       the gateway (or the encoder) refused an event; nothing of it was stored
├── Stale              another source changed the subject first (only with `raise_on_stale=True`)
├── OutcomeUnknown     sent, but unanswered in time; safe to publish again with the same ids
└── ServerError        anything else that the gateway reports, with its `code`
"""

from collections.abc import Sequence

import msgspec


class FieldError(msgspec.Struct, frozen=True):
    """One wrong field. `index` is the event's place in what was published, None for a single event."""

    field: str = ""
    message: str = ""
    index: int | None = None


class Conflict(msgspec.Struct, frozen=True):
    """The version that an event collided with: who changed the subject, as which `seq`, and when."""

    subject: str
    seq: int
    source: str
    time: str


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

    def __init__(self, conflict: Conflict | None) -> None:
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


class ServerError(HerdrError):
    """The gateway reports an error; `code` is stable and listed in the gateway's documentation."""

    def __init__(self, code: str, detail: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(f"{detail} [{code}]")
        self.code = code
        self.errors = list(errors)


def _describe(error: FieldError) -> str:
    place = f"event {error.index}: " if error.index is not None else ""
    return f"{place}{error.field}: {error.message}" if error.field else f"{place}{error.message}"
