"""Locks, waits and versions against a real gateway process."""

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdr_sdk import Conflict, Deadlock, Draft, Hub, LockLost, ServerError, blocking

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from gateway import GatewayProcess, running_gateway

HOLDER = """
import sys
from herdr_sdk import LockLost
from herdr_sdk.blocking import Hub

try:
    with Hub(name="holder") as hub, hub.lock("a.py", ttl=float(sys.argv[1])) as lock:
        print(lock.token, flush=True)
        sys.stdin.readline()
except LockLost as error:
    print("lost:", error)
else:
    print("held to the end")
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path_factory.mktemp("gateway") / "data") as process:
        yield process


@pytest.fixture
def gateway(process: GatewayProcess, monkeypatch: pytest.MonkeyPatch) -> GatewayProcess:
    monkeypatch.delenv("HERDR_GATEWAY_TOKEN", raising=False)
    monkeypatch.setenv("HERDR_GATEWAY_URL", process.url)
    return process


def restart(gateway: GatewayProcess) -> None:
    """Start it again at its old address."""
    gateway.args = ("--port", str(gateway.port))
    gateway.start()


async def stands_in_line(hub: Hub, owner: str) -> None:
    """Wait until the owner stands in line for something."""
    while not any(owner in lock.waiters for lock in await hub.locks()):  # noqa: ASYNC110
        await asyncio.sleep(0.005)  # no event tells that somebody stands in line


@pytest.fixture
def holder(gateway: GatewayProcess) -> Iterator[subprocess.Popen[str]]:
    """A process that holds `a.py`, until it reads a line."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLDER, "1"], **pipes) as process:
        yield process
        process.kill()


async def test_two_tools_and_one_file(gateway) -> None:
    async with Hub(name="cursor") as cursor, Hub(name="claude") as claude:
        async with cursor.lock("src/", purpose="split the cart") as lock:
            with pytest.raises(Conflict) as caught:
                await claude.lock("src/cart.py").acquire()
            [holder] = caught.value.conflicts
            assert (holder.owner, holder.path, holder.asked, holder.purpose, holder.state, holder.lock) == (
                "cursor", "src/", "src/cart.py", "split the cart", "held", lock.lock
            )  # fmt: skip
            assert caught.value.retry_after_s and caught.value.retry_after_s <= 60
            waiting = asyncio.create_task(claude.lock("src/cart.py", wait=30).acquire())
            await stands_in_line(claude, "claude")
            [shown] = await cursor.locks(path="src/cart.py")
            assert (shown.lock, shown.owner, shown.token) == (lock.lock, "cursor", lock.token)
            assert shown.waiters == ("claude",)
            assert await cursor.check("src/cart.py") == []
            assert [one.owner for one in await claude.check("src/cart.py", "b.py")] == ["cursor"]
            assert await cursor.locks(owner="nobody") == []
        got = await waiting
        assert got.token > lock.token
        await got.release()
        assert await claude.locks() == []


async def test_the_circle_is_named(gateway) -> None:
    async with Hub(name="a") as a, Hub(name="b") as b, a.lock("a.py"):
        with pytest.raises(Deadlock) as caught:
            async with a.waiting_for("b", purpose="its patch"):
                await b.lock("a.py", wait=60).acquire()
        assert caught.value.cycle == ["b", "a", "b"]
        waiting = asyncio.create_task(b.lock("a.py", wait=60).acquire())
        await stands_in_line(a, "b")
        with pytest.raises(Deadlock) as caught:
            async with a.waiting_for("b"):
                pytest.fail("was entered")
        assert caught.value.cycle == ["a", "b", "a"]
        waiting.cancel()
        await asyncio.wait((waiting,))


async def test_who_is_cancelled_leaves_the_line(gateway) -> None:
    async with Hub(name="a") as a, Hub(name="b") as b, Hub(name="c") as c:
        async with a.lock("a.py"):
            waiting = asyncio.create_task(b.lock("a.py", wait=60).acquire())
            await stands_in_line(a, "b")
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(Conflict) as caught:
                await c.lock("a.py", wait=0.05).acquire()
            assert [one.owner for one in caught.value.conflicts] == ["a"]
        async with c.lock("a.py"):
            pass


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_a_restart_of_the_gateway_keeps_locks_and_waiters(gateway, end) -> None:
    async with Hub(name="a", connect_timeout_s=30) as a, Hub(name="b", connect_timeout_s=30) as b:
        async with a.lock("a.py", ttl=60) as lock, a.waiting_for("c"):
            waiting = asyncio.create_task(b.lock("a.py", wait=60).acquire())
            await stands_in_line(a, "b")
            await asyncio.to_thread(getattr(gateway, end))
            await asyncio.to_thread(restart, gateway)
            await stands_in_line(a, "b")
            await lock.renew()
            [shown] = await a.locks()
            assert (shown.token, shown.owner) == (lock.token, "a")
            assert not lock.lost and not waiting.done()
        await (await waiting).release()
        assert await a.locks() == []


