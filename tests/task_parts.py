"""Parts of tests on tasks: a table whose every decision is committed, and one that is built from its events."""

from itertools import count

import msgspec

from herdr.tasks.events import event_of, new_of, step_of
from herdr.tasks.state import State
from herdr.tasks.table import Table
from herdr.tasks.task import Ask, New, Note, Ruling, Task

_ids = count(1)


def new(task: str, role: str = "coder", by: str = "ann", **more: object) -> New:
    return New(task=task, title=f"Title of {task}", role=role, by=by, **more)  # type: ignore[arg-type]


def ask(owner: str, role: str = "coder", *, waits: bool = False, workspace: str = "default") -> Ask:
    return Ask(ask=f"A{next(_ids)}", owner=owner, role=role, workspace=workspace, waits=waits)


class Tasks:
    """A table whose every decision is committed at the next free `seq`, and its fold from the events alone."""

    def __init__(self, **bounds: int) -> None:
        self.table = Table(**bounds)
        folded = {name: bounds[name] for name in ("finals_kept", "steps_max") if name in bounds}
        self.fold = State(**folded)
        self.stored: dict[str, bytes] = {}
        self.seq = 1
        self.last = Ruling()

    @property
    def now_us(self) -> int:
        return self.seq * 1000

    def rule(self, ruling: Ruling) -> Ruling:
        """Commit a ruling: fold its events, store what changed."""
        for place, move in enumerate(ruling.moves):
            assert move.step.seq == self.seq + place
            self._fold(*_encoded(event_of(move)), move.step.seq, move.step.at_us, move.task)
        for task in self.table.changed():
            kept = self.table.get(task)
            self.stored.pop(task, None)
            if kept is not None:
                self.stored[task] = msgspec.json.encode(kept)
        self.seq += len(ruling.moves)
        self.table.keep()
        self.last = ruling
        return ruling

    def _fold(self, type_: str, data: bytes, seq: int, at_us: int, task: Task) -> None:
        told = step_of(type_, data, seq, at_us)
        assert told is not None
        name, step = told
        made = new_of(data, step, task.workspace, task.session) if step.what == "created" else None
        self.fold.apply(name, step, made)

    def create(self, task: str, role: str = "coder", by: str = "ann", **more: object) -> Task:
        return _one(self.rule(self.table.create(new(task, role, by, **more), self.seq, self.now_us)))

    def ask(self, asked: Ask) -> Task | None:
        return self.rule(self.table.ask(asked, self.seq, self.now_us)).task

    def take(self, owner: str, role: str = "coder") -> Task:
        found = self.ask(ask(owner, role))
        assert found is not None
        return found

    def claim(self, task: str, owner: str, ttl_s: float = 60.0) -> Task:
        return _one(self.rule(self.table.claim(task, owner, ttl_s, self.seq, self.now_us)))

    def renew(self, task: str, token: int) -> Task:
        return _one(self.rule(self.table.renew(task, token, None, self.seq, self.now_us)))

    def hand_over(self, task: str, token: int, role: str, note: Note | None = None) -> Task:
        return _one(self.rule(self.table.hand_over(task, token, role, note, self.seq, self.now_us)))

    def ask_for(self, task: str, token: int, question: str, to: str | None = None) -> Task:
        return _one(self.rule(self.table.ask_for(task, token, question, to, self.seq, self.now_us)))

    def answer(self, task: str, by: str, answer: str = "yes") -> Task:
        return _one(self.rule(self.table.answer(task, by, answer, self.seq, self.now_us)))

    def release(self, task: str, token: int, reason: str | None = None) -> Task:
        return _one(self.rule(self.table.release(task, token, reason, self.seq, self.now_us)))

    def end(self, task: str, what: str, token: int, note: Note | None = None) -> Task:
        return _one(
            self.rule(
                self.table.end(task, what, token, None, note, self.seq, self.now_us)  # type: ignore[arg-type]
            )
        )

    def cancel(self, task: str, by: str, *, forced: bool = False) -> Task:
        return _one(self.rule(self.table.cancel(task, by, None, self.seq, self.now_us, forced=forced)))

    def expire(self, task: str, saw: int) -> Ruling:
        return self.rule(self.table.expire(task, saw, self.seq, self.now_us))


def _one(ruling: Ruling) -> Task:
    assert ruling.task is not None
    return ruling.task


def _encoded(told: object) -> tuple[str, bytes]:
    return told.type, msgspec.json.encode(told.data)  # type: ignore[attr-defined]
