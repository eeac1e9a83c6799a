"""A stream of events from the gateway over SSE that survives lost connections and restarts."""

import http.client
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlencode

from herdr.cli.client import Answer, Gateway
from herdr.errors import HerdrError

SILENCE_MAX_S = 45.0  # three of the gateway's keep-alives
RETRY_MS = 2000  # until the gateway says otherwise
WAIT_MAX_S = 30.0
BLOCK_MAX = 32 * 1024**2  # bytes of one unfinished event; no gateway of ours sends one
_CHUNK = 64 * 1024

Query = Sequence[tuple[str, str]]


class Block(NamedTuple):
    """One dispatched event of the stream."""

    event: str
    data: str
    cursor: str
    """From where to resume after it."""


class SseReader:
    """Turns the gateway's bytes into blocks: lines end with LF, and data is one line.

    The SDK has a parser for every stream that the standard allows; these are the gateway's own.
    """

    def __init__(self, cursor: str) -> None:
        self.cursor = cursor
        self.retry_ms = RETRY_MS
        self._rest = b""
        self._fields: dict[bytes, str] = {}

    def feed(self, chunk: bytes) -> list[Block]:
        """Return the blocks that the chunk completes; raises HerdrError for one that never ends."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > BLOCK_MAX:
            raise HerdrError(f"the stream holds a line of more than {BLOCK_MAX} bytes: is this a gateway?")
        return [block for line in lines if (block := self._take(line.removesuffix(b"\r"))) is not None]

    def _take(self, line: bytes) -> Block | None:
        if line:
            name, _, value = line.partition(b":")
            self._fields[name] = value.removeprefix(b" ").decode("utf-8", "replace")
            return None
        fields, self._fields = self._fields, {}
        self.cursor = fields.get(b"id", self.cursor)
        if fields.get(b"retry", "").isdigit():
            self.retry_ms = int(fields[b"retry"])
        if b"data" not in fields:
            return None
        return Block(fields.get(b"event", "message"), fields[b"data"], self.cursor)


class Follower:
    """One subscription. `say` gets what a person should know, such as that the connection was lost."""

    def __init__(
        self,
        gateway: Gateway,
        query: Query,
        say: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._gateway = gateway
        self._query = query
        self._say = say
        self._wait = wait
        self._cursor = ""
        self._failures = 0
        self._retry_ms = RETRY_MS

    def blocks(self) -> Iterator[list[Block]]:
        """Yield what arrives, for ever; raises HerdrError if the gateway refuses, or is not there at first."""
        self._connection, response = self._open()
        while True:
            yield from self._read(response)
            response = self._come_back()

    def _read(self, response: http.client.HTTPResponse) -> Iterator[list[Block]]:
        reader = SseReader(self._cursor)
        with closing(self._connection):
            while True:
                try:
                    chunk = response.read1(_CHUNK)
                except (OSError, http.client.HTTPException) as error:
                    self._say(f"the connection was lost ({error or type(error).__name__})")
                    return
                if not chunk:
                    return
                blocks = reader.feed(chunk)
                self._cursor, self._retry_ms, self._failures = reader.cursor, reader.retry_ms, 0
                if blocks:
                    yield blocks

    def _come_back(self) -> http.client.HTTPResponse:
        """Connect again, however long the gateway is away; what is wrong is said once."""
        self._say("trying to come back, to the same place; Ctrl-C ends it")
        while True:
            self._wait(
                min(self._retry_ms / 1000 * 2 ** min(self._failures, 8), WAIT_MAX_S) * random.uniform(1, 1.25)
            )
            try:
                self._connection, response = self._open()
            except HerdrError as error:
                if error.code != "unreachable":
                    raise
                if not self._failures:
                    self._say(error.detail)
                self._failures += 1
            else:
                self._say("connected again")
                return response

    def _open(self) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        if self._cursor:
            headers["last-event-id"] = self._cursor
        path = "/v1/events" + (f"?{urlencode(self._query)}" if self._query else "")
        connection, response = self._gateway.open("GET", path, None, headers)
        if response.status == HTTPStatus.OK and response.headers.get_content_type() == "text/event-stream":
            return connection, response
        with closing(connection):
            raise self._refusal(response)

    def _refusal(self, response: http.client.HTTPResponse) -> HerdrError:
        try:
            value = json.loads(response.read(_CHUNK))
        except (ValueError, OSError, http.client.HTTPException):
            value = None
        return self._gateway.problem(Answer(response.status, value))
