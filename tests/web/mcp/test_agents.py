import secrets
from collections.abc import Callable

import msgspec
import pytest

from herdr.errors import HerdrError, LogUnavailable
from herdr.web.auth import ANYONE, Caller
from herdr.web.mcp import agents as module
from herdr.web.mcp.agents import Agent, Agents
from herdr.web.mcp.server import new_handle

TOKEN = Caller("laptop", frozenset({"locks"}))


class Kept:
    """What the log would keep."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.fails = False

    async def remember(self, kind: str, key: str, value: bytes | None) -> None:
        if self.fails:
            raise LogUnavailable("the disk is full")
        assert kind == "agent"
        if value is None:
            del self.values[key]
        else:
            self.values[key] = value


class Ticking:
    def __init__(self) -> None:
        self.now = 0

    def wall_us(self) -> int:
        self.now += 1
        return self.now

    def monotonic(self) -> float:
        return 0.0


def counting() -> Callable[[], str]:
    numbers = iter(range(10_000))
    return lambda: f"{next(numbers):04}handle"


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def agents(kept: Kept) -> Agents:
    return Agents({}, kept.remember, counting(), Ticking())


async def test_a_tools_name_gets_an_end_of_its_own(agents: Agents) -> None:
    names = [(await agents.register(ANYONE, "cursor", None, None)).name for _ in range(2)]
    assert names == ["cursor/0000", "cursor/0001"]
    long = await agents.register(ANYONE, "x" * 128, None, None)
    assert len(long.name) == 128 and long.name.endswith("x/0002")


async def test_a_whole_name_is_one_agent_which_keeps_what_it_said(agents: Agents) -> None:
    first = await agents.register(ANYONE, "codex/1", "shop", "s1")
    again = await agents.register(ANYONE, "codex/1", None, "s2")
    assert again.handle == first.handle
    who = agents.find(first.handle, ANYONE)
    assert (who.name, who.workspace, who.session) == ("codex/1", "shop", "s2")


async def test_a_handle_is_its_tokens_own(agents: Agents) -> None:
    mine = await agents.register(TOKEN, "codex/1", None, None)
    assert agents.find(mine.handle, TOKEN).named() == "codex/1"
    with pytest.raises(HerdrError, match="call the tool `register` again") as caught:
        agents.find(mine.handle, ANYONE)
    assert caught.value.code == "unknown_agent"
    assert (await agents.register(ANYONE, "codex/1", None, None)).handle != mine.handle


def test_without_a_handle_one_goes_by_the_tokens_name_or_none(agents: Agents) -> None:
    assert agents.find(None, TOKEN).named() == "laptop"
    with pytest.raises(HerdrError, match="call the tool `register` first") as caught:
        agents.find(None, ANYONE).named()
    assert caught.value.code == "no_agent"


async def test_what_was_registered_survives_a_restart(agents: Agents, kept: Kept) -> None:
    mine = await agents.register(ANYONE, "codex", "shop", "s1")
    again = Agents(kept.values, kept.remember, counting(), Ticking())
    who = again.find(mine.handle, ANYONE)
    assert (who.name, who.workspace, who.session) == (mine.name, "shop", "s1")


async def test_what_the_log_does_not_take_is_not_registered(agents: Agents, kept: Kept) -> None:
    kept.fails = True
    with pytest.raises(LogUnavailable):
        await agents.register(ANYONE, "codex", None, None)
    with pytest.raises(HerdrError):
        agents.find("0000handle", ANYONE)


async def test_the_one_that_was_used_longest_ago_goes(
    agents: Agents, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGENTS_MAX", 2)
    first, second = [await agents.register(ANYONE, name, None, None) for name in ("a/1", "b/1")]
    agents.find(first.handle, ANYONE)
    third = await agents.register(ANYONE, "c/1", None, None)
    assert set(kept.values) == {first.handle, third.handle}
    with pytest.raises(HerdrError):
        agents.find(second.handle, ANYONE)


async def test_after_a_restart_the_one_that_registered_first_goes(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGENTS_MAX", 2)
    stored = {
        name: msgspec.json.encode(Agent(name, f"{name}/1", ANYONE.name, since_us=since))
        for name, since in (("young", 2), ("old", 1))
    }
    kept.values.update(stored)
    agents = Agents(stored, kept.remember, counting(), Ticking())
    await agents.register(ANYONE, "new", None, None)
    assert set(kept.values) == {"young", "0000handle"}


def test_handles_are_short_and_easily_copied() -> None:
    assert new_handle(lambda bits: 0) == "a" * 10
    made = {new_handle(secrets.randbits) for _ in range(1000)}
    assert len(made) == 1000 and all(len(one) == 10 and one.isalnum() and one.islower() for one in made)
