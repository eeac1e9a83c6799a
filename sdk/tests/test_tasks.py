"""Tasks: what is sent and what comes back, the lease of who works on one, and what happens when it is lost."""

import asyncio

import pytest
from fake_tasks import TaskTable, problem

from herdr_sdk import ConnectionFailed, Hub, NoTask, Note, NotFound, OutcomeUnknown, ServerError, TaskLost
from herdr_sdk.blocking import Hub as BlockingHub
from herdr_sdk.task_lease import TaskLease


@pytest.fixture
async def table(faulty):
    faulty.answer = table = TaskTable(faulty)
    yield table
    table.ended.set()


@pytest.fixture
async def hub(table):
    async with Hub(name="me") as hub:
        yield hub


async def test_creating_a_task(hub, table) -> None:
    made = await hub.tasks.create(
        "Add VAT", "architect", description="to the cart", workspace="shop", files=["a.py"]
    )
    [(what, body)] = table.told
    assert (what, body) == (
        "create",
        {"title": "Add VAT", "role": "architect", "description": "to the cart", "workspace": "shop"}
        | {"task": made.task, "owner": "me", "note": {"files": ["a.py"]}},
    )
    assert (made.title, made.state, made.note) == ("Add VAT", "submitted", Note(files=("a.py",)))
    again = await hub.tasks.create("Add VAT", "architect", task=made.task, owner="you", session="s1")
    assert (again.task, table.told[1][1]["owner"], table.told[1][1]["session"]) == (made.task, "you", "s1")
    assert "note" not in table.told[1][1]


async def test_a_creation_without_an_answer_says_under_which_id_to_try_again(hub, table) -> None:
    table.lose = ["create"]
    with pytest.raises(OutcomeUnknown) as caught:
        await hub.tasks.create("Add VAT", "architect")
    [task] = caught.value.ids
    assert (await hub.tasks.create("Add VAT", "architect", task=task)).task == task
    assert list(table.tasks) == [task]


async def test_looking(hub, table, faulty) -> None:
    table.add(note={"summary": "in the cart", "decisions": ["Decimal"]})
    [found] = await hub.tasks.list(workspace="shop", role="coder", state="submitted", holder="x", limit=5)
    query = "workspace=shop&role=coder&state=submitted&holder=x&limit=5"
    assert (faulty.asked[-1].address, found.steps, found.note) == (f"/v1/tasks?{query}", 1, None)
    whole = await hub.tasks.get("t1")
    assert (whole.note, whole.steps[0].type, whole.steps[0].by) == (
        Note(summary="in the cart", decisions=("Decimal",)), "handoff.created", "me"
    )  # fmt: skip
    with pytest.raises(NotFound):
        await hub.tasks.get("t/2")
    assert faulty.asked[-1].address == "/v1/tasks/t%2F2"


async def test_claiming_by_hand(hub, table) -> None:
    assert await hub.tasks.next("coder") is None
    table.add()
    claimed = await hub.tasks.next("coder", workspace="shop", ttl=30)
    assert table.told[-1][1] == {
        "owner": "me",
        "role": "coder",
        "workspace": "shop",
        "ttl_s": 30,
        "wait_s": 0.0,
    }
    assert (claimed.holder, claimed.state, claimed.token) == ("me", "working", table.seq)
    with pytest.raises(ServerError, match="me holds it until") as caught:
        await hub.tasks.claim("t1", owner="you")
    assert caught.value.code == "task_held"
    await hub.tasks.renew("t1", claimed.token)
    await hub.tasks.ask("t1", claimed.token, "Which rate?", to="architect")
    await hub.tasks.answer("t1", "19")
    await hub.tasks.hand_over("t1", claimed.token, "coder", decisions=["19 %"])
    for number, (end, state) in enumerate(
        (("finish", "completed"), ("fail", "failed"), ("reject", "rejected"))
    ):
        table.add(task=f"t{number + 2}")
        token = (await hub.tasks.claim(f"t{number + 2}")).token
        why = () if end == "finish" else ("because",)
        assert (await getattr(hub.tasks, end)(f"t{number + 2}", token, *why, summary="so")).state == state
    await hub.tasks.cancel("t1", reason="no need")
    looked_at = ("renew", "ask", "answer", "hand-over", "cancel")
    assert [(what, body) for what, body in table.told if what in looked_at] == [
        ("renew", {"token": claimed.token, "ttl_s": 120.0}),
        ("ask", {"token": claimed.token, "question": "Which rate?", "to": "architect"}),
        ("answer", {"owner": "me", "answer": "19"}),
        ("hand-over", {"token": claimed.token, "role": "coder", "note": {"decisions": ["19 %"]}}),
        ("cancel", {"owner": "me", "reason": "no need"}),
    ]  # fmt: skip
    assert table.told[-2] == ("reject", {"token": token, "reason": "because", "note": {"summary": "so"}})


