"""One client's side of an answer: what is written when, seen at the ASGI messages."""

import asyncio
import gc
import json
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
from scripted_backend import HELLO, inquiry, request, until
from virtual_time import VirtualClock, pass_time, run

from herdr.pool.chunk import Chunk, Progress, TextDelta, Usage, Verbatim
from herdr.pool.failures import ModelError
from herdr.pool.generation import Generation, Place
from herdr.pool.protocols import anthropic, herdr
from herdr.web.asgi import ABORT, JSON, Message, Reply
from herdr.web.model_stream import FIRST_CHUNK_S, Answering, ModelStream, call_headers
from herdr.web.streams import KEEP_ALIVE_S, Streams

PLACE = Place(2, 40)


class Client:
    """A client that reads, unless it is told not to."""

    def __init__(self, clock: VirtualClock, *, streams: bool = True, dialect: Any = herdr) -> None:
        self.clock = clock
        self.sent: list[Message] = []
        self.at: list[float] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.leaves = asyncio.Event()
        self.aborted = 0
        self.registry = Streams(10, 30.0, clock, lambda: 0.0)
        self.generation = Generation("01J", 7)
        self.asked = msgspec.structs.replace(request(), stream=streams)
        scope = {ABORT: self._abort}
        self.stream = ModelStream(self.registry, Reply(scope, self._send), scope)
        self.answering = Answering(
            dialect,
            self.asked,
            inquiry(self.asked, verbatim=b"{}" if dialect is anthropic else None),
            clock,
            JSON,
        )
        self.registry.enter(self.stream)

    def _abort(self) -> None:
        self.aborted += 1

    async def _send(self, message: Message) -> None:
        self.sent.append(message)
        self.at.append(self.clock.now)
        await self.reads.wait()

    async def receive(self) -> Message:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    def serving(self) -> "asyncio.Task[None]":
        return asyncio.create_task(self.serve())

    async def serve(self) -> None:
        reader = self.generation.read()
        await self.stream.serve(reader, self.receive, self.answering)
        self.generation.leave(reader)

    def say(self, *chunks: Chunk) -> None:
        self.generation.append(chunks, self.clock.now)

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent[1:]).decode()

    @property
    def is_over(self) -> bool:
        return bool(self.sent) and not self.sent[-1].get("more_body", False)


def play(main: Callable[[Client], Awaitable[None]], **more: Any) -> None:
    clock = VirtualClock()

    async def whole() -> None:
        await main(Client(clock, **more))

    run(whole(), clock)


def names(body: str) -> list[str]:
    return [line[7:] for line in body.splitlines() if line.startswith("event: ")]


# -- what is held back --------------------------------------------------------------------------------------


def test_nothing_is_sent_while_the_call_waits_for_its_slot() -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        await pass_time(25.0)
        assert it.sent == []
        it.generation.begin(PLACE)
        await until(lambda: it.sent)
        assert it.status == 200 and it.headers["x-herdr-slot"] == "2"
        assert it.at[0] == pytest.approx(25.0 + FIRST_CHUNK_S, abs=0.01), "a moment for the first words"
        it.say(*HELLO)
        it.generation.end()
        await task

    play(main)


def test_with_the_first_words_the_stream_opens_at_once() -> None:
    async def main(it: Client) -> None:
        it.generation.begin(PLACE)
        task = it.serving()
        await pass_time(0.5)
        it.say(Progress(90, 80, 90))
        await until(lambda: it.sent)
        assert it.at[0] < 0.6
        it.say(*HELLO[1:])
        it.generation.end()
        await task
        assert names(it.body)[0] == "message_start" and names(it.body)[-1] == "message_stop"
        opening = json.loads(it.body.split("data: ")[1].splitlines()[0])
        assert opening["message"]["usage"]["cache_read_input_tokens"] == 80, "the counts are exact"

    play(main, dialect=anthropic)


def test_a_place_that_is_lost_again_is_waited_for_again() -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        it.generation.begin(PLACE)
        await pass_time(0.1)
        it.generation.withdraw()  # the backend answered 429
        await pass_time(20.0)
        assert it.sent == [], "it can still be a refusal"
        it.generation.begin(Place(3, 20_100))
        it.say(*HELLO)
        it.generation.end()
        await task
        assert (it.headers["x-herdr-slot"], it.headers["x-herdr-queue-ms"]) == ("3", "20100")

    play(main)


