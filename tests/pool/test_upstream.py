import asyncio
import socket
from typing import Any

import pytest
from raw_server import answer, raw_server
from virtual_time import VirtualClock, run
from virtual_upstream import LIMITS, VirtualSession, upstream_over

from herdr.pool import upstream as upstream_module
from herdr.pool.failures import ModelError
from herdr.pool.upstream import ASK_S, REFUSAL_MAX, Answer, LimitName, client_session


def refused(said: Answer) -> ModelError:
    return ModelError("backend_refused", f"{said.status}: {said.body.decode()}")


def all_is_news(data: bytes) -> LimitName:
    return "between_chunks_s"


# -- limits, in virtual time --------------------------------------------------------------------------------


def streamed(session: VirtualSession, feed: Any = all_is_news, clock: VirtualClock | None = None) -> bytes:
    """Stream an answer; returns what came."""
    got: list[bytes] = []

    def take(data: bytes) -> LimitName | None:
        got.append(data)
        limit: LimitName | None = feed(data)
        return limit

    run(upstream_over(session).stream("/x", b"{}", {}, take, refused), clock or VirtualClock())
    return b"".join(got)


def test_an_answer_may_take_long_as_long_as_it_goes_on() -> None:
    clock = VirtualClock()
    assert streamed(VirtualSession([(59.0, b"x")] * 30, head_after_s=1.0), clock=clock) == b"x" * 30
    assert clock.now == 1.0 + 30 * 59


@pytest.mark.parametrize(
    ("session", "feed", "at"),
    [
        (VirtualSession([], head_after_s=9999), all_is_news, LIMITS.first_byte_s),
        (VirtualSession([(9999, b"x")]), all_is_news, LIMITS.first_byte_s),
        (VirtualSession([(250, b"x"), (9999, b"x")]), all_is_news, 250 + LIMITS.between_chunks_s),
        (
            VirtualSession([(1, b"x"), *[(20.0, b":\n\n")] * 9]),
            lambda d: None if d[:1] == b":" else "between_chunks_s",
            61.0,
        ),
        (VirtualSession([(20.0, b":\n\n")] * 99), lambda d: None, LIMITS.first_byte_s),
        (VirtualSession([(50.0, b"x")] * 99), all_is_news, LIMITS.total_s),
        (VirtualSession([(50.0, b"x")] * 99), lambda d: "first_byte_s", LIMITS.total_s),
    ],
    ids=["no head", "no byte", "no more", "comments", "only comments", "total", "total whatever patience"],
)
def test_what_takes_too_long_is_cut(session: VirtualSession, feed: Any, at: float) -> None:
    clock = VirtualClock()
    with pytest.raises(ModelError, match="took too long") as told:
        streamed(session, feed, clock)
    assert told.value.code == "backend_timeout"
    limit = {300: "first_byte_s", 1800: "total_s"}.get(round(at), "between_chunks_s")
    assert f"{getattr(LIMITS, limit):g} s, see models.backends[].timeouts.{limit}" in told.value.detail
    assert clock.now == pytest.approx(at)
    assert session.over == 1, "its connection is closed"


def test_a_small_question_has_its_time() -> None:
    session = VirtualSession([(1.0, b"a"), (1.0, b"b")])
    upstream = upstream_over(session, url="http://there:1/", headers={"authorization": "Bearer k"})
    said = run(upstream.ask("GET", "/props"), VirtualClock())
    assert (said.status, said.body) == (200, b"ab")
    ((method, url, sent),) = session.requests
    assert (method, url) == ("GET", "http://there:1/props")
    assert sent["headers"] == {"accept-encoding": "identity", "authorization": "Bearer k"}
    assert sent["timeout"].total == ASK_S and not sent["allow_redirects"]


def test_a_body_goes_as_json_and_a_callers_headers_go_along() -> None:
    session = VirtualSession([])
    run(
        upstream_over(session).stream("/x", b"{}", {"anthropic-beta": "b"}, all_is_news, refused),
        VirtualClock(),
    )
    ((method, _, sent),) = session.requests
    assert method == "POST" and sent["data"] == b"{}"
    assert sent["headers"]["content-type"] == "application/json" and sent["headers"]["anthropic-beta"] == "b"


