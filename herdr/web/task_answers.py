"""Pure: the answers about tasks, as the API's description shows them."""

import msgspec
from msgspec import UNSET, UnsetType

from herdr.tasks.task import Note, State


class TaskStep(msgspec.Struct, omit_defaults=True):
    """One thing that happened to a task."""

    seq: int
    """Of its event."""
    type: str
    """The event's: `handoff.created`, `handoff.claimed` …"""
    by: str
    time: str
    state: State
    """What it led to."""
    role: str
    holder: str | None
    """Who holds the task after it, or held it until then."""
    token: int | None
    question: str | UnsetType = UNSET
    answer: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    to: str | UnsetType = UNSET
    """Who is asked."""
    note: Note | UnsetType = UNSET


class _Shown(msgspec.Struct, kw_only=True):
    task: str
    title: str
    description: str
    role: str
    """Who is to work on it."""
    state: State
    holder: str | None
    token: int | None
    """The fencing token: the seq of its holder's `handoff.claimed`."""
    workspace: str
    session: str | None
    created_by: str
    created: str
    updated: str
    expires: str | None
    """When it returns to its role unless its holder renews it."""
    question: str | None
    asked: str | None
    """Who is to answer the question."""


class TaskView(_Shown):
    """A task with all its steps."""

    steps: list[TaskStep]


class ListedTask(_Shown):
    """A task as the list has it."""

    steps: int


class TaskList(msgspec.Struct):
    """Answer to `GET /v1/tasks`."""

    tasks: list[ListedTask]
