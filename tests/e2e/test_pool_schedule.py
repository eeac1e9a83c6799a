"""Who runs next, where and when: the queue of the real process in front of servers that hold requests."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from fake_llama import FakeLlama, Script, rate_limited
from gateway import GatewayProcess
from model_clients import CLIENTS, MESSAGES
from model_desk import Desk, at, at_desk, heard, serve
from model_gateway import (
    backend,
    last,
    model_gateway,
    row,
    slot_of,
    wait_for_queue,
    wait_for_rest,
    waiting,
)
from wire import wait_until

SERVERS = {  # each test has a server of its own behind the one gateway, so that its slots are cold
    "order": 1,
    "urgent": 1,
    "affinity": 2,
    "background": 4,
    "shares": 4,
    "several": 4,
    "cloud": 4,
}
HASTY = {"timeout": 1, "again": 1, "once": 1, "hasty": 2, "quota": 4}
QUEUE_S = 2  # of the hasty gateway
EACH = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@pytest.fixture(scope="module")
def patient(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[GatewayProcess, dict[str, FakeLlama]]]:
    """A gateway that lets calls wait for longer than any test takes."""
    with ExitStack() as stack:
        fakes = serve(stack, SERVERS)
        servers = {**fakes, "cloud": {"kind": "openai", "url": fakes["cloud"].url}}
        folder = tmp_path_factory.mktemp("patient")
        yield (
            stack.enter_context(model_gateway(folder, servers, queue_timeout_s=300, affinity_wait_s=300)),
            fakes,
        )


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GatewayProcess, dict[str, FakeLlama]]]:
    """A gateway that gives up soon."""
    with ExitStack() as stack:
        fakes = serve(stack, HASTY)
        servers = {**fakes, "quota": {"kind": "openai", "url": fakes["quota"].url}}
        folder = tmp_path_factory.mktemp("hasty")
        yield (
            stack.enter_context(
                model_gateway(folder, servers, queue_timeout_s=QUEUE_S, affinity_wait_s=0.2, ageing_s=300)
            ),
            fakes,
        )


@pytest.fixture
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """The test's own server, named by its parameter, with requests held before their first word."""
    name = request.param
    gateway, fakes = request.getfixturevalue("hasty" if name in HASTY else "patient")
    with at_desk(gateway, fakes[name], name) as desk:
        yield desk


# -- order --------------------------------------------------------------------------------------------------


@at("order")
def test_urgent_calls_first_and_equals_in_their_order(desk: Desk) -> None:
    asked_for = [
        ("first", 5),
        ("nine", 9),
        ("five", 5),
        ("one", 1),
        ("nought", 0),
        ("five too", 5),
        ("default", None),
    ]
    desk.run("first", priority=5)
    asking = [desk.queue(text, priority=priority) for text, priority in asked_for[1:]]
    assert backend(desk.gateway, desk.name)["queue"] == {
        "total": 6,
        "by_priority": {"0": 1, "1": 1, "5": 3, "9": 1},
    }
    assert all(one.is_silent() for one in asking), "headers were sent while it could still become a 503"
    desk.fake.release()
    assert [heard(one) for one in asking] == ["Hello!"] * 6
    assert desk.texts() == ["first", "nought", "one", "five", "five too", "default", "nine"]
    assert int(str(asking[0].header("x-herdr-queue-ms"))) > 0


@at("urgent")
def test_an_urgent_call_waits_for_one_running_generation_at_most(desk: Desk) -> None:
    desk.run("running")
    for number in range(8):
        desk.queue(f"background {number}", priority=9)
    urgent = desk.queue("urgent", priority=0)
    (running,) = desk.fake.requests
    desk.fake.release(running)
    desk.fake.until(lambda: len(desk.fake.requests) == 2 and last(desk.fake).state == "held")
    assert desk.texts() == ["running", "urgent"]
    desk.fake.release(last(desk.fake))
    assert heard(urgent) == "Hello!"
    desk.fake.release()


@at("several")
def test_several_slots_run_at_once(desk: Desk) -> None:
    asking = [desk.run(f"agent {number}") for number in range(4)]
    assert {one.slot for one in desk.fake.requests} == {0, 1, 2, 3}
    late = desk.queue("a fifth")
    third = next(one for one in desk.fake.requests if one.slot == 2)
    desk.fake.release(third)
    desk.fake.until(lambda: len(desk.fake.requests) == 5)
    assert last(desk.fake).slot == 2
    desk.fake.release()
    assert [heard(one) for one in (*asking, late)] == ["Hello!"] * 5
    assert len({one.connection for one in desk.fake.requests}) == 5, "a connection was used again"


# -- waiting too long ---------------------------------------------------------------------------------------


@at("timeout")
def test_who_waits_too_long_is_told_when_to_come_back(desk: Desk) -> None:
    running = desk.run("running")
    asking = [
        (client, desk.ask(f"{client.name} {stream}", client, stream=stream))
        for client in CLIENTS
        for stream in (True, False)
    ]
    wait_for_queue(desk.gateway, len(asking), desk.name)
    for client, one in asking:
        answer = one.answer()
        assert answer.status == 503, answer
        after = answer.headers["retry-after"]
        assert after.isdigit() and 1 <= int(after) <= 60
        kind, message = client.refusal(answer)
        assert kind == {"chat": "queue_timeout", "messages": "api_error"}.get(client.name, "server_error")
        assert desk.name in message and "overloaded_error" not in message
        assert answer.headers["request-id"] == f"req_{answer.headers['x-herdr-call']}"
        assert answer.headers["x-herdr-slot"] == "none"
        assert int(answer.headers["x-herdr-queue-ms"]) >= 1000 * QUEUE_S - 1
        assert row(desk.gateway, answer.headers["x-herdr-call"])["error"] == "queue_timeout"
    assert waiting(desk.gateway, desk.name) == 0
    desk.fake.release()
    assert heard(running) == "Hello!"
    assert desk.texts() == ["running"]