async def test_work_that_is_handed_over(hub, table) -> None:
    table.add(description="to the cart", note={"summary": "look at total()"})
    async with hub.tasks.work(role="coder") as task:
        assert (task.id, task.title, task.description, task.lost) == ("t1", "Add VAT", "to the cart", False)
        assert (task.note, task.token) == (Note(summary="look at total()"), table.seq)
        token = task.token
        await task.hand_over("reviewer", summary="done", files=["a.py"], open_questions=["and in Norway?"])
        with pytest.raises(RuntimeError, match="is over"):
            await task.finish()
    assert table.told[1:] == [
        ("hand-over", {"token": token, "role": "reviewer"}
         | {"note": {"summary": "done", "files": ["a.py"], "open_questions": ["and in Norway?"]}})
    ]  # fmt: skip
    assert task.view.role == "reviewer"


@pytest.mark.parametrize("end", ["finish", "fail", "reject", "release"])
async def test_the_other_ends_of_work(hub, table, end) -> None:
    table.add()
    async with hub.tasks.work(task="t1") as task:
        await getattr(task, end)(*(() if end == "finish" else ("because",)))
    assert table.names() == ["claim", end]


async def test_leaving_without_a_word_gives_the_task_back(hub, table) -> None:
    table.add()
    async with hub.tasks.work(role="coder"):
        pass
    assert table.told[-1][1]["reason"] == "left unfinished"
    with pytest.raises(KeyError):
        async with hub.tasks.work(role="coder"):
            raise KeyError("x")
    assert table.told[-1][1]["reason"] == "its holder stopped with KeyError"
    assert table.names() == ["claim", "release"] * 2
    assert table.tasks["t1"]["state"] == "submitted"


async def test_being_cancelled_gives_the_task_back(hub, table) -> None:
    table.add()
    began = asyncio.Event()

    async def work() -> None:
        async with hub.tasks.work(role="coder"):
            began.set()
            await asyncio.Event().wait()

    worker = asyncio.create_task(work())
    await began.wait()
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert table.tasks["t1"]["state"] == "submitted"


async def test_the_lease_is_renewed_in_the_background(hub, table, eventually) -> None:
    table.add()
    table.drop = ["renew"]
    async with hub.tasks.work(role="coder", ttl=0.3) as task:
        await eventually(lambda: table.names().count("renew") == 4)
        assert table.told[1][1] == {"token": task.token, "ttl_s": 0.3}
        await task.finish()
    assert not task.lost


async def test_nobody_renews_while_the_holder_speaks() -> None:
    renewals: list[int] = []

    async def renew() -> None:
        renewals.append(1)

    lease = TaskLease("t1", 18, 60, asyncio.get_running_loop().time(), renew)
    async with lease.talking:
        renewing = asyncio.create_task(lease._renewed())
        for _ in range(5):
            await asyncio.sleep(0)
        assert renewals == []
    assert await renewing and renewals == [1]
    lease.stop()


async def test_a_task_that_was_taken_away(hub, table) -> None:
    table.add()
    with pytest.raises(TaskLost, match=r"The task t1 \(token 18\) was lost: its lease ran out") as caught:
        async with hub.tasks.work(role="coder", ttl=0.3) as task:
            table.take_away()
            await task.wait_lost()
            assert task.lost and task.error is not None
            with pytest.raises(TaskLost):
                await task.finish(summary="too late")
    assert (caught.value.task, caught.value.token) == ("t1", 18)
    assert {"finish", "release"}.isdisjoint(table.names())


async def test_one_is_told_when_one_speaks_too_late(hub, table) -> None:
    table.add()
    with pytest.raises(TaskLost) as lost:
        async with hub.tasks.work(role="coder") as task:
            table.take_away()
            await task.hand_over("reviewer")
    assert not hasattr(lost.value, "__notes__")  # it says so itself
    with pytest.raises(ValueError, match="mine") as caught:
        async with hub.tasks.work(task="t1", owner="another") as task:
            table.take_away()
            with pytest.raises(TaskLost):
                await task.hand_over("reviewer")
            raise ValueError("mine")
    assert "was lost" in caught.value.__notes__[0]


async def test_a_silent_gateway_loses_the_task_in_time(hub, table) -> None:
    table.add()
    table.silent = {"renew"}
    with pytest.raises(TaskLost, match="no renewal was confirmed in time"):
        async with hub.tasks.work(role="coder", ttl=0.2) as task:
            await task.wait_lost()


async def test_a_refused_renewal_says_why(hub, table, faulty) -> None:
    table.add()
    with pytest.raises(TaskLost, match="the token lacks tasks"):
        async with hub.tasks.work(role="coder", ttl=0.2) as task:
            faulty.answer = lambda asked: problem(403, "missing_scope", "the token lacks tasks")
            await task.wait_lost()


