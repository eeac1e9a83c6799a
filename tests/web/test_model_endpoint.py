"""One call through an endpoint: read, understood, let in, answered; no process and no socket."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_contexts import FakeContexts, told
from scripted_backend import Desk, desk, failing, held, until
from virtual_time import VirtualClock, run

from herdr.errors import HerdrError, InvalidInput
from herdr.pool.failures import ModelError
from herdr.pool.protocols import anthropic, herdr, openai
from herdr.pool.shared_context import SharedContext
from herdr.web.asgi import Message, Reply, Scope
from herdr.web.auth import ANYONE, Caller
from herdr.web.model_stream import ModelStream
from herdr.web.models import LARGE_BODY, ModelEndpoint
from herdr.web.problems import Refused
from herdr.web.streams import Streams

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9, "stream": False}


class House:
    """An endpoint before a scripted pool."""

    def __init__(self, clock: VirtualClock, connections: int = 10) -> None:
        self.desk: Desk = desk(clock)
        self.streams = Streams(connections, 30.0, clock, lambda: 0.0)
        self.clock = clock

    def endpoint(self, dialect: Any = herdr, **more: Any) -> ModelEndpoint:
        return ModelEndpoint(dialect, self.desk.pool, self.streams, self.clock, lambda: "01X", **more)

    async def call(
        self, endpoint: ModelEndpoint, body: Any = BODY, caller: Caller = ANYONE, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """Call it; returns status, headers and body."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        scope: Scope = {
            "headers": [(n.replace("_", "-").encode(), v.encode("latin-1")) for n, v in headers.items()]
        }
        sent: list[Message] = []
        given = iter([{"type": "http.request", "body": data, "more_body": False}])
        gone = asyncio.Event()

        async def receive() -> Message:
            for message in given:
                return message
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await endpoint(scope, receive, Reply(scope, send), caller)
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        whole = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], found, whole if whole[:5] == b"data:" else json.loads(whole)


def play(main: Callable[[House], Awaitable[None]], connections: int = 10) -> None:
    clock = VirtualClock()

    async def whole() -> None:
        it = House(clock, connections)
        await it.desk.open_up()
        await main(it)
        await it.desk.pool.stop()
        assert len(it.streams) == 0, "every stream has left"

    run(whole(), clock)


def test_an_answer() -> None:
    async def main(it: House) -> None:
        status, headers, body = await it.call(it.endpoint())
        assert status == 200 and body["content"] == "Hello"
        assert headers["x-herdr-call"] == "call-001" and headers["x-herdr-slot"] == "0"
        (outcome,) = it.desk.outcomes
        assert outcome.inquiry.user_text == "Hi" and outcome.inquiry.verbatim is None

    play(main)


def test_a_stream() -> None:
    async def main(it: House) -> None:
        status, headers, body = await it.call(it.endpoint(openai), {**BODY, "stream": True})
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        assert body.rstrip().endswith(b"data: [DONE]")

    play(main)


@pytest.mark.parametrize(
    ("caller", "headers", "agent"),
    [
        (Caller("laptop", frozenset()), {}, "laptop"),
        (Caller("laptop", frozenset()), {"x_agent_id": "mine"}, "mine"),
        (ANYONE, {}, "default"),
    ],
)
def test_who_asks(caller: Caller, headers: dict[str, str], agent: str) -> None:
    async def main(it: House) -> None:
        await it.call(it.endpoint(), caller=caller, **headers)
        assert it.desk.outcomes[0].inquiry.caller.shown == agent

    play(main)


WITH_CONTEXT = {**BODY, "session": "s-1", "context": {"session": True}}


@pytest.mark.parametrize(
    ("caller", "may"),
    [
        (ANYONE, True),
        (Caller("laptop", frozenset({"models", "context"})), True),
        (Caller("laptop", frozenset({"models"})), False),
    ],
)
def test_the_shared_context_needs_its_scope(caller: Caller, may: bool) -> None:
    async def main(it: House) -> None:
        endpoint = it.endpoint(shared=SharedContext(FakeContexts({"s-1": "Decided."})))
        if may:
            _, _, body = await it.call(endpoint, WITH_CONTEXT, caller)
            assert body["context"] == {"session": told("Decided.")}
            return
        with pytest.raises(Refused, match="lacks the scope 'context'") as refused:
            await it.call(endpoint, WITH_CONTEXT, caller)
        assert refused.value.code == "missing_scope" and it.desk.outcomes == []
        assert (await it.call(endpoint, BODY, caller))[0] == 200

    play(main)


def test_who_lacks_the_scope_does_not_continue_what_others_were_given() -> None:
    async def main(it: House) -> None:
        endpoint = it.endpoint(shared=SharedContext(FakeContexts({"s-1": "Decided."})))
        await it.call(endpoint, WITH_CONTEXT, x_agent_id="ann")
        turns = [*BODY["messages"], *({"role": r, "content": "and?"} for r in ("assistant", "user"))]  # type: ignore[misc]
        for scopes, has in (({"models"}, False), ({"models", "context"}, True)):
            body = {**BODY, "session": "s-1", "messages": turns}
            await it.call(endpoint, body, Caller("laptop", frozenset(scopes)), x_agent_id="ann")
            prompt = it.desk.outcomes[-1].inquiry.canonical.request.messages
            assert ("Decided." in str(prompt)) is has

    play(main)


