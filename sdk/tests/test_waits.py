import asyncio

import pytest

from herdr_sdk import ConnectionFailed, Deadlock, Hub, ServerError
from herdr_sdk import waits as module

DEADLOCK = {"code": "deadlock", "detail": "x", "cycle": ["a", "b", "a"]}


async def test_a_wait_is_declared_and_ended(faulty) -> None:
    async with Hub(name="a") as hub:
        async with hub.waiting_for("b", purpose="its patch"):
            assert list(faulty.desk.waits) == ["W-a-b"]
        await faulty.wait(lambda: not faulty.desk.waits)
    [declared] = faulty.of("wait")
    assert declared == {
        "op": "wait", "ref": declared["ref"], "owner": "a", "on": "b", "purpose": "its patch",
        "ttl_s": 600, "bound": True,
    }  # fmt: skip


async def test_a_circle_is_told(faulty) -> None:
    faulty.desk.refuse["wait"] = [DEADLOCK]
    async with Hub() as hub:
        with pytest.raises(Deadlock, match="a waits for b waits for a") as caught:
            async with hub.waiting_for("b", owner="a"):
                pytest.fail("was entered")
        async with hub.waiting_for("b", owner="a"):
            pass
    assert caught.value.cycle == ["a", "b", "a"]


async def test_it_is_declared_anew_after_a_lost_connection_and_in_time(faulty, monkeypatch) -> None:
    async with Hub(name="a") as hub, hub.waiting_for("b"):
        monkeypatch.setattr(module, "RENEWALS", 60_000)
        faulty.hang_up()
        await faulty.wait(lambda: len(faulty.of("wait")) == 5)
        assert list(faulty.desk.waits) == ["W-a-b"]


async def test_a_circle_that_closed_meanwhile_interrupts_the_block(faulty) -> None:
    async with Hub(name="a") as hub:
        with pytest.raises(Deadlock):
            async with hub.waiting_for("b"):
                faulty.desk.refuse["wait"] = [DEADLOCK]
                faulty.hang_up()
                await asyncio.Event().wait()
        await asyncio.sleep(0)  # the turn in which a cancellation that was left over would hit
        assert not asyncio.current_task().cancelling()


@pytest.mark.parametrize("error", [None, KeyError("mine")])
async def test_an_interruption_hits_nothing_behind_the_block(faulty, error) -> None:
    expected = Deadlock if error is None else KeyError
    async with Hub(name="a") as hub:
        with pytest.raises(expected):
            async with hub.waiting_for("b") as waiting:
                declaration = waiting._declaration
                declaration._fail(Deadlock(["a", "b", "a"]))
                if error is not None:
                    raise error
        await asyncio.sleep(0)  # the turn in which a cancellation that was left over would hit
        assert not asyncio.current_task().cancelling()


async def test_being_cancelled_by_somebody_else_stays_that(faulty) -> None:
    async with Hub(name="a") as hub:

        async def wait() -> None:
            async with hub.waiting_for("b"):
                await asyncio.Event().wait()

        task = asyncio.create_task(wait())
        await faulty.wait(lambda: faulty.desk.waits)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await faulty.wait(lambda: not faulty.desk.waits)


async def test_being_cancelled_as_well_stays_that(faulty) -> None:
    async with Hub(name="a") as hub:

        async def wait() -> None:
            async with hub.waiting_for("b") as waiting:
                waiting._declaration._fail(Deadlock(["a", "b", "a"]))
                asyncio.current_task().cancel()
                await asyncio.Event().wait()

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(wait())


async def test_blocks_that_wait_for_the_same_share_one(faulty) -> None:
    async with Hub(name="a") as hub:
        async with hub.waiting_for("b"):
            async with hub.waiting_for("b"), hub.waiting_for("c"):
                assert len(faulty.of("wait")) == 2
            await faulty.wait(lambda: list(faulty.desk.waits) == ["W-a-b"])
        await faulty.wait(lambda: not faulty.desk.waits)
        async with hub.waiting_for("b"):
            assert list(faulty.desk.waits) == ["W-a-b"]


async def test_who_is_cancelled_while_declaring_ends_it(faulty) -> None:
    async with Hub(name="a") as hub:
        entering = asyncio.create_task(hub.waiting_for("b").__aenter__())
        await asyncio.sleep(0)  # its first turn: it has declared, and nothing can have answered
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        await faulty.wait(lambda: faulty.of("unwait"))
    assert not faulty.desk.waits


async def test_a_gateway_that_does_not_answer_is_said(faulty) -> None:
    faulty.desk.silent = {"wait"}
    async with Hub(name="a", connect_timeout_s=0.3) as hub:
        with pytest.raises(ConnectionFailed, match=r"not answered for 0\.3 s"):
            async with hub.waiting_for("b"):
                pytest.fail("was entered")


async def test_other_refusals_are_told_and_do_not_interrupt(faulty, caplog) -> None:
    refusal = {"code": "too_many_waits", "detail": "1,000 at most."}
    faulty.desk.refuse["wait"] = [refusal]
    async with Hub(name="a") as hub:
        with pytest.raises(ServerError, match="1,000 at most"):
            async with hub.waiting_for("b"):
                pytest.fail("was entered")
        async with hub.waiting_for("b"):
            faulty.desk.refuse["wait"] = [refusal]
            faulty.hang_up()
            await faulty.wait(lambda: len(faulty.of("wait")) == 3)
            await hub.publish("tool.result")
    assert "no longer declared that a waits for b" in caplog.text


async def test_entering_twice_is_told(faulty) -> None:
    async with Hub(name="a") as hub:
        waiting = hub.waiting_for("b")
        async with waiting:
            with pytest.raises(RuntimeError, match="declared already"):
                await waiting.__aenter__()
        async with waiting:
            pass
