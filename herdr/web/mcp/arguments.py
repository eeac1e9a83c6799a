"""Pure: what each tool takes. Models fill these in, so names are few and the same thing has one name everywhere."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from herdr.context.artifacts import TTL_DEFAULT_S, TTL_MAX_S
from herdr.event import Name, Priority, Seq, Subject, Tag
from herdr.tasks.task import Note
from herdr.web.context_bodies import (
    FOCUS_MAX,
    MAP_TOKENS_MAX,
    MAP_TOKENS_MIN,
    WINDOW_TOKENS_MAX,
    WINDOW_TOKENS_MIN,
    Path,
)
from herdr.web.lock_bodies import PURPOSE_MAX
from herdr.web.lock_bodies import TTL_MAX_S as LOCK_TTL_MAX_S
from herdr.web.task_bodies import Description, Reason, TaskId, Text, Title

PATHS_MAX = 256  # of one call: a model that names more means a folder
WAIT_MAX_S = 60  # seconds; clients give up on a call that takes longer
LOCK_TTL_S = 600.0  # a model thinks for minutes between two calls
TASK_TTL_S = 1800.0  # and works on a task for longer; a dead one's task is back within half an hour
EVENTS_MAX, ROWS_MAX = 100, 200  # in one answer, which a model reads whole
CONTENT_MAX = 1024 * 1024  # characters of an artifact that a model writes itself

Paths = Annotated[list[Path], Meta(min_length=1, max_length=PATHS_MAX)]
WaitS = Annotated[float, Meta(ge=0, le=WAIT_MAX_S)]
TtlS = Annotated[float, Meta(gt=0, le=LOCK_TTL_MAX_S)]
Rows = Annotated[int, Meta(ge=1, le=ROWS_MAX)]
Word = Annotated[str, Meta(min_length=1, max_length=1024)]


class Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What every tool but `register` takes."""

    agent: Annotated[str, Meta(max_length=64)] | None = None
    workspace: Name | None = None


class Register(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `register`."""

    name: Name
    workspace: Name | None = None
    folder: Path | None = None
    session: Name | None = None


class Publish(Arguments):
    """Arguments of `publish`."""

    type: Annotated[str, Meta(min_length=1, max_length=128)]
    data: Any = None
    subject: Subject | None = None
    priority: Priority | None = None
    session: Name | None = None
    task: Name | None = None
    tags: Annotated[tuple[Tag, ...], Meta(max_length=16)] = ()
    based_on: Seq | None = None


class Events(Arguments):
    """Arguments of `events`."""

    mine: bool = False
    type: Word | None = None
    subject: Word | None = None
    source: Word | None = None
    session: Word | None = None
    after: Annotated[str, Meta(max_length=128)] | None = None
    limit: Annotated[int, Meta(ge=1, le=EVENTS_MAX)] = 20


class Lock(Arguments):
    """Arguments of `lock`."""

    paths: Paths
    purpose: Annotated[str, Meta(max_length=PURPOSE_MAX)] | None = None
    wait_s: WaitS = 0.0
    ttl_s: TtlS = LOCK_TTL_S
    session: Name | None = None


class Unlock(Arguments):
    """Arguments of `unlock`."""

    paths: Annotated[list[Path], Meta(max_length=PATHS_MAX)] = []
    lock: Name | None = None


class CheckPaths(Arguments):
    """Arguments of `check_paths`."""

    paths: Paths


class ProjectMap(Arguments):
    """Arguments of `project_map`."""

    tokens: Annotated[int, Meta(ge=MAP_TOKENS_MIN, le=MAP_TOKENS_MAX)] = 1024
    focus: Annotated[list[Path], Meta(max_length=FOCUS_MAX)] = []
    names: Annotated[list[Word], Meta(max_length=FOCUS_MAX)] = []


class FindSymbol(Arguments):
    """Arguments of `find_symbol`."""

    name: Word
    kind: Annotated[str, Meta(max_length=64)] | None = None
    path: Path | None = None
    limit: Rows = 20


class Callers(Arguments):
    """Arguments of `callers`."""

    symbol: Annotated[str, Meta(min_length=1, max_length=8192)]
    limit: Rows = 50


class SessionWindow(Arguments):
    """Arguments of `session_window`."""

    session: Name | None = None
    tokens: Annotated[int, Meta(ge=WINDOW_TOKENS_MIN, le=WINDOW_TOKENS_MAX)] | None = None


class Artifact(Arguments):
    """Arguments of `artifact`."""

    action: Literal["save", "read", "list"]
    name: Subject | None = None
    content: Annotated[str, Meta(max_length=CONTENT_MAX)] | None = None
    kind: Annotated[str, Meta(max_length=64)] | None = None
    ttl_s: Annotated[int, Meta(ge=1, le=TTL_MAX_S)] = TTL_DEFAULT_S
    session: Name | None = None
    offset: Annotated[int, Meta(ge=0)] = 0


class TaskArguments(Arguments):
    """Arguments of `task`."""

    action: Literal["create", "list", "claim", "hand_over", "ask", "answer", "finish", "fail", "release"]
    task: TaskId | None = None
    title: Title | None = None
    description: Description = ""
    role: Name | None = None
    note: Note | None = None
    question: Text | None = None
    to: Name | None = None
    answer: Text | None = None
    reason: Reason | None = None
    wait_s: WaitS = 0.0
    ttl_s: TtlS = TASK_TTL_S
    session: Name | None = None
