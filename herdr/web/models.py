"""The model endpoints: four protocols, one way through. Each answers, and fails, in its own client's terms."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from herdr.clock import Clock
from herdr.errors import HerdrError
from herdr.pool.canonical import canonical
from herdr.pool.chunk import Chunk, End
from herdr.pool.failures import ModelError, stopping
from herdr.pool.generation import Place, Reader
from herdr.pool.identity import identify
from herdr.pool.pool import Pool
from herdr.pool.protocols.backend.tokens import estimate_tokens
from herdr.pool.protocols.dialect import Dialect, Encoder, Ending, Opening
from herdr.pool.request import ChatRequest
from herdr.pool.run import Inquiry
from herdr.pool.turns import last_user_text
from herdr.web.asgi import ABORT, JSON, Headers, Receive, Reply, Scope, read_body, respond
from herdr.web.auth import ANYONE, Caller
from herdr.web.problems import CONTENT_TYPE, headers_of, problem_of, status_of
from herdr.web.sse import SSE_HEADERS
from herdr.web.streams import Streams

MODEL_BODY_MAX = 32 * 1024 * 1024  # bytes; the bound of Anthropic's own API, images included
BODY_ADVICE = "send less: smaller images, or a shorter history"
FIRST_CHUNK_S = 2.0  # for the backend's status and first words, before the stream is opened with estimates
PROBLEM: Headers = [(b"content-type", CONTENT_TYPE.encode())]
UNPLACED = "none"  # X-Herdr-Slot of a call that has none


class ModelEndpoint:
    """The handler of one protocol's generating endpoint."""

    def __init__(
        self,
        dialect: Dialect,
        pool: Pool,
        streams: Streams,
        clock: Clock,
        new_id: Callable[[], str],
        *,
        passes_verbatim: bool = False,
        errors_are_problems: bool = False,
    ) -> None:
        """`passes_verbatim`: its bodies can go to a backend of kind `anthropic` as they are."""
        self._dialect = dialect
        self._pool = pool
        self._streams = streams
        self._clock = clock
        self._new_id = new_id
        self._passes_verbatim = passes_verbatim
        self._errors_are_problems = errors_are_problems

    async def __call__(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer one call."""
        body = await read_body(scope, receive, MODEL_BODY_MAX, BODY_ADVICE)
        request = self._dialect.parse(body)
        inquiry = self._inquire(scope, request, body, caller)
        stream = ModelStream(self._streams, send, scope)
        if not self._streams.enter(stream):
            raise ModelError("overloaded", "as many streams as max_connections allows are open; ask again", 5)
        try:
            with self._pool.open(inquiry) as reader:
                error_type = PROBLEM if self._errors_are_problems else JSON
                answering = Answering(self._dialect, request, inquiry, self._clock, error_type)
                await stream.serve(reader, receive, answering)
        finally:
            self._streams.leave(stream)

    def _inquire(self, scope: Scope, request: ChatRequest, body: bytes, caller: Caller) -> Inquiry:
        asked = canonical(request)
        headers = _text_headers(scope)
        token_name = None if caller is ANYONE else caller.name
        return Inquiry(
            asked,
            identify(headers, request, asked, token_name),
            estimate_tokens(asked.request),
            last_user_text(request),
            body if self._passes_verbatim else None,
            headers,
        )

    def refuse(self, error: HerdrError) -> tuple[int, bytes, Headers]:
        """Return an error's status, body and headers in the protocol's own form."""
        status, call = status_of(error), self._new_id()
        headers = [*headers_of(error), *call_headers(call, Place(None, 0))]
        if self._errors_are_problems:
            return status, msgspec.json.encode(problem_of(error)), headers
        body = self._dialect.error_body(status, error.code, error.detail, call)
        return status, body, [*JSON, *(header for header in headers if header[0] != b"content-type")]


class Answering:
    """One client's side of an answer: its protocol, its request, its clock."""

    def __init__(
        self, dialect: Dialect, request: ChatRequest, inquiry: Inquiry, clock: Clock, error_type: Headers
    ) -> None:
        self.streams = request.stream
        self.error_type = error_type
        self._dialect = dialect
        self._request = request
        self._agent = inquiry.caller.shown
        self._clock = clock
        self._arrived = clock.monotonic()

    def waited_ms(self) -> int:
        """Return how long the client has waited so far."""
        return round(1000 * (self._clock.monotonic() - self._arrived))

    def opening(self, reader: Reader, place: Place) -> Opening:
        """Return what is known when the answer begins."""
        generation = reader.generation
        return Opening(
            generation.call,
            self._request.model,
            self._agent,
            place.slot,
            place.queue_ms,
            self._clock.wall_us() // 1_000_000,
            generation.usage,
        )

    def encoder(self, opening: Opening) -> Encoder:
        """Return the writer of the stream."""
        return self._dialect.encoder(opening, self._request)

    def whole(self, reader: Reader, place: Place) -> bytes:
        """Return the whole answer."""
        opening = self.opening(reader, place)
        return self._dialect.whole(
            opening, self._request, reader.generation.chunks, self.ending(reader, place)
        )

    def ending(self, reader: Reader, place: Place) -> Ending:
        """Return what is known when it is over."""
        now = self._clock.monotonic()
        first = reader.generation.first_token_at or now
        return Ending(
            place.queue_ms, max(0, round(1000 * (first - self._arrived))), round(1000 * (now - self._arrived))
        )

    def error_body(self, call: str, error: ModelError) -> bytes:
        """Return an error as a whole answer."""
        return self._dialect.error_body(error.status, error.code, error.detail, call)


class ModelStream:
    """One client of the pool. Implements `herdr.web.streams.Stream`."""

    def __init__(self, streams: Streams, send: Reply, scope: Scope) -> None:
        self.written_at = streams.now()
        self.writing_since: float | None = None
        self._streams = streams
        self._send = send
        self._abort: Callable[[], None] | None = scope.get(ABORT)
        self._reader: Reader | None = None
        self._gone = False

    def poke(self) -> None:
        """See `Stream.poke`."""
        if self._reader is not None:
            self._reader.poke()

    def abort(self) -> None:
        """See `Stream.abort`."""
        if self._abort is not None:
            self._abort()

    async def serve(self, reader: Reader, receive: Receive, answering: Answering) -> None:
        """Write one answer; the client's leaving ends it."""
        self._reader = reader
        task = asyncio.current_task()
        assert task is not None
        watch = asyncio.create_task(self._watch_for_leaving(receive, task))
        try:
            await self._serve(reader, answering)
        except asyncio.CancelledError:
            if not self._gone:
                raise
            task.uncancel()
        finally:
            watch.cancel()

    async def _serve(self, reader: Reader, answering: Answering) -> None:
        try:
            place = await self._placed(reader)
            if answering.streams:
                await self._wait_for_first(reader)
            else:
                await self._wait_for_all(reader)
        except ModelError as error:
            await self._refuse(reader, answering, error)
            return
        headers = call_headers(reader.generation.call, place)
        if answering.streams:
            await self._stream(reader, place, answering, headers)
        else:
            await respond(self._send, 200, answering.whole(reader, place), [*JSON, *headers])

    async def _placed(self, reader: Reader) -> Place:
        """Hold the headers back while the call waits for its slot: until then it can still be a 503."""
        while (place := reader.generation.place) is None:
            await self._look_on(reader)
        return place

    async def _wait_for_first(self, reader: Reader) -> None:
        """Wait a moment for the backend's first words: a refusal is then a real status, and usage exact."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_CHUNK_S):
                while not reader.generation.chunks:
                    await self._look_on(reader)

    async def _wait_for_all(self, reader: Reader) -> None:
        while not reader.generation.ended or reader.generation.failure is not None:
            await self._look_on(reader)

    async def _look_on(self, reader: Reader) -> None:
        """Wait for news of an answer of which nothing can be written yet; raises ModelError."""
        if reader.generation.failure is not None:
            raise reader.generation.failure
        if self._streams.stopping:
            raise stopping()
        await reader.moved()
        self.written_at = self._streams.now()  # no keep-alive is missing

    async def _refuse(self, reader: Reader, answering: Answering, error: ModelError) -> None:
        place = reader.generation.place or Place(None, answering.waited_ms())
        headers = call_headers(reader.generation.call, place)
        if error.retry_after_s is not None:
            headers.append((b"retry-after", b"%d" % error.retry_after_s))
        body = answering.error_body(reader.generation.call, error)
        await respond(self._send, error.status, body, [*answering.error_type, *headers])

    async def _stream(self, reader: Reader, place: Place, answering: Answering, headers: Headers) -> None:
        encoder = answering.encoder(answering.opening(reader, place))
        await self._send({"type": "http.response.start", "status": 200, "headers": [*SSE_HEADERS, *headers]})
        try:
            out = b"" if place.passes_through else encoder.start()
            while True:
                out += self._encoded(encoder, reader.take(), answering, reader, place)
                if reader.finished:
                    await self._send({"type": "http.response.body", "body": out})
                    return
                if self._streams.stopping:
                    raise stopping()
                if not out and self._streams.now() - self.written_at >= 1.0:
                    out = encoder.ping()
                if out:
                    await self._write(out)
                    out = b""
                await reader.moved()
        except ModelError as error:
            out += encoder.error(error.status, error.code, error.detail)
            await self._send({"type": "http.response.body", "body": out})

    @staticmethod
    def _encoded(
        encoder: Encoder, chunks: Sequence[Chunk], answering: Answering, reader: Reader, place: Place
    ) -> bytes:
        return b"".join(
            [
                encoder.end(chunk, answering.ending(reader, place))
                if type(chunk) is End
                else encoder.feed(chunk)
                for chunk in chunks
            ]
        )

    async def _write(self, block: bytes) -> None:
        self.writing_since = self._streams.now()
        await self._send({"type": "http.response.body", "body": block, "more_body": True})
        self.writing_since = None
        self.written_at = self._streams.now()

    async def _watch_for_leaving(self, receive: Receive, serving: "asyncio.Task[None]") -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        serving.cancel()


def call_headers(call_id: str, place: Place) -> Headers:
    """Return the headers that every answer carries."""
    call = call_id.encode()
    slot = UNPLACED if place.slot is None else str(place.slot)
    return [
        (b"request-id", b"req_" + call),
        (b"x-herdr-call", call),
        (b"x-herdr-slot", slot.encode()),
        (b"x-herdr-queue-ms", b"%d" % place.queue_ms),
    ]


def _text_headers(scope: Scope) -> Mapping[str, str]:
    return {bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in scope["headers"]}