@pytest.mark.parametrize("fault", ["lose", "drop"])
async def test_a_word_without_an_answer_is_said_once(hub, table, fault) -> None:
    table.add()
    setattr(table, fault, ["hand-over"])
    async with hub.tasks.work(role="coder") as task:
        view = await task.hand_over("reviewer", summary="done")
    assert (view.role, view.state) == ("reviewer", "submitted")
    assert [step["type"] for step in table.tasks["t1"]["steps"]].count("handoff.handed_over") == 1


async def test_an_outcome_that_stays_unknown_is_not_called_a_loss(hub, table, faulty) -> None:
    table.add()
    with pytest.raises(OutcomeUnknown):
        async with hub.tasks.work(role="coder", ttl=0.3) as task:
            faulty.answer = lambda asked: table.hang_up()
            await task.finish()


async def test_waiting_for_a_task(hub, table, faulty, eventually) -> None:
    with pytest.raises(NoTask, match="No task for coder came in 0 s"):
        async with hub.tasks.work(role="coder", wait=0):
            pass
    with pytest.raises(NoTask):
        async with hub.tasks.work(role="coder", wait=0.05):
            pass

    async def work() -> str:
        async with hub.tasks.work(role="coder", ttl=0.3) as task:
            await task.finish()
            return task.id

    waiting = asyncio.create_task(work())
    await eventually(lambda: table.names().count("claim") > 4)
    assert {body["wait_s"] for what, body in table.told[3:]} == {0.3 / 3}
    await faulty.stop()
    await faulty.start()
    await table.bring()
    assert await waiting == "t1"
    faulty.answer = lambda asked: problem(403, "missing_scope")
    with pytest.raises(Exception, match="no"):
        await work()


async def test_a_gateway_that_is_away_at_the_end_of_the_wait(hub, faulty) -> None:
    await faulty.stop()
    with pytest.raises(ConnectionFailed):
        async with hub.tasks.work(role="coder", wait=0.05):
            pass


async def answer(faulty, table, eventually, *, task: str = "t1", text: str = "19") -> None:
    """Answer for somebody else."""
    await eventually(lambda: "ask" in table.names())
    data = {"task": task, "answer": text}
    await faulty.append({"type": "handoff.answered", "id": f"a-{task}", "task": task, "data": data})


async def test_asking_waits_for_the_answer(hub, table, faulty, eventually) -> None:
    table.add()
    async with hub.tasks.work(role="coder") as task:
        asked = asyncio.create_task(task.ask("Which rate?", to="architect"))
        await answer(faulty, table, eventually, task="t2", text="not mine")
        await answer(faulty, table, eventually)
        assert await asked == "19"
        assert table.told[1] == ("ask", {"token": task.token, "question": "Which rate?", "to": "architect"})
        assert await task.ask("And now?", wait=0) is None
        assert (task.lost, task.view.state) == (False, "input_required")
        await task.finish()
    [follow, second] = faulty.of("follow")
    assert (follow["type"], second["workspace"]) == ("handoff.answered", "default")
    assert len(faulty.of("unfollow")) == 2


async def test_a_task_that_is_lost_while_one_waits_for_an_answer(hub, table) -> None:
    table.add()
    with pytest.raises(TaskLost):
        async with hub.tasks.work(role="coder", ttl=0.3) as task:
            asked = asyncio.create_task(task.ask("Which rate?"))
            table.take_away()
            await asked


async def test_what_cannot_be_meant(hub, table) -> None:
    for wrong in ({}, {"role": "coder", "task": "t1"}):
        with pytest.raises(ValueError, match="say for which role, or which task"):
            hub.tasks.work(**wrong)
    work = hub.tasks.work(role="coder")
    with pytest.raises(RuntimeError, match="no task has been claimed"):
        _ = work.view
    assert (work.lost, work.error) == (False, None)
    table.add()
    async with work as task:
        with pytest.raises(RuntimeError, match="begun already"):
            await work.__aenter__()
        await task.finish()


async def test_without_asyncio(table, faulty, eventually) -> None:
    def script() -> None:
        with BlockingHub(name="me") as hub:
            hub.tasks.create("Add VAT", "coder", task="t1", summary="look at total()")
            with hub.tasks.work("coder") as task:
                assert (task.id, task.title, task.description, task.lost) == ("t1", "Add VAT", "", False)
                assert task.note == Note(summary="look at total()") and task.error is None
                assert (task.view.token, task.ask("Which?")) == (task.token, "19")
                task.hand_over("reviewer")
            with hub.tasks.work(task="t1"):
                pass
            hub.tasks.cancel("t1")
            assert hub.tasks.next("coder") is None

    running = asyncio.create_task(asyncio.to_thread(script))
    await answer(faulty, table, eventually)
    await running
    claims = ["create", "claim", "ask", "hand-over", "claim", "release", "cancel", "claim"]
    assert table.names() == claims
