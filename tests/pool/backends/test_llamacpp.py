import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fake_llama import FakeLlama, Script
from raw_server import answer, raw_server
from scripted_backend import request
from virtual_time import VirtualClock, run
from virtual_upstream import LIMITS, upstream_over

from herdr.pool.backend import Job, Sight
from herdr.pool.backends.chat import Chat
from herdr.pool.backends.llamacpp import FILE_S, SETTLE_MAX_S, LlamaCpp
from herdr.pool.chunk import Chunk, End, Progress, TextDelta
from herdr.pool.failures import ModelError
from herdr.pool.request import ChatRequest, Image, Message, Text, ToolResult
from herdr.pool.upstream import Answer, Limits, client_session

PROPS = {"total_slots": 2, "default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": True}}


def chat() -> Chat:
    return Chat(
        "llamacpp",
        model=None,
        tool_calls="buffer",
        recover=False,
        lower_schema=False,
        new_id=lambda: "id",
    )


class Told:
    """Stands for an `Upstream`: its answers are what the test says."""

    name, url = "local", "http://there:1"
    limits = LIMITS

    def __init__(self) -> None:
        self.props: Any = PROPS
        self.slots: deque[Any] = deque()
        """Answers of `/slots`: a list, a status, or an error; the last one stays."""
        self.asked: list[tuple[str, str, float]] = []
        self.files: Any = {"n_saved": 10, "n_restored": 10}
        self.during_slots: Callable[[], Awaitable[None]] | None = None
        """Done once, between the server's answer of `/slots` and its arrival."""

    async def ask(self, method: str, path: str, body: bytes | None = None, within_s: float = 10.0) -> Answer:
        self.asked.append((method, path, within_s))
        said: Any = self.files
        if path == "/props":
            said = self.props
        elif path == "/slots":
            said = self.slots.popleft() if len(self.slots) > 1 else self.slots[0]
            if self.during_slots is not None:
                during, self.during_slots = self.during_slots, None
                await during()
        if isinstance(said, ModelError):
            raise said.again()
        if isinstance(said, int):
            return Answer(said, {}, b'{"error":{"message":"not now"}}')
        return Answer(200, {}, said if isinstance(said, bytes) else json.dumps(said).encode())

    async def stream(self, path: str, body: bytes, headers: Any, feed: Any, refused: Any) -> None:
        feed(
            b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
        )

    def without_secrets(self, error: ModelError) -> ModelError:
        return error


def slots(*tasks: int, busy: int | None = None) -> list[dict[str, Any]]:
    return [
        {"id": n, "is_processing": n == busy, **({} if task < 0 else {"id_task": task})}
        for n, task in enumerate(tasks)
    ]


def told(*answers: Any) -> tuple[LlamaCpp, Told]:
    upstream = Told()
    upstream.slots.extend(answers or [slots(-1, -1)])
    return LlamaCpp(upstream, chat()), upstream  # type: ignore[arg-type]


def job(said: str = "Hi", slot: int | None = 0, max_tokens: int = 100, **more: Any) -> Job:
    asked = said if isinstance(said, ChatRequest) else request(said, **more)
    return Job(asked, slot, max_tokens, 5)


async def generate(backend: LlamaCpp, asked: Job | None = None) -> list[Chunk]:
    chunks: list[Chunk] = []
    await backend.generate(asked or job(), chunks.extend)
    return chunks


# -- looking ------------------------------------------------------------------------------------------------


async def test_what_a_look_shows() -> None:
    backend, _ = told()
    assert await backend.look() == Sight(2, 4096, True)


async def test_properties_in_several_segments() -> None:
    whole = json.dumps({**PROPS, "chat_template": "x" * 3000}).encode()
    parts = [whole[at : at + 800] for at in range(0, len(whole), 800)]
    async with raw_server(*answer(200, *parts)) as server, client_session() as session:
        upstream = upstream_over(session, url=server.url)
        backend = LlamaCpp(upstream, chat())
        backend._tells_slots = False  # it answers everything with its properties
        assert await backend.look() == Sight(2, 4096, True)


@pytest.mark.parametrize(
    ("status", "parts", "code"),
    [
        (503, [b'{"error":{"code":503,', b'"message":"Loading model"}}'], "overloaded"),
        (401, [b'{"error":', b"{}}"], "backend_failed"),
        (200, [b"<html>", b"</html>"], "backend_failed"),
    ],
)
async def test_one_that_takes_no_calls(status: int, parts: list[bytes], code: str) -> None:
    async with raw_server(*answer(status, *parts)) as server, client_session() as session:
        with pytest.raises(ModelError) as caught:
            await LlamaCpp(upstream_over(session, url=server.url), chat()).look()
        assert caught.value.code == code


@pytest.mark.parametrize("status", [404, 501])
async def test_a_server_that_has_no_slots_endpoint_is_not_asked_again(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    backend, upstream = told(status)
    assert (await backend.look()).total == 2
    await backend.look()
    await backend.settle(0)
    assert [path for _, path, _ in upstream.asked] == ["/props", "/slots", "/props"]
    assert "does not serve /slots" in caplog.text


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503])
async def test_any_other_answer_may_pass(status: int) -> None:
    backend, upstream = told(status, slots(1, 1))
    with pytest.raises(ModelError):
        await backend.look()
    assert (await backend.look()).total == 2
    await backend.settle(0)
    assert [path for _, path, _ in upstream.asked].count("/slots") == 3


