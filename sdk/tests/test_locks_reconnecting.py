"""What becomes of locks, and of those who wait for one, when the connection breaks."""

import asyncio

import pytest

from herdr_sdk import Conflict, ConnectionFailed, Hub, LockLost
from herdr_sdk import locks as module


async def test_after_a_restart_it_goes_on_under_the_same_token(faulty) -> None:
    faulty.desk.keeps_bound = True
    async with Hub(name="cursor") as hub:
        async with hub.lock("a.py", purpose="why", workspace="w", session="s") as lock:
            faulty.hang_up()
            await faulty.wait(lambda: len(faulty.of("lock")) == 2)
            await lock.renew()
            assert (lock.lost, lock.token) == (False, 17)
        assert not faulty.desk.held
    first, again = faulty.of("lock")
    assert {**again, "ref": 0} == {**first, "ref": 0}


async def test_a_lock_that_ended_with_the_connection_is_lost_but_kept_from_others(faulty) -> None:
    async with Hub(name="cursor") as hub, Hub(name="claude") as other:
        with pytest.raises(LockLost, match="the connection broke"):
            async with hub.lock("a.py") as lock:
                faulty.hang_up()
                await lock.wait_lost()
                assert (lock.token, list(faulty.desk.held)) == (17, ["L18"])
                with pytest.raises(Conflict):
                    await other.lock("a.py").acquire()
        assert [frame["token"] for frame in faulty.of("unlock")] == [18]
        async with other.lock("a.py"):
            pass


async def test_a_lost_lock_can_be_taken_again_inside_its_block(faulty) -> None:
    async with Hub(name="cursor") as hub:
        with pytest.raises(LockLost):
            async with hub.lock("a.py") as lock:
                faulty.hang_up()
                await lock.wait_lost()
                async with hub.lock("a.py") as again:
                    assert (again.token, again.lost) == (18, False)
                assert list(faulty.desk.held) == ["L18"]
        await faulty.wait(lambda: not faulty.desk.held)


@pytest.mark.parametrize("keeps", [True, False])
async def test_leaving_takes_back_the_asking_anew(faulty, keeps) -> None:
    faulty.desk.keeps_bound = keeps
    async with Hub(name="cursor") as hub:
        lock = await hub.lock("a.py").acquire()
        faulty.desk.silent = {"lock"}
        faulty.hang_up()
        await faulty.wait(lambda: len(faulty.of("lock")) == 2)
        if keeps:
            await lock.release()
        else:
            with pytest.raises(LockLost):
                await lock.release()
        assert not faulty.desk.held


async def test_who_took_it_meanwhile_is_named(faulty) -> None:
    async with Hub(name="cursor") as hub:
        with pytest.raises(LockLost, match="claude had it"):
            async with hub.lock("a.py") as lock:
                other = {"paths": ["a.py"], "owner": "claude", "ttl_s": 60}
                faulty.desk.held.clear()
                faulty.desk.grant(faulty.sockets[0], other)["socket"] = None
                faulty.desk.keeps_bound = True
                faulty.hang_up()
                await lock.wait_lost()


@pytest.mark.parametrize("keeps", [True, False])
async def test_giving_back_goes_on_over_a_lost_connection(faulty, keeps) -> None:
    faulty.desk.keeps_bound = keeps
    faulty.desk.hang_up = ["unlock"]
    async with Hub(name="cursor") as hub:
        lock = await hub.lock("a.py").acquire()
        if keeps:
            await lock.release()
        else:
            with pytest.raises(LockLost):
                await lock.release()
    assert not faulty.desk.held
    assert len(faulty.of("unlock")) == 2


async def test_giving_back_without_an_answer_is_a_doubt(faulty, monkeypatch) -> None:
    monkeypatch.setattr("herdr_sdk.lease.RENEWALS", 600)
    monkeypatch.setattr(module, "RELEASE_S", 0.3)
    faulty.desk.silent = {"unlock"}
    async with Hub(name="cursor") as hub:
        with pytest.raises(LockLost, match="did not confirm"):
            async with hub.lock("a.py", ttl=60):
                pass
        assert len(faulty.of("unlock")) == 1


async def test_a_request_that_broke_with_the_connection_is_repeated(faulty) -> None:
    faulty.desk.hang_up = ["lock", "lock"]
    async with Hub(name="cursor") as hub, hub.lock("a.py", wait=60):
        pass
    waits = [frame["wait_s"] for frame in faulty.of("lock")]
    assert len(waits) == 3 and waits == sorted(waits, reverse=True)


async def test_who_stands_in_line_does_so_again_after_a_lost_connection(faulty) -> None:
    async with Hub(name="cursor") as first, Hub(name="claude") as second:
        async with first.lock("a.py"):
            waiting = asyncio.create_task(second.lock("a.py", wait=60).acquire())
            await faulty.wait(lambda: faulty.desk.line)
            faulty.hang_up(faulty.desk.line[0][0])
            await faulty.wait(lambda: len(faulty.of("lock")) == 3 and faulty.desk.line)
        await (await waiting).release()


async def test_asking_while_the_gateway_is_away_waits_for_it(faulty, eventually) -> None:
    async with Hub(name="cursor", connect_timeout_s=30) as hub:
        await faulty.stop()
        await eventually(lambda: not hub.connected)
        asking = asyncio.create_task(hub.lock("a.py").acquire())
        await faulty.start()
        await (await asking).release()


async def test_a_gateway_that_stays_away_is_said(faulty, eventually) -> None:
    async with Hub(name="cursor", connect_timeout_s=0.5) as hub:
        await faulty.stop()
        await eventually(lambda: not hub.connected)
        with pytest.raises(ConnectionFailed, match=r"cannot be reached for 0\.51 s"):
            await hub.lock("a.py", wait=0.01).acquire()
        assert len(faulty.of("lock")) == 0


async def test_a_gateway_that_does_not_answer_is_said_and_told(faulty) -> None:
    faulty.desk.silent = {"lock"}
    async with Hub(name="cursor", connect_timeout_s=0.5) as hub:
        with pytest.raises(ConnectionFailed, match="does not answer"):
            await hub.lock("a.py", wait=0.01).acquire()
        await faulty.wait(lambda: faulty.of("unlock"))
    assert faulty.of("unlock")[0]["cancel"] == faulty.of("lock")[0]["ref"]
