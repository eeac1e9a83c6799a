"""uvicorn, with what a gateway needs beside it: deadlines for slow senders, a bound on headers, a clean stop."""

import asyncio
import contextlib
import functools
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from typing import Any

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from herdr.web.asgi import ABORT, NO_CONTENT, NO_PONG, WRITE_WHOLE, Headers, Scope
from herdr.web.problems import CONTENT_TYPE, Refused, problem_of

HEADER_MAX = 32 * 1024  # bytes of one request's header; llhttp itself has no bound
GRACE_S = 2  # for requests under way, within the 5 s that a stop may take in all
CONNECTIONS_MAX = 10_000  # sockets of all kinds; below the usual limit of open files once raised
PIPELINE_MAX = 1000  # requests of one connection that wait for earlier answers; a few KiB each
HANDSHAKE_LINE_MAX, HANDSHAKE_LINES_MAX = (
    8000,
    120,
)  # a little less than websockets takes: 8,192 bytes, 128 lines
SWEEP_S = 0.5  # how often slow senders are looked for


class Deadlines(msgspec.Struct, frozen=True):
    """How long a client may take to send the parts of a request, in seconds."""

    header_s: float
    body_s: float


class Enough(Exception):
    """Ends the parsing of a connection's bytes; what is to be said has been said."""


class GatewayProtocol(HttpToolsProtocol):
    """One HTTP connection. Notes since when it owes us bytes, so that a sweep can end those that never come."""

    head_bytes = 0
    receiving_since: float | None = None
    in_body = False
    last_words = b""
    """The refusal with which the connection ends."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to expect a request."""
        super().connection_made(transport)
        self.receiving_since = self.loop.time()
        if len(self.server_state.connections) > CONNECTIONS_MAX:
            self.refuse(503, "overloaded", f"{CONNECTIONS_MAX} connections are open; come back in a moment")

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and count what is not yet a whole header."""
        if not self.in_body:
            self.head_bytes += len(data)
        super().data_received(data)
        if not self.in_body and self.head_bytes > HEADER_MAX:
            self.refuse_header()

    def on_message_begin(self) -> None:
        """Start the clock of a request."""
        super().on_message_begin()
        self.receiving_since = self.loop.time()
        scope: Scope = self.scope  # type: ignore[assignment]
        scope[ABORT] = self.transport.abort

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header's field; one that comes after the body is counted, and dropped unread."""
        if not self.in_body:
            super().on_header(name, value)
            return
        self.head_bytes += len(name) + len(value)
        if self.head_bytes > HEADER_MAX:
            self.refuse_header()
            raise Enough

    def on_headers_complete(self) -> None:
        """The header is whole; the body's clock starts."""
        # One that came in a single read was not counted on its way
        if len(self.url) + sum([len(name) + len(value) for name, value in self.headers]) > HEADER_MAX:
            self.refuse_header()
            raise Enough
        if len(self.pipeline) >= PIPELINE_MAX:
            self.refuse(400, "bad_request", f"more than {PIPELINE_MAX} requests wait for their answers")
            raise Enough
        self.in_body = True
        self.receiving_since = self.loop.time()
        super().on_headers_complete()
        # The cycle is bound here: with pipelined requests `self.cycle` may be a later one when it answers
        scope: Scope = self.scope  # type: ignore[assignment]
        scope[WRITE_WHOLE] = functools.partial(self.write_whole, self.cycle)

    def on_message_complete(self) -> None:
        """Nothing is owed any more."""
        self.in_body = False
        self.head_bytes = 0
        self.receiving_since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin with the next pipelined request; the socket is read again once there is none."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
        elif self.last_words and self.cycle.response_complete and not self.transport.is_closing():
            self.transport.write(self.last_words)
            self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over, unless the WebSocket library would only choke on the request."""
        lines = [len(self.url), *(len(name) + len(value) for name, value in self.headers)]
        if len(lines) > HANDSHAKE_LINES_MAX or max(lines) > HANDSHAKE_LINE_MAX:
            self.refuse_header()
        elif any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers):
            self.refuse(400, "bad_request", "a WebSocket handshake has no body")
        elif self.cycle is not None and not self.cycle.response_complete:
            self.refuse(400, "bad_request", "a WebSocket handshake waits for earlier answers")
        else:
            super().handle_websocket_upgrade()

    def write_whole(self, cycle: RequestResponseCycle, status: int, body: bytes, headers: Headers) -> bool:
        """Write head and body of a request's answer in one piece (see `Reply`)."""
        if cycle.response_started or self.flow.write_paused or cycle.scope["method"] == "HEAD":
            return False
        cycle.response_started = cycle.response_complete = True
        if cycle.disconnected or self.transport.is_closing():
            return True
        lines = [STATUS_LINE[status]]
        for name, value in (*self.server_state.default_headers, *headers):
            if name == b"connection":  # nobody says anything but `close`
                cycle.keep_alive = False
            else:
                lines.append(b"%s: %s\r\n" % (name, value))
        if not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        if status != NO_CONTENT:
            lines.append(b"content-length: %d\r\n" % len(body))
        self.transport.write(b"%s\r\n%s" % (b"".join(lines), body))
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()
        return True

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP in the form of all other errors."""
        self.refuse(400, "bad_request", "this is not an HTTP/1.1 request that can be read")

    def end_if_late(self, now: float, deadlines: Deadlines) -> None:
        """Answer 408 and hang up when the client has taken too long."""
        if self.receiving_since is None or self.transport.is_closing():
            return
        limit = deadlines.body_s if self.in_body else deadlines.header_s
        if now - self.receiving_since > limit:
            part = "body" if self.in_body else "header"
            self.refuse(408, "request_timeout", f"the request's {part} did not arrive within {limit:g} s")

    def refuse_header(self) -> None:
        """Refuse a header that is too large."""
        self.refuse(431, "too_large", f"the request's header is larger than {HEADER_MAX} bytes")

    def refuse(self, status: int, code: str, detail: str) -> None:
        """Write a problem and hang up; the first one counts.

        Where an earlier request is whole and waits for its answer, that goes out first.
        """
        if self.transport.is_closing() or self.last_words:
            return
        problem = problem_of(Refused(code, detail))
        title = HTTPStatus(status).phrase
        body = msgspec.json.encode(msgspec.structs.replace(problem, status=status, title=title))
        head = f"content-type: {CONTENT_TYPE}\r\ncontent-length: {len(body)}\r\n"
        head += "retry-after: 1\r\n" if status == 503 else ""
        self.last_words = STATUS_LINE[status] + f"{head}connection: close\r\n\r\n".encode() + body
        cycle = self.cycle
        if cycle is None or cycle.response_complete or (cycle.more_body and not cycle.response_started):
            self.transport.write(self.last_words)
        elif not cycle.more_body:
            self.receiving_since = None
            self.flow.pause_reading()
            return
        self.transport.close()


class GatewayWebSocket(WebSocketsSansIOProtocol):
    """One WebSocket, which the application can cut when its reader has stalled."""

    opened_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with the handshake."""
        super().connection_made(transport)
        self.opened_at = self.loop.time()

    def keepalive_timeout(self) -> None:
        """Close because a ping was not answered, and say so to the application, which uvicorn does not."""
        self.queue.put_nowait({"type": "websocket.disconnect", "code": NO_PONG})
        super().keepalive_timeout()

    def end_if_late(self, now: float, deadlines: Deadlines) -> None:
        """Cut a connection whose handshake does not come to an end."""
        if not self.handshake_complete and now - self.opened_at > deadlines.header_s:
            self.transport.abort()

    def shutdown(self) -> None:
        """Close because the gateway stops; whatever state a handshake is in must not keep it from that."""
        if self.handshake_complete:
            super().shutdown()
        else:
            self.transport.abort()

    async def run_asgi(self) -> None:
        """Serve the connection."""
        scope: Scope = self.scope  # type: ignore[assignment]
        scope[ABORT] = self.transport.abort
        await super().run_asgi()


