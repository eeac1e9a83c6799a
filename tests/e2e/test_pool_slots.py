"""Whose prompt is kept where: slots, eviction with save and restore, prewarming, and which backend a name means."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fake_llama import FakeLlama, Script
from gateway import GatewayProcess
from model_clients import CHAT, CLIENTS, COMPLETIONS, MESSAGES, Client
from model_gateway import (
    backend,
    configured,
    last,
    model_gateway,
    pool,
    row,
    slot_of,
    slots,
    told,
    until_running,
    wait_for_rest,
)
from wire import health, wait_until

SERVERS = {  # each test has a server of its own behind the one gateway, so that its slots are cold
    "keeps": 3,
    "side": 2,
    "bound": 4,
    "anonymous": 4,
    "twins": 4,
    "restart": 4,
    "silent": 4,
    "gone": 2,
    "spill": 1,
    "files": 1,
    "urgent": 1,
    "small": 1,
    "exact": 1,
    "glob": 1,
    "default": 1,
}
ENGINEER, TESTER = ("You write programs. " + "word " * 300, "You test programs. " + "test " * 300)
SESSION = "11111111-2222-4333-8444-555555555555"
NAMES = {"gpt-4": "exact", "gpt-*": "glob", "*": "default"}


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[GatewayProcess, dict[str, FakeLlama]]]:
    with ExitStack() as stack:
        fakes = {name: stack.enter_context(FakeLlama(count)) for name, count in SERVERS.items()}
        fakes["liar"] = stack.enter_context(FakeLlama(1, restores=False))
        fakes["mute"] = stack.enter_context(FakeLlama(1, slot_files=False))
        names = {**{name: name for name in fakes}, **NAMES}
        folder = tmp_path_factory.mktemp("slots")
        yield stack.enter_context(model_gateway(folder, fakes, names=names)), fakes


class Agent:
    """One agent's conversation with one backend, turn by turn."""

    def __init__(
        self,
        house: "House",
        system: str = "",
        client: Client = CHAT,
        headers: dict[str, str] | None = None,
        **more: object,
    ) -> None:
        self.house = house
        self.turns: list[str] = []
        self.client = client
        self.headers = headers or {}
        self.more = {"system": system, "model": house.name, **more}

    def say(self, text: str) -> int:
        """Take a turn; returns the slot that it ran in."""
        self.turns.append(text)
        whole = self.client.streamed(self.house.gateway, *self.turns, headers=self.headers, **self.more)
        self.turns.append(self.client.text(whole))
        assert self.client.tokens(whole)[1] == self.house.newest_cached
        slot = last(self.house.fake).slot
        assert slot is not None
        return slot


class House:
    """A test's own server behind the gateway."""

    def __init__(self, gateway: GatewayProcess, fakes: dict[str, FakeLlama], name: str) -> None:
        self.gateway = gateway
        self.fakes = fakes
        self.fake = fakes[name]
        self.name = name

    @property
    def newest_cached(self) -> int:
        return last(self.fake).cached

    def agent(self, name: str, system: str = "", **more: object) -> Agent:
        return Agent(self, system, headers={"x-agent-id": name}, **more)  # type: ignore[arg-type]

    def is_warm(self) -> bool:
        """Whether the newest request evaluated no more than one turn's tokens."""
        newest = last(self.fake)
        return newest.prompt_tokens - newest.cached < 40 < newest.cached


@pytest.fixture
def house(
    request: pytest.FixtureRequest, servers: tuple[GatewayProcess, dict[str, FakeLlama]]
) -> Iterator[House]:
    gateway, fakes = servers
    fake = fakes[request.param]
    fake.script(Script(["Hel", "lo", "!"]))
    yield House(gateway, fakes, request.param)
    fake.release()
    wait_for_rest(gateway, request.param)
    assert fake.violations == []
    assert not [line for line in gateway.log if "Traceback" in line]


