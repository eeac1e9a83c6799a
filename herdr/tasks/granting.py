"""Who gets which task: one that becomes free goes to whoever stands first in line for its role. Pure."""

from typing import Any

from herdr.tasks.checks import check_known
from herdr.tasks.refusals import TooManyTasks
from herdr.tasks.state import FINALS_KEPT, STEPS_MAX, State
from herdr.tasks.task import Ask, Move, New, Ruling, Step, Task, What

WAITERS_MAX = 1000  # each a connection that is kept open

GIVEN_UP = "given_up"
"""Why a task is released that was claimed while whoever asked for it went away."""

GATEWAY = "herdr"
"""Who does what happens by itself."""


class RulingDraft:
    """A ruling in the making."""

    def __init__(self, seq: int, now_us: int) -> None:
        self._seq = seq
        self._now_us = now_us
        self.moves: list[Move] = []
        self.grants: list[tuple[str, Task]] = []

    @property
    def seq(self) -> int:
        """The `seq` of the next step."""
        return self._seq + len(self.moves)

    def step(self, task: Task | None, what: What, by: str, **fields: Any) -> Step:
        """Return the next step: as the task is, but for the fields that are given."""
        as_is: dict[str, Any] = (
            {}
            if task is None
            else {"state": task.state, "role": task.role, "holder": task.holder, "token": task.token}
        )
        return Step(**{**as_is, "what": what, "by": by, "seq": self.seq, "at_us": self._now_us, **fields})

    def ruling(self, task: Task | None) -> Ruling:
        """Return what it has come to."""
        return Ruling(tuple(self.moves), task, tuple(self.grants))


class Granting(State):
    """Asks for any task of a role, and what all decisions go through."""

    def __init__(
        self, *, waiters_max: int = WAITERS_MAX, finals_kept: int = FINALS_KEPT, steps_max: int = STEPS_MAX
    ) -> None:
        super().__init__(finals_kept, steps_max)
        self._waiters_max = waiters_max

    def ask(self, ask: Ask, seq: int, now_us: int) -> Ruling:
        """Let somebody have the oldest task of a role, or stand in line for it. Raises TooManyTasks."""
        draft = RulingDraft(seq, now_us)
        found = self._shelf.oldest(ask.workspace, ask.role)
        if found is not None:
            return draft.ruling(self._grant(draft, found, ask.owner, ask.ttl_s, ask.ask))
        if ask.waits:
            if len(self._line) >= self._waiters_max:
                raise TooManyTasks(
                    f"{len(self._line)} clients wait for tasks, as many as may; ask again later, or with wait_s 0",
                    "too_many_waiters",
                )
            self._join(ask)
        return Ruling()

    def withdraw(self, ask: str) -> Ruling:
        """Take somebody out of the line; nothing when it does not stand there."""
        if ask in self._line:
            self._leave(ask)
        return Ruling()

    def give_back(self, ask: str, seq: int, now_us: int) -> Ruling:
        """Leave nothing behind of an ask that nobody waits for any more, unless its task was renewed since."""
        found = self._shelf.granted(ask)
        if found is None or found.renewed != found.token:
            return self.withdraw(ask)
        return self._go_on(found, seq, now_us, "released", state="submitted", text=GIVEN_UP)

    def _go_on(
        self, task: Task, seq: int, now_us: int, what: What, by: str | None = None, **fields: Any
    ) -> Ruling:
        draft = RulingDraft(seq, now_us)
        self._add(draft, task.task, draft.step(task, what, by or task.holder or GATEWAY, **fields))
        return self._rule(draft, task.task)

    def _grant(
        self, draft: RulingDraft, task: Task, owner: str, ttl_s: float, ask: str | None = None
    ) -> Task:
        now = {"state": "working", "holder": owner, "token": draft.seq, "ttl_s": ttl_s, "ask": ask}
        return self._add(draft, task.task, draft.step(task, "claimed", owner, **now))

    def _add(self, draft: RulingDraft, task: str, step: Step, new: New | None = None) -> Task:
        before = self._shelf.get(task)
        made = self.apply(task, step, new)
        assert made is not None
        draft.moves.append(Move(made, step, before))
        return made

    def _rule(self, draft: RulingDraft, task: str) -> Ruling:
        """Give the task, if it is free now, to whoever waits for it; the ruling tells of it as it was before."""
        found = check_known(task, self.get(task))
        wanted = found.workspace, found.role
        first = next((ask for ask in self._line.values() if (ask.workspace, ask.role) == wanted), None)
        free = self._shelf.oldest(*wanted)
        if first is not None and free is not None:
            self._leave(first.ask)
            draft.grants.append((first.ask, self._grant(draft, free, first.owner, first.ttl_s, first.ask)))
        return draft.ruling(found)
