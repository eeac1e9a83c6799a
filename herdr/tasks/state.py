"""The tasks as the committed steps leave them, and who waits for one. Pure.

`apply` is the fold: the table's decisions go through it just as the log's events do, so a table that is built
from the log holds the same tasks.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from herdr.journal import Revocable
from herdr.tasks.fold import after, begin
from herdr.tasks.shelf import Shelf
from herdr.tasks.task import Ask, New, Step, Task

FINALS_KEPT = 1000  # that ended last: to look at, and for creations and endings that are repeated
FINALS_BYTES = 64 * 1024 * 1024  # of those together
STEPS_MAX = 200  # of one task: who goes round in circles for longer needs a person


class State(Revocable):
    """Tasks and those in line: what is read of them, and the fold.

    Whatever changes is tentative until `keep`; `undo` takes it back exactly.
    """

    def __init__(self, finals_kept: int = FINALS_KEPT, steps_max: int = STEPS_MAX) -> None:
        self._finals_kept = finals_kept
        super().__init__()
        self._shelf = Shelf(self._journal, steps_max)
        self._line: dict[str, Ask] = {}

    def apply(self, task: str, step: Step, new: New | None = None) -> Task | None:
        """Take over one step and return the task; None for one of a task that there is not.

        `new`: what a `created` creates. A void step changes nothing: about a task that has ended, for instance.
        """
        old = self._shelf.get(task)
        if step.what == "created":
            made = None if new is None or old is not None else begin(new, step)
        else:
            made = None if old is None or old.is_final else after(old, step)
        if made is None or made is old:
            return old
        self._shelf.put(made)
        self._changed[task] = None
        if made.is_final:
            self._forget_finals(task)
        return made

    def restore(self, tasks: Iterable[Task]) -> None:
        """Replace the tasks; final. Those in line stay, but for those that have got one."""
        for known in self._shelf.all():
            self._shelf.drop(known.task)
        for task in tasks:
            self._shelf.put(task)
            if task.ask in self._line:
                del self._line[task.ask]
        self.keep()

    def get(self, task: str) -> Task | None:
        """Return the task; None if there is none, or it ended long ago."""
        return self._shelf.get(task)

    def all(self) -> Sequence[Task]:
        """Return all tasks, those that ended last included."""
        return self._shelf.all()

    @property
    def open(self) -> int:
        """How many tasks have not ended."""
        return len(self._shelf) - self._shelf.finals

    @property
    def bytes(self) -> int:
        """About how many bytes all tasks take together."""
        return self._shelf.bytes

    @property
    def in_line(self) -> Sequence[Ask]:
        """Those who wait for a task, as they came."""
        return tuple(self._line.values())

    def _join(self, ask: Ask) -> None:
        self._line[ask.ask] = ask
        self._journal.note(partial(self._line.pop, ask.ask))

    def _leave(self, ask: str) -> None:
        before = dict(self._line)  # its order, too, comes back with an undo
        del self._line[ask]
        self._journal.note(partial(self._put_line, before))

    def _put_line(self, line: dict[str, Ask]) -> None:
        self._line.clear()
        self._line.update(line)

    def _forget_finals(self, newest: str) -> None:
        """Forget those that ended first, but never the newest."""
        shelf = self._shelf
        while shelf.finals > self._finals_kept or shelf.final_bytes > FINALS_BYTES:
            first = shelf.first_final()
            if first == newest:
                return
            shelf.drop(first)
            self._changed[first] = None
