"""The accidents that locks are for, with real tools: each is a process of its own that uses the SDK or the CLI."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gateway import GatewayProcess, running_gateway
from wire import PATIENCE_S, accept, call, wait_until

PRELUDE = """
import asyncio, sys
from herdr_sdk import Conflict, Deadlock, Hub

async def line():
    return await asyncio.to_thread(sys.stdin.readline)

def say(*words):
    print(*words, flush=True)
"""


class Tool:
    """A tool in a process of its own, which says what it does, line by line, and goes on when told to."""

    def __init__(self, gateway: GatewayProcess, script: str) -> None:
        body = textwrap.indent(textwrap.dedent(script), "    ")
        program = f"{PRELUDE}\nasync def main():\n{body}\nasyncio.run(main())\n"
        environ = {**os.environ, "HERDR_GATEWAY_URL": gateway.url}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@contextmanager
def tools(gateway: GatewayProcess, *scripts: str) -> Iterator[list[Tool]]:
    started = [Tool(gateway, script) for script in scripts]
    try:
        yield started
        for tool in started:
            assert tool.process.wait(PATIENCE_S) == 0
    finally:
        for tool in started:
            tool.process.kill()
            tool.process.wait()
            for pipe in (tool.process.stdin, tool.process.stdout):
                assert pipe is not None
                pipe.close()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path / "data", env={"HERDR_GATEWAY_BUS__P2_PER_S": "0"}) as process:
        yield process


def waiters(gateway: GatewayProcess) -> list[str]:
    """Who stands in line for the one lock that is held."""
    (lock,) = call(gateway, "GET", "/v1/locks").json()["locks"]
    return list(lock["waiters"])


def test_two_tools_edit_one_file(gateway: GatewayProcess) -> None:
    first = """
    async with Hub(name="cursor") as hub, hub.lock("src/a.py", purpose="rename parse()") as lock:
        say("has it", lock.token)
        await line()
    """
    second = """
    await line()
    async with Hub(name="claude-code") as hub:
        try:
            async with hub.lock("src/a.py"):
                say("has it too")
        except Conflict as conflict:
            holder = conflict.conflicts[0]
            say("held by", holder.owner, "for", holder.purpose)
        async with hub.lock("src/a.py", wait=60) as lock:
            say("has it", lock.token)
    """
    with tools(gateway, first, second) as (cursor, claude):
        token = int(cursor.hear().removeprefix("has it "))
        claude.go_on()
        assert claude.hear() == "held by cursor for rename parse()"
        wait_until(lambda: waiters(gateway) == ["claude-code"], "the second one in line")
        cursor.go_on()
        assert int(claude.hear().removeprefix("has it ")) > token


def test_one_waits_for_the_others_result_and_that_one_for_its_file(gateway: GatewayProcess) -> None:
    a = """
    async with Hub(name="a") as hub, hub.follow(type="lock.deadlock", as_="a") as told:
        async with hub.lock("src/a.py"), hub.waiting_for("b", purpose="the new signature"):
            say("waits")
            async for event in told:
                say("told", *event.data["cycle"])
                break
    """
    b = """
    await line()
    async with Hub(name="b") as hub:
        try:
            async with hub.lock("src/a.py", wait=600):
                say("has it")
        except Deadlock as deadlock:
            say("cycle", *deadlock.cycle)
    """
    with tools(gateway, a, b) as (holder, other):
        assert holder.hear() == "waits"
        other.go_on()
        assert other.hear() == "cycle b a b"  # at once: its wait would have lasted for ten minutes
        assert holder.hear() == "told b a b"


def test_one_waits_for_a_file_and_its_holder_then_for_that_ones_result(gateway: GatewayProcess) -> None:
    a = """
    async with Hub(name="a") as hub, hub.lock("src/a.py"):
        say("has it")
        await line()
        try:
            async with hub.waiting_for("b", purpose="the new signature"):
                say("waits")
        except Deadlock as deadlock:
            say("cycle", *deadlock.cycle)
    """
    b = """
    await line()
    async with Hub(name="b") as hub, hub.follow(type="lock.deadlock", as_="b") as told:
        async def hear():
            async for event in told:
                say("told", *event.data["cycle"])
                return
        hearing = asyncio.create_task(hear())
        async with hub.lock("src/a.py", wait=600):
            await hearing
            say("has it")
    """
    with tools(gateway, a, b) as (holder, other):
        assert holder.hear() == "has it"
        other.go_on()
        wait_until(lambda: waiters(gateway) == ["b"], "the other one in line")
        holder.go_on()
        assert holder.hear() == "cycle a b a"
        assert other.hear() == "told a b a"
        assert other.hear() == "has it"  # whoever did not close the circle goes on waiting, and gets it


def test_a_result_based_on_an_old_version_is_rejected_and_both_are_told(gateway: GatewayProcess) -> None:
    accept(
        gateway, type="file.changed", subject="api.py", source="cursor", priority="P0", data={"hash": "h1"}
    )
    writer = """
    async with Hub(name="cursor") as hub, hub.follow(type="conflict.detected", as_="cursor") as told:
        await line()
        receipt = await hub.publish("file.changed", {"hash": "h2"}, subject="api.py", priority="P0")
        say("changed", receipt.status)
        async for event in told:
            say("told", event.data["status"], event.data["by"]["source"])
            break
    """
    late = """
    async with Hub(name="tester") as hub, hub.follow(type="conflict.detected", as_="tester") as told:
        async with hub.follow(type="file.changed", after=0) as changes:
            async for event in changes:
                say("saw", event.data["hash"])
                break
        await line()
        receipt = await hub.publish("tool.result", {"callers": 3}, subject="api.py")
        say(receipt.status, receipt.conflict.source)
        async for event in told:
            say("told", event.data["status"], event.data["current"]["source"])
            break
    """
    with tools(gateway, writer, late) as (cursor, tester):
        assert tester.hear() == "saw h1"
        cursor.go_on()
        assert cursor.hear() == "changed accepted"
        tester.go_on()
        assert tester.hear() == "stale cursor"  # it had not said what it was based on; the SDK knew
        assert tester.hear() == "told rejected cursor"
        assert cursor.hear() == "told rejected tester"


def git(repo: Path, *args: str) -> str:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *args], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_who_switches_the_branch_is_told_that_another_holds_a_file(tmp_path: Path) -> None:
    repo = tmp_path / "shop"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / "a.py").write_text("1\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "one")
    git(repo, "branch", "other")
    config = tmp_path / "herdr.yaml"
    config.write_text(f"workspaces: [{{name: shop, path: {repo}}}]\n")
    holder = """
    async with Hub(name="cursor") as hub, hub.lock("a.py", workspace="shop", purpose="in the middle of it"):
        say("has it")
        await line()
    """
    with running_gateway(tmp_path / "data", "--config", str(config)) as gateway:
        environ = {**os.environ, "HERDR_GATEWAY_URL": gateway.url, "HERDR_OWNER": "claude-code"}
        switch = [sys.executable, "-m", "herdr", "lock", "run", "--workspace", "shop", "git:HEAD"]
        switch += ["--", "git", "switch", "-q", "other"]
        with tools(gateway, holder) as (cursor,):
            assert cursor.hear() == "has it"
            refused = subprocess.run(switch, cwd=repo, env=environ, capture_output=True, text=True)
            assert refused.returncode == 75, refused  # EX_TEMPFAIL, which `git` itself never ends with
            assert git(repo, "branch", "--show-current") == "main"
            assert "cursor" in refused.stderr and "in the middle of it" in refused.stderr
            cursor.go_on()
            cursor.process.wait(PATIENCE_S)
            done = subprocess.run(switch, cwd=repo, env=environ, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")
            assert git(repo, "branch", "--show-current") == "other"
