"""Pure: tasks as the API shows them."""

from typing import Any

import msgspec

from herdr.clock import rfc3339
from herdr.tasks.events import PREFIX, text_name
from herdr.tasks.task import Step, Task


def task_view(task: Task, expires_us: int | None) -> dict[str, Any]:
    """Return a task with all its steps; `expires_us`: when its lease ends, if it is held."""
    return {**_shown(task, expires_us), "steps": [step_view(step) for step in task.steps]}


def listed_view(task: Task, expires_us: int | None) -> dict[str, Any]:
    """Return a task as lists have it: its steps are only counted."""
    return {**_shown(task, expires_us), "steps": len(task.steps)}


def step_view(step: Step) -> dict[str, Any]:
    """Return one step."""
    shown: dict[str, Any] = {
        "seq": step.seq,
        "type": PREFIX + step.what,
        "by": step.by,
        "time": rfc3339(step.at_us),
        "state": step.state,
        "role": step.role,
        "holder": step.holder,
        "token": step.token,
    }
    if step.text is not None:
        shown[text_name(step.what)] = step.text
    if step.to is not None:
        shown["to"] = step.to
    if step.note is not None:
        shown["note"] = msgspec.to_builtins(step.note)
    return shown


def _shown(task: Task, expires_us: int | None) -> dict[str, Any]:
    return {
        "task": task.task,
        "title": task.title,
        "description": task.description,
        "role": task.role,
        "state": task.state,
        "holder": task.holder,
        "token": task.token,
        "workspace": task.workspace,
        "session": task.session,
        "created_by": task.created_by,
        "created": rfc3339(task.created_us),
        "updated": rfc3339(task.updated_us),
        "expires": None if expires_us is None else rfc3339(expires_us),
        "question": task.question,
        "asked": task.asked,
    }
