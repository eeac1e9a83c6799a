"""Clients that read slowly or not at all, large bodies, and the small things that clients ask before anything."""

import base64
import json
import random
from collections.abc import Iterator
from contextlib import ExitStack

import fake_anthropic as anthropic
import pytest
from fake_anthropic import HELLO, Answer, FakeAnthropic
from fake_llama import FakeLlama, Script
from gateway import GatewayProcess
from model_asking import Asking, Event
from model_clients import CHAT, CLIENTS, COMPLETIONS, MESSAGES, RESPONSES, Client, Json
from model_gateway import model_gateway, pool, row, told, wait_for_rest
from wire import call, health, wait_until

MIB = 1024 * 1024
PIECE, PIECES = "x" * 100_000, 120  # 12 MB: more than the kernel takes for a socket that nobody reads
LONG = [anthropic.start(), *anthropic.text(0, *[PIECE] * PIECES), *anthropic.stop()]
ALL_TEXT = 2 + PIECES  # pieces after which all text is out, and the end is not
TWO_HEARTBEATS_S = 2.5
each = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@pytest.fixture(scope="module")
def claude() -> Iterator[FakeAnthropic]:
    with FakeAnthropic() as server:
        yield server


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(2, vision=True) as server:
        yield server


@pytest.fixture(scope="module")
def shared(
    claude: FakeAnthropic, fake: FakeLlama, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    servers: dict[str, FakeLlama | Json] = {
        "local": fake,
        "cloud": {"kind": "openai", "url": fake.url},
        "claude": {"kind": "anthropic", "url": claude.url},
    }
    with model_gateway(tmp_path_factory.mktemp("readers"), servers) as process:
        yield process


@pytest.fixture(scope="module")
def hasty(claude: FakeAnthropic, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that soon cuts who takes nothing, and has room for two clients."""
    more = {"server": {"send_timeout_s": 0.5, "max_connections": 2}}
    servers = {"claude": {"kind": "anthropic", "url": claude.url}}
    with model_gateway(tmp_path_factory.mktemp("hasty"), servers, more=more) as process:
        yield process


@pytest.fixture(autouse=True)
def clean(claude: FakeAnthropic, fake: FakeLlama) -> Iterator[None]:
    claude.script(HELLO)
    fake.script(Script(["Hello!"]))
    yield
    claude.release()
    fake.release()


def text_of(asking: Asking, client: Client) -> str:
    return client.text(client.assembled(list(asking.events())))


def until(stream: Iterator[Event], name: str) -> list[Event]:
    """Read until an event of that name has come."""
    seen = [next(stream)]
    while seen[-1].name != name:
        seen.append(next(stream))
    return seen


# -- slow readers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", [MESSAGES, CHAT], ids=["passed through", "translated"])
def test_a_slow_reader_holds_up_neither_the_model_nor_others(
    shared: GatewayProcess, claude: FakeAnthropic, client: Client
) -> None:
    claude.script(Answer(LONG))
    more = {"model": "claude", "temperature": 0, "stream": True}
    before = len(claude.requests)
    with client.ask(shared, "the same", **more) as slow, client.ask(shared, "the same", **more) as quick:
        assert slow.status == 200 and slow.header("x-herdr-call") == quick.header("x-herdr-call")
        assert len(text_of(quick, client)) == PIECES * len(PIECE)
        assert [one.state for one in claude.requests[before:]] == ["done"], "the model was held up"
        assert row(shared, slow.header("x-herdr-call"))["error"] is None
        claude.script(HELLO)
        for other in CLIENTS:
            assert other.text(other.streamed(shared, "another", model="claude")) == "Hello!"
        since = health(shared)["uptime_s"]
        wait_until(lambda: health(shared)["uptime_s"] > since + TWO_HEARTBEATS_S, "two heartbeats")
        assert len(text_of(slow, client)) == PIECES * len(PIECE), "it was cut although it had time left"


@pytest.mark.parametrize("client", [MESSAGES, CHAT], ids=["passed through", "translated"])
def test_who_takes_nothing_is_cut_in_time_and_the_other_reads_on(
    hasty: GatewayProcess, claude: FakeAnthropic, client: Client
) -> None:
    claude.script(Answer(LONG))
    claude.hold(after=ALL_TEXT - 20)  # it still speaks when the time is over
    more = {"model": "claude", "temperature": 0, "stream": True}
    cuts = told(hasty).count("taken nothing")
    with client.ask(hasty, "the same", **more) as stalled, client.ask(hasty, "the same", **more) as reading:
        assert stalled.status == 200
        stream, left = reading.events(), len(PIECE) * (PIECES - 22)
        seen = []
        while left > 0:
            seen.append(next(stream))
            left -= len(client.heard(seen[-1:]))
        claude.release()
        seen += stream
        assert len(client.text(client.assembled(seen))) == PIECES * len(PIECE)
        wait_until(lambda: told(hasty).count("taken nothing") > cuts, "the cut")
        heard = list(stalled.events())
        assert stalled.broken and len(client.heard(heard)) < PIECES * len(PIECE)
        assert client.failure(heard) is None
    wait_for_rest(hasty, "claude")
    assert client.text(client.streamed(hasty, "next", model="claude")) != ""


def test_a_generation_whose_only_reader_was_cut_ends(hasty: GatewayProcess, claude: FakeAnthropic) -> None:
    claude.script(Answer(LONG))
    claude.hold(after=ALL_TEXT)
    with MESSAGES.ask(hasty, "alone", model="claude", stream=True) as stalled:
        assert stalled.status == 200
        asked = claude.requests[-1]
        claude.until(lambda: asked.state == "cancelled")
        assert row(hasty, stalled.header("x-herdr-call"))["error"] == "client_gone"


def test_who_takes_nothing_of_an_answers_end_is_cut_too(hasty: GatewayProcess, claude: FakeAnthropic) -> None:
    claude.script(Answer(LONG))
    claude.hold(after=len(LONG) - 1)
    cuts = told(hasty).count("taken nothing")
    more = {"model": "claude", "temperature": 0, "stream": True}
    with MESSAGES.ask(hasty, "the end", **more) as reading:
        until(reading.events(), "message_delta")
        with MESSAGES.ask(hasty, "the end", **more) as stalled:  # all but the last event comes in one piece
            assert stalled.header("x-herdr-call") == reading.header("x-herdr-call")
            claude.release()
            reading.answer()
            wait_until(lambda: told(hasty).count("taken nothing") > cuts, "the cut")


@each
def test_a_client_that_leaves_a_joined_stream_in_the_midst(
    shared: GatewayProcess, claude: FakeAnthropic, client: Client
) -> None:
    claude.hold(after=3)
    more = {"model": "claude", "temperature": 0, "max_tokens": 100, "stream": True}
    with ExitStack() as stack:
        text = f"for {client.name}"
        first = stack.enter_context(client.ask(shared, text, **more))
        assert first.status == 200
        second = stack.enter_context(client.ask(shared, text, **more))
        assert second.header("x-herdr-call") == first.header("x-herdr-call")
        asked = claude.requests[-1]
        first.leave()
        third = stack.enter_context(client.ask(shared, text, **more))
        assert third.header("x-herdr-call") == second.header("x-herdr-call")
        for _ in range(5):
            pool(shared)  # so that its leaving has been dealt with
        assert asked.state == "held"
        claude.release()
        assert text_of(second, client) == text_of(third, client) == "Hello!"
    assert claude.requests[-1] is asked


# -- large bodies -------------------------------------------------------------------------------------------


def picture(size: int) -> str:
    return base64.b64encode(random.Random(size).randbytes(size * 3 // 4)).decode()


def shown(client: Client, data: str) -> Json:
    if client in (MESSAGES, CHAT):
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    url = f"data:image/png;base64,{data}"
    if client is RESPONSES:
        return {"type": "input_image", "image_url": url}
    return {"type": "image_url", "image_url": {"url": url}}


def with_pictures(client: Client, model: str, *pictures: str) -> Json:
    body = client.body("Look", model=model, stream=True)
    if client is COMPLETIONS:
        body["stream_options"] = {"include_usage": True}
    text = {"type": "input_text" if client is RESPONSES else "text", "text": "Look"}
    turns = body["input"] if client is RESPONSES else body["messages"]
    turns[0]["content"] = [text, *(shown(client, data) for data in pictures)]
    return body


@each
@pytest.mark.parametrize("model", ["local", "cloud", "claude"])
@pytest.mark.parametrize("sizes", [(MIB,), (4 * MIB, 5 * MIB, MIB)], ids=["1 MiB", "10 MiB"])
def test_large_pictures_reach_the_model_whole(
    shared: GatewayProcess,
    fake: FakeLlama,
    claude: FakeAnthropic,
    client: Client,
    model: str,
    sizes: tuple[int, ...],
) -> None:
    pictures = [picture(size) for size in sizes]
    with Asking(shared, client.path, with_pictures(client, model, *pictures)) as asking:
        assert text_of(asking, client) == "Hello!"
        assert row(shared, asking.header("x-herdr-call"))["prompt_tokens"] < 10_000
    if model == "claude":
        content = claude.requests[-1].body["messages"][-1]["content"]
        came = [part["source"]["data"] for part in content if part["type"] == "image"]
    else:
        content = fake.requests[-1].body["messages"][-1]["content"]
        came = [p["image_url"]["url"].partition(",")[2] for p in content if p["type"] == "image_url"]
    assert came == pictures


@pytest.mark.parametrize("size", [MIB, 10 * MIB])
def test_a_long_history_passes_through(shared: GatewayProcess, claude: FakeAnthropic, size: int) -> None:
    words = "word " * (size // 20)
    body = MESSAGES.body(words, words, words, words, "Go on", model="claude", stream=True)
    with Asking(shared, "/v1/messages", body) as asking:
        assert text_of(asking, MESSAGES) == "Hello!"
    assert claude.requests[-1].body == body


# -- what clients ask first ---------------------------------------------------------------------------------


def test_a_probe_of_the_root_is_answered(shared: GatewayProcess) -> None:
    found = call(shared, "GET", "/")
    assert found.status == 200 and found.body
    probe = call(shared, "HEAD", "/")
    assert probe.status == 200 and probe.body == b""
    assert probe.headers["content-length"] == found.headers["content-length"]


@each
def test_a_query_is_ignored(shared: GatewayProcess, client: Client) -> None:
    with Asking(shared, client.path + "?beta=true", client.body("Hi", stream=False)) as asking:
        answer = asking.answer()
    assert answer.status == 200 and client.text(json.loads(answer.body)) == "Hello!"