def test_a_call_that_fails_after_it_lost_its_place_has_a_status() -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        it.generation.begin(PLACE)
        await pass_time(0.1)
        it.generation.withdraw()
        await pass_time(20.0)
        it.generation.fail(ModelError("rate_limited", "too many", 90.0))
        await task
        assert it.status == 429 and it.headers["retry-after"] == "60"
        assert it.headers["x-herdr-slot"] == "none" and it.headers["x-herdr-queue-ms"] == "20100"

    play(main)


@pytest.mark.parametrize("streams", [True, False])
def test_a_refusal_before_the_first_word_is_a_real_status(streams: bool) -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        it.generation.begin(PLACE)
        await pass_time(0.1)
        it.generation.fail(ModelError("prompt_too_long", "prompt is too long"))
        await task
        assert it.status == 400 and "prompt is too long" in it.body and "retry-after" not in it.headers
        assert it.headers["x-herdr-call"] == "01J" and it.headers["request-id"] == "req_01J"

    play(main, streams=streams)


# -- streaming ----------------------------------------------------------------------------------------------


def test_a_failure_in_mid_stream_is_its_last_word() -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        it.generation.begin(PLACE)
        it.say(HELLO[1])
        await until(lambda: it.sent)
        it.generation.fail(ModelError("backend_failed", "it broke off"))
        await task
        assert it.status == 200 and it.is_over
        assert "it broke off" in it.body and "message.end" not in it.body

    play(main)


def test_chunks_that_came_together_are_written_together() -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        it.generation.begin(PLACE)
        it.say(*[TextDelta(f"w{n} ") for n in range(50)])
        await until(lambda: it.sent)
        it.say(*HELLO[1:])
        it.generation.end()
        await task
        assert len(it.sent) <= 4
        assert it.body.count("message.delta") == 51

    play(main)


def test_a_silent_stream_is_kept_alive_when_the_heartbeat_asks() -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        it.generation.begin(PLACE)
        it.say(HELLO[1])
        await until(lambda: it.sent)
        count = len(it.sent)
        await pass_time(KEEP_ALIVE_S + 1)
        it.registry.look_round()
        await until(lambda: len(it.sent) > count)
        assert it.sent[-1]["body"].startswith(b":")
        it.say(HELLO[-1])
        it.generation.end()
        await task

    play(main)


def test_what_passes_through_has_no_opening_of_ours() -> None:
    start = Verbatim("message_start", b'{"type":"message_start","message":{"id":"msg_theirs"}}')

    async def main(it: Client) -> None:
        it.generation.begin(Place(None, 0, passes_through=True))
        it.say(start, Progress(5, 0, 5))
        task = it.serving()
        await until(lambda: len(it.sent) > 1)
        it.say(Verbatim("message_stop", b'{"type":"message_stop"}'), HELLO[-1])
        it.generation.end()
        await task
        assert it.body.count("message_start") == 2, "once as the event and once in its data"
        assert "msg_theirs" in it.body and it.headers["x-herdr-slot"] == "none"

    play(main, dialect=anthropic)


def test_a_client_of_another_protocol_reads_what_passes_through_in_its_own_terms() -> None:
    async def main(it: Client) -> None:
        it.generation.begin(Place(None, 0, passes_through=True))
        it.say(Verbatim("message_start", b'{"type":"message_start"}'), Progress(5, 0, 5), HELLO[1])
        task = it.serving()
        await until(lambda: len(it.sent) > 1)
        it.say(Verbatim("message_stop", b'{"type":"message_stop"}'), HELLO[-1])
        it.generation.end()
        await task
        assert "message_start" not in it.body and "message.start" in it.body and "message.end" in it.body

    play(main)


# -- whole answers ------------------------------------------------------------------------------------------


def test_a_whole_answer_comes_at_its_end() -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        it.generation.begin(PLACE)
        it.say(*HELLO)
        await pass_time(100.0)
        assert it.sent == []
        it.generation.end()
        await task
        assert json.loads(it.body)["content"] == "Hello" and it.headers["content-type"] == "application/json"

    play(main, streams=False)


def test_a_whole_answer_that_fails_half_way_is_an_error() -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        it.generation.begin(PLACE)
        it.say(HELLO[1])
        it.generation.fail(ModelError("backend_failed", "it broke off"))
        await task
        assert it.status == 502 and "Hello" not in it.body

    play(main, streams=False)


