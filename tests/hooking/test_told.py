"""What a tool is told in the answers to its hooks: once, where it can hear it, and only of others."""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from buses import FaultyLog
from hook_parts import ONE, WATCHER, World, hooks_over

from herdr.bus.inbox import WAITING_MAX
from herdr.event import Draft, Receipt
from herdr.hooks.call import Kind
from herdr.hooks.words import CONTEXT_MAX, NEWS_SAID


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with hooks_over(FaultyLog(), tmp_path) as world:
        yield world


async def greet(world: World) -> None:
    """Have the usual session introduced, so that what it is told next is news."""
    assert ONE in str((await world.tell("prompt")).context)


def written(world: World, path: str, text: str) -> str:
    (world.shop / path).write_text(text)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize("kind", ["start", "prompt", "after"])
async def test_a_model_learns_its_name_once(world: World, kind: Kind) -> None:
    answer = await world.tell(kind)
    assert answer.context is not None and f"`{ONE}`" in answer.context and "`shop`" in answer.context
    assert (await world.tell(kind)).context is None


async def test_where_a_tool_cannot_hear_nothing_is_used_up(world: World) -> None:
    assert await world.tell("prompt", hears=False) == (None, None, None)
    await world.publish("file.changed", "cursor/1", "b.py")
    await world.announce("handoff.asked", ONE, task="vat", title="Add VAT", by="coder/1")
    assert await world.tell("prompt", hears=False) == (None, None, None)
    told = (await world.tell("after")).context
    assert told is not None
    assert f"`{ONE}`" in told and "b.py (by cursor/1)" in told
    await world.announce("handoff.asked", ONE, task="vat", title="Add VAT", by="coder/1")
    assert await world.tell("after", hears=False) == (None, None, None)
    assert (await world.tell("after")).context == "Herdr: Task vat (Add VAT): asked, by coder/1."


async def test_one_hears_of_what_others_changed_and_not_of_ones_own(world: World) -> None:
    await greet(world)
    written(world, "a.py", "1")
    await world.tell("after", "a.py")
    await world.publish("file.changed", ONE, "a.py")
    await world.publish("file.changed", "cursor/1", "b.py")
    told = (await world.tell("prompt")).context
    assert told == "Herdr: Changed by others meanwhile: b.py (by cursor/1)."
    assert (await world.tell("prompt")).context is None


async def test_what_the_watcher_saw_of_ones_own_write_is_no_news_and_a_hand_edit_is(world: World) -> None:
    await greet(world)
    mine = written(world, "a.py", "1")
    await world.tell("after", "a.py")
    await world.publish("file.changed", WATCHER, "a.py", hash=mine)
    assert (await world.tell("prompt")).context is None
    await world.publish("file.changed", WATCHER, "a.py", hash="sha256:" + "0" * 64)
    told = (await world.tell("prompt")).context
    assert told == "Herdr: Changed by others meanwhile: a.py (by a write that no tool reported)."


async def test_without_a_hash_a_watchers_word_on_ones_own_file_is_ones_own(world: World) -> None:
    await greet(world)
    await world.tell("after", "a.py")
    await world.publish("file.changed", WATCHER, "a.py", hash=None)
    assert (await world.tell("prompt")).context is None


async def test_many_files_at_once_are_told_of_too(world: World) -> None:
    await greet(world)
    await world.publish("files.changed", "cursor/1", paths=["b.py", "c.py"], count=2, cause="rate")
    told = (await world.tell("prompt")).context
    assert told == "Herdr: Changed by others meanwhile: b.py (by cursor/1), c.py (by cursor/1)."


def signature(path: str, **more: Any) -> dict[str, Any]:
    return {"symbol": f"{path}::total", "old": "total(a)", "new": "total(a, b)", "callers": ["c.py"], **more}


async def test_a_signature_is_told_with_its_callers_unless_it_is_ones_own(world: World) -> None:
    await greet(world)
    await world.tell("after", "a.py")
    await world.announce("context.changed", signatures=[signature("a.py"), signature("b.py")])
    told = (await world.tell("prompt")).context
    assert told == "Herdr: b.py::total is now `total(a, b)` (was `total(a)`); called in c.py."


async def test_in_a_file_of_ones_own_anothers_signature_is_told(world: World) -> None:
    await greet(world)
    await world.tell("after", "a.py")
    world.events("file.changed")  # lets go of what is held back
    await world.publish("file.changed", "cursor/1", "a.py")
    await world.announce("context.changed", signatures=[signature("a.py")])
    told = str((await world.tell("prompt")).context)
    assert "a.py (by cursor/1)" in told and "a.py::total is now" in told


@pytest.mark.parametrize("odd", [None, 5, "x", {}, [], {"signatures": 5}, {"signatures": []}, {"paths": "a"}])
async def test_odd_payloads_change_nothing(world: World, odd: Any) -> None:
    await greet(world)
    event = world.bus.publisher.own_event("context.changed", odd, workspace="shop")
    many = world.bus.publisher.own_event("files.changed", odd, workspace="shop")
    await world.bus.publisher.record([event, many])
    assert (await world.tell("prompt")).context is None