class GatewayServer(uvicorn.Server):
    """A uvicorn server that says goodbye to its streams first, and ends with exit code 0 on SIGTERM."""

    def __init__(
        self,
        config: uvicorn.Config,
        deadlines: Deadlines,
        say_goodbye: Callable[[], Awaitable[None]],
        ready: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._deadlines = deadlines
        self._say_goodbye = say_goodbye
        self._ready = ready
        self._sweeper: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals without raising them again afterwards: a stop that was asked for is no failure."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self._sweeper = asyncio.create_task(self._sweep(), name="slow senders")
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let streams end with a last word, then let uvicorn wait for the rest."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._say_goodbye()
        await super().shutdown(sockets)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            now = loop.time()
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, GatewayProtocol | GatewayWebSocket):
                    connection.end_if_late(now, self._deadlines)


def server_config(app: Any, body_max: int) -> uvicorn.Config:
    """Return uvicorn's settings; the application is opened and closed by its composition root."""
    return uvicorn.Config(
        app,
        loop="uvloop",
        http=GatewayProtocol,
        ws=GatewayWebSocket,
        ws_max_size=body_max,
        ws_ping_interval=20.0,
        ws_per_message_deflate=False,  # loopback: compression costs more than the bytes
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # whoever may say where a request comes from could pass for the container's host
        date_header=True,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_S,
        backlog=2048,
    )
