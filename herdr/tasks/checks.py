"""Pure: whether a task may be touched, and what is said if not."""

from herdr.errors import NotFound
from herdr.tasks.fold import FIELDS_BYTES, size_of_note
from herdr.tasks.refusals import NotHolder, TaskConflict
from herdr.tasks.task import Note, Task

TASK_BYTES_MAX = 512 * 1024  # of one task with all its notes: it is written whole with each of its steps


def check_known(task: str, found: Task | None) -> Task:
    """Return the task. Raises NotFound (`unknown_task`)."""
    if found is None:
        raise NotFound(f"there is no task {task[:128]!r}: it ended long ago, or never was", "unknown_task")
    return found


def check_open(task: str, known: Task | None) -> Task:
    """Return the task if it has not ended. Raises NotFound (`unknown_task`), TaskConflict (`task_final`)."""
    found = check_known(task, known)
    if found.is_final:
        by = found.steps[-1].by
        raise TaskConflict(
            f"task {task!r} has ended: {found.state}, by {by}; create a new one if there is more to do",
            "task_final",
        )
    return found


def check_held(task: str, found: Task | None, token: int) -> Task:
    """Return the task if it is held with this token. Raises as `check_open`, and NotHolder (`fenced`)."""
    held = check_open(task, found)
    if held.token == token:
        return held
    said = f"{token} is not the token of task {task!r} now"
    if held.holder is None:
        last = held.steps[-1]
        why = f" ({last.text})" if last.what in ("released", "returned") and last.text else ""
        happened = f"nobody holds it, it was {last.what.replace('_', ' ')} by {last.by}{why}"
        raise NotHolder(f"{said}: {happened}", "Claim it again before you go on", held, "fenced")
    raise NotHolder(said, "If you held it, your lease ran out: stop working on it", held, "fenced")


def check_size(task: Task, adds: Note | str | None) -> None:
    """Raise TaskConflict (`task_full`) when a task would grow too large."""
    if task.size + bytes_of(adds) > TASK_BYTES_MAX:
        raise TaskConflict(
            f"task {task.task!r} would grow beyond {TASK_BYTES_MAX} bytes; put more of it into artifacts, and only "
            "their names into notes",
            "task_full",
        )


def full(task: Task) -> TaskConflict:
    """Return the error for one more step of a task that has as many as it may have."""
    return TaskConflict(
        f"task {task.task!r} has {len(task.steps)} steps, the most there may be; finish, fail or cancel it, and "
        "create a new one for what is left",
        "task_full",
    )


def bytes_of(adds: Note | str | None) -> int:
    """Return about how many bytes one more step takes."""
    if isinstance(adds, Note):
        return FIELDS_BYTES + size_of_note(adds)
    return FIELDS_BYTES + len(adds or "")