async def test_a_write_past_ones_lock_is_told_with_who_did_it(world: World) -> None:
    await greet(world)
    await world.announce("conflict.detected", ONE, status="unlocked", by="cursor/1", paths=["a.py"])
    assert (await world.tell("prompt")).context == "Herdr: Conflict on a.py: unlocked, written by cursor/1."


async def test_what_waits_comes_a_few_at_a_time_and_says_how_much_is_left(world: World) -> None:
    await greet(world)
    for number in range(NEWS_SAID + 2):
        await world.announce("handoff.asked", ONE, task=f"t{number}", title="x", by="y")
    first = str((await world.tell("prompt")).context)
    assert f"Task t{NEWS_SAID - 1} " in first and f"Task t{NEWS_SAID} " not in first
    assert first.endswith("2 more events are waiting.")
    rest = str((await world.tell("prompt")).context)
    assert f"Task t{NEWS_SAID} " in rest and f"Task t{NEWS_SAID + 1} " in rest and "waiting" not in rest


async def test_what_was_too_much_to_be_kept_is_told(world: World) -> None:
    await greet(world)
    for number in range(WAITING_MAX + 3):
        await world.announce("handoff.asked", ONE, task=f"t{number}", title="x", by="y")
    assert "3 older events for this agent were too many" in str((await world.tell("prompt")).context)
    assert "too many" not in str((await world.tell("prompt")).context)


async def test_an_inbox_that_fails_costs_only_itself(world: World) -> None:
    await greet(world)
    await world.publish("file.changed", "cursor/1", "b.py")
    await world.announce("handoff.asked", ONE, task="vat", title="x", by="y")
    world.log.fails = lambda: True
    answer = await world.tell("prompt")
    world.log.fails = lambda: False
    assert answer.deny is None and "b.py" in str(answer.context)


async def test_a_context_is_bounded_whatever_others_do(world: World) -> None:
    await greet(world)
    for number in range(40):
        await world.publish("file.changed", "cursor/1", f"{number}{'x' * 4000}.py")
    told = (await world.tell("prompt")).context
    assert told is not None and len(told) <= CONTEXT_MAX


async def test_an_unwatched_folder_is_told_of_once(world: World, tmp_path: Path) -> None:
    elsewhere = {"cwd": str(tmp_path / "elsewhere")}
    answer = await world.tell("start", **elsewhere)
    assert answer.context is None and f"herdr workspace add {elsewhere['cwd']}" in str(answer.notice)
    assert await world.tell("prompt", text="x", **elsewhere) == (None, None, None)
    assert (await world.tell("prompt", cwd=str(tmp_path / "third"))).notice is not None
    assert world.events("user.message") == []


async def test_what_is_said_is_recorded_in_the_session(world: World) -> None:
    await world.tell("prompt", text="Rename it")
    await world.tell("answer", text="Renamed.")
    await world.tell("compacted", text="We renamed it.")
    (asked,), answers = world.events("user.message"), world.events("assistant.message")
    assert asked["priority"] == "P0" and asked["data"] == {"role": "user", "content": "Rename it"}
    assert [e["data"]["content"] for e in answers] == ["Renamed.", "We renamed it."]
    assert [e["tags"] for e in answers] == [[], ["summary"]]
    assert {e["session"] for e in (asked, *answers)} == {"claude-code/session-00000001"}
    assert {e["source"] for e in (asked, *answers)} == {ONE}


@pytest.mark.parametrize("letter", ["x", "\u20ac", "\U0001f600", "\x01"])
async def test_what_is_said_fits_into_an_event(world: World, letter: str) -> None:
    await world.tell("prompt", text=letter * (512 * 1024))
    (event,) = world.log._events.values()
    assert 100_000 < len(event.body) < 1024 * 1024
    (kept,) = world.events("user.message")
    assert set(kept["data"]["content"]) == {letter}


async def test_an_edit_that_could_not_be_recorded_is_told_to_the_user(world: World) -> None:
    async def drop(drafts: list[Draft], source: str) -> list[Receipt]:
        return [Receipt("dropped", "1", reason="overloaded") for _ in drafts]

    world.hooks._around = world.hooks._around._replace(publisher=SimpleNamespace(publish=drop))
    answer = await world.tell("after", "a.py")
    assert "did not record" in str(answer.notice) and ONE in str(answer.context)


async def test_an_edit_has_its_hash_and_its_call(world: World) -> None:
    mine = written(world, "a.py", "1")
    await world.tell("after", "a.py", "gone.py")
    first, second = world.events("file.changed")
    assert first["data"] == {"hash": mine, "tool": "Edit", "tool_use_id": "toolu_1"}
    assert (first["subject"], second["subject"]) == ("a.py", "gone.py")
    assert "hash" not in second["data"]
