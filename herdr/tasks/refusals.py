"""The errors of the task endpoints; `herdr.web.problems` gives each its status."""

from collections.abc import Callable

from herdr.clock import rfc3339
from herdr.errors import HerdrError
from herdr.tasks.task import Task


class TaskConflict(HerdrError):
    """The task is not in a state for this (409): `task_exists`, `task_final`, `task_full`, `no_question`."""

    code = "task_final"


class NotHolder(TaskConflict):
    """Somebody else holds the task (409): `task_held`, or `fenced` for a token that is not the holder's."""

    code = "task_held"

    def __init__(self, what: str, advice: str, task: Task, code: str = "task_held") -> None:
        super().__init__(f"{what}. {advice}", code)
        self._what = what
        self._advice = advice
        self._task = task

    def told(self, expires_us: Callable[[Task], int]) -> "NotHolder":
        """Return the error with who holds the task, since when and until when; the table knows no times."""
        task = self._task
        if task.holder is None:
            return self
        since = next(step.at_us for step in reversed(task.steps) if step.what == "claimed")
        until = rfc3339(expires_us(task))
        held = f"{task.holder} holds it since {rfc3339(since)}, until {until} unless it is renewed"
        return NotHolder(f"{self._what}: {held}", self._advice, task, self.code)


class TooManyTasks(HerdrError):
    """A bound was reached (503): `too_many_tasks`, or `too_many_waiters`."""

    code = "too_many_tasks"
