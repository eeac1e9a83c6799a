"""All tasks by id, and the orders that decisions look into. Pure; changes go through a journal."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import partial

from herdr.journal import Journal
from herdr.tasks.task import Task

Place = tuple[int, str]
"""A `seq` in an order, and the task."""


class Shelf:
    """Tasks by id, by who is to work on them, and by how long ago they ended."""

    def __init__(self, journal: Journal, steps_max: int) -> None:
        """`steps_max`: a task with as many steps is not given to anybody any more."""
        self.bytes = self.final_bytes = 0
        """Of all tasks together, about; and of those that have ended."""
        self._journal = journal
        self._steps_max = steps_max
        self._tasks: dict[str, Task] = {}
        self._ready: dict[tuple[str, str], list[Place]] = {}
        self._finals: list[Place] = []
        self._by_ask: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def get(self, task: str) -> Task | None:
        """Return the task, or None."""
        return self._tasks.get(task)

    def all(self) -> Sequence[Task]:
        """Return all tasks."""
        return tuple(self._tasks.values())

    @property
    def finals(self) -> int:
        """How many have ended."""
        return len(self._finals)

    def first_final(self) -> str:
        """Return the one that ended first; raises IndexError when none has."""
        return self._finals[0][1]

    def oldest(self, workspace: str, role: str) -> Task | None:
        """Return the task that has waited longest for a role.

        Not the one that was created first: one that every worker fails at would come again and again.
        """
        ready = self._ready.get((workspace, role))
        return self._tasks[ready[0][1]] if ready else None

    def granted(self, ask: str) -> Task | None:
        """Return the task that somebody who asked for any of its role got and holds."""
        return self._tasks.get(self._by_ask.get(ask, ""))

    def is_full(self, task: Task) -> bool:
        """Tell whether a task has so many steps that it can only end."""
        return len(task.steps) >= self._steps_max

    def put(self, task: Task) -> None:
        """Add a task, or replace it."""
        self._set(task.task, task)

    def drop(self, task: str) -> None:
        """Remove a task that is in here."""
        self._set(task, None)

    def _set(self, task: str, new: Task | None) -> None:
        old = self._tasks.get(task)
        self._swap(task, old, new)
        self._journal.note(partial(self._swap, task, new, old))

    def _swap(self, task: str, old: Task | None, new: Task | None) -> None:
        if old is not None:
            self._unlist(old)
        if new is None:
            del self._tasks[task]
        else:
            self._tasks[task] = new
            self._list(new)

    def _list(self, task: Task) -> None:
        self.bytes += task.size
        if task.ask is not None:
            self._by_ask[task.ask] = task.task
        if task.is_final:
            self.final_bytes += task.size
            insort(self._finals, (task.updated, task.task))
        elif self._is_ready(task):
            insort(self._ready.setdefault((task.workspace, task.role), []), (task.updated, task.task))

    def _unlist(self, task: Task) -> None:
        self.bytes -= task.size
        if task.ask is not None:
            del self._by_ask[task.ask]
        if task.is_final:
            self.final_bytes -= task.size
            _remove(self._finals, (task.updated, task.task))
        elif self._is_ready(task):
            key = task.workspace, task.role
            _remove(self._ready[key], (task.updated, task.task))
            if not self._ready[key]:
                del self._ready[key]

    def _is_ready(self, task: Task) -> bool:
        return task.state == "submitted" and not self.is_full(task)


def _remove(places: list[Place], place: Place) -> None:
    del places[bisect_left(places, place)]