def test_the_prompt_has_the_context_and_the_record_of_the_turn_has_not() -> None:
    async def main(it: House) -> None:
        endpoint = it.endpoint(shared=SharedContext(FakeContexts({"s-1": "Decided."}), 99))
        await it.call(endpoint, WITH_CONTEXT)
        (outcome,) = it.desk.outcomes
        (message,) = outcome.inquiry.canonical.request.messages
        assert "Decided." in str(message) and str(message).endswith("\\n\\nHi'),))")
        assert outcome.inquiry.user_text == "Hi"

    play(main)


def test_the_time_of_looking_up_counts_as_the_clients_wait() -> None:
    async def main(it: House) -> None:
        contexts = FakeContexts({"s-1": "Decided."})
        contexts.late["s-1"] = asyncio.Event()
        _, _, body = await it.call(it.endpoint(shared=SharedContext(contexts)), WITH_CONTEXT)
        assert body["context"] == {"session": {"unavailable": "timeout"}}
        assert body["timings"]["total_ms"] >= 5000

    play(main)


def test_a_body_of_anthropics_may_pass_through() -> None:
    async def main(it: House) -> None:
        await it.call(it.endpoint(anthropic, passes_verbatim=True), BODY, anthropic_beta="b")
        asked = it.desk.outcomes[0].inquiry
        assert asked.verbatim == json.dumps(BODY).encode() and asked.headers["anthropic-beta"] == "b"

    play(main)


async def test_a_large_body_is_read_beside_the_loop() -> None:
    clock = VirtualClock()
    it = House(clock)
    it.desk.backend.look_s = 0.0  # a thread has part in this: no virtual time
    await it.desk.open_up()
    body = {**BODY, "messages": [{"role": "user", "content": "x" * (LARGE_BODY + 1)}]}
    status, _, answer = await it.call(it.endpoint(), body)
    assert status == 200 and answer["content"] == "Hello"
    with pytest.raises(InvalidInput):
        await it.call(it.endpoint(), b"[" + b" " * LARGE_BODY)
    await it.desk.pool.stop()


def test_what_cannot_be_understood_takes_no_place() -> None:
    async def main(it: House) -> None:
        with pytest.raises(InvalidInput):
            await it.call(it.endpoint(), {"messages": 7})
        assert it.desk.outcomes == [] and it.desk.backend.jobs == []

    play(main)


def test_more_streams_than_there_may_be() -> None:
    async def main(it: House) -> None:
        release = asyncio.Event()
        it.desk.backend.to_say.append(held(release))
        first = asyncio.create_task(it.call(it.endpoint()))
        await until(it.desk.busy)
        with pytest.raises(ModelError, match="max_connections") as told:
            await it.call(it.endpoint())
        assert told.value.code == "overloaded" and told.value.retry_after_s == 5
        release.set()
        assert (await first)[0] == 200

    play(main, connections=1)


def test_a_gateway_that_stops_lets_nobody_in() -> None:
    async def main(it: House) -> None:
        it.streams.stopping = True
        with pytest.raises(ModelError) as told:
            await it.call(it.endpoint())
        assert told.value.code == "stopping"

    play(main)


@pytest.mark.parametrize("code", ["backend_refused", "backend_failed", "rate_limited", "unknown_model"])
@pytest.mark.parametrize(
    ("dialect", "problems"), [(herdr, True), (herdr, False), (anthropic, False), (openai, False)]
)
def test_a_failure_is_told_in_the_clients_terms(code: str, dialect: Any, problems: bool) -> None:
    async def main(it: House) -> None:
        it.desk.backend.to_say.append(failing(code, wait_s=600.0))
        status, headers, body = await it.call(it.endpoint(dialect, errors_are_problems=problems))
        assert status == ModelError(code, "").status and "scripted" in json.dumps(body)
        assert headers["retry-after"] == "60"
        expected = "application/problem+json" if problems else "application/json"
        assert headers["content-type"] == expected

    play(main)


@pytest.mark.parametrize("error", [InvalidInput("no"), ModelError("overloaded", "full", 5.0)])
@pytest.mark.parametrize("problems", [True, False])
def test_a_refusal_before_the_call(error: HerdrError, problems: bool) -> None:
    it = House(VirtualClock())
    status, body, headers = it.endpoint(anthropic, errors_are_problems=problems).refuse(error)
    sent = dict(headers)
    assert status == (503 if isinstance(error, ModelError) else 400)
    assert sent[b"request-id"] == b"req_01X" and sent[b"x-herdr-slot"] == b"none"
    assert (b"retry-after" in sent) == isinstance(error, ModelError)
    assert [name for name, _ in headers].count(b"content-type") == 1
    assert (sent[b"content-type"] == b"application/json") != problems
    assert error.detail in body.decode()


def test_a_stream_leaves_the_registry_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: ModelStream, *args: Any) -> None:
        raise KeyError("planted")

    async def main(it: House) -> None:
        monkeypatch.setattr(ModelStream, "serve", broken)
        with pytest.raises(KeyError):
            await it.call(it.endpoint())
        await until(lambda: it.desk.outcomes)
        assert it.desk.outcomes[0].error == "client_gone"

    play(main)
