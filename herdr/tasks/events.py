"""Pure: steps of tasks as events of the log, and back: the table is the fold of these."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from herdr.tasks.task import FINAL, Move, New, Note, Step, Task, What

PREFIX = "handoff."
_TEXTS: Mapping[What, str] = {"asked": "question", "answered": "answer"}

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Told(NamedTuple):
    """What an event of the gateway says, and to whom beside those that the routing table names."""

    type: str
    data: Mapping[str, Any]
    to: tuple[str, ...] = ()


def text_name(what: What) -> str:
    """Return what the text of a step is called."""
    return _TEXTS.get(what, "reason")


def event_of(move: Move) -> Told:
    """Return the event that a step is committed as."""
    task, step = move.task, move.step
    data: dict[str, Any] = {
        "task": task.task,
        "title": task.title,
        "role": step.role,
        "state": step.state,
        "by": step.by,
        "holder": step.holder,
        "token": step.token,
    }
    if step.what == "created":
        data["description"] = task.description
    if step.what == "handed_over" and move.before is not None:
        data["from_role"] = move.before.role
    if step.text is not None:
        data[text_name(step.what)] = step.text
    more = {name: getattr(step, name) for name in ("to", "note", "ttl_s", "ask", "saw")}
    data.update({name: value for name, value in more.items() if value is not None})
    return Told(PREFIX + step.what, data, _addressed(task, step))


def _addressed(task: Task, step: Step) -> tuple[str, ...]:
    if step.what == "renewed":
        return ()
    if step.what == "answered":
        return () if step.holder is None else (step.holder,)
    if step.what == "asked":
        return () if step.to is None else (step.to,)
    if step.state in FINAL:
        holder = step.holder if step.what == "canceled" else None
        return (task.created_by,) if holder is None else (task.created_by, holder)
    return (task.created_by,) if step.what == "claimed" else (step.role,)


def step_of(type_: str, data: bytes, seq: int, accepted_us: int) -> tuple[str, Step] | None:
    """Return the task and the step that a stored event tells of; None for one of another kind.

    The gateway starts from stored tasks and needs no replay; this is how one sees that the log alone says the
    same. Raises msgspec.ValidationError or KeyError when the event is not one of this module's.
    """
    if not type_.startswith(PREFIX):
        return None
    told, what = _decode(data), cast(What, type_.removeprefix(PREFIX))
    note = told.get("note")
    return told["task"], Step(
        what=what,
        by=told["by"],
        seq=seq,
        at_us=accepted_us,
        state=told["state"],
        role=told["role"],
        token=told["token"],
        holder=told["holder"],
        to=told.get("to"),
        text=told.get(text_name(what)),
        note=None if note is None else msgspec.convert(note, Note),
        ttl_s=told.get("ttl_s"),
        ask=told.get("ask"),
        saw=told.get("saw"),
    )


def new_of(data: bytes, step: Step, workspace: str, session: str | None) -> New:
    """Return what `handoff.created` created; workspace and session are the event's own."""
    told = _decode(data)
    return New(
        task=told["task"],
        title=told["title"],
        description=told["description"],
        role=step.role,
        by=step.by,
        workspace=workspace,
        session=session,
        note=step.note,
    )
