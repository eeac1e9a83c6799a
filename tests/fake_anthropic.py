"""A scriptable imitation of Anthropic's Messages API: streams as docs.claude.com shows them, and its refusals.

It runs in a thread of the test's own process, on a free port of loopback, and keeps what it was asked byte for
byte. An answer is a list of events, each as the bytes that go over the wire.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from fake_llama import Die, Refusal, Stall
from fake_llama.cues import PATIENCE_S, Cues
from fake_llama.slots import Call

Json = dict[str, Any]
Piece = bytes | Die | Stall
SIGNATURE = "EuYBCkQYAiJA9zHX/abc+def=="
USAGE: Json = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 400,
    "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 1,
    "service_tier": "standard",
}
PROMPT_TOKENS, CACHED_TOKENS = 442, 400  # what the three disjoint counts add up to
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


@dataclass(eq=False)
class Asked(Call):
    """One request."""

    raw: bytes = b""
    path: str = ""
    """With its query."""


@dataclass(frozen=True)
class Answer:
    """What is answered: events one after the other, or a refusal."""

    pieces: Sequence[Piece] = ()
    refuse: Refusal | None = None


def event(name: str, **fields: Any) -> bytes:
    """Return one event as the API writes it: with spaces, which a gateway has no reason to change."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()


def start(**usage: Any) -> bytes:
    """Return `message_start`."""
    message = {
        "id": "msg_01Xy",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-20250514",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**USAGE, **usage},
    }
    return event("message_start", message=message)


def block(index: int, content: Json, *deltas: Json) -> list[bytes]:
    """Return the events of one content block."""
    return [
        event("content_block_start", index=index, content_block=content),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def text(index: int, *pieces: str) -> list[bytes]:
    """Return a block of text."""
    deltas = ({"type": "text_delta", "text": piece} for piece in pieces)
    return block(index, {"type": "text", "text": ""}, *deltas)


def thinking(index: int, *pieces: str) -> list[bytes]:
    """Return a block of thinking with its signature."""
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    signature = {"type": "signature_delta", "signature": SIGNATURE}
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, signature)


def tool_use(index: int, id_: str, name: str, *pieces: str) -> list[bytes]:
    """Return a block that calls a tool."""
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces))
    return block(index, {"type": "tool_use", "id": id_, "name": name, "input": {}}, *deltas)


def stop(reason: str = "end_turn", output_tokens: int = 7, **usage: Any) -> list[bytes]:
    """Return how a message ends."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    counts = {"output_tokens": output_tokens, **usage}
    return [event("message_delta", delta=delta, usage=counts), event("message_stop")]


def said(*pieces: str) -> Answer:
    """Return an answer of text alone."""
    return Answer([start(), *text(0, *pieces), *stop()])


def refused(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an error as the API writes it."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011"}
    return Answer(refuse=Refusal(status, body, headers or {}))


HELLO = said("Hel", "lo", "!")


@dataclass
class FakeAnthropic:
    """The server. What tests read may be read at any time; `until` waits for it."""

    port: int = 0
    requests: list[Asked] = field(default_factory=list)
    cues: Cues = field(default_factory=Cues)
    answer: Callable[[Json], Answer] = lambda body: HELLO
    counted: int | None = None
    """What a prompt's tokens are said to be; None: counting is refused."""
    counts: list[Asked] = field(default_factory=list)
    """Questions how long a prompt is."""

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-anthropic", daemon=True)
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def script(self, answer: Callable[[Json], Answer] | Answer) -> None:
        """Set what is answered from now on; a function is asked with each request's body."""
        self.answer = (lambda body: answer) if isinstance(answer, Answer) else answer

    def until(self, happened: Callable[[], Any]) -> None:
        """Wait until something is so."""
        if not self.cues.until(happened, PATIENCE_S):
            raise AssertionError(f"it did not happen; requests: {[call.state for call in self.requests]}")

    def hold(self, after: int) -> None:
        """Stop each request after so many pieces."""
        self.cues.held_at = after

    def release_one(self, call: Asked) -> None:
        """Let one held request go on."""
        self._loop.call_soon_threadsafe(call.go.set)

    def release(self) -> None:
        """Let all go on, those to come too."""
        self.cues.held_at = None
        for call in list(self.requests):
            self._loop.call_soon_threadsafe(call.go.set)

    async def _open(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @staticmethod
    async def _read(request: web.Request) -> Asked:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        return Asked(json.loads(raw), headers, 0, time.monotonic(), raw=raw, path=request.path_qs)

    async def _count(self, request: web.Request) -> web.Response:
        self.counts.append(await self._read(request))
        if self.counted is None:
            return web.json_response({"type": "error", "error": {}}, status=429)
        return web.json_response({"input_tokens": self.counted})

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        asked = await self._read(request)
        self.requests.append(asked)
        answer = self.answer(asked.body)
        if answer.refuse is not None:
            self.cues.ended(asked, "refused")
            refusal = answer.refuse
            return web.json_response(refusal.body, status=refusal.status, headers=refusal.headers)
        try:
            return await self._stream(request, asked, answer.pieces)
        except (asyncio.CancelledError, ConnectionResetError):
            self.cues.ended(asked, "cancelled")
            raise

    async def _stream(
        self, request: web.Request, asked: Asked, pieces: Sequence[Piece]
    ) -> web.StreamResponse:
        self.cues.now(asked, "running")
        stream = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await stream.prepare(request)
        for number, piece in enumerate(pieces):
            await self.cues.gate(asked, number)
            if isinstance(piece, bytes):
                await stream.write(piece)
            elif isinstance(piece, Stall):
                await asyncio.Event().wait()
            elif request.transport is not None:
                request.transport.close()
                return stream
        self.cues.ended(asked, "done")
        return stream
