"""Clients that leave, and a gateway that stops: nothing is generated for nobody, and nobody is left waiting."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fake_llama import Die, FakeLlama, Script, Stall
from gateway import GatewayProcess
from model_clients import CHAT, CLIENTS, MESSAGES, Client
from model_gateway import (
    assert_well,
    error_of,
    last,
    model_gateway,
    recorded,
    slots,
    until_heard,
    until_running,
    wait_for_queue,
    wait_for_rest,
)
from wire import wait_until

HELLO = Script(["Hel", "lo", "!"])
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(slots=2) as server:
        yield server


@pytest.fixture(scope="module")
def shared(fake: FakeLlama, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with model_gateway(tmp_path_factory.mktemp("leaving"), {"local": fake}) as process:
        yield process


@pytest.fixture
def gateway(shared: GatewayProcess, fake: FakeLlama) -> Iterator[GatewayProcess]:
    """The shared gateway, which every fault has to leave at rest and able to answer."""
    fake.script(HELLO)
    yield shared
    assert_well(shared, fake, "local")


# -- the client leaves --------------------------------------------------------------------------------------


@each
def test_a_client_that_leaves_the_queue(gateway: GatewayProcess, fake: FakeLlama, client: Client) -> None:
    fake.hold(after=0)
    with ExitStack() as stack:
        for number in range(2):
            stack.enter_context(CHAT.ask(gateway, f"running {number}"))
        until_running(fake, 2)
        asking = stack.enter_context(client.ask(gateway, "waiting", stream=True))
        whole = stack.enter_context(client.ask(gateway, "waiting too", stream=False))
        wait_for_queue(gateway, 2)
        asked = len(fake.requests)
        asking.leave()
        whole.leave()
        wait_for_queue(gateway, 0)
        fake.release()
    wait_for_rest(gateway)
    assert len(fake.requests) == asked, "it was generated for nobody"


@each
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_client_that_leaves_during_the_prefill(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool
) -> None:
    fake.hold()  # no header has come
    asking = client.ask(gateway, "prefill", stream=stream)
    until_running(fake, 1)
    request = last(fake)
    asking.leave()
    fake.until(lambda: request.state == "cancelled")
    wait_for_rest(gateway)


@each
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_client_that_leaves_during_the_answer(
    gateway: GatewayProcess, fake: FakeLlama, client: Client, stream: bool
) -> None:
    fake.hold(after=1)
    asking = client.ask(gateway, "answer", stream=stream)
    if stream:
        until_heard(asking, client, "Hel")
    until_running(fake, 1)
    request = last(fake)
    asking.leave()
    fake.until(lambda: request.state == "cancelled")
    wait_for_rest(gateway)
    if stream:
        assert error_of(gateway, asking) == "client_gone"


def test_a_slot_whose_generation_was_cut_is_free_only_when_the_server_says_so(
    gateway: GatewayProcess, fake: FakeLlama
) -> None:
    fake.linger_s = None
    fake.hold(after=1)
    asking = CHAT.ask(gateway, "cut")
    until_heard(asking, CHAT, "Hel")
    request = last(fake)
    asking.leave()
    fake.until(lambda: request.state == "cancelled")
    fake.release()
    (busy,) = [seen for seen in slots(gateway) if seen["state"] == "busy"]
    assert busy["slot"] == request.slot
    with ExitStack() as stack:
        fake.hold(after=0)
        other = stack.enter_context(CHAT.ask(gateway, "other"))
        until_running(fake, 1)
        assert last(fake).slot != request.slot
        third = stack.enter_context(CHAT.ask(gateway, "third"))
        wait_for_queue(gateway, 1)
        fake.let_go()
        until_running(fake, 2)
        assert last(fake).slot == request.slot
        fake.release()
        assert CHAT.assembled(list(other.events())) and CHAT.assembled(list(third.events()))


def test_what_a_cut_generation_leaves_in_its_slot_is_used_again(
    gateway: GatewayProcess, fake: FakeLlama
) -> None:
    agent = {"x-agent-id": "interrupted"}
    fake.hold(after=1)
    asking = CHAT.ask(gateway, "A long question " * 20, headers=agent)
    until_heard(asking, CHAT, "Hel")
    cut = last(fake)
    asking.leave()
    fake.until(lambda: cut.state == "cancelled")
    fake.release()
    wait_for_rest(gateway)
    whole = CHAT.whole(gateway, "A long question " * 20, "Hel", "Go on", headers=agent)
    assert last(fake).slot == cut.slot
    assert CHAT.tokens(whole)[1] >= cut.prompt_tokens


def test_who_waits_for_a_shared_answer_is_told_of_its_failure_too(
    gateway: GatewayProcess, fake: FakeLlama
) -> None:
    fake.script(Script(["Hel", Die()]))
    fake.hold(after=1)
    with ExitStack() as stack:
        asking = [
            stack.enter_context(c.ask(gateway, "Hi", temperature=0, max_tokens=50, stream=True))
            for c in CLIENTS
        ]
        seen = [until_heard(one, client, "Hel") for one, client in zip(asking, CLIENTS, strict=True)]
        assert len({one.header("x-herdr-call") for one in asking}) == 1
        fake.release()
        for client, (events, stream) in zip(CLIENTS, seen, strict=True):
            assert client.failure([*events, *stream])


def test_a_slot_is_not_free_because_the_server_does_not_say(gateway: GatewayProcess, fake: FakeLlama) -> None:
    fake.linger_s = None
    fake.hold(after=1)
    asking = CHAT.ask(gateway, "cut")
    until_heard(asking, CHAT)
    request, before = last(fake), fake.asked["/slots"]
    fake.loading = True  # every question gets a 503
    asking.leave()
    fake.until(lambda: request.state == "cancelled")
    wait_until(lambda: fake.asked["/slots"] >= before + 2, "the gateway to ask again")
    fake.loading = False
    fake.release()
    assert slots(gateway)[request.slot or 0]["state"] == "busy"
    assert CHAT.whole(gateway, "going on")["slot"] != request.slot
    fake.let_go()
    wait_for_rest(gateway)


def test_an_answer_that_the_gateway_ends_has_its_slot_until_the_server_is_done(
    gateway: GatewayProcess, fake: FakeLlama
) -> None:
    fake.linger_s = None
    fake.script(Script(["one, STOP", " two", Stall()]))
    whole = MESSAGES.whole(gateway, "Count", stop_sequences=["STOP"])
    assert (MESSAGES.text(whole), whole["stop_reason"]) == ("one, ", "stop_sequence")
    request = last(fake)
    fake.until(lambda: request.state == "cancelled")
    assert slots(gateway)[request.slot or 0]["state"] == "busy"
    fake.let_go()
    wait_for_rest(gateway)


# -- the gateway stops --------------------------------------------------------------------------------------


def test_a_gateway_that_stops_in_mid_stream(tmp_path: Path) -> None:
    with FakeLlama(5) as fake, ExitStack() as stack:
        fake.script(HELLO)
        fake.hold(after=1)
        gateway = stack.enter_context(model_gateway(tmp_path, {"local": fake}, shares={}))
        streams = []
        for client in CLIENTS:
            asking = stack.enter_context(client.ask(gateway, f"for {client.name}", stream=True))
            streams.append((client, asking, *until_heard(asking, client, "Hel")))
        whole = stack.enter_context(CHAT.ask(gateway, "whole", stream=False))
        until_running(fake, 5)
        waiting = [
            (client, stack.enter_context(client.ask(gateway, "waiting", stream=True))) for client in CLIENTS
        ]
        wait_for_queue(gateway, len(waiting))
        assert gateway.stop() == 0
        for client, asking, seen, stream in streams:
            seen += stream
            assert not asking.broken and "stopping" in str(client.failure(seen)), seen[-1]
        for client, asking in (*waiting, (CHAT, whole)):
            answer = asking.answer()
            assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
            assert "stopping" in client.refusal(answer)[1]
        fake.until(lambda: all(request.state == "cancelled" for request in fake.requests))
        assert not [
            line
            for line in gateway.log
            if any(w in line for w in ("Traceback", "never retrieved", "destroyed"))
        ]
        gateway.start()
        records = [event["data"] for event in recorded(gateway, "model.call")]
        assert [record["error"] for record in records] == ["stopping"] * 9, "nobody has left"


def test_a_gateway_that_stops_while_a_slot_does_not_get_free(tmp_path: Path) -> None:
    with FakeLlama(2, linger_s=None) as fake:
        fake.script(HELLO)
        fake.hold(after=1)
        with model_gateway(tmp_path, {"local": fake}) as gateway:
            asking = CHAT.ask(gateway, "Hi")
            until_heard(asking, CHAT, "Hel")
            asking.leave()
            fake.until(lambda: last(fake).state == "cancelled")
            assert gateway.stop() == 0
            assert not [
                line
                for line in gateway.log
                if any(w in line for w in ("Traceback", "never retrieved", "destroyed", '"error"'))
            ]
