"""Locks against a small gateway that breaks the connection on demand."""

import asyncio

import pytest

from herdr_sdk import Conflict, ConnectionFailed, Deadlock, Hub, LockLost, ServerError, Unauthorized
from herdr_sdk import locks as module


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renew a lock of a minute ten times a second."""
    monkeypatch.setattr("herdr_sdk.lease.RENEWALS", 600)


async def test_a_lock_is_asked_for_held_and_given_back(faulty) -> None:
    async with Hub(name="cursor") as hub:
        lock = hub.lock(
            "a.py", "b.py", wait=10, ttl=30, mode="intent", purpose="why", workspace="shop", session="s-1"
        )
        async with lock as same:
            assert same is lock
            assert (lock.lock, lock.token, lock.paths, lock.lost) == ("L17", 17, ("a.py", "b.py"), False)
            assert lock.expires == "2026-03-02T09:16:30.000Z"
            assert "L17" in faulty.desk.held
        assert not faulty.desk.held
    [asked], [given_back] = faulty.of("lock"), faulty.of("unlock")
    assert 9 < asked.pop("wait_s") <= 10
    assert asked == {
        "op": "lock", "ref": asked["ref"], "paths": ["a.py", "b.py"], "owner": "cursor", "workspace": "shop",
        "mode": "intent", "ttl_s": 30, "purpose": "why", "session": "s-1", "bound": True,
    }  # fmt: skip
    assert given_back == {"op": "unlock", "ref": given_back["ref"], "lock": "L17", "token": 17}


async def test_who_is_in_the_way_is_named(faulty) -> None:
    async with (
        Hub(name="cursor") as first,
        Hub(name="claude") as second,
        first.lock("a.py", purpose="rename total"),
    ):
        with pytest.raises(Conflict) as caught:
            await second.lock("a.py").acquire()
    [holder] = caught.value.conflicts
    assert (holder.path, holder.asked, holder.owner, holder.purpose, holder.state, holder.lock) == (
        "a.py", "a.py", "cursor", "rename total", "held", "L17"
    )  # fmt: skip
    said = "a.py is held by cursor (rename total), until 2026-03-02T09:16:60.000Z if not longer"
    assert said in str(caught.value) and "wait=SECONDS" in str(caught.value)


async def test_who_waits_gets_it_when_it_is_free(faulty) -> None:
    async with Hub(name="cursor") as first, Hub(name="claude") as second:
        async with first.lock("a.py"):
            waiting = asyncio.create_task(second.lock("a.py", wait=60).acquire())
            await faulty.wait(lambda: faulty.desk.line)
        lock = await waiting
        assert lock.token == 18
        await lock.release()
    assert not faulty.desk.held


async def test_waiting_in_vain_is_a_conflict_and_in_a_circle_a_deadlock(faulty) -> None:
    async with Hub(name="cursor") as first, Hub(name="claude") as second, first.lock("a.py"):
        with pytest.raises(Conflict):
            await second.lock("a.py", wait=0.01).acquire()
        faulty.desk.refuse["lock"] = [{"code": "deadlock", "detail": "x", "cycle": ["a", "b", "a"]}]
        with pytest.raises(Deadlock, match="a waits for b waits for a") as caught:
            await second.lock("a.py", wait=10).acquire()
    assert caught.value.cycle == ["a", "b", "a"]


async def test_a_wait_longer_than_the_gateways_is_cut_into_several(faulty, monkeypatch) -> None:
    monkeypatch.setattr(module, "WAIT_MAX_S", 0.02)
    async with Hub(name="cursor") as first, Hub(name="claude") as second:
        async with first.lock("a.py"):
            waiting = asyncio.create_task(second.lock("a.py", wait=60).acquire())
            await faulty.wait(lambda: len(faulty.of("lock")) == 4)
        await (await waiting).release()
    assert [frame["wait_s"] for frame in faulty.of("lock")[1:4]] == [0.02] * 3


async def test_it_is_renewed_in_the_background(faulty, often) -> None:
    async with Hub(name="cursor") as hub, hub.lock("a.py", ttl=60) as lock:
        await faulty.wait(lambda: len(faulty.of("renew")) == 4)
        assert not lock.lost
        renewal = faulty.of("renew")[0]
        assert renewal == {"op": "renew", "ref": renewal["ref"], "lock": "L17", "token": 17, "ttl_s": 60}
    assert len(faulty.of("lock")) == 1


async def test_a_third_of_its_time_is_left_between_renewals(faulty) -> None:
    async with Hub(name="cursor") as hub, hub.lock("a.py", ttl=60) as lock:
        renewal, end = (timer.when() for timer in lock._lease._timers)
        assert end - renewal == pytest.approx(40)


async def test_renewing_by_hand_changes_the_time(faulty) -> None:
    async with Hub(name="cursor") as hub, hub.lock("a.py") as lock:
        await lock.renew(10)
        assert faulty.desk.held["L17"]["ttl_s"] == 10
        assert lock.expires == "2026-03-02T09:16:10.000Z"
        await lock.renew()
        assert [frame["ttl_s"] for frame in faulty.of("renew")] == [10, 10]
        del faulty.desk.held["L17"]
        with pytest.raises(LockLost):
            await lock.renew()
        with pytest.raises(LockLost):
            await lock.renew()
        with pytest.raises(LockLost):
            await lock.release()


async def test_leaving_a_lost_lock_raises(faulty, often) -> None:
    async with Hub(name="cursor") as hub:
        with pytest.raises(
            LockLost, match=r"a\.py \(token 17\) was lost: the gateway does not know"
        ) as caught:
            async with hub.lock("a.py", ttl=60) as lock:
                del faulty.desk.held["L17"]
                await lock.wait_lost()
                assert lock.lost and lock.token == 17
        assert (caught.value.lock, caught.value.token, caught.value.paths) == ("L17", 17, ["a.py"])
        assert not faulty.of("unlock")


async def test_a_loss_that_only_leaving_finds_raises_too(faulty) -> None:
    async with Hub(name="cursor") as hub:
        with pytest.raises(LockLost):
            async with hub.lock("a.py") as lock:
                del faulty.desk.held["L17"]
        assert lock.lost


async def test_the_blocks_own_error_wins_and_tells_of_the_loss(faulty) -> None:
    async with Hub(name="cursor") as hub:
        with pytest.raises(KeyError) as caught:
            async with hub.lock("a.py"):
                del faulty.desk.held["L17"]
                raise KeyError
        with pytest.raises(KeyError) as without:
            async with hub.lock("a.py"):
                raise KeyError
    assert "was lost" in caught.value.__notes__[0]
    assert not hasattr(without.value, "__notes__")
    assert not faulty.desk.held


async def test_without_a_confirmed_renewal_it_is_lost_by_its_own_clock(faulty) -> None:
    faulty.desk.silent = {"renew"}
    async with Hub(name="cursor") as hub:
        with pytest.raises(LockLost, match="confirmed in time"):
            async with hub.lock("a.py", ttl=0.2) as lock:
                await lock.wait_lost()
                async with hub.lock("a.py", ttl=60) as again:
                    assert (again.token, again.lost) == (17, False)


async def test_a_confirmation_that_comes_too_late_finds_nobody_else(faulty) -> None:
    faulty.desk.silent = {"renew"}
    async with Hub(name="cursor") as hub:
        with pytest.raises(LockLost, match="confirmed in time"):
            async with hub.lock("a.py", ttl=0.2) as lock:
                await lock.wait_lost()
                faulty.desk.silent = set()
                renewal = {**faulty.of("renew")[0], "ttl_s": 60}
                await faulty.desk.handle(faulty.sockets[0], renewal)
                await hub.publish("tool.result")
        assert [frame["token"] for frame in faulty.of("unlock")] == [17]
    assert not faulty.desk.held


async def test_who_is_cancelled_leaves_the_line(faulty) -> None:
    async with Hub(name="cursor") as first, Hub(name="claude") as second:
        async with first.lock("a.py"):
            waiting = asyncio.create_task(second.lock("a.py", wait=60).acquire())
            await faulty.wait(lambda: faulty.desk.line)
            waiting.cancel()
            await faulty.wait(lambda: not faulty.desk.line)
            with pytest.raises(asyncio.CancelledError):
                await waiting
        [cancelled] = [frame for frame in faulty.of("unlock") if "cancel" in frame]
        assert cancelled["cancel"] == faulty.of("lock")[1]["ref"]


async def test_a_grant_that_crosses_the_cancelling_is_given_back(faulty, monkeypatch) -> None:
    async with Hub(name="cursor") as hub:
        asking = asyncio.create_task(hub.lock("a.py").acquire())
        answered = module._Asking._answered

        def cancel_first(self, frame) -> None:
            asking.cancel()
            answered(self, frame)

        monkeypatch.setattr(module._Asking, "_answered", cancel_first)
        with pytest.raises(asyncio.CancelledError):
            await asking
        await faulty.wait(lambda: not faulty.desk.held)


async def test_cancelling_after_the_grant_gives_it_back_too(faulty, monkeypatch) -> None:
    async with Hub(name="cursor") as hub:
        asking = asyncio.create_task(hub.lock("a.py").acquire())
        answered = module._Asking._answered

        def cancel_after(self, frame) -> None:
            answered(self, frame)
            asking.cancel()

        monkeypatch.setattr(module._Asking, "_answered", cancel_after)
        with pytest.raises(asyncio.CancelledError):
            await asking
        await faulty.wait(lambda: faulty.of("unlock") and not faulty.desk.held)


async def test_an_owner_who_locks_twice_keeps_it_until_the_last(faulty) -> None:
    async with Hub(name="cursor") as hub:
        async with hub.lock("a.py", "b.py", ttl=3600) as outer:
            async with hub.lock("a.py", ttl=600) as inner:
                assert (inner.token, inner.paths) == (outer.token, ("a.py", "b.py"))
                await faulty.wait(lambda: faulty.of("renew"))
                assert faulty.desk.held["L17"]["ttl_s"] == 3600
            assert not faulty.of("unlock") and list(faulty.desk.held) == ["L17"]
        assert len(faulty.of("unlock")) == 1


async def test_who_asks_while_it_is_being_given_back_keeps_it(faulty, monkeypatch) -> None:
    monkeypatch.setattr("herdr_sdk.backoff.Backoff.next_s", lambda self: 60.0)
    faulty.desk.refuse["unlock"] = [{"code": "overloaded", "detail": "Not now."}]
    async with Hub(name="cursor") as hub:
        first = await hub.lock("a.py").acquire()
        releasing = asyncio.create_task(first.release())
        await faulty.wait(lambda: faulty.of("unlock"))
        async with hub.lock("a.py") as second:
            await releasing
            assert (second.token, second.lost, first.lost) == (17, False, False)
    assert not faulty.desk.held


async def test_a_longer_time_of_the_inner_ends_with_it(faulty) -> None:
    async with Hub(name="cursor") as hub, hub.lock("a.py", ttl=5):
        async with hub.lock("a.py", ttl=60):
            assert faulty.desk.held["L17"]["ttl_s"] == 60
        await faulty.wait(lambda: faulty.desk.held["L17"]["ttl_s"] == 5)


async def test_both_are_told_of_a_loss(faulty) -> None:
    async with Hub(name="cursor") as hub:
        with pytest.raises(LockLost):
            async with hub.lock("a.py"):
                with pytest.raises(LockLost):
                    async with hub.lock("a.py") as inner:
                        faulty.hang_up()
                        await inner.wait_lost()
        await faulty.wait(lambda: not faulty.desk.held)


@pytest.mark.parametrize("code", ["log_unavailable", "overloaded", "too_many_waiters"])
async def test_a_gateway_in_trouble_is_asked_again(faulty, code) -> None:
    trouble = {"code": code, "detail": "Not now."}
    faulty.desk.refuse = {"lock": [trouble] * 2, "renew": [trouble] * 2, "unlock": [trouble] * 2}
    async with Hub(name="cursor") as hub, hub.lock("a.py") as lock:
        await lock.renew()
    assert [len(faulty.of(op)) for op in ("lock", "renew", "unlock")] == [3, 3, 3]


async def test_trouble_that_lasts_is_said(faulty) -> None:
    faulty.desk.refuse["lock"] = [{"code": "log_unavailable", "detail": "The disk is full."}] * 1000
    async with Hub(name="cursor", connect_timeout_s=1) as hub:
        with pytest.raises(ServerError, match="disk is full") as caught:
            await hub.lock("a.py").acquire()
    assert caught.value.code == "log_unavailable"


async def test_other_refusals_are_told_as_they_are(faulty) -> None:
    faulty.desk.refuse["lock"] = [
        {"code": "missing_scope", "detail": "no scope locks"},
        {"code": "bad_path", "detail": "'..' leaves the workspace"},
    ]
    async with Hub(name="cursor") as hub:
        with pytest.raises(Unauthorized, match="no scope locks"):
            await hub.lock("a.py").acquire()
        with pytest.raises(ServerError, match="leaves the workspace"):
            await hub.lock("../x").acquire()


async def test_closing_the_hub_ends_its_locks(faulty) -> None:
    async with Hub(name="cursor") as hub:
        lock = await hub.lock("a.py").acquire()
        waiting = asyncio.create_task(hub.lock("b.py", wait=60).acquire())
        faulty.desk.silent = {"lock"}
        await faulty.wait(lambda: len(faulty.of("lock")) == 2)
    with pytest.raises(ConnectionFailed, match="closed"):
        await waiting
    assert lock.lost
    with pytest.raises(LockLost, match="hub is closed"):
        await lock.release()
    await lock.release()


async def test_misuse_is_told(faulty) -> None:
    async with Hub() as hub:
        with pytest.raises(ValueError, match="whose lock"):
            hub.lock("a.py")
        with pytest.raises(ValueError, match="at least one path"):
            hub.lock(owner="x")
        lock = hub.lock("a.py", owner="x")
        with pytest.raises(RuntimeError, match="acquire"):
            _ = lock.token
        with pytest.raises(RuntimeError, match="not held"):
            await lock.renew()
        await lock.release()
        await lock.acquire()
        with pytest.raises(RuntimeError, match="held already"):
            await lock.acquire()
        await lock.release()
        await lock.release()
        async with lock:
            assert lock.token == 18
    assert len(faulty.of("unlock")) == 2


async def test_leaving_leaves_no_task_and_no_timer(faulty) -> None:
    before = asyncio.all_tasks()
    async with Hub(name="cursor") as hub, hub.lock("a.py"):
        pass
    await faulty.wait(lambda: not faulty.sockets)
    assert asyncio.all_tasks() - before == set()


async def test_queries_need_a_gateway(faulty) -> None:
    async with Hub(name="cursor") as hub:
        with pytest.raises(ServerError, match="HTTP 404 with something else"):
            await hub.locks()
        await faulty.stop()
        with pytest.raises(ConnectionFailed, match="does not answer"):
            await hub.check("a.py")