def test_a_refusal_is_read_to_its_end_and_no_further_than_its_bound() -> None:
    with pytest.raises(ModelError, match="418: a teapot"):
        streamed(VirtualSession([(1, b"a "), (1, b"tea"), (1, b"pot")], status=418))
    session = VirtualSession([(0.1, b"x" * 1000)] * 1000, status=500)
    with pytest.raises(ModelError) as told:
        streamed(session)
    assert len(told.value.detail) == len("500: ") + REFUSAL_MAX


def test_what_the_reader_raises_ends_the_stream() -> None:
    def enough(data: bytes) -> LimitName:
        raise KeyError("enough")

    session = VirtualSession([(1, b"x")] * 9)
    with pytest.raises(KeyError):
        streamed(session, enough)
    assert session.over == 1


@pytest.mark.parametrize("headers", [{"authorization": "Bearer s3cret"}, {"x-api-key": "s3cret"}])
def test_our_key_is_taken_out_of_errors(headers: dict[str, str]) -> None:
    upstream = upstream_over(VirtualSession([]), headers=headers)
    error = upstream.without_secrets(ModelError("backend_failed", "no s3cret here, s3cret!"))
    assert error.detail == "no [key] here, [key]!"


# -- real sockets -------------------------------------------------------------------------------------------


async def test_an_answer_in_several_segments_is_read_whole() -> None:
    async with raw_server(*answer(200, b'{"a":', b'"b', b'"}')) as server, client_session() as session:
        said = await upstream_over(session, url=server.url).ask("GET", "/props")
        assert (said.status, said.body) == (200, b'{"a":"b"}')


async def test_a_refusal_in_several_segments_is_read_whole() -> None:
    async with (
        raw_server(*answer(400, b"prompt ", b"is too ", b"long")) as server,
        client_session() as session,
    ):
        with pytest.raises(ModelError, match="400: prompt is too long"):
            await upstream_over(session, url=server.url).stream("/x", b"{}", {}, all_is_news, refused)


async def test_an_answer_that_breaks_off_is_a_failure() -> None:
    async with raw_server(*answer(200, b"half", length=99)) as server, client_session() as session:
        upstream = upstream_over(session, url=server.url)
        with pytest.raises(ModelError, match=r"there \(http://127.*broke off") as told:
            await upstream.stream("/x", b"{}", {}, all_is_news, refused)
        assert told.value.code == "backend_failed"
        with pytest.raises(ModelError, match="broke off"):
            await upstream.ask("GET", "/props")


@pytest.mark.parametrize("said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n"])
async def test_what_is_no_http_is_a_failure(said: bytes) -> None:
    async with raw_server(said) as server, client_session() as session:
        with pytest.raises(ModelError) as told:
            await upstream_over(session, url=server.url).ask("GET", "/props")
        assert told.value.code == "backend_failed"


async def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with client_session() as session:
        upstream = upstream_over(session, url=f"http://127.0.0.1:{port}")
        with pytest.raises(ModelError, match=r"cannot be reached: .*mend models\.backends") as told:
            await upstream.ask("GET", "/props")
        assert told.value.code == "backend_unreachable"


async def test_a_header_that_cannot_be_is_a_failure_and_no_mistake() -> None:
    async with raw_server(*answer(200, b"{}")) as server, client_session() as session:
        upstream = upstream_over(session, url=server.url, headers={"x-api-key": "a\r\nb"})
        with pytest.raises(ModelError):
            await upstream.ask("GET", "/props")


async def test_each_request_has_a_connection_of_its_own_and_no_redirect_is_followed() -> None:
    async with (
        raw_server(*answer(302, b"", headers="location: /other\r\n")) as server,
        client_session() as session,
    ):
        upstream = upstream_over(session, url=server.url)
        for _ in range(2):
            assert (await upstream.ask("GET", "/a")).status == 302
        assert [asked.split(b" ")[1] for asked in server.asked] == [b"/a", b"/a"]


async def test_leaving_closes_the_connection() -> None:
    endless = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", *[b"1\r\nx\r\n"] * 10_000]
    async with raw_server(*endless) as server, client_session() as session:
        came = asyncio.Event()

        def feed(data: bytes) -> LimitName:
            came.set()
            return "between_chunks_s"

        upstream = upstream_over(session, url=server.url)
        task = asyncio.create_task(upstream.stream("/x", b"{}", {}, feed, refused))
        await came.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await server.left.wait()


async def test_a_whole_answer_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_module, "ANSWER_MAX", 5)
    async with raw_server(*answer(200, b"abc", b"def", b"ghi")) as server, client_session() as session:
        assert (await upstream_over(session, url=server.url).ask("GET", "/props")).body == b"abcde"
