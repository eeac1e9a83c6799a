"""Pure: what clients send about tasks, and what may be wrong with it."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from herdr.errors import FieldError
from herdr.event import Name
from herdr.tasks.task import ITEM_MAX, ITEMS_MAX, NOTE_BYTES_MAX, SUMMARY_MAX, Note, State
from herdr.web import bodies
from herdr.web.bodies import wrong

TTL_MAX_S = 3600  # a holder that is silent for longer has gone
WAIT_MAX_S = 600  # that one request stands in line; who wants to wait longer asks again
TITLE_MAX = 256  # characters: one line of a list
TEXT_MAX = 16 * 1024  # characters; what is longer goes into an artifact
REASON_MAX = 1024  # characters: it is for people
LIMIT_MAX, LIMIT_DEFAULT = 1000, 100
BODY_MAX = 1024 * 1024  # bytes: a note and a description, and six times as much for escapes

# In an address a slash would part it, dots would be resolved, and `claim` is an endpoint. The rest as `Name`
TaskId = Annotated[
    str,
    Meta(min_length=1, max_length=128, pattern=r"^(?!(?:claim|\.{1,2})$)[^\x00-\x1f\x7f/]+$(?!\n)"),
]
Title = Annotated[str, Meta(min_length=1, max_length=TITLE_MAX, pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)")]
Description = Annotated[str, Meta(max_length=TEXT_MAX)]
Text = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
Reason = Annotated[str, Meta(min_length=1, max_length=REASON_MAX)]
Ttl = Annotated[float, Meta(gt=0, le=TTL_MAX_S)]
WaitS = Annotated[float, Meta(ge=0, le=WAIT_MAX_S)]
Token = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Limit = Annotated[int, Meta(ge=1, le=LIMIT_MAX)]

_NAME = "1 to 128 characters without control characters"
EXPECTED: Mapping[str, str] = {
    "title": f"one line of 1 to {TITLE_MAX} characters",
    "description": f"a text of at most {TEXT_MAX} characters",
    **dict.fromkeys(("role", "owner", "to", "workspace", "session", "holder"), _NAME),
    "task": "1 to 128 characters without control characters and slashes; not `claim`, `.` or `..`",
    "note": f"an object with summary (a text of at most {SUMMARY_MAX} characters) and the lists decisions, files, "
    f"artifacts, open_questions (at most {ITEMS_MAX} texts of at most {ITEM_MAX} characters each)",
    "ttl_s": f"seconds, more than 0 and at most {TTL_MAX_S}",
    "wait_s": f"seconds, 0 to {WAIT_MAX_S}",
    "token": "the whole number that came with the claim",
    "question": f"a text of 1 to {TEXT_MAX} characters",
    "answer": f"a text of 1 to {TEXT_MAX} characters",
    "reason": f"a text of 1 to {REASON_MAX} characters",
    "state": "submitted, working, input_required, completed, failed, canceled or rejected",
    "limit": f"a whole number, 1 to {LIMIT_MAX}",
}


class CreateTaskBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A task: body of `POST /v1/tasks`."""

    title: Title
    role: Name
    description: Description = ""
    workspace: Name = "default"
    session: Name | None = None
    owner: Name | None = None
    """The caller's own name where it is left out."""
    note: Note | None = None
    task: TaskId | None = None
    """Its id: creating the same one again gives the one that there is."""


class ClaimNextBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/claim`: any task of a role."""

    role: Name
    owner: Name | None = None
    workspace: Name = "default"
    ttl_s: Ttl = 120.0
    wait_s: WaitS = 0.0


class ClaimTaskBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/{task}/claim`."""

    owner: Name | None = None
    ttl_s: Ttl = 120.0


class RenewTaskBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/{task}/renew`."""

    token: Token
    ttl_s: Ttl | None = None
    """For as long as before where it is left out."""


class HandOverBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/{task}/hand-over`."""

    token: Token
    role: Name
    note: Note | None = None


class AskBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/{task}/ask`."""

    token: Token
    question: Text
    to: Name | None = None
    """A name or a role; where it is left out whoever handed the task over last, else who created it."""


class AnswerBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/{task}/answer`."""

    answer: Text
    owner: Name | None = None


class ReleaseTaskBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/{task}/release`."""

    token: Token
    reason: Reason | None = None


class FinishBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/{task}/finish`."""

    token: Token
    note: Note | None = None


class EndBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/{task}/fail` and `…/reject`."""

    token: Token
    reason: Reason | None = None
    note: Note | None = None


class CancelBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/tasks/{task}/cancel`."""

    owner: Name | None = None
    reason: Reason | None = None


class TaskListQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query of `GET /v1/tasks`."""

    workspace: Name | None = None
    role: Name | None = None
    state: list[State] = []
    """Any of them; may stand several times."""
    holder: Name | None = None
    limit: Limit = LIMIT_DEFAULT


Body = TypeVar("Body", bound=msgspec.Struct)


def read_body_as(type_: type[Body], body: bytes) -> Body:
    """Decode a body about tasks; raises InvalidInput."""
    found = bodies.read_body_as(type_, body, EXPECTED)
    note = getattr(found, "note", None)
    if note is not None and (size := len(msgspec.json.encode(note))) > NOTE_BYTES_MAX:
        raise wrong(
            FieldError(
                "note",
                f"has {size} bytes as JSON, the most is {NOTE_BYTES_MAX}; put it into an artifact and name that in "
                "`artifacts`",
            )
        )
    return found


def read_query(query: bytes) -> TaskListQuery:
    """Decode the query of the list; raises InvalidInput."""
    return bodies.read_query_as(TaskListQuery, query, EXPECTED, frozenset({"state"}))
