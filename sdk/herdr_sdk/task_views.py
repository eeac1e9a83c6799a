"""Tasks as the gateway shows them."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

import msgspec

State = Literal["submitted", "working", "input_required", "completed", "failed", "canceled", "rejected"]
"""The names of the A2A protocol in lower case; the last four are final."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What goes along with a task: what whoever has it next should know."""

    summary: str = ""
    decisions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Paths that were changed, relative to the workspace's folder."""
    artifacts: tuple[str, ...] = ()
    """Names of artifacts; `hub.artifacts.get` has the content."""
    open_questions: tuple[str, ...] = ()


class NoteFields(TypedDict, total=False):
    """The fields of a `Note` as keyword arguments."""

    summary: str
    decisions: Sequence[str]
    files: Sequence[str]
    artifacts: Sequence[str]
    open_questions: Sequence[str]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a task; the event `seq` tells it too."""

    seq: int = 0
    type: str = ""
    """The event's: `handoff.created`, `handoff.claimed`, `handoff.handed_over` …"""
    by: str = ""
    time: str = ""
    state: str = ""
    """The state that it led to."""
    role: str = ""
    holder: str | None = None
    token: int | None = None
    """Of the holder: who has the task from here on, or had it until here."""
    note: Note | None = None
    question: str | None = None
    answer: str | None = None
    to: str | None = None
    reason: str | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task, as it was when it was asked for."""

    task: str
    """Its id."""
    title: str = ""
    description: str = ""
    role: str = ""
    state: str = ""
    """See `State`."""
    holder: str | None = None
    token: int | None = None
    """The fencing token of its holder: the `seq` of the event with which it was claimed."""
    workspace: str = "default"
    session: str | None = None
    created_by: str = ""
    created: str = ""
    updated: str = ""
    expires: str | None = None
    """RFC 3339, by the gateway's clock: when it returns to its role unless its holder renews it."""
    question: str | None = None
    """What its holder has asked and nobody has answered yet."""
    asked: str | None = None
    """Who is to answer it."""
    steps: tuple[Step, ...] | int = ()
    """What happened so far, in order; in a list only their number."""

    @property
    def note(self) -> Note | None:
        """The newest note: what whoever had it before left for the next."""
        steps = () if isinstance(self.steps, int) else self.steps
        return next((step.note for step in reversed(steps) if step.note is not None), None)


def note_of(fields: NoteFields) -> Mapping[str, object] | None:
    """Return a note as the gateway takes it; None where it would say nothing."""
    said = {
        name: value if isinstance(value, str) else list(value)  # type: ignore[call-overload]
        for name, value in fields.items()
        if value
    }
    return said or None