def at(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("house", [name], indirect=True, ids=[""])


# -- slots --------------------------------------------------------------------------------------------------


@at("keeps")
def test_agents_and_a_sub_agent_keep_their_slots_over_turns(house: House) -> None:
    session = {"x-claude-code-session-id": SESSION}
    main = Agent(house, ENGINEER, MESSAGES, session, **MESSAGES.tools())
    sub = Agent(
        house, ENGINEER, MESSAGES, {**session, "x-claude-code-agent-id": "explorer"}, **MESSAGES.tools()
    )
    other = house.agent("other", TESTER)
    homes = [agent.say("first") for agent in (main, other, sub)]
    assert set(homes) == {0, 1, 2}
    for turn in ("second", "third"):
        for agent, home in zip((main, other, sub), homes, strict=True):
            assert agent.say(turn) == home and house.is_warm()
    assert slot_of(house.gateway, SESSION, house.name) == [homes[0]]
    assert slot_of(house.gateway, f"{SESSION}/explorer", house.name) == [homes[2]]


@at("side")
def test_side_calls_leave_the_conversation_its_slot(house: House) -> None:
    session = {"x-session-id": "opencode-1"}
    main = Agent(house, ENGINEER, COMPLETIONS, session, **COMPLETIONS.tools())
    home = main.say("first")
    for number in range(3):
        title = Agent(house, f"Find a title, {number}", COMPLETIONS, session)
        probe = Agent(house, client=MESSAGES, headers={"x-agent-id": "opencode-1"}, max_tokens=1)
        assert title.say("title?") != home and probe.say("quota") != home
        assert main.say("more") == home and house.is_warm()


@at("bound")
def test_an_agent_has_two_slots_and_never_takes_anothers(house: House) -> None:
    other = house.agent("other", "I was here first")
    home = other.say("Hi")
    one = house.agent("greedy", "one").say("Hi")
    two = house.agent("greedy", "two").say("Hi")
    assert len({home, one, two}) == 3
    assert house.agent("greedy", "three").say("Hi") in (one, two)
    assert len(slot_of(house.gateway, "greedy", house.name)) == 2
    assert other.say("again") == home


@at("anonymous")
def test_clients_without_identity_are_told_apart_by_what_they_continue(house: House) -> None:
    talkers = [Agent(house, ENGINEER) for _ in range(4)]
    homes = [talker.say(f"I am number {number}") for number, talker in enumerate(talkers)]
    assert set(homes) == {0, 1, 2, 3}, "the bound of two slots is for agents that have a name"
    for talker, home in zip(talkers, homes, strict=True):
        assert talker.say("go on") == home and house.is_warm()


@at("twins")
def test_identical_calls_of_clients_without_identity_run_side_by_side(house: House) -> None:
    house.fake.hold(after=0)
    with ExitStack() as stack:
        twins = [stack.enter_context(CHAT.ask(house.gateway, "Hi", model=house.name)) for _ in range(3)]
        until_running(house.fake, 3)
        assert len({request.slot for request in house.fake.requests}) == 3
        house.fake.release()
        assert [CHAT.text(CHAT.assembled(list(twin.events()))) for twin in twins] == ["Hello!"] * 3


@at("restart")
def test_a_server_that_restarts_with_fewer_slots(house: House) -> None:
    agents = [house.agent(f"agent {number}", ENGINEER) for number in range(4)]
    assert {agent.say("Hi") for agent in agents} == {0, 1, 2, 3}
    house.fake.hold(after=1)
    with CHAT.ask(house.gateway, "Hi", model=house.name) as broken:
        assert next(broken.events()).name == "message.start"
        until_running(house.fake, 1)
        house.fake.restart(slots=2)
        assert CHAT.failure(list(broken.events()))
    house.fake.release()
    wait_until(lambda: len(slots(house.gateway, house.name)) == 2, "the new number of slots")
    assert all(slot["cached_tokens"] == 0 for slot in slots(house.gateway, house.name))
    for agent in agents:
        assert agent.say("Are you there?") in (0, 1)
    assert backend(house.gateway, house.name)["state"] == "ready"


@at("silent")
def test_a_server_that_was_started_anew_while_nobody_asked(house: House) -> None:
    agents = [house.agent(f"agent {number}", ENGINEER) for number in range(4)]
    assert {agent.say("Hi") for agent in agents} == {0, 1, 2, 3}
    house.fake.restart(slots=2)
    wait_until(
        lambda: all(slot["idle_s"] > 2 for slot in slots(house.gateway, house.name)),
        "it to be silent for long",
    )
    for agent in agents:
        assert agent.say("Are you there?") in (0, 1)
    assert len(slots(house.gateway, house.name)) == 2


@at("gone")
def test_a_server_that_comes_back_with_more_slots(house: House) -> None:
    agent = house.agent("agent", ENGINEER)
    agent.say("Hi")
    house.fake.stop()
    with CHAT.ask(house.gateway, "Hi", model=house.name) as asking:
        assert asking.answer().status == 502
    seen = backend(house.gateway, house.name)
    assert seen["state"] == "unreachable" and house.fake.url in seen["detail"]
    assert health(house.gateway)["status"] == "degraded"
    house.fake.restart(slots=3)
    wait_until(lambda: backend(house.gateway, house.name)["state"] == "ready", "its return")
    assert len(slots(house.gateway, house.name)) == 3
    assert health(house.gateway)["status"] == "ok"
    agent.say("Hi again")
    assert house.newest_cached == 0


# -- save and restore ---------------------------------------------------------------------------------------


@at("spill")
def test_who_lost_its_slot_gets_its_prompt_back_from_a_file(house: House) -> None:
    one, two = house.agent("one", ENGINEER), house.agent("two", TESTER)
    one.say("Hi")
    two.say("Hi")
    assert house.newest_cached < 40
    one.say("again")
    assert house.is_warm()
    two.say("again")
    assert house.is_warm()
    kinds = [(action, slot) for action, slot, _ in house.fake.actions]
    assert kinds == [("save", 0), ("save", 0), ("restore", 0), ("save", 0), ("restore", 0)]
    files = [file for _, _, file in house.fake.actions]
    assert files[0] == files[2] != files[1] == files[4]
    assert backend(house.gateway, house.name)["restores"] is True


@at("files")
def test_there_are_at_most_two_files_a_slot(house: House) -> None:
    for number in range(5):
        house.agent(f"agent {number}", f"{number} {ENGINEER}").say("Hi")
    assert len(house.fake.files) == 2
    assert house.fake.asked["/slots/0"] == 4


@at("urgent")
def test_nothing_is_saved_while_an_urgent_call_waits(house: House) -> None:
    house.agent("one", ENGINEER).say("Hi")
    urgent = {"x-agent-id": "urgent", "x-priority": "2"}
    Agent(house, TESTER, headers=urgent).say("Hi")
    assert house.fake.actions == []


@at("small")
def test_a_short_prompt_is_not_worth_a_file(house: House) -> None:
    house.agent("one", "brief").say("Hi")
    house.agent("two", "brief too").say("Hi")
    assert house.fake.actions == []


@at("liar")
def test_a_server_that_says_restored_and_did_not_is_not_trusted_again(house: House) -> None:
    one, two = house.agent("one", ENGINEER), house.agent("two", TESTER)
    one.say("Hi")
    two.say("Hi")
    one.say("again")
    assert [action for action, _, _ in house.fake.actions] == ["save", "save", "restore"]
    assert house.newest_cached == 0
    wait_for_rest(house.gateway, house.name)
    assert backend(house.gateway, house.name)["restores"] is False
    wait_until(lambda: "liar restored" in told(house.gateway), "the log to say so")
    two.say("again")
    one.say("and again")
    assert len(house.fake.actions) == 3, "it was asked to save or to restore again"


@at("mute")
def test_a_server_that_cannot_save_is_asked_once(house: House) -> None:
    one, two = house.agent("one", ENGINEER), house.agent("two", TESTER)
    for turn in ("Hi", "again", "and again"):
        one.say(turn)
        two.say(turn)
    assert house.fake.asked["/slots/0"] == 1


# -- which backend ------------------------------------------------------------------------------------------


@at("default")
def test_exact_names_come_before_globs_and_globs_before_the_default(house: House) -> None:
    for model, name in (("gpt-4", "exact"), ("gpt-5", "glob"), ("claude-9", "default")):
        house.fakes[name].script(Script([name]))
        for client in CLIENTS:
            assert client.text(client.whole(house.gateway, "Hi", model=model)) == name
            assert last(house.fakes[name]).body["model"] == model


def test_a_fallback_takes_over_while_a_backend_is_away(tmp_path: Path) -> None:
    with FakeLlama(1) as good, FakeLlama(1) as tiny:
        good.script(Script(["from the other"]))
        tiny.script(Script(["from the small one"]))
        servers = {
            "away": {"kind": "llamacpp", "url": "http://127.0.0.1:9", "fallback": "good"},
            "good": good,
            "tiny": {"kind": "llamacpp", "url": tiny.url, "model": "tiny.gguf"},
        }
        short = {"backend": "tiny", "prompt_max": 30}
        gateway = configured(tmp_path, servers, short=short).start()
        try:
            for name in ("good", "tiny"):
                wait_until(lambda name=name: backend(gateway, name)["state"] == "ready", "the backend")
            wait_until(lambda: backend(gateway, "away")["state"] == "unreachable", "the bad news")
            long = "word " * 300
            for client in CLIENTS:
                whole = client.whole(gateway, long, model="away")
                assert client.text(whole) == "from the other"
            with CHAT.ask(gateway, long, model="away", stream=False) as asking:
                assert row(gateway, asking.header("x-herdr-call"))["backend"] == "good"
            # A short request without tools goes to the small model, under its own name; with tools it does not.
            assert CHAT.text(CHAT.whole(gateway, "Hi", model="good")) == "from the small one"
            assert last(tiny).body["model"] == "tiny.gguf"
            assert CHAT.text(CHAT.whole(gateway, "Hi", model="good", **CHAT.tools())) == "from the other"
            assert CHAT.text(CHAT.whole(gateway, long, model="good")) == "from the other"
        finally:
            gateway.kill()


# -- prewarming ---------------------------------------------------------------------------------------------


def test_prompts_are_warm_before_anybody_asks(tmp_path: Path) -> None:
    plain, request = tmp_path / "engineer.txt", tmp_path / "tester.json"
    plain.write_text(ENGINEER)
    turns = [{"role": "system", "content": TESTER}, {"role": "user", "content": "."}]
    request.write_text(json.dumps({"messages": turns}))
    with FakeLlama(2) as fake:
        prewarm = [str(plain), str(request)]
        with model_gateway(tmp_path, {"local": fake}, prewarm=prewarm) as gateway:
            fake.until(lambda: sum(one.state == "done" for one in fake.requests) == 2)
            wait_for_rest(gateway)
            assert [one.body["max_tokens"] for one in fake.requests] == [1, 1]
            warmed = {one.slot for one in fake.requests}
            assert warmed == {0, 1}
            assert all(seen["state"] == "free" and seen["cached_tokens"] > 300 for seen in slots(gateway))
            for name, system in (("engineer", ENGINEER), ("tester", TESTER)):
                whole = CHAT.whole(gateway, "Hello", system=system, headers={"x-agent-id": name})
                assert CHAT.tokens(whole)[1] > 300, f"{name}'s prompt was cold"
            assert not slot_of(gateway, "prewarm")
            assert [seen["state"] for seen in slots(gateway)] == ["warm", "warm"]
            assert fake.violations == []
            assert pool(gateway)["backends"][0]["queue"]["total"] == 0
