"""What a task is, what may happen to one, and what whoever asks is answered. Pure; every other part uses these."""

from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

State = Literal["submitted", "working", "input_required", "completed", "failed", "canceled", "rejected"]
"""The names of the A2A protocol (https://a2a-protocol.org, TaskState) in lower case."""

OPEN: tuple[State, ...] = ("submitted", "working", "input_required")
FINAL: frozenset[State] = frozenset({"completed", "failed", "canceled", "rejected"})

What = Literal[
    "created",
    "claimed",
    "renewed",
    "handed_over",
    "asked",
    "answered",
    "released",
    "returned",
    "finished",
    "failed",
    "rejected",
    "canceled",
]
"""What happens to a task; committed as the event `handoff.<what>`."""

Ending = Literal["finished", "failed", "rejected", "canceled"]
ENDS: dict[Ending, State] = {
    "finished": "completed",
    "failed": "failed",
    "rejected": "rejected",
    "canceled": "canceled",
}

SUMMARY_MAX = 16 * 1024  # characters; what does not fit goes into an artifact that the note names
ITEMS_MAX, ITEM_MAX = 100, 2048  # of each list, and characters of one entry
NOTE_BYTES_MAX = 64 * 1024  # as JSON: it is in an event, and followers get it whole

Summary = Annotated[str, Meta(max_length=SUMMARY_MAX)]
Items = Annotated[tuple[Annotated[str, Meta(max_length=ITEM_MAX)], ...], Meta(max_length=ITEMS_MAX)]


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What goes along with a task: what whoever has it next should know."""

    summary: Summary = ""
    decisions: Items = ()
    files: Items = ()
    """Paths that were changed or matter, relative to the workspace's folder."""
    artifacts: Items = ()
    """Names of artifacts."""
    open_questions: Items = ()


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened to a task."""

    what: What
    by: str
    """Who did it; the gateway itself (`herdr`) for what ends by itself."""
    seq: int
    """Of its event."""
    at_us: int
    """Wall clock of the commit, microseconds since the epoch; for people, nothing is decided by it."""
    state: State
    """What it led to."""
    role: str
    """Who is to work on it from here on."""
    token: int | None = None
    """Of whoever holds the task after it, or held it until then."""
    holder: str | None = None
    """Whose token that is."""
    to: str | None = None
    """Who is asked."""
    text: str | None = None
    """The question, the answer, or the reason."""
    note: Note | None = None
    ttl_s: float | None = None
    """How long the lease that begins here lasts."""
    ask: str | None = None
    """Of `claimed`: the request for any task of the role that it answers."""
    saw: int | None = None
    """Of `returned`: the newest claim or renewal that was known; void when there is a newer one."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task as its steps have left it. Renewals are no steps: a holder has thousands."""

    task: str
    title: str
    description: str
    workspace: str
    session: str | None
    state: State
    role: str
    created_by: str
    created_us: int
    updated_us: int
    updated: int
    """The `seq` of its newest event but renewals: its place among the tasks that wait for its role."""
    steps: tuple[Step, ...]
    holder: str | None = None
    token: int | None = None
    """The fencing token: the `seq` of the `handoff.claimed` of whoever holds it."""
    ttl_s: float = 0.0
    renewed: int = 0
    """The `seq` of the newest claim or renewal."""
    ask: str | None = None
    """What its holder got it by, if it asked for any task of the role."""
    question: str | None = None
    asked: str | None = None
    """Who is to answer it."""
    size: int = 0
    """About how many bytes it takes."""

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL


class New(msgspec.Struct, frozen=True, kw_only=True):
    """A task that somebody wants to create."""

    title: str
    role: str
    by: str
    task: str = ""
    description: str = ""
    workspace: str = "default"
    session: str | None = None
    note: Note | None = None


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody wants the oldest task of a role. `ask` is an id of its own."""

    ask: str
    owner: str
    role: str
    workspace: str = "default"
    ttl_s: float = 120.0
    waits: bool = False
    """Whether to stand in line until there is one."""


class Move(NamedTuple):
    """One change, to be committed as an event."""

    task: Task
    """As it is then."""
    step: Step
    before: Task | None
    """As it was."""


class Ruling(NamedTuple):
    """What one decision of the table comes to."""

    moves: tuple[Move, ...] = ()
    """To be committed at consecutive `seq`s, the first at the one that the decision was given."""
    task: Task | None = None
    """What it was about, as the ruling leaves it; None: there is no such task (for an ask: not yet)."""
    grants: tuple[tuple[str, Task], ...] = ()
    """What those get who stood in line, by their `ask`."""