async def test_a_holder_that_dies_blocks_nobody(gateway, holder) -> None:
    assert holder.stdout is not None
    token = int(await asyncio.to_thread(holder.stdout.readline))
    async with Hub(name="b") as b:
        waiting = asyncio.create_task(b.lock("a.py", wait=60).acquire())
        await stands_in_line(b, "b")
        holder.kill()
        got = await waiting
        assert got.token > token
        await got.release()


async def test_a_holder_that_slept_through_its_lease_is_told(gateway, holder) -> None:
    assert holder.stdout is not None
    await asyncio.to_thread(holder.stdout.readline)
    os.kill(holder.pid, signal.SIGSTOP)
    async with Hub(name="b") as b, b.lock("a.py", wait=60):
        os.kill(holder.pid, signal.SIGCONT)
        said, _ = await asyncio.to_thread(holder.communicate, "\n", 30)
    assert said.startswith("lost: The lock on a.py (token ")


async def test_a_lock_taken_away_by_force_is_told(gateway) -> None:
    async with Hub(name="a") as a:
        with pytest.raises(LockLost, match="released by force"):
            async with a.lock("a.py") as lock:
                address = f"{gateway.url}/v1/locks/{lock.lock}?force=true&reason=hangs"
                request = urllib.request.Request(address, method="DELETE")
                await asyncio.to_thread(lambda: urllib.request.urlopen(request).close())


async def test_an_owner_locks_again_what_it_holds(gateway) -> None:
    async with Hub(name="a") as a, Hub(name="b") as b:
        async with a.lock("src/") as outer:
            async with a.lock("src/a.py", ttl=5) as inner:
                assert inner.token == outer.token
            with pytest.raises(Conflict):
                await b.lock("src/a.py").acquire()
            await outer.renew()
        assert await a.locks() == []


async def test_many_locks_of_one_hub_come_back_with_it(gateway) -> None:
    async with Hub(name="a", connect_timeout_s=30) as a:
        locks = [await a.lock(f"many/{n}.py").acquire() for n in range(200)]
        await asyncio.to_thread(gateway.kill)
        await asyncio.to_thread(restart, gateway)
        for lock in locks:
            await lock.renew()
        assert not any(lock.lost for lock in locks)
        for lock in locks:
            await lock.release()
        assert await a.locks() == []


@pytest.mark.parametrize(
    ("path", "workspace", "code"),
    [("../x", "default", "bad_path"), ("/etc/x", "default", "bad_path"), ("x", "none", "unknown_workspace")],
)
async def test_refused_names_are_told(gateway, path, workspace, code) -> None:
    async with Hub(name="a") as a:
        for attempt in (a.lock(path, workspace=workspace).acquire(), a.check(path, workspace=workspace)):
            with pytest.raises(ServerError) as caught:
                await attempt
            assert caught.value.code == code


async def test_of_two_who_saw_one_version_only_one_is_accepted(gateway) -> None:
    async with (
        Hub(name="a") as a,
        Hub(name="b") as b,
        a.follow(type=["file.*", "change.*"]) as seen_a,
        b.follow(type="file.*") as seen_b,
    ):
        await a.publish("file.changed", {"hash": "1"}, source="watcher", subject="v.py", priority="P0")
        for events in (seen_a, seen_b):
            assert (await anext(events)).subject == "v.py"
        first = await a.publish("change.proposed", subject="v.py")
        second = await b.publish("change.proposed", subject="v.py")
        assert (first.status, second.status) == ("accepted", "stale")
        assert second.conflict is not None
        assert (second.conflict.seq, second.conflict.source) == (first.seq, "a")
        third, fourth = await a.publish_many(Draft("change.proposed", subject="v.py") for _ in "12")
        assert (third.status, fourth.status) == ("accepted", "accepted")
        own = [(await anext(seen_a)).based_on for _ in range(3)]
        assert own[0] is not None and own[1:] == [first.seq, first.seq]
        assert (await b.publish("change.proposed", subject="v.py", based_on=None)).status == "accepted"


def test_a_script_without_asyncio(gateway) -> None:
    with blocking.Hub(name="a") as a, blocking.Hub(name="b") as b:
        with a.lock("a.py", purpose="why") as lock, a.waiting_for("c"):
            with pytest.raises(Conflict), b.lock("a.py", wait=0.01):
                pytest.fail("was entered")
            assert [one.token for one in b.locks()] == [lock.token]
            assert [one.purpose for one in b.check("a.py")] == ["why"]
        with b.lock("a.py"):
            pass
