import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from herdr_sdk import ConnectionFailed, ServerError, Unauthorized, follow_sse
from herdr_sdk.backoff import Backoff

AT_ONCE = Backoff(uniform=lambda low, high: 0.0)


class Streams:
    """Answers each request with the next prepared response: a status, or the bytes of a stream."""

    def __init__(self) -> None:
        self.answers: list[int | bytes | tuple[str, bytes]] = []
        self.requests: list[web.Request] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            return web.Response(status=answer)
        content_type, body = answer if isinstance(answer, tuple) else ("text/event-stream", answer)
        response = web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        await response.write(body)
        if body.endswith(b"CUT"):
            request.transport.abort()
        return response


@pytest.fixture
async def streams() -> AsyncIterator[Streams]:
    made = Streams()
    app = web.Application()
    app.router.add_get("/v1/events", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1/events"
    yield made
    await runner.cleanup()


async def collect(streams: Streams, **arguments) -> list[tuple[str, str]]:
    return [(e.event, e.data) async for e in follow_sse(streams.url, backoff=AT_ONCE, **arguments)]


async def test_resumes_with_the_last_id_and_ends_at_204(streams) -> None:
    streams.answers = [
        b"retry: 1\nid: e:0\n\nid: e:1\nevent: tool.result\ndata: 1\n\n",
        b"id: e:2\ndata: 2\n\n: keep-alive\nid: e:7\n\nid: e:8\ndata: lost, its blank line did not comeCUT",
        b"id: \xe2\x80\xa6\ndata: 3\n\n",
        204,
    ]
    assert await collect(streams) == [("tool.result", "1"), ("message", "2"), ("message", "3")]
    sent = [request.headers.get("Last-Event-ID") for request in streams.requests]
    assert sent[:3] == [None, "e:1", "e:7"]
    raw = dict(streams.requests[3].raw_headers)[b"Last-Event-ID"]
    assert raw == "…".encode()


async def test_sends_token_query_and_first_id(streams) -> None:
    streams.answers = [204]
    await collect(
        streams, token="secret", query={"type": ["tool.*", "user.*"], "as": "ide"}, last_event_id="e:5"
    )
    [request] = streams.requests
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.headers["Accept"] == "text/event-stream"
    assert request.headers["Last-Event-ID"] == "e:5"
    assert list(request.query.items()) == [("type", "tool.*"), ("type", "user.*"), ("as", "ide")]


async def test_passing_trouble_is_tried_again(streams) -> None:
    streams.answers = [503, 429, 502, 504, b"data: x\n\n", 204]
    assert await collect(streams) == [("message", "x")]


NO_STREAM = [
    (401, Unauthorized),
    (403, Unauthorized),
    (404, ServerError),
    (205, ServerError),
    (("text/plain", b"x"), ServerError),
]


@pytest.mark.parametrize(("answer", "error"), NO_STREAM)
async def test_what_is_no_stream_is_an_error(streams, answer, error) -> None:
    streams.answers = [answer]
    with pytest.raises(error):
        await collect(streams)


@pytest.mark.parametrize("kind", ["text/event-stream;", "text/event-stream;charset=windows-1252"])
async def test_parameters_of_the_type_do_not_matter(streams, kind) -> None:
    streams.answers = [(kind, "data: ok…\n\n".encode()), 204]
    assert await collect(streams) == [("message", "ok…")]


async def test_nobody_there(streams) -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    streams.url = f"http://127.0.0.1:{port}/v1/events"
    with pytest.raises(ConnectionFailed, match="Nobody answers"):
        await collect(streams)
    streams.url = "http://[/"
    with pytest.raises(ConnectionFailed, match="no address"):
        await collect(streams)