@at("again")
def test_who_comes_back_has_its_old_place(desk: Desk) -> None:
    running = desk.run("running")
    assert desk.ask("patient").answer().status == 503
    younger = desk.queue("younger")
    again = desk.queue("patient")
    desk.fake.release()
    assert [heard(one) for one in (running, younger, again)] == ["Hello!"] * 3
    assert desk.texts() == ["running", "patient", "younger"]


@at("once")
def test_an_old_place_is_good_for_one_return(desk: Desk) -> None:
    running = desk.run("running")
    assert desk.ask("patient").answer().status == 503
    desk.fake.release()
    assert heard(running) == heard(desk.ask("patient")) == "Hello!"
    desk.fake.hold(after=0)
    asking = [desk.run("running again"), desk.queue("younger"), desk.queue("patient")]
    desk.fake.release()
    assert [heard(one) for one in asking] == ["Hello!"] * 3
    assert desk.texts() == ["running", "patient", "running again", "younger", "patient"]


# -- slots and shares ---------------------------------------------------------------------------------------


@at("affinity")
def test_a_call_waits_for_its_conversation_although_another_slot_is_free(desk: Desk) -> None:
    desk.run("one", agent="a")
    (running,) = desk.fake.requests
    second = desk.queue("two", agent="a")
    other = desk.run("three", agent="b")
    assert {one.slot for one in desk.fake.requests} == {0, 1}
    desk.fake.release()
    assert heard(second) == heard(other) == "Hello!"
    assert last(desk.fake).slot == running.slot
    assert slot_of(desk.gateway, "a", desk.name) == [running.slot]


@at("hasty")
def test_it_waits_for_no_longer_than_the_affinity_is_worth(desk: Desk) -> None:
    desk.run("one", agent="a")
    desk.run("two", agent="a")
    assert {one.slot for one in desk.fake.requests} == {0, 1}
    desk.fake.release()


@at("background")
def test_two_background_calls_at_once(desk: Desk) -> None:
    for number in range(2):
        desk.run(f"background {number}", route="background")
    third = desk.queue("background 2", route="background")
    main = desk.run("main")
    first = desk.fake.requests[0]
    desk.fake.release(first)
    desk.fake.until(lambda: len(desk.fake.requests) == 4 and last(desk.fake).state == "held")
    desk.fake.release()
    assert heard(third) == heard(main) == "Hello!"
    assert desk.texts() == ["background 0", "background 1", "main", "background 2"]


@at("shares")
def test_the_owner_s_part_is_kept_free_and_the_owner_may_use_the_rest(desk: Desk) -> None:
    for number in range(2):
        desk.run(f"review {number}", route="review")
    third = desk.queue("review 2", route="review")  # two slots are the owner's, of four
    owner = [desk.run(f"owner {number}") for number in range(2)]
    desk.queue("owner 2")
    shares = backend(desk.gateway, desk.name)["shares"]
    assert (shares["primary_agent"]["part"], shares["primary_agent"]["running"]) == (2, 2)
    assert shares["review"]["running"] == 2
    for request in desk.fake.requests[:2]:
        desk.fake.release(request)
    desk.fake.until(lambda: len(desk.fake.requests) == 6)
    desk.fake.release()
    assert heard(third) == heard(owner[0]) == "Hello!"
    wait_for_rest(desk.gateway, desk.name)
    desk.fake.hold(after=0)
    for number in range(4):
        desk.run(f"owner alone {number}")
    desk.fake.release()


# -- a quota that all share ---------------------------------------------------------------------------------


@at("cloud")
def test_a_quota_pauses_everybody(desk: Desk) -> None:
    desk.fake.release()
    answers = iter([Script(refuse=rate_limited("2"))])
    desk.fake.script(lambda body: next(answers, Script(["Hel", "lo", "!"])))
    first = desk.ask("first")
    wait_until(lambda: backend(desk.gateway, desk.name)["state"] == "paused", "the pause")
    seen = backend(desk.gateway, desk.name)
    assert 0 < seen["paused_s"] <= 2 and seen["kind"] == "openai" and seen["slots"] == []
    second = desk.queue("second", client=MESSAGES)
    assert len(desk.fake.requests) == 1, "somebody asked during the pause"
    assert heard(first) == "Hello!" and heard(second, MESSAGES) == "Hello!"
    refused, *others = desk.fake.requests
    assert len(others) == 2
    assert all(one.arrived - refused.arrived >= 2 for one in others), "somebody asked during the pause"
    assert first.header("x-herdr-slot") == "none"
    assert backend(desk.gateway, desk.name)["state"] == "ready"


@at("quota")
def test_a_quota_that_lasts_too_long_is_passed_on(desk: Desk) -> None:
    desk.fake.release()
    desk.fake.script(Script(refuse=rate_limited("30")))
    answer = desk.ask("first", MESSAGES).answer()
    assert answer.status == 429 and 25 <= int(answer.headers["retry-after"]) <= 30
    assert MESSAGES.refusal(answer)[0] == "rate_limit_error"
    waited = [(other, desk.ask("second", other)) for other in CLIENTS]
    for other, asking in waited:
        answer = asking.answer()
        assert answer.status == 429 and 20 <= int(answer.headers["retry-after"]) <= 30
        other.refusal(answer)
    assert len(desk.fake.requests) == 1
    assert backend(desk.gateway, desk.name)["state"] == "paused"