async def test_slots_that_cannot_be_read_are_a_failure() -> None:
    backend, _ = told(b'{"slots": 2}')
    with pytest.raises(ModelError, match="/slots is not that of"):
        await backend.look()


# -- whether it has started anew ----------------------------------------------------------------------------


async def restarts(backend: LlamaCpp) -> bool:
    return (await backend.look()).restarted


async def test_numbers_that_only_grow_are_the_same_server() -> None:
    backend, _ = told(slots(-1, -1), slots(5, -1), slots(5, 9), slots(5, 9))
    assert [await restarts(backend) for _ in range(4)] == [False] * 4


async def test_numbers_that_begin_again_are_another_server() -> None:
    backend, _ = told(slots(50, 40), slots(3, -1), slots(3, 4), slots(-1, -1), slots(-1, -1))
    assert [await restarts(backend) for _ in range(5)] == [False, True, False, True, False]


async def test_fewer_numbers_than_calls_are_another_server() -> None:
    backend, _ = told(slots(3, -1), slots(5, -1))
    assert not await restarts(backend)
    for _ in range(7):
        await generate(backend)
    assert await restarts(backend), "at least 10 was to be expected"
    assert not await restarts(backend)


async def test_calls_that_the_numbers_count_are_the_same_server() -> None:
    backend, _ = told(slots(3, -1), slots(10, -1), slots(10, 11))
    assert not await restarts(backend)
    for _ in range(7):
        await generate(backend)
    assert not await restarts(backend)
    await generate(backend)
    assert not await restarts(backend)


async def test_a_call_that_runs_during_a_look_is_no_restart() -> None:
    """It had its number before the look, or will have it after: neither is one more than was seen."""
    backend, upstream = told(slots(3, -1), slots(4, -1), slots(4, -1), slots(5, -1))
    assert not await restarts(backend)
    release = asyncio.Event()
    stream = upstream.stream

    async def long(*args: Any) -> None:
        await release.wait()
        await stream(*args)

    upstream.stream = long  # type: ignore[method-assign]
    running = asyncio.create_task(generate(backend))
    await asyncio.sleep(0)
    assert not await restarts(backend), "task 4 runs"
    release.set()
    await running
    assert not await restarts(backend), "and was counted when it was seen"
    await generate(backend)
    assert not await restarts(backend)


async def test_a_call_that_passes_while_the_slots_are_told_is_no_restart() -> None:
    backend, upstream = told(slots(3, -1), slots(3, -1), slots(4, -1))
    assert not await restarts(backend)

    async def pass_by() -> None:
        await generate(backend)

    upstream.during_slots = pass_by
    assert not await restarts(backend)
    assert not await restarts(backend)


async def test_a_server_that_tells_no_numbers_has_never_restarted() -> None:
    backend, _ = told(slots(-1, -1))
    assert not await restarts(backend)
    await generate(backend)
    assert not await restarts(backend)


async def test_a_server_that_tells_its_slots_no_more_has_not_restarted_each_time() -> None:
    backend, _ = told(slots(5, -1), 404)
    assert not await restarts(backend)
    await backend.look()
    await generate(backend)
    assert not await restarts(backend)


async def test_one_that_restarted_may_save_slots_now() -> None:
    backend, upstream = told(slots(9, 9), slots(0, -1))
    await backend.look()
    upstream.files = 501
    assert not await backend.save(0, 1)
    upstream.files = {"n_saved": 10}
    assert not await backend.save(0, 1), "it was asked once"
    assert await restarts(backend)
    assert await backend.save(0, 1)


# -- waiting for a slot -------------------------------------------------------------------------------------


def test_a_slot_is_idle_when_the_server_says_so() -> None:
    clock = VirtualClock()
    backend, upstream = told(*[slots(1, 2, busy=1)] * 20, slots(1, 2))
    run(backend.settle(1), clock)
    assert len(upstream.asked) == 21
    assert clock.now < 21 * SETTLE_MAX_S
    upstream.asked.clear()
    upstream.slots.clear()
    upstream.slots.append(slots(1, 2, busy=0))
    run(backend.settle(1), clock)
    assert len(upstream.asked) == 1, "another one's work is no matter"


@pytest.mark.parametrize("error", [ModelError("backend_timeout", "slow"), 503])
async def test_a_server_that_does_not_say_is_left_to_the_caller(error: Any) -> None:
    backend, _ = told(slots(1, 1, busy=0), error)
    with pytest.raises(ModelError):
        await backend.settle(0)


# -- files --------------------------------------------------------------------------------------------------


async def test_files_have_fixed_names_and_their_time() -> None:
    backend, upstream = told()
    assert await backend.save(1, 7)
    assert await backend.restore(0, 7) == 10
    assert upstream.asked == [
        ("POST", "/slots/1?action=save", FILE_S),
        ("POST", "/slots/0?action=restore", FILE_S),
    ]


