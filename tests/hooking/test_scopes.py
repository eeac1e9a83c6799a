"""What a hook does whose token may not do everything: the rest, and it says what is missing."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from buses import FaultyLog
from hook_parts import ALL, ONE, World, hooks_over

from herdr.hooks.call import Kind


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with hooks_over(FaultyLog(), tmp_path) as world:
        yield world


async def test_without_locks_an_edit_goes_on_without_a_lock_and_with_a_word(world: World) -> None:
    await world.hold("cursor/1", "a.py")
    answer = await world.tell("before", "a.py", scopes=("events:publish",))
    assert answer.deny is None and answer.notice is not None
    assert "lacks locks;" in answer.notice and "auth.tokens" in answer.notice
    assert await world.locked() == {"cursor/1": ["a.py"]}


@pytest.mark.parametrize("kind", ["after", "undone", "answer", "prompt", "end"])
async def test_who_may_not_lock_gives_nothing_back(world: World, kind: Kind) -> None:
    await world.tell("before", "a.py")
    await world.tell(kind, "a.py", scopes=("events:publish", "events:follow"))
    assert await world.locked() == {ONE: ["a.py"]}


async def test_who_may_lock_but_not_publish_gives_back_and_says_so(world: World) -> None:
    await world.tell("before", "a.py", scopes=("locks",))
    answer = await world.tell("after", "a.py", scopes=("locks",))
    assert answer.notice is not None and "lacks events:publish;" in answer.notice
    assert await world.locked() == {} and world.events("file.changed") == []


@pytest.mark.parametrize("kind", ["prompt", "answer", "compacted"])
async def test_what_was_said_needs_the_scope_of_publishing(world: World, kind: Kind) -> None:
    answer = await world.tell(kind, text="hello", scopes=("locks", "events:follow"))
    assert answer.notice is not None and "lacks events:publish;" in answer.notice
    assert world.events("user.message") + world.events("assistant.message") == []


async def test_news_need_the_scope_of_following(world: World) -> None:
    await world.tell("prompt", text="one")
    await world.publish("file.changed", "cursor/1", "b.py")
    answer = await world.tell("prompt", text="two", scopes=("locks", "events:publish"))
    assert answer == (None, None, None)
    answer = await world.tell("prompt", text="three")
    assert answer.context == "Herdr: Changed by others meanwhile: b.py (by cursor/1)."


@pytest.mark.parametrize("kind", ["before", "after"])
async def test_nothing_is_said_of_what_needs_no_scope(world: World, kind: Kind, tmp_path: Path) -> None:
    for paths in ((), (str(tmp_path / "elsewhere.py"),)):
        assert (await world.tell(kind, *paths, scopes=())).notice is None
    assert (await world.tell("answer", scopes=())).notice is None


async def test_with_all_scopes_nothing_is_missing(world: World) -> None:
    for kind in ("before", "after", "prompt", "answer", "compacted", "end"):
        assert (await world.tell(kind, "a.py", text="x", scopes=ALL)).notice is None
