"""Errors on the wire: RFC 9457 problem details, made in this one place from whatever was raised."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from herdr.errors import HerdrError, InvalidInput, LogUnavailable, NotFound
from herdr.locks.refusals import Deadlock, Fenced, Locked, TooMany
from herdr.pool.failures import STATUSES, ModelError
from herdr.tasks.refusals import TaskConflict, TooManyTasks

CONTENT_TYPE = "application/problem+json"
TYPE_BASE = "urn:herdr:problem:"

_STATUS_BY_CODE: Mapping[str, int] = {
    **STATUSES,
    "bad_request": 400,
    "unauthorized": 401,
    "missing_scope": 403,
    "foreign_origin": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "too_large": 413,
    "unsupported_media_type": 415,
    "foreign_host": 421,
    "upgrade_required": 426,
    "overloaded": 503,
    "read_only": 403,
    "artifact_too_large": 413,
    "blob_too_large": 413,
    **dict.fromkeys(("indexing", "workspace_lost", "graph_unavailable", "context_unavailable"), 503),
}
_STATUS_BY_CLASS: tuple[tuple[type[HerdrError], int], ...] = (
    (NotFound, 404),
    (InvalidInput, 400),
    (LogUnavailable, 503),
    (Locked, 409),
    (Deadlock, 409),
    (Fenced, 409),
    (TooMany, 503),
    (TaskConflict, 409),
    (TooManyTasks, 503),
)


class Refused(HerdrError):
    """A request that the front itself turns down; `headers` go with the answer."""

    def __init__(self, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail, code)
        self.headers = dict(headers or {})


class Problem(msgspec.Struct, omit_defaults=True):
    """The body of every error of Herdr's own endpoints."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[dict[str, Any]] = []
    conflicts: list[dict[str, Any]] | UnsetType = UNSET
    """Of `locked`: what is in the way."""
    cycle: list[str] | UnsetType = UNSET
    """Of `deadlock`: who would wait for whom; it ends where it begins."""


def status_of(error: HerdrError) -> int:
    """Return the HTTP status that an error stands for."""
    status = _STATUS_BY_CODE.get(error.code)
    if status is not None:
        return status
    return next((number for class_, number in _STATUS_BY_CLASS if isinstance(error, class_)), 500)


def problem_of(error: HerdrError) -> Problem:
    """Return the problem body for an error."""
    status = status_of(error)
    errors = []
    if isinstance(error, InvalidInput):
        for e in error.errors:
            entry: dict[str, Any] = {"field": e.field, "message": e.message}
            errors.append(entry if e.index is None else {"index": e.index, **entry})
    return Problem(
        TYPE_BASE + error.code,
        HTTPStatus(status).phrase,
        status,
        error.code,
        error.detail,
        errors,
        error.conflicts if isinstance(error, Locked) else UNSET,
        error.cycle if isinstance(error, Deadlock) else UNSET,
    )


def headers_of(error: HerdrError) -> list[tuple[bytes, bytes]]:
    """Return the headers that go with a problem."""
    headers = [(b"content-type", CONTENT_TYPE.encode())]
    if isinstance(error, Refused):
        headers.extend((name.encode(), value.encode()) for name, value in error.headers.items())
    elif (seconds := retry_after_s_of(error)) is not None:
        headers.append((b"retry-after", b"%d" % seconds))
    return headers


def retry_after_s_of(error: HerdrError) -> int | None:
    """Return after how many seconds the same request may succeed; None where time alone does not mend it."""
    if isinstance(error, ModelError | Locked):
        return error.retry_after_s
    return 1 if status_of(error) == 503 else None
