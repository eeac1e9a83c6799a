"""How long a tool call holds its files, and who else's it never gives back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from buses import FaultyLog
from hook_parts import ONE, OTHER, World, hooks_over

from herdr.hooking.memory import HOLDS_MAX
from herdr.hooks.call import Kind


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with hooks_over(FaultyLog(), tmp_path) as world:
        yield world


async def test_a_call_holds_its_files_for_ten_minutes_and_says_what_for(world: World) -> None:
    assert await world.tell("before", "a.py", "b.py") == (None, None, None)
    (lock,) = (await world.register.listed(None, None, None))["locks"]
    assert (lock["owner"], list(lock["paths"]), lock["ttl_s"]) == (ONE, ["a.py", "b.py"], 600)
    assert (lock["purpose"], lock["session"]) == ("Edit (toolu_1)", "claude-code/session-00000001")


async def test_a_denial_names_who_and_why_and_locks_nothing(world: World) -> None:
    await world.hold("cursor/1", "a.py")
    denied = await world.tell("before", "b.py", "a.py")
    assert denied.deny is not None
    assert "cursor/1" in denied.deny and "on its own" in denied.deny and "until" in denied.deny
    assert await world.locked() == {"cursor/1": ["a.py"]}


async def test_what_one_has_locked_oneself_is_no_reason_to_deny_and_stays(world: World) -> None:
    await world.hold(ONE, "a.py")
    assert (await world.tell("before", "a.py")).deny is None
    for kind in ("after", "undone", "answer", "prompt", "end"):
        await world.tell(kind, "a.py")
        assert await world.locked() == {ONE: ["a.py"]}, kind


@pytest.mark.parametrize("kind", ["after", "undone", "answer", "prompt", "end"])
async def test_what_ends_a_call_gives_its_files_back(world: World, kind: Kind) -> None:
    await world.tell("before", "a.py")
    await world.tell(kind, "a.py")
    assert await world.locked() == {}


@pytest.mark.parametrize("kind", ["start", "compacted", "other"])
async def test_nothing_else_does(world: World, kind: Kind) -> None:
    await world.tell("before", "a.py")
    await world.tell(kind)
    assert await world.locked() == {ONE: ["a.py"]}


async def test_the_end_of_one_call_is_not_the_end_of_another(world: World) -> None:
    await world.tell("before", "a.py", use="toolu_1")
    await world.tell("before", "a.py", use="toolu_2")
    await world.tell("before", "b.py", use="toolu_3")
    await world.tell("after", "a.py", use="toolu_1")
    assert await world.locked() == {ONE: ["a.py", "b.py"]}
    await world.tell("undone", "a.py", use="toolu_2")
    assert await world.locked() == {ONE: ["b.py"]}


async def test_calls_that_come_at_once_share_a_lock(world: World) -> None:
    uses = [f"toolu_{n}" for n in range(8)]
    answers = await asyncio.gather(*(world.tell("before", "a.py", use=use) for use in uses))
    assert all(answer.deny is None for answer in answers)
    for use in uses[:-1]:
        await world.tell("after", "a.py", use=use)
    assert await world.locked() == {ONE: ["a.py"]}
    await world.tell("after", "a.py", use=uses[-1])
    assert await world.locked() == {}


async def test_without_an_id_a_call_is_known_by_its_files(world: World) -> None:
    await world.tell("before", "a.py", use="")
    await world.tell("before", "b.py", use="")
    await world.tell("after", "b.py", use="")
    assert await world.locked() == {ONE: ["a.py"]}


async def test_a_call_over_two_workspaces_holds_and_gives_back_in_both(world: World) -> None:
    await world.tell("before", "a.py", str(world.lib / "b.py"))
    assert await world.locked() == {ONE: ["a.py", "b.py"]}
    await world.tell("after", "a.py", str(world.lib / "b.py"))
    assert await world.locked() == {}


async def test_who_is_denied_in_one_workspace_holds_nothing_in_the_other(world: World) -> None:
    await world.hold("cursor/1", "b.py", "lib")
    assert (await world.tell("before", "a.py", str(world.lib / "b.py"))).deny is not None
    assert await world.locked() == {"cursor/1": ["b.py"]}


async def test_a_denied_call_leaves_what_it_shared_to_the_others(world: World) -> None:
    await world.tell("before", "a.py", use="toolu_1")
    await world.hold("cursor/1", "b.py", "lib")
    assert (await world.tell("before", "a.py", str(world.lib / "b.py"), use="toolu_2")).deny is not None
    assert await world.locked() == {ONE: ["a.py"], "cursor/1": ["b.py"]}
    await world.tell("after", "a.py", use="toolu_1")
    assert await world.locked() == {"cursor/1": ["b.py"]}


async def test_the_end_of_a_session_is_that_of_its_sub_agents(world: World) -> None:
    await world.tell("before", "a.py")
    await world.tell("before", "b.py", agent="agent-0000000a")
    await world.tell("before", "c.py", session="session-00000002")
    await world.tell("answer")
    assert await world.locked() == {f"{ONE}/0000000a": ["b.py"], OTHER: ["c.py"]}, "a turn ends no sub-agent"
    await world.tell("end")
    assert await world.locked() == {OTHER: ["c.py"]}
    assert list(world.hooks.names()) == [OTHER]


async def test_files_outside_of_all_workspaces_need_no_lock(world: World, tmp_path: Path) -> None:
    assert await world.tell("before", str(tmp_path / "elsewhere.py"), "../out.py") == (None, None, None)
    assert await world.locked() == {}
    await world.tell("after", str(tmp_path / "elsewhere.py"))
    assert world.events("file.changed") == []


async def test_a_call_without_a_session_is_nobodys(world: World) -> None:
    for session in ("", " ", "///"):
        assert await world.tell("before", "a.py", session=session) == (None, None, None)
    assert await world.locked() == {} and not world.hooks.names()


async def test_so_many_locks_as_are_remembered(world: World) -> None:
    for number in range(HOLDS_MAX + 1):
        await world.tell("before", f"{number}.py", use=f"toolu_{number}")
    await world.tell("answer")
    assert await world.locked() == {ONE: ["0.py"]}, "the oldest is forgotten, and its lease ends by itself"


async def test_after_a_restart_a_finished_call_finds_its_lock(tmp_path: Path) -> None:
    log = FaultyLog()
    async with hooks_over(log, tmp_path) as before:
        await before.tell("before", "a.py", use="toolu_1")
        await before.tell("before", "b.py", use="toolu_2")
    async with hooks_over(log, tmp_path) as world:
        await world.tell("after", "a.py", use="toolu_9")
        await world.tell("after", "a.py", use="toolu_1", session="session-00000002")
        assert await world.locked() == {ONE: ["a.py", "b.py"]}
        await world.tell("after", "a.py", use="toolu_1")
        assert await world.locked() == {ONE: ["b.py"]}


async def test_a_full_or_broken_log_keeps_nobody_from_writing(world: World) -> None:
    world.log.fails = lambda: True
    answer = await world.tell("before", "a.py")
    assert answer.deny is None and answer.notice is not None and answer.notice.startswith("Herdr: ")
    for kind in ("after", "prompt", "answer", "end"):
        assert (await world.tell(kind, "a.py", text="x")).deny is None