@pytest.mark.parametrize(
    "files", [400, 501, b"<html>", {"n_saved": 0}, ModelError("backend_timeout", "slow")]
)
async def test_a_file_that_was_not_written_or_read(files: Any) -> None:
    backend, upstream = told()
    upstream.files = files
    assert not await backend.save(0, 1)
    assert await backend.restore(0, 1) == 0


# -- against a server ---------------------------------------------------------------------------------------


@pytest.fixture
def fake() -> Iterator[FakeLlama]:
    with FakeLlama(slots=2, n_ctx=2048) as server:
        yield server
        assert server.violations == []


@asynccontextmanager
async def client(fake: FakeLlama, limits: Limits = LIMITS) -> AsyncIterator[LlamaCpp]:
    async with client_session() as session:
        backend = LlamaCpp(upstream_over(session, url=fake.url, limits=limits), chat())
        await backend.look()
        yield backend


async def test_an_answer_in_its_slot(fake: FakeLlama) -> None:
    fake.script(Script(["Hel", "lo"]))
    async with client(fake) as backend:
        chunks = await generate(backend, job(slot=1))
    assert "".join(c.text for c in chunks if isinstance(c, TextDelta)) == "Hello"
    assert isinstance(chunks[0], Progress) and isinstance(chunks[-1], End)
    (call,) = fake.requests
    assert call.slot == 1 and call.body["max_tokens"] == 100


async def test_a_stop_sequence_ends_it_here_and_the_slot_when_the_server_says_so(fake: FakeLlama) -> None:
    fake.script(Script(["one ", "END", " two", *["more"] * 50]))
    fake.linger_s = None
    fake.hold(after=3)
    async with client(fake) as backend:
        chunks: list[Chunk] = []
        asked = request("Hi")
        asked = ChatRequest(asked.model, asked.messages, sampling=type(asked.sampling)(stop=("END",)))
        is_whole = await backend.generate(Job(asked, 0, 100, 5), chunks.extend)
        assert not is_whole
        end = chunks[-1]
        assert isinstance(end, End) and end.stop_sequence == "END"
        await fake.when(lambda: fake.requests[0].over)
        settling = asyncio.create_task(backend.settle(0))
        asked_before = fake.asked["/slots"]
        await fake.when(lambda: fake.asked["/slots"] >= asked_before + 3)
        assert not settling.done()
        fake.let_go()
        await settling


async def test_a_whole_answer_is_whole(fake: FakeLlama) -> None:
    async with client(fake) as backend:
        assert await backend.generate(job(), lambda chunks: None)


async def test_cancelling_closes_the_connection(fake: FakeLlama) -> None:
    fake.hold(after=1)
    async with client(fake) as backend:
        task = asyncio.create_task(generate(backend))
        await fake.when(lambda: fake.requests and fake.requests[0].state == "held")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await fake.when(lambda: fake.requests[0].state == "cancelled")
        await backend.settle(0)


async def test_a_real_restart_is_seen(fake: FakeLlama) -> None:
    async with client(fake) as backend:
        for _ in range(3):
            await generate(backend)
        assert not await restarts(backend)
        await asyncio.to_thread(fake.restart, 3)
        sight = await backend.look()
        assert (sight.total, sight.restarted) == (3, True)


async def test_tokens_are_counted_without_a_slot(fake: FakeLlama) -> None:
    async with client(fake) as backend:
        count = await backend.count(request("one two three"))
        assert count is not None and count > 5
        assert fake.requests == []


async def test_a_refusal_names_what_was_refused(fake: FakeLlama) -> None:
    async with client(fake) as backend:
        with pytest.raises(ModelError) as caught:
            await generate(backend, job("long words " * 2000))
        assert caught.value.code == "prompt_too_long"


IMAGE = Image("image/png", "AAAA")


async def test_an_image_is_refused_by_a_model_without_eyes_before_anything_is_sent(fake: FakeLlama) -> None:
    async with client(fake) as backend:
        seen = ChatRequest("m", (Message("user", (Text("Look"), IMAGE)),))
        with pytest.raises(ModelError, match="cannot see images") as caught:
            await generate(backend, Job(seen, 0, 10, 5))
        assert caught.value.code == "unsupported_input" and fake.requests == []
        older = ChatRequest(
            "m",
            (*seen.messages, Message("assistant", (Text("A cat"),)), Message("user", (Text("Thanks"),))),
        )
        await generate(backend, Job(older, 0, 10, 5))
        result = ChatRequest("m", (Message("user", (ToolResult("t", (IMAGE,)),)),))
        await generate(backend, Job(result, 0, 10, 5))


async def test_a_key_goes_along_and_stays_out_of_the_log(
    fake: FakeLlama, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with client_session() as session:
            upstream = upstream_over(session, url=fake.url, headers={"authorization": "Bearer s3cret"})
            await generate(LlamaCpp(upstream, chat()))
    assert fake.requests[0].headers["authorization"] == "Bearer s3cret"
    assert "s3cret" not in caplog.text
