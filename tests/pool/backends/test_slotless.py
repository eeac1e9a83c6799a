"""Backends without KV slots: OpenAI's kind and Anthropic's."""

import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from scripted_backend import request
from virtual_time import VirtualClock, run
from virtual_upstream import VirtualSession, upstream_over

from herdr.pool.backend import Backend, Job, Sight
from herdr.pool.backends.anthropic import Anthropic
from herdr.pool.backends.chat import Chat
from herdr.pool.backends.openai import OpenAi
from herdr.pool.chunk import Chunk, End, Progress, TextDelta, Verbatim
from herdr.pool.failures import ModelError
from herdr.pool.request import Image, Message, Text

CHAT_ANSWER = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}\n\ndata: [DONE]\n\n'
)
MESSAGES_ANSWER = b"".join(
    b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())
    for event in (
        {"type": "message_start", "message": {"usage": {"input_tokens": 9}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    )
)
Make = Callable[..., Backend]


def openai(session: VirtualSession, url: str = "http://there", model: str | None = None) -> OpenAi:
    chat = Chat(
        "openai",
        model=model,
        tool_calls="buffer",
        recover=False,
        lower_schema=False,
        new_id=lambda: "id",
    )
    headers = {"authorization": "Bearer s3cret"}
    return OpenAi(upstream_over(session, url=url, headers=headers), VirtualClock(), chat, 3)


def anthropic(session: VirtualSession, url: str = "http://there", model: str | None = None) -> Anthropic:
    headers = {"x-api-key": "s3cret"}
    return Anthropic(upstream_over(session, url=url, headers=headers), VirtualClock(), model, 3, "buffer")


both = pytest.mark.parametrize("make", [openai, anthropic])


def generated(backend: Backend, job: Job) -> list[Chunk]:
    chunks: list[Chunk] = []
    assert run(backend.generate(job, chunks.extend), VirtualClock())
    return chunks


def sent(session: VirtualSession) -> tuple[str, dict[str, Any], Mapping[str, str]]:
    """Address, body and headers of the one request."""
    ((method, url, more),) = session.requests
    assert method == "POST"
    return url, json.loads(more["data"]), more["headers"]


@both
async def test_there_are_so_many_places_while_it_takes_connections(make: Make) -> None:
    session = VirtualSession([])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        backend = make(session, f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert await backend.look() == Sight(3, None, True)
        assert session.requests == [], "a request might be paid for"
    with pytest.raises(ModelError, match="cannot be reached") as told:
        await backend.look()
    assert told.value.code == "backend_unreachable"


@both
def test_there_is_nothing_to_keep_warm(make: Make) -> None:
    session = VirtualSession([])
    backend = make(session)

    async def main() -> None:
        await backend.settle(0)
        assert not await backend.save(0, 0)
        assert await backend.restore(0, 0) == 0

    run(main(), VirtualClock())
    assert session.requests == [] and not backend.has_slots


@pytest.mark.parametrize(
    ("make", "answer", "path"),
    [(openai, CHAT_ANSWER, "/chat/completions"), (anthropic, MESSAGES_ANSWER, "/messages")],
)
@pytest.mark.parametrize(
    "url", ["http://there", "http://there/", "http://there/v1", "http://there/api/v1/", "http://there/api"]
)
def test_the_address_may_end_in_the_version(make: Make, answer: bytes, path: str, url: str) -> None:
    session = VirtualSession([(1, answer)])
    chunks = generated(make(session, url), Job(request(), None, 100, 5))
    assert [c.text for c in chunks if isinstance(c, TextDelta)] == ["Hello"]
    assert isinstance(chunks[-1], End) and chunks[-1].usage.output == 1
    root = {"http://there": "http://there/v1", "http://there/": "http://there/v1"}.get(url, url.rstrip("/"))
    assert sent(session)[0] == root + path


@pytest.mark.parametrize(("make", "answer"), [(openai, CHAT_ANSWER), (anthropic, MESSAGES_ANSWER)])
@pytest.mark.parametrize(("model", "named"), [(None, "any"), ("big", "big")])
def test_the_model_is_the_configured_one_or_the_clients(
    make: Make, answer: bytes, model: str | None, named: str
) -> None:
    session = VirtualSession([(1, answer)])
    generated(make(session, model=model), Job(request(), None, 77, 5))
    _, body, _ = sent(session)
    assert body["model"] == named and body["stream"] is True
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 77
    assert "id_slot" not in body


def test_openais_kind_is_sent_images() -> None:
    session = VirtualSession([(1, CHAT_ANSWER)])
    asked = request()
    seen = Message("user", (Text("Look"), Image("image/png", "AAAA")))
    generated(openai(session), Job(type(asked)("m", (seen,)), None, 5, 5))
    assert "AAAA" in json.dumps(sent(session)[1])


# -- passing through ----------------------------------------------------------------------------------------

BODY = b'{"model":"claude-x","max_tokens":5,"odd":[1, 2],"messages":[{"role":"user","content":"Hi"}]}'


def test_a_client_of_the_same_protocol_passes_through() -> None:
    session = VirtualSession([(1, MESSAGES_ANSWER)])
    client = {
        "anthropic-beta": "new",
        "anthropic-version": "2024-01-01",
        "authorization": "Bearer mine",
        "x-api-key": "mine",
        "cookie": "c",
    }
    chunks = generated(anthropic(session), Job(request(), None, 5, 5, BODY, client))
    assert [c.event for c in chunks if isinstance(c, Verbatim)][0::5] == ["message_start", "message_stop"]
    assert any(isinstance(c, Progress) for c in chunks)
    _, body, headers = sent(session)
    assert body == {**json.loads(BODY), "stream": True}
    assert headers["anthropic-beta"] == "new" and headers["anthropic-version"] == "2024-01-01"
    assert headers["x-api-key"] == "s3cret"
    assert "cookie" not in headers and "authorization" not in headers


def test_the_configured_model_replaces_that_of_a_body_that_passes_through() -> None:
    session = VirtualSession([(1, MESSAGES_ANSWER)])
    generated(anthropic(session, model="claude-y"), Job(request(), None, 5, 5, BODY))
    assert sent(session)[1]["model"] == "claude-y"


def test_others_are_rendered_and_no_event_is_passed_on() -> None:
    session = VirtualSession([(1, MESSAGES_ANSWER)])
    chunks = generated(anthropic(session), Job(request("Hi"), None, 5, 5))
    assert not any(isinstance(c, Verbatim) for c in chunks)
    assert sent(session)[1]["messages"][0]["role"] == "user"


def test_only_anthropics_kind_can_count() -> None:
    assert run(openai(VirtualSession([])).count(request()), VirtualClock()) is None
    session = VirtualSession([(1, b'{"input_to'), (1, b'kens": 42}')])
    assert run(anthropic(session).count(request()), VirtualClock()) == 42
    url, body, headers = sent(session)
    assert url == "http://there/v1/messages/count_tokens" and "max_tokens" not in body
    assert headers["anthropic-version"]


@pytest.mark.parametrize("session", [VirtualSession([(1, b"<html>")]), VirtualSession([(1, b"{}")], 404)])
def test_what_cannot_be_counted_is_estimated_elsewhere(session: VirtualSession) -> None:
    assert run(anthropic(session).count(request()), VirtualClock()) is None


# -- refusals -----------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("headers", "wait_s"), [({"retry-after": "7"}, 7.0), ({"retry-after-ms": "1"}, 0.001), ({}, 5.0)]
)
def test_how_long_a_quota_lasts(make: Make, headers: dict[str, str], wait_s: float | None) -> None:
    session = VirtualSession([(1, b'{"error":{"message":"slow '), (1, b'down"}}')], 429, headers)
    with pytest.raises(ModelError, match="slow down") as caught:
        generated(make(session), Job(request(), None, 5, 5))
    assert (caught.value.code, caught.value.wait_s) == ("rate_limited", wait_s)


def test_a_rate_limit_inside_a_stream() -> None:
    event = b'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"slow"}}\n\n'
    started = MESSAGES_ANSWER[: MESSAGES_ANSWER.index(b"event: content_block_start")]
    session = VirtualSession([(1, started), (1, event)])
    chunks: list[Chunk] = []
    with pytest.raises(ModelError) as caught:
        run(anthropic(session).generate(Job(request(), None, 5, 5, BODY), chunks.extend), VirtualClock())
    assert caught.value.code == "rate_limited"
    assert isinstance(chunks[0], Verbatim), "the client has seen that, so it is not asked again"


@both
def test_a_refused_key_is_not_repeated(make: Make) -> None:
    session = VirtualSession([(1, b'{"error":{"message":"bad key s3cret"}}')], 400)
    with pytest.raises(ModelError) as caught:
        generated(make(session), Job(request(), None, 5, 5))
    assert "bad key [key]" in caught.value.detail
    assert "s3cret" not in caught.value.detail
