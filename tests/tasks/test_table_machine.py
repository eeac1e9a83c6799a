"""Any history of a task table, watched by a model that keeps a list and looks through all of it each time."""

from dataclasses import dataclass, replace

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from task_parts import Tasks, ask, new

from herdr.errors import HerdrError, NotFound
from herdr.tasks import task as words
from herdr.tasks.refusals import NotHolder, TaskConflict, TooManyTasks
from herdr.tasks.state import State
from herdr.tasks.task import Note, Task

OWNERS = st.sampled_from("pqr")
ROLES = st.sampled_from(["coder", "tester"])
PICK = st.integers(0, 1000)
ENDS: dict[str, str] = {str(what): str(state) for what, state in words.ENDS.items()}
OPEN_MAX, WAITERS_MAX, FINALS_KEPT, STEPS_MAX = 6, 3, 3, 9


@dataclass(frozen=True)
class Known:
    """A task as the model knows it."""

    name: str
    role: str
    by: str
    state: str = "submitted"
    holder: str | None = None
    token: int | None = None
    steps: int = 1
    since: int = 0
    """The seq of its newest step."""
    renewed: int = 0

    @property
    def free(self) -> bool:
        return self.state == "submitted" and self.steps < STEPS_MAX


class TableMachine(RuleBasedStateMachine):
    """The table and the model are told the same; after each step all the rules are checked."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks = Tasks(
            open_max=OPEN_MAX, waiters_max=WAITERS_MAX, finals_kept=FINALS_KEPT, steps_max=STEPS_MAX
        )
        self.model: dict[str, Known] = {}
        self.line: list[tuple[str, str, str]] = []
        self.ids = self.newest_token = 0

    # What happens.

    @rule(role=ROLES, by=OWNERS)
    def create(self, role: str, by: str) -> None:
        self.ids += 1
        name = f"T{self.ids}"
        if sum(known.state not in ENDS.values() for known in self.model.values()) >= OPEN_MAX:
            with pytest.raises(TooManyTasks):
                self.tasks.create(name, role, by)
            return
        at = self.tasks.seq
        self.tasks.create(name, role, by)
        self.model[name] = Known(name, role, by, since=at)
        self.serve()

    @precondition(lambda self: self.model)
    @rule(pick=PICK)
    def create_again(self, pick: int) -> None:
        known = self.pick(pick)
        before = self.tasks.table.get(known.name)
        if before is not None:
            assert self.tasks.create(known.name, before.steps[0].role, known.by) == before
            with pytest.raises(TaskConflict):
                self.tasks.create(known.name, before.steps[0].role, f"not {known.by}")
        self.check()

    @rule(owner=OWNERS, role=ROLES, waits=st.booleans())
    def ask(self, owner: str, role: str, waits: bool) -> None:
        asked = ask(owner, role, waits=waits)
        free = self.free(role)
        if free is None and waits and len(self.line) >= WAITERS_MAX:
            with pytest.raises(TooManyTasks):
                self.tasks.ask(asked)
            return
        at = self.tasks.seq
        got = self.tasks.ask(asked)
        if free is None:
            assert got is None
            self.line += [(asked.ask, owner, role)] if waits else []
        else:
            assert got is not None and got.task == free.name
            self.granted(free, owner, at)
        self.check()

    @precondition(lambda self: self.line)
    @rule(pick=PICK)
    def withdraw(self, pick: int) -> None:
        asked = self.line.pop(pick % len(self.line))
        self.tasks.rule(self.tasks.table.give_back(asked[0], self.tasks.seq, 0))
        self.check()

    @precondition(lambda self: self.model)
    @rule(pick=PICK, owner=OWNERS)
    def claim(self, pick: int, owner: str) -> None:
        known, at = self.pick(pick), self.tasks.seq
        if known.state in ENDS.values() or known.holder not in (None, owner) or self.stuck(known):
            with pytest.raises((TaskConflict, NotFound)):
                self.tasks.claim(known.name, owner)
        elif known.holder == owner:
            assert self.tasks.claim(known.name, owner).token == known.token
            self.model[known.name] = replace(known, renewed=at)
        else:
            self.tasks.claim(known.name, owner)
            self.granted(known, owner, at)
        self.check()

    def stuck(self, known: Known) -> bool:
        return known.holder is None and known.steps >= STEPS_MAX

    @precondition(lambda self: self.model)
    @rule(
        pick=PICK,
        right=st.integers(0, 5),
        what=st.sampled_from(
            ["renew", "hand_over", "hand_over", "ask_for", "release", "finished", "failed", "rejected"]
        ),
        role=ROLES,
    )
    def act(self, pick: int, right: int, what: str, role: str) -> None:
        known, at = self.pick(pick), self.tasks.seq
        token = (known.token or 1) if right else (known.token or 0) + 1
        held, ending = known.holder is not None and bool(right), what in ENDS
        if not held or (known.steps >= STEPS_MAX and not ending and what != "renew"):
            if ending and not held and known.state == ENDS.get(what) and self.ended_with(known) == token:
                return  # repeating it changes nothing; `end_again` has it
            with pytest.raises((TaskConflict, NotFound)) as error:
                self.act_on(what, known.name, token, role)
            assert not held or error.value.code == "task_full"
            self.check()
            return
        self.act_on(what, known.name, token, role)
        if what == "renew":
            self.model[known.name] = replace(known, renewed=at)
            self.check()
            return
        moved = replace(known, steps=known.steps + 1, since=at)
        if what == "ask_for":
            moved = replace(moved, state="input_required")
        else:
            moved = replace(moved, state=ENDS.get(what, "submitted"), holder=None, token=None)
        self.model[known.name] = replace(moved, role=role) if what == "hand_over" else moved
        self.serve()

    def act_on(self, what: str, name: str, token: int, role: str) -> Task:
        if what == "renew":
            return self.tasks.renew(name, token)
        if what == "hand_over":
            return self.tasks.hand_over(name, token, role, Note(summary="so far"))
        if what == "ask_for":
            return self.tasks.ask_for(name, token, "which?")
        if what == "release":
            return self.tasks.release(name, token, "tired")
        return self.tasks.end(name, what, token)

    def ended_with(self, known: Known) -> int | None:
        found = self.tasks.table.get(known.name)
        return None if found is None else found.steps[-1].token

    @precondition(lambda self: self.model)
    @rule(pick=PICK)
    def end_again(self, pick: int) -> None:
        found = self.tasks.table.get(self.pick(pick).name)
        if found is not None and found.is_final and found.state != "canceled":
            token = found.steps[-1].token
            assert token is not None
            assert self.tasks.end(found.task, found.steps[-1].what, token) == found
            assert not self.tasks.last.moves

    @precondition(lambda self: self.model)
    @rule(pick=PICK, by=OWNERS)
    def answer(self, pick: int, by: str) -> None:
        known, at = self.pick(pick), self.tasks.seq
        if known.state != "input_required" or known.steps >= STEPS_MAX:
            with pytest.raises((TaskConflict, NotFound)):
                self.tasks.answer(known.name, by)
        else:
            self.tasks.answer(known.name, by)
            self.model[known.name] = replace(known, state="working", steps=known.steps + 1, since=at)
        self.check()

    @precondition(lambda self: self.model)
    @rule(pick=PICK, by=OWNERS, forced=st.booleans())
    def cancel(self, pick: int, by: str, forced: bool) -> None:
        known, at = self.pick(pick), self.tasks.seq
        if known.state in ENDS.values() or not (forced or by == known.by):
            with pytest.raises(HerdrError):
                self.tasks.cancel(known.name, by, forced=forced)
        else:
            self.tasks.cancel(known.name, by, forced=forced)
            self.model[known.name] = replace(
                known, state="canceled", holder=None, token=None, steps=known.steps + 1, since=at
            )
        self.check()

    @precondition(lambda self: self.model)
    @rule(pick=PICK, late=st.integers(0, 2))
    def expire(self, pick: int, late: int) -> None:
        """A timer runs out; it may know of an older renewal than the newest."""
        known, at = self.pick(pick), self.tasks.seq
        saw = known.renewed - (late == 2)
        ruling = self.tasks.expire(known.name, saw)
        if known.holder is None or saw < known.renewed:
            assert not ruling.moves
            self.check()
            return
        self.model[known.name] = replace(
            known, state="submitted", holder=None, token=None, steps=known.steps + 1, since=at
        )
        self.serve()

    @rule(count=st.integers(1, 3), role=ROLES)
    def fail_to_commit(self, count: int, role: str) -> None:
        """A batch of decisions that is not committed leaves nothing behind, whatever was in it."""
        table, seq = self.tasks.table, self.tasks.seq
        for place, known in enumerate([*self.model.values()][-count:]):
            for decide in (
                lambda name=known.name, at=seq + place: table.cancel(name, "x", None, at, 0, forced=True),
                lambda at=seq + place: table.ask(ask("x", role, waits=True), at, 0),
                lambda name=known.name, at=seq + place: table.create(new(f"{name} again", role), at, 0),
            ):
                mark = table.mark()
                try:
                    decide()
                except HerdrError:
                    table.undo(mark)
        table.undo()
        self.check()

    @rule()
    def restart(self) -> None:
        """What was stored is all that there is; those in line are there still where only the log failed."""
        stored = [msgspec.json.decode(raw, type=Task) for raw in self.tasks.stored.values()]
        self.tasks.table.restore(stored)
        self.check()

    # The model.

    def pick(self, pick: int) -> Known:
        return [*self.model.values()][pick % len(self.model)]

    def free(self, role: str) -> Known | None:
        free = [known for known in self.model.values() if known.free and known.role == role]
        return min(free, key=lambda known: known.since, default=None)

    def granted(self, known: Known, owner: str, at: int) -> None:
        assert at > self.newest_token
        self.newest_token = at
        self.model[known.name] = replace(
            known, state="working", holder=owner, token=at, steps=known.steps + 1, since=at, renewed=at
        )

    def serve(self) -> None:
        """Whoever stands first in line for what has become free has it now, in the same ruling."""
        grants = list(self.tasks.last.grants)
        for place, (asked, owner, role) in enumerate(list(self.line)):
            free = self.free(role)
            if free is not None:
                at = self.tasks.seq - len(grants) + place if len(grants) > 1 else self.tasks.seq - 1
                assert grants and grants[0][0] == asked and grants[0][1].task == free.name
                self.granted(free, owner, at)
                self.line.remove((asked, owner, role))
                grants.pop(0)
        assert not grants
        self.check()

    # The rules.

    def check(self) -> None:
        table = self.tasks.table
        ended = sorted((k for k in self.model.values() if k.state in ENDS.values()), key=lambda k: k.since)
        kept = {known.name: known for known in self.model.values() if known not in ended[:-FINALS_KEPT]}
        assert {task.task for task in table.all()} == set(kept)
        for task in table.all():
            known = kept[task.task]
            assert (task.state, task.holder, task.token) == (known.state, known.holder, known.token)
            assert (task.role, len(task.steps)) == (known.role, known.steps)
            assert (task.holder is None) == (task.state not in ("working", "input_required"))
            assert (task.question is None) == (task.state != "input_required")
            assert task.size > 0
        assert [(asked.ask, asked.owner, asked.role) for asked in table.in_line] == self.line
        assert all(self.free(role) is None for _, _, role in self.line), "somebody waits for what is free"
        assert table.bytes == sum(task.size for task in table.all())
        assert by_name(table) == by_name(self.tasks.fold), "the events say something else"
        assert {n: msgspec.json.decode(raw, type=Task) for n, raw in self.tasks.stored.items()} == by_name(
            table
        )


def by_name(state: State) -> dict[str, Task]:
    return {task.task: task for task in state.all()}


def test_any_history() -> None:
    run_state_machine_as_test(
        TableMachine,
        settings=settings(
            max_examples=150,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


def test_a_holder_is_told_who_holds() -> None:
    tasks = Tasks()
    tasks.create("T1")
    tasks.take("bob")
    with pytest.raises(NotHolder) as error:
        tasks.claim("T1", "eve")
    told = error.value.told(lambda task: 1_000_000 * len(task.task))
    assert told.code == "task_held"
    assert told.detail == (
        "task 'T1' is not free: bob holds it since 1970-01-01T00:00:00.002Z, until 1970-01-01T00:00:02.000Z unless "
        "it is renewed. Take another one, or wait until it is handed over or given back"
    )
