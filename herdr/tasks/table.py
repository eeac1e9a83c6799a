"""The task table: who may do what with which task, and who gets the next one. Pure: no clock, no ids, no I/O.

Every decision takes the `seq` at which its first step will be committed, and the wall clock, which is only shown
to people. Changes are tentative until `keep`. A task that becomes free goes to whoever stands first in line for its
role, in the same ruling.
"""

from typing import Literal

from herdr.errors import HerdrError
from herdr.tasks.checks import bytes_of, check_held, check_open, check_size, full
from herdr.tasks.granting import GATEWAY, WAITERS_MAX, Granting, RulingDraft
from herdr.tasks.refusals import NotHolder, TaskConflict, TooManyTasks
from herdr.tasks.state import FINALS_KEPT, STEPS_MAX
from herdr.tasks.task import ENDS, New, Note, Ruling, Task, What

OPEN_MAX = 10_000  # tasks that have not ended; a project has some dozens
BYTES_MAX = 256 * 1024 * 1024  # of all tasks together, in memory


class Table(Granting):
    """The decisions. All but those about asks raise NotFound (`unknown_task`), TaskConflict or NotHolder."""

    def __init__(
        self,
        *,
        open_max: int = OPEN_MAX,
        waiters_max: int = WAITERS_MAX,
        bytes_max: int = BYTES_MAX,
        finals_kept: int = FINALS_KEPT,
        steps_max: int = STEPS_MAX,
    ) -> None:
        super().__init__(waiters_max=waiters_max, finals_kept=finals_kept, steps_max=steps_max)
        self._open_max = open_max
        self._bytes_max = bytes_max

    def create(self, new: New, seq: int, now_us: int) -> Ruling:
        """Create a task; nothing happens when this very task has been created before. Raises TooManyTasks."""
        known = self._shelf.get(new.task)
        if known is not None:
            if _is_same(known, new):
                return Ruling(task=known)
            raise TaskConflict(
                f"there is another task {new.task!r}, created by {known.created_by}; choose another id, or leave it "
                "out and get a new one",
                "task_exists",
            )
        if self.open >= self._open_max or self.bytes >= self._bytes_max:
            raise TooManyTasks(
                f"{self.open} tasks are open, as many as are kept; finish or cancel some first"
            )
        draft = RulingDraft(seq, now_us)
        step = draft.step(None, "created", new.by, state="submitted", role=new.role, note=new.note)
        self._add(draft, new.task, step, new)
        return self._rule(draft, new.task)

    def claim(self, task: str, owner: str, ttl_s: float, seq: int, now_us: int) -> Ruling:
        """Let somebody have this task; extends what it has already."""
        found, draft = check_open(task, self.get(task)), RulingDraft(seq, now_us)
        if found.holder == owner:
            return self._extend(draft, found, max(found.ttl_s, ttl_s))  # an earlier claim counts on its own
        if found.holder is not None:
            raise NotHolder(
                f"task {task!r} is not free",
                "Take another one, or wait until it is handed over or given back",
                found,
            )
        self._may_grow(found, None)
        return draft.ruling(self._grant(draft, found, owner, ttl_s))

    def renew(self, task: str, token: int, ttl_s: float | None, seq: int, now_us: int) -> Ruling:
        """Begin a lease anew, for as long as before unless `ttl_s` (seconds) says otherwise."""
        found = check_held(task, self.get(task), token)
        return self._extend(RulingDraft(seq, now_us), found, found.ttl_s if ttl_s is None else ttl_s)

    def hand_over(self, task: str, token: int, role: str, note: Note | None, seq: int, now_us: int) -> Ruling:
        """Let go of a task in favour of another role."""
        found = self._may_grow(check_held(task, self.get(task), token), note)
        return self._go_on(found, seq, now_us, "handed_over", state="submitted", role=role, note=note)

    def ask_for(self, task: str, token: int, question: str, to: str | None, seq: int, now_us: int) -> Ruling:
        """Note that the holder needs an answer: from `to`, or whoever it has the task from."""
        found = self._may_grow(check_held(task, self.get(task), token), question)
        asked = to or next(
            (step.by for step in reversed(found.steps) if step.what == "handed_over"), found.created_by
        )
        return self._go_on(found, seq, now_us, "asked", state="input_required", text=question, to=asked)

    def answer(self, task: str, by: str, answer: str, seq: int, now_us: int) -> Ruling:
        """Let the holder go on."""
        found = check_open(task, self.get(task))
        if found.question is None:
            raise TaskConflict(
                f"nothing is asked about task {task!r}: it was answered meanwhile, or its holder has let go",
                "no_question",
            )
        self._may_grow(found, answer)
        return self._go_on(found, seq, now_us, "answered", by, state="working", text=answer)

    def release(self, task: str, token: int, reason: str | None, seq: int, now_us: int) -> Ruling:
        """Give a task back to its role."""
        found = self._may_grow(check_held(task, self.get(task), token), reason)
        return self._go_on(found, seq, now_us, "released", state="submitted", text=reason)

    def end(
        self,
        task: str,
        what: Literal["finished", "failed", "rejected"],
        token: int,
        reason: str | None,
        note: Note | None,
        seq: int,
        now_us: int,
    ) -> Ruling:
        """End a task for its holder; nothing when it has ended it so before."""
        known = self.get(task)
        if known is not None and known.is_final and _last(known) == (what, token):
            return Ruling(task=known)
        found = check_held(task, known, token)  # it may be full: its last step always has a place
        return self._go_on(found, seq, now_us, what, state=ENDS[what], text=reason, note=note)

    def cancel(
        self, task: str, by: str, reason: str | None, seq: int, now_us: int, *, forced: bool
    ) -> Ruling:
        """End a task for whoever created it, or (`forced`) for an operator. Raises HerdrError `missing_scope`."""
        found = check_open(task, self.get(task))
        if not forced and by != found.created_by:
            raise HerdrError(
                f"task {task!r} was created by {found.created_by}, who may cancel it; others need a token with the "
                "scope 'admin'",
                "missing_scope",
            )
        return self._go_on(found, seq, now_us, "canceled", by, state="canceled", text=reason)

    def expire(self, task: str, saw: int, seq: int, now_us: int) -> Ruling:
        """Return a task whose lease ran out to its role; nothing when it was renewed after `saw`, or is not held."""
        found = self._shelf.get(task)
        if found is None or found.holder is None or found.renewed > saw:
            return Ruling()
        fields = {"state": "submitted", "text": "lease_expired", "saw": saw}
        return self._go_on(found, seq, now_us, "returned", GATEWAY, **fields)

    def _extend(self, draft: RulingDraft, task: Task, ttl_s: float) -> Ruling:
        step = draft.step(task, "renewed", task.holder or GATEWAY, ttl_s=ttl_s)
        return draft.ruling(self._add(draft, task.task, step))

    def _may_grow(self, task: Task, adds: Note | str | None) -> Task:
        """Return the task if it may have one more step with so much in it. Raises TaskConflict, TooManyTasks."""
        if self._shelf.is_full(task):
            raise full(task)
        if adds:
            check_size(task, adds)
            if self.bytes + bytes_of(adds) > self._bytes_max:
                raise TooManyTasks("all tasks together have grown too large; finish or cancel some first")
        return task


def _is_same(known: Task, new: New) -> bool:
    first = known.steps[0]
    was = (known.title, known.description, first.role, known.workspace, known.session, first.by, first.note)
    return was == (new.title, new.description, new.role, new.workspace, new.session, new.by, new.note)


def _last(task: Task) -> tuple[What, int | None]:
    return task.steps[-1].what, task.steps[-1].token
