"""One client's side of a model's answer: held back, streamed or whole, in its own protocol, to its last word."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from herdr.clock import Clock
from herdr.pool.chunk import Chunk, End
from herdr.pool.failures import ModelError, stopping
from herdr.pool.generation import Place, Reader
from herdr.pool.inset import Report
from herdr.pool.protocols.dialect import Dialect, Encoder, Ending, Opening
from herdr.pool.request import ChatRequest
from herdr.pool.run import Inquiry
from herdr.web.asgi import ABORT, JSON, Headers, Receive, Reply, Scope, respond, until_gone
from herdr.web.sse import SSE_HEADERS
from herdr.web.streams import Streams

FIRST_CHUNK_S = 2.0  # for the backend's status and first words, before the stream is opened with estimates
SLICE = 64 * 1024  # bytes of one write: who joins late gets all at once, and each write has `send_timeout_s`
SILENT_S = 1.0  # a poke that comes sooner after a write is news that turned out to be none
UNPLACED = "none"  # X-Herdr-Slot of a call that has none


class Answering:
    """One client's side of an answer: its protocol, its request, its clock."""

    def __init__(
        self,
        dialect: Dialect,
        request: ChatRequest,
        inquiry: Inquiry,
        clock: Clock,
        error_type: Headers,
    ) -> None:
        self.context: Report | None = None
        """What the prompt holds of the shared context, where that was asked for."""
        self.streams = request.stream
        self._takes_verbatim = inquiry.verbatim is not None
        self.error_type = error_type
        self._dialect = dialect
        self._request = request
        self._agent = inquiry.caller.shown
        self._clock = clock
        self._arrived = clock.monotonic()

    def waited_ms(self) -> int:
        """Return how long the client has waited so far."""
        return round(1000 * (self._clock.monotonic() - self._arrived))

    def passes_through(self, reader: Reader) -> bool:
        """Tell whether the backend's own events are for this client; until the first, another may take over."""
        place = reader.generation.place
        return self._takes_verbatim and place is not None and place.passes_through

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
            self.context,
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
            place = (
                await self._wait_for_begin(reader) if answering.streams else await self._wait_for_all(reader)
            )
        except ModelError as error:
            await self._refuse(reader, answering, error)
            return
        headers = call_headers(reader.generation.call, place)
        if answering.streams:
            await self._stream(reader, place, answering, headers)
        else:
            await respond(self._send, 200, answering.whole(reader, place), [*JSON, *headers])

    async def _wait_for_begin(self, reader: Reader) -> Place:
        """Hold the headers back while the call waits for its slot, for until then it can still be a 503.

        Then give the backend a moment for its first words: a refusal is a real status, and usage exact.
        """
        generation = reader.generation
        while True:
            while (place := generation.place) is None:
                await self._look_on(reader)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_CHUNK_S):
                    while generation.place is not None and not generation.chunks:
                        await self._look_on(reader)
            if generation.place is not None:
                return place

    async def _wait_for_all(self, reader: Reader) -> Place:
        generation = reader.generation
        while generation.failure is not None or not generation.ended:
            await self._look_on(reader)
        assert generation.place is not None  # it has ended well, so it has run
        return generation.place

    async def _look_on(self, reader: Reader) -> None:
        """Wait for news of an answer of which nothing can be written yet; raises ModelError."""
        if reader.generation.failure is not None:
            raise reader.generation.failure.again()
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
            out, has_opening = b"", False
            while True:
                chunks = reader.take()
                if not has_opening and (chunks or not answering.passes_through(reader)):
                    has_opening = True  # a backend that passes through brings its own
                    out += b"" if answering.passes_through(reader) else encoder.start()
                out += self._encoded(encoder, chunks, answering, reader, place)
                if reader.finished:
                    await self._write(out, is_last=True)
                    return
                if self._streams.stopping:
                    raise stopping()
                if not out and self._streams.now() - self.written_at >= SILENT_S:
                    out = encoder.ping()
                if out:
                    await self._write(out)
                    out = b""
                await reader.moved()
        except ModelError as error:
            await self._write(out + encoder.error(error.status, error.code, error.detail), is_last=True)

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

    async def _write(self, block: bytes, *, is_last: bool = False) -> None:
        for at in range(0, max(1, len(block)), SLICE):
            self.writing_since = self._streams.now()
            more = not is_last or at + SLICE < len(block)
            await self._send(
                {"type": "http.response.body", "body": block[at : at + SLICE], "more_body": more}
            )
            self.writing_since = None
            self.written_at = self._streams.now()

    async def _watch_for_leaving(self, receive: Receive, serving: "asyncio.Task[None]") -> None:
        await until_gone(receive)
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
