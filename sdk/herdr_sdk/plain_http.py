"""Plain HTTP to one gateway, for what needs no connection that stays: look-ups, sessions, artifacts, snapshots."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from yarl import URL

from herdr_sdk.errors import ConnectionFailed, FieldError, HerdrError, OutcomeUnknown, ServerError
from herdr_sdk.frames import Failure

ANSWER_S = 30.0  # as long as a publish may take by default; the gateway holds an answer for 10 s at most
ASK_FIRST_BYTES = (
    1024 * 1024
)  # of a body: more might be refused for its size, and the refusal lost on the way

_T = TypeVar("_T")


class Request(NamedTuple):
    """What is asked for."""

    method: str
    path: str
    """From the gateway's address on, with its names quoted: see `part` and `parts`."""
    query: Mapping[str, object] = {}
    """None is left out, a list gives its name several times, booleans are in lower case."""
    body: bytes | BinaryIO | None = None
    headers: Mapping[str, str] = {}
    silence_s: float | None = None
    """For a transfer of any size: the longest silence in place of the longest time for all of it."""
    lost: Callable[[str], HerdrError] = ConnectionFailed
    """The error for a request that may have gone out and was not answered."""


class Reply(NamedTuple):
    """An answer that is no error."""

    status: int
    etag: str | None
    body: bytes


class _Problem(msgspec.Struct):
    code: str = ""
    detail: str = ""
    errors: list[FieldError] = []


class PlainHttp:
    """One gateway. Each request has a connection of its own: there is nothing to close, and making one costs
    0.3 ms on loopback.
    """

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def read(self, kind: type[_T], request: Request) -> _T:
        """Return the answer decoded; raises HerdrError for status 400 and above."""
        return self.decode(kind, request, (await self.ask(request)).body)

    async def ask(self, request: Request) -> Reply:
        """Return the answer whole; raises HerdrError for status 400 and above."""
        async with self.answer(request) as response:
            return Reply(response.status, response.headers.get("ETag"), await response.read())

    @asynccontextmanager
    async def answer(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and give the answer, to be read within the block.

        Raises HerdrError for status 400 and above, and when the connection breaks, also while the block reads.
        """
        total_s = ANSWER_S if request.silence_s is None else None
        timeout = aiohttp.ClientTimeout(total=total_s, sock_read=request.silence_s)
        body = request.body  # as a file if it is large: aiohttp would warn of the bytes
        data = BytesIO(body) if isinstance(body, bytes) else body
        may_be_refused = body is not None and not (isinstance(body, bytes) and len(body) < ASK_FIRST_BYTES)
        sending: dict[str, Any] = {
            "data": data,
            "headers": {**self._headers, **request.headers},
            "expect100": may_be_refused,
        }
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.request(request.method, self._address(request), **sending) as response,
            ):
                if response.status >= 400:
                    raise self._error(request, response, await response.read())
                yield response
        except aiohttp.ClientConnectorError as error:
            raise ConnectionFailed(self._silent(error)) from None
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise request.lost(self._silent(error)) from None

    def decode(self, kind: type[_T], request: Request, body: bytes) -> _T:
        """Return a body decoded; raises ServerError when it is something else."""
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            detail = f"{self._url + request.path} answers with something else than was asked for: {error}. "
            raise ServerError("unreadable_answer", f"{detail}Is it a Herdr gateway?") from None

    def _address(self, request: Request) -> URL:
        query = _parameters(request.query)
        address = self._url + request.path
        # as it stands: yarl would resolve `..` in a file's path before the gateway can refuse it
        return URL(f"{address}?{query}" if query else address, encoded=True)

    def _error(self, request: Request, response: aiohttp.ClientResponse, body: bytes) -> HerdrError:
        try:
            problem = msgspec.json.decode(body, type=_Problem)
        except msgspec.DecodeError:
            where = f"{self._url + request.path} answers HTTP {response.status}"
            return ServerError("unreadable_answer", f"{where} with something else. Is it a Herdr gateway?")
        seconds = response.headers.get("Retry-After", "")
        after_s = float(seconds) if seconds.isascii() and seconds.isdigit() else None
        failure = Failure(problem.code, problem.detail, errors=problem.errors, retry_after_s=after_s)
        return failure.as_error()

    def _silent(self, error: Exception) -> str:
        why = str(error) or type(error).__name__
        return f"The gateway does not answer at {self._url} ({why}). Is it running?"


def json_request(path: str, value: object, ids: Iterable[str] = ()) -> Request:
    """Return a POST of a value as JSON. With the `ids` of what it stores, OutcomeUnknown tells that it may have."""
    named = list(ids)

    def lost(detail: str) -> HerdrError:
        return OutcomeUnknown(f"{detail} What was sent may be stored or not.", named)

    body, headers = msgspec.json.encode(value), {"Content-Type": "application/json"}
    return Request("POST", path, body=body, headers=headers, lost=lost if named else ConnectionFailed)


def part(name: str) -> str:
    """Return a name as one part of an address; raises ValueError when it is empty."""
    if not name:
        raise ValueError("the name is empty; say which one is meant")
    return quote(name, safe="", errors="surrogateescape")


def parts(path: str) -> str:
    """Return a path as the end of an address, its slashes as they are; raises ValueError when it is empty."""
    if not path:
        raise ValueError("the path is empty; say which one is meant")
    return quote(path, safe="/", errors="surrogateescape")


def several(names: str | Iterable[str]) -> list[str]:
    """Return one or several names as a list."""
    return [names] if isinstance(names, str) else list(names)


def _parameters(query: Mapping[str, object]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        values: Iterable[Any] = value if isinstance(value, list | tuple) else (value,)
        pairs += [(name, str(v).lower() if isinstance(v, bool) else str(v)) for v in values if v is not None]
    return urlencode(pairs, errors="surrogateescape")