# -- leaving, stalling, stopping ----------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["queue", "prefill", "answer", "whole"])
def test_a_client_that_leaves_ends_it(when: str) -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        if when != "queue":
            it.generation.begin(PLACE)
        if when in ("answer", "whole"):
            it.say(HELLO[1])
        await pass_time(0.5)
        it.leaves.set()
        await task
        assert it.generation.readers == 0 and not task.cancelled()
        assert not it.is_over or not it.sent

    play(main, streams=when != "whole")


def test_a_cancellation_that_is_not_the_clients_goes_on() -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        await pass_time(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    play(main)


def test_a_client_that_takes_nothing_is_cut_and_one_that_waits_is_not() -> None:
    async def main(it: Client) -> None:
        it.generation.begin(PLACE)
        it.say(HELLO[1])
        task = it.serving()
        await until(lambda: it.sent)
        await pass_time(100.0)
        it.registry.look_round()
        assert it.aborted == 0, "nothing was there to be taken"
        it.reads.clear()
        it.say(HELLO[1])
        await until(lambda: it.stream.writing_since is not None)
        await pass_time(29.0)
        it.registry.look_round()
        assert it.aborted == 0
        await pass_time(2.0)
        it.registry.look_round()
        assert it.aborted == 1
        it.leaves.set()
        await task

    play(main)


def test_a_slow_client_gets_the_whole_answer() -> None:
    async def main(it: Client) -> None:
        it.generation.begin(PLACE)
        it.say(HELLO[1])
        task = it.serving()
        for n in range(200):
            it.reads.clear()
            it.say(TextDelta(f"w{n} "))
            await pass_time(1.0)
            if n % 10 == 0:
                it.reads.set()
                await pass_time(0.1)
        it.say(HELLO[-1])
        it.generation.end()
        it.reads.set()
        await task
        assert all(f"w{n} " in it.body for n in range(200)) and it.is_over
        assert len(it.sent) < 100, "what came meanwhile is written at once"

    play(main)


@pytest.mark.parametrize("when", ["queue", "answer", "whole"])
def test_a_gateway_that_stops_says_so(when: str) -> None:
    async def main(it: Client) -> None:
        task = it.serving()
        if when != "queue":
            it.generation.begin(PLACE)
            it.say(HELLO[1])
        await pass_time(5.0)
        it.registry.stopping = True
        it.stream.poke()
        await task
        assert "stopping" in it.body
        assert it.status == (200 if when == "answer" else 503)
        assert it.is_over

    play(main, streams=when != "whole")


# -- the rest -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("place", "slot"), [(Place(0, 5), b"0"), (Place(None, 5), b"none")])
def test_headers_of_every_answer(place: Place, slot: bytes) -> None:
    assert call_headers("01J", place) == [
        (b"request-id", b"req_01J"),
        (b"x-herdr-call", b"01J"),
        (b"x-herdr-slot", slot),
        (b"x-herdr-queue-ms", b"5"),
    ]


def test_times_count_from_the_arrival() -> None:
    async def main(it: Client) -> None:
        await pass_time(1.5)
        assert it.answering.waited_ms() == 1500
        reader = it.generation.read()
        it.say(*HELLO)
        await pass_time(2.0)
        ending = it.answering.ending(reader, PLACE)
        assert (ending.queue_ms, ending.first_token_ms, ending.total_ms) == (40, 1500, 3500)
        assert it.answering.opening(reader, PLACE).usage == Usage(10, 0)

    play(main)


class Named(str):
    """A name that can be watched; structs have no weak references of their own."""


@pytest.mark.parametrize("said", [[], [HELLO[1]]], ids=["refused", "in mid stream"])
def test_a_failed_call_is_forgotten_without_the_collector(said: Sequence[Chunk]) -> None:
    clock = VirtualClock()

    async def call() -> "weakref.ref[Named]":
        it = Client(clock)
        name = Named("session")
        asked = msgspec.structs.replace(it.asked, session=name)
        it.answering = Answering(herdr, asked, inquiry(), clock, JSON)
        it.generation.begin(PLACE)
        it.say(*said)
        task = it.serving()
        await pass_time(FIRST_CHUNK_S / 2)
        it.generation.fail(ModelError("backend_failed", "it broke off"))
        await task
        it.registry.leave(it.stream)
        del it.stream  # which holds the client's own methods
        return weakref.ref(name)

    async def main() -> None:
        kept = await call()
        await pass_time(1.0)
        assert kept() is None

    gc.collect()
    gc.disable()
    try:
        run(main(), clock)
    finally:
        gc.enable()
