"""Follow a gateway over plain server-sent events, where a WebSocket cannot go."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus

import aiohttp

from herdr_sdk.backoff import CALM_S, Backoff
from herdr_sdk.errors import ConnectionFailed, HerdrError, ServerError, Unauthorized
from herdr_sdk.sse import SSEEvent, SSEParser

SILENCE_S = 45.0  # the gateway says something every 15 s; three times nothing means the connection is dead
_TRANSIENT = (429, 502, 503, 504)

Query = Mapping[str, str | Sequence[str]]


async def follow_sse(
    url: str,
    token: str | None = None,
    query: Query | None = None,
    last_event_id: str = "",
    *,
    backoff: Backoff | None = None,
) -> AsyncIterator[SSEEvent]:
    """Yield the events of a stream, reconnecting with Last-Event-ID as a browser does.

    `url` is the stream's own, such as `http://127.0.0.1:8787/v1/events`. Ends when the server answers 204.
    Raises Unauthorized for 401 and 403, ServerError for any other answer that is no event stream; unlike
    a browser it tries again after 429, 502, 503 and 504. Before the first answer it raises
    ConnectionFailed when nobody listens; afterwards it keeps trying.
    """
    stream = _Stream(url, token, query or {}, last_event_id, backoff or Backoff())
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=SILENCE_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while not stream.finished:
            async for event in stream.read(session):
                yield event


class _Stream:
    """One stream over any number of responses."""

    def __init__(
        self, url: str, token: str | None, query: Query, last_event_id: str, backoff: Backoff
    ) -> None:
        self.finished = False
        self._url = url
        self._token = token
        self._params = [(k, v) for k, vs in query.items() for v in ([vs] if isinstance(vs, str) else vs)]
        self._last_event_id = last_event_id
        self._backoff = backoff
        self._retry_ms: int | None = None
        self._answered = False

    async def read(self, session: aiohttp.ClientSession) -> AsyncIterator[SSEEvent]:
        """Yield what one response brings, then wait as long as a reconnect has to."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            async with session.get(self._url, params=self._params, headers=self._headers()) as response:
                self._answered = True
                if self._check(response):
                    parser = SSEParser(self._last_event_id)
                    async for chunk in response.content.iter_any():
                        events = parser.feed(chunk)
                        self._retry_ms = parser.retry_ms if parser.retry_ms is not None else self._retry_ms
                        for event in events:
                            self._last_event_id = event.id
                            yield event
                        self._last_event_id = parser.last_event_id
        except aiohttp.InvalidURL:
            raise ConnectionFailed(f"{self._url!r} is no address of a stream.") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if not self._answered:
                raise ConnectionFailed(f"Nobody answers at {self._url} ({error}).") from None
        if not self.finished:
            if loop.time() - since >= CALM_S:
                self._backoff.reset()
            await asyncio.sleep(self._wait_s())

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._last_event_id:
            headers["Last-Event-ID"] = self._last_event_id
        return headers

    def _check(self, response: aiohttp.ClientResponse) -> bool:
        """Tell whether the response is a stream to read; False means there is nothing, or not now."""
        if response.status == HTTPStatus.NO_CONTENT:
            self.finished = True
            return False
        if response.status in _TRANSIENT:
            return False
        if response.status == HTTPStatus.OK and response.content_type == "text/event-stream":
            return True
        raise _refusal(self._url, response)

    def _wait_s(self) -> float:
        backoff_s = self._backoff.next_s()
        return backoff_s if self._retry_ms is None else max(backoff_s, self._retry_ms / 1000)


def _refusal(url: str, response: aiohttp.ClientResponse) -> HerdrError:
    if response.status in (401, 403):
        return Unauthorized(
            f"{url} refuses the token (HTTP {response.status}). Set one that has events:follow."
        )
    detail = f"{url} answers HTTP {response.status} with {response.content_type} instead of an event stream."
    return ServerError("no_event_stream", detail)
