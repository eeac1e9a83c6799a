"""Who joins whose generation, and when it ends: the real process in front of servers that hold requests."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from fake_llama import FakeLlama
from gateway import GatewayProcess
from model_clients import CHAT, CLIENTS, COMPLETIONS, MESSAGES, Client
from model_desk import Desk, at, at_desk, heard, let_it_notice, serve
from model_gateway import (
    backend,
    last,
    model_gateway,
    wait_for_rest,
)
from wire import wait_until

SERVERS = {  # each test has a server of its own behind the one gateway, so that its slots are cold
    "join": 2,
    "raise": 1,
    "keep": 1,
    "leave": 2,
    "retry": 2,
}
EACH = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@pytest.fixture(scope="module")
def patient(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[GatewayProcess, dict[str, FakeLlama]]]:
    """A gateway that lets calls wait for longer than any test takes."""
    with ExitStack() as stack:
        fakes = serve(stack, SERVERS)
        folder = tmp_path_factory.mktemp("joins")
        yield (
            stack.enter_context(model_gateway(folder, fakes, queue_timeout_s=300, affinity_wait_s=300)),
            fakes,
        )


@pytest.fixture
def desk(
    request: pytest.FixtureRequest, patient: tuple[GatewayProcess, dict[str, FakeLlama]]
) -> Iterator[Desk]:
    """The test's own server, named by its parameter, with requests held before their first word."""
    name = request.param
    gateway, fakes = patient
    with at_desk(gateway, fakes[name], name) as desk:
        yield desk


@at("join")
@EACH
def test_identical_calls_share_one_generation(desk: Desk, client: Client) -> None:
    text = f"for {client.name}"
    desk.fake.hold(after=1)
    before = len(desk.fake.requests)
    first = desk.ask(text, MESSAGES, agent="one", temperature=0)
    events = first.events()
    seen = [next(events)]
    while MESSAGES.heard(seen) != "Hel":
        seen.append(next(events))
    more = {} if client is MESSAGES else {"max_tokens": 100}
    late = desk.ask(text, client, agent="two", temperature=0, **more)
    stream = late.events()
    came = [next(stream)]
    while client.heard(came) != "Hel":  # from the beginning, although it came late
        came.append(next(stream))
    whole = desk.ask(text, client, agent="three", temperature=0, stream=False, **more)
    assert late.header("x-herdr-call") == first.header("x-herdr-call")
    desk.fake.release()
    assert MESSAGES.text(MESSAGES.assembled([*seen, *events])) == "Hello!"
    assert client.text(client.assembled([*came, *stream])) == "Hello!"
    assert client.text(whole.answer().json()) == "Hello!"
    assert len(desk.fake.requests) == before + 1


@at("join")
def test_only_calls_that_must_be_answered_alike_are_joined(desk: Desk) -> None:
    before = len(desk.fake.requests)
    desk.run("Hi", agent="one", temperature=0)
    desk.run("Hi", agent="two")  # the model's own temperature: two clients want two answers
    assert len(desk.fake.requests) == before + 2
    other = [
        desk.queue("Hi", agent="three", temperature=0.5),
        desk.queue("Hi", agent="four", temperature=0, max_tokens=7),
        desk.queue("Hi", agent="five", temperature=0, seed=1),
        desk.queue("Hi", agent="six", temperature=0, **CHAT.tools()),
    ]
    desk.fake.release()
    assert [heard(one) for one in other] == ["Hello!"] * 4


@at("raise")
def test_a_joined_call_has_the_better_priority_of_the_two(desk: Desk) -> None:
    desk.run("running")
    low = desk.queue("shared", agent="one", priority=9, temperature=0)
    other = desk.queue("other", priority=5)
    high = desk.ask("shared", agent="two", priority=0, temperature=0)
    wait_until(
        lambda: backend(desk.gateway, desk.name)["queue"]["by_priority"] == {"0": 1, "5": 1}, "the rise"
    )
    desk.fake.release()
    assert heard(low) == heard(high) == heard(other) == "Hello!"
    assert desk.texts() == ["running", "shared", "other"]


@at("keep")
def test_who_joins_does_not_make_it_less_urgent(desk: Desk) -> None:
    running = desk.run("running")
    high = desk.queue("shared", agent="one", priority=1, temperature=0)
    desk.queue("other", priority=5)
    low = desk.ask("shared", agent="two", priority=9, temperature=0)
    let_it_notice(desk.gateway)
    assert backend(desk.gateway, desk.name)["queue"]["by_priority"] == {"1": 1, "5": 1}
    desk.fake.release()
    assert heard(running) == heard(high) == heard(low) == "Hello!"
    assert low.header("x-herdr-call") == high.header("x-herdr-call")
    assert desk.texts()[:2] == ["running", "shared"]


@at("leave")
def test_a_shared_generation_ends_with_its_last_reader(desk: Desk) -> None:
    desk.fake.hold(after=1)
    first = desk.run("shared", agent="one", temperature=0)
    second = desk.ask("shared", agent="two", temperature=0)
    third = desk.ask("shared", agent="three", temperature=0)
    for one in (first, second, third):
        assert one.status == 200  # so it is in
    (request,) = desk.fake.requests
    first.leave()
    third.leave()
    let_it_notice(desk.gateway)
    assert request.state == "held", "the generation ended although somebody reads"
    second.leave()
    desk.fake.until(lambda: request.state == "cancelled")
    wait_for_rest(desk.gateway, desk.name)


@at("leave")
def test_a_shared_generation_goes_on_when_one_leaves(desk: Desk) -> None:
    desk.fake.hold(after=1)
    first = desk.run("also shared", agent="one", temperature=0)
    second = desk.ask("also shared", agent="two", temperature=0)
    assert first.status == second.status == 200
    first.leave()
    let_it_notice(desk.gateway)
    desk.fake.release()
    assert heard(second) == "Hello!"


@at("leave")
def test_who_leaves_and_asks_again_gets_an_answer(desk: Desk) -> None:
    """The generation that is being cut must not be joined any more."""
    for number in range(10):
        text = f"once more {number}"
        desk.fake.hold(after=1)
        desk.run(text, agent="restless", temperature=0).leave()
        held = last(desk.fake)
        desk.fake.until(lambda held=held: held.state == "cancelled")
        desk.fake.release()
        assert heard(desk.ask(text, agent="restless", temperature=0)) == "Hello!"


@at("retry")
def test_above_temperature_0_a_marked_retry_joins(desk: Desk) -> None:
    desk.fake.hold(after=1)
    first = desk.run("please", client=COMPLETIONS, agent="one", temperature=1)
    again = desk.ask("please", COMPLETIONS, agent="one", temperature=1, retry=1)
    assert again.header("x-herdr-call") == first.header("x-herdr-call")
    desk.run("please", client=COMPLETIONS, agent="two", temperature=1, retry=1)  # another client's is another
    assert len(desk.fake.requests) == 2
    desk.fake.release()
    assert heard(first, COMPLETIONS) == heard(again, COMPLETIONS) == "Hello!"


@at("retry")
def test_claude_code_asking_again_without_streaming_joins(desk: Desk) -> None:
    desk.fake.hold(after=1)
    before = len(desk.fake.requests)
    first = desk.run("go on", client=MESSAGES, agent="one")
    again = desk.ask("go on", MESSAGES, agent="one", stream=False)
    let_it_notice(desk.gateway)
    desk.fake.release()
    assert MESSAGES.text(again.answer().json()) == heard(first, MESSAGES) == "Hello!"
    assert len(desk.fake.requests) == before + 1
