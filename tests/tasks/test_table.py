"""Tasks: bounds, and what is decided where more than one thing could be."""

from collections.abc import Callable

import pytest
from task_parts import Tasks, ask, new

from herdr.tasks import checks, state
from herdr.tasks.refusals import NotHolder, TaskConflict, TooManyTasks
from herdr.tasks.task import Note

BIG = Note(summary="x" * 16_000, decisions=("y" * 2000,) * 20)


def refused(code: str) -> "pytest.RaisesExc[TaskConflict]":
    return pytest.raises(TaskConflict, check=lambda error: error.code == code)


def test_a_question_goes_to_whoever_handed_it_over_or_else_created_it() -> None:
    tasks = Tasks()
    tasks.create("T1", by="ann")
    token = tasks.claim("T1", "bob").token or 0
    assert tasks.ask_for("T1", token, "which?").asked == "ann"
    assert tasks.ask_for("T1", token, "really?", "coder").asked == "coder"
    tasks.hand_over("T1", token, "tester")
    token = tasks.take("eve", "tester").token or 0
    assert tasks.ask_for("T1", token, "how?").asked == "bob"


def test_what_comes_back_waits_behind_what_nobody_has_tried() -> None:
    tasks = Tasks()
    for name in ("T1", "T2"):
        tasks.create(name)
    first = tasks.take("bob")
    assert first.task == "T1"
    tasks.release("T1", first.token or 0, "exit code 1")
    assert [tasks.take("bob").task for _ in range(2)] == ["T2", "T1"]


def test_a_task_of_another_workspace_is_another_roles() -> None:
    tasks = Tasks()
    tasks.create("T1", workspace="shop")
    assert tasks.ask(ask("bob")) is None
    asked = ask("bob", workspace="shop")
    got = tasks.ask(asked)
    assert got is not None and got.task == "T1" and got.ask == asked.ask


def test_a_task_that_goes_round_in_circles_can_only_end() -> None:
    tasks = Tasks(steps_max=5)
    tasks.create("T1")
    for _ in range(2):
        tasks.release("T1", tasks.take("bob").token or 0)
    assert tasks.ask(ask("bob")) is None
    with refused("task_full"):
        tasks.claim("T1", "bob")
    assert tasks.cancel("T1", "ann").state == "canceled"

    tasks.create("T2")
    token = tasks.take("bob").token or 0
    for _ in range(3):
        tasks.ask_for("T2", token, "which?")
    acts: tuple[Callable[[], object], ...] = (
        lambda: tasks.hand_over("T2", token, "tester"),
        lambda: tasks.ask_for("T2", token, "which?"),
        lambda: tasks.release("T2", token),
        lambda: tasks.answer("T2", "ann"),
    )
    for act in acts:
        with refused("task_full"):
            act()
    assert tasks.renew("T2", token).steps == tasks.end("T2", "finished", token).steps[:-1]


def test_a_lease_runs_out_whatever_the_number_of_steps() -> None:
    tasks = Tasks(steps_max=2)
    tasks.create("T1")
    found = tasks.take("bob")
    assert tasks.expire("T1", found.renewed).task is not None
    assert tasks.ask(ask("bob", waits=True)) is None


def test_notes_have_a_bound_together_but_the_last_one_finds_a_place() -> None:
    tasks = Tasks()
    tasks.create("T1", note=BIG)
    token = tasks.take("bob").token or 0
    rounds = 0
    with refused("task_full"):
        while rounds < 100:
            tasks.hand_over("T1", token, "coder", BIG)
            token = tasks.take("bob").token or 0
            rounds += 1
    assert rounds + 1 == checks.TASK_BYTES_MAX // 57_000
    with refused("task_full"):
        tasks.ask_for("T1", token, "q" * 16_000 * 3)
    assert tasks.end("T1", "finished", token, BIG).state == "completed"


def test_all_tasks_together_have_a_bound() -> None:
    tasks = Tasks(bytes_max=60_000)
    tasks.create("T1", note=BIG)
    token = tasks.take("bob").token or 0
    with pytest.raises(TooManyTasks):
        tasks.hand_over("T1", token, "coder", BIG)
    tasks.create("T2", description="d" * 16_000)
    with pytest.raises(TooManyTasks):
        tasks.create("T3")
    tasks.end("T1", "finished", token, BIG)


def test_of_those_that_ended_only_so_many_bytes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "FINALS_BYTES", 3 * 60_000)
    tasks = Tasks()
    for number in range(9):  # what goes makes room again
        tasks.create(f"T{number}", note=BIG)
        tasks.cancel(f"T{number}", "ann")
        kept = [f"T{known}" for known in range(max(0, number - 2), number + 1)]
        assert sorted(task.task for task in tasks.table.all()) == kept


def test_one_that_ended_is_kept_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "FINALS_BYTES", 1)
    tasks = Tasks()
    tasks.create("T1", note=BIG)
    assert tasks.cancel("T1", "ann").state == "canceled"
    assert tasks.table.get("T1") is not None


def test_an_undone_grant_leaves_those_in_line_as_they_stood() -> None:
    tasks = Tasks()
    asked = [ask(owner, waits=True) for owner in ("p", "q", "r")]
    for one in asked:
        tasks.ask(one)
    table = tasks.table
    table.create(task := new("T1"), tasks.seq, 0)
    assert [one.owner for one in table.in_line] == ["q", "r"]
    table.undo()
    assert list(table.in_line) == asked and table.get("T1") is None
    tasks.rule(table.create(task, tasks.seq, 0))
    assert [one.owner for one in table.in_line] == ["q", "r"]


def test_an_ask_that_nobody_waits_for_leaves_nothing_behind() -> None:
    tasks = Tasks()
    tasks.create("T1")
    asked = ask("bob")
    tasks.ask(asked)
    back = tasks.rule(tasks.table.give_back(asked.ask, tasks.seq, 0)).task
    assert back is not None and back.state == "submitted" and back.steps[-1].text == "given_up"

    found = tasks.ask(asked := ask("bob"))
    assert found is not None
    tasks.renew("T1", found.token or 0)
    assert not tasks.rule(tasks.table.give_back(asked.ask, tasks.seq, 0)).moves


def test_an_old_token_is_told_what_became_of_the_task() -> None:
    tasks = Tasks()
    tasks.create("T1")
    found = tasks.take("bob")
    token = found.token or 0
    tasks.expire("T1", found.renewed)
    with pytest.raises(NotHolder) as error:
        tasks.end("T1", "finished", token)
    assert error.value.code == "fenced"
    assert error.value.told(lambda _: 0).detail == (
        f"{token} is not the token of task 'T1' now: nobody holds it, it was returned by herdr (lease_expired). "
        "Claim it again before you go on"
    )


def test_after_a_restore_who_has_got_a_task_stands_in_no_line() -> None:
    tasks = Tasks()
    asked = ask("bob", waits=True)
    tasks.ask(asked)
    other = Tasks()
    other.create("T1")
    got = other.ask(asked)
    assert got is not None
    tasks.table.restore([got])
    assert not tasks.table.in_line
