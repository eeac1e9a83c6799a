"""The way to one backend: an HTTP client that bounds every wait and turns what goes wrong into ModelErrors."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from herdr.pool.failures import ModelError

ASK_S = 10.0  # for small questions (`/props`, `/slots`): they queue behind a decode batch in llama.cpp
ANSWER_MAX = 16 * 1024 * 1024  # bytes of an answer that is not streamed; a chat template alone takes 20 KiB
REFUSAL_MAX = 64 * 1024  # bytes that are read of an error's body

LimitName = Literal["first_byte_s", "between_chunks_s"]
Feed = Callable[[bytes], LimitName | None]
"""Takes bytes of the answer; returns the limit for the next ones, or None after mere keep-alives."""


class Limits(NamedTuple):
    """How long the parts of an answer may take, in seconds."""

    connect_s: float
    first_byte_s: float
    between_chunks_s: float
    total_s: float


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Upstream:
    """Requests to one backend. Each generation gets a connection of its own.

    Reusing the connection of a finished llama.cpp stream gave spurious failures, whatever its
    `Keep-Alive` header promises.
    """

    def __init__(
        self, name: str, url: str, headers: Mapping[str, str], limits: Limits, session: aiohttp.ClientSession
    ) -> None:
        self.name = name
        self.url = url.rstrip("/")
        self._headers = dict(headers)
        self.limits = limits
        self._session = session

    def without_secrets(self, error: ModelError) -> ModelError:
        """Take our credentials out of an error: some servers repeat in it what they were sent."""
        for value in self._headers.values():
            error.detail = error.detail.replace(value.removeprefix("Bearer "), "[key]")
        return error

    async def reach(self) -> None:
        """Open a connection and close it again; raises ModelError when nobody listens."""
        address = urlsplit(self.url)
        port = address.port or (443 if address.scheme == "https" else 80)
        try:
            async with asyncio.timeout(self.limits.connect_s):
                _, writer = await asyncio.open_connection(address.hostname, port)
        except TimeoutError:
            raise self._unreachable(f"no connection within {self.limits.connect_s:g} s") from None
        except OSError as error:
            raise self._unreachable(error.strerror or str(error)) from None
        writer.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        within_s: float = ASK_S,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Send a small request and return the whole answer, whatever its status; raises ModelError."""
        timeout = aiohttp.ClientTimeout(total=within_s, sock_connect=min(within_s, self.limits.connect_s))
        with self._told(lambda: f"{within_s:g} s for {path}"):
            async with self._request(method, path, body, headers, timeout) as response:
                return await _whole(response, ANSWER_MAX)

    async def stream(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        feed: Feed,
        refused: Callable[[Answer], ModelError],
    ) -> None:
        """POST and hand over the bytes of the answer as they come, until it ends or `feed` raises.

        `refused` makes the error for any status but 200. Raises ModelError, also when a limit is passed.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.limits.connect_s)
        loop = asyncio.get_running_loop()
        last = loop.time() + self.limits.total_s
        limit: LimitName = "first_byte_s"

        def too_late() -> str:
            name = limit if loop.time() < last else "total_s"
            return f"{getattr(self.limits, name):g} s, see models.backends[].timeouts.{name}"

        with self._told(too_late):
            async with asyncio.timeout_at(min(last, loop.time() + self.limits.first_byte_s)) as patience:
                async with self._request("POST", path, body, headers, timeout) as response:
                    if response.status != 200:
                        raise refused(await _whole(response, REFUSAL_MAX))
                    async for data in response.content.iter_any():
                        if (heard := feed(data)) is not None:
                            limit = heard
                            patience.reschedule(min(last, loop.time() + getattr(self.limits, limit)))

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> "contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]":
        sent = {"accept-encoding": "identity", **self._headers, **headers}
        if body is not None:
            sent["content-type"] = "application/json"
        return self._session.request(
            method, self.url + path, data=body, headers=sent, timeout=timeout, allow_redirects=False
        )

    @contextlib.contextmanager
    def _told(self, too_late: Callable[[], str]) -> Iterator[None]:
        """Turn what goes wrong into a ModelError; `too_late` says what was too long."""
        try:
            yield
        except aiohttp.ClientConnectorError as error:
            raise self._unreachable(error.os_error.strerror or str(error.os_error)) from None
        except aiohttp.ConnectionTimeoutError:
            raise self._unreachable(f"no connection within {self.limits.connect_s:g} s") from None
        except TimeoutError:
            raise ModelError(
                "backend_timeout", f"{self._place} took too long: more than {too_late()}"
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: what no header can hold
            raise ModelError("backend_failed", f"{self._place} broke off: {_cause(error)}") from None

    @property
    def _place(self) -> str:
        return f"the backend {self.name} ({self.url})"

    def _unreachable(self, why: str) -> ModelError:
        detail = f"{self._place} cannot be reached: {why}; start it, or mend models.backends"
        return ModelError("backend_unreachable", detail)


async def _whole(response: aiohttp.ClientResponse, limit: int) -> Answer:
    """Read a body to its end, or to the limit."""
    read = b""
    async for piece in response.content.iter_any():
        read += piece
        if len(read) > limit:
            break
    return Answer(response.status, response.headers, read[:limit])


def _cause(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__


@contextlib.asynccontextmanager
async def client_session() -> AsyncIterator[aiohttp.ClientSession]:
    """Open the HTTP client that all backends share; it keeps no connection and follows no proxy settings."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=2**18
    ) as session:
        yield session
