"""`python -m bench.stub_model`: a model server that costs next to nothing, with llama.cpp's stream shape.

It answers every chat with the same words, one write a word as a real server does, at a steady pace or at once.
`GET /stub` says how many generations it ran at once, and whether one slot ever had two.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import msgspec
import uvloop

WORD = " word"
PROMPT, CACHED = 1000, 900  # tokens that it claims; it reads no prompt
CONTEXT = 32768  # tokens of a slot
_ID_SLOT = b'"id_slot":'
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Stub:
    """What it answers, and what it has seen."""

    def __init__(self, slots: int, chunks: int, pace_s: float) -> None:
        self.slots = slots
        self.pace_s = pace_s
        self.frames = frames(chunks)
        self.running: Counter[int] = Counter()
        """Generations of now by slot; -1 for those that named none."""
        self.requests = self.at_once = self.collisions = 0

    def begin(self, body: bytes) -> int:
        """Count a generation, and return its slot."""
        slot = slot_of(body)
        self.running[slot] += 1
        self.requests += 1
        self.at_once = max(self.at_once, self.running.total())
        self.collisions += slot >= 0 and self.running[slot] > 1
        return slot

    def answers(self) -> dict[bytes, Callable[[], Any]]:
        """Return what the small questions are answered."""
        settings = {"n_ctx": CONTEXT, "params": {}}
        return {
            b"GET /health": lambda: {"status": "ok"},
            b"GET /props": lambda: {
                "default_generation_settings": settings,
                "total_slots": self.slots,
                "model_path": "stub.gguf",
                "modalities": {"vision": False, "audio": False},
                "build_info": "b0-unknown",
            },
            b"GET /slots": lambda: [
                {"id": slot, "n_ctx": CONTEXT, "is_processing": self.running[slot] > 0}
                for slot in range(self.slots)
            ],
            b"GET /v1/models": lambda: {"object": "list", "data": [{"id": "stub", "object": "model"}]},
            b"POST /v1/chat/completions/input_tokens": lambda: {"input_tokens": PROMPT},
            b"GET /stub": lambda: {
                "requests": self.requests,
                "at_once": self.at_once,
                "collisions": self.collisions,
            },
        }


class Connection(asyncio.Protocol):
    """One client; a request after the other, no pipelining."""

    def __init__(self, stub: Stub, answers: dict[bytes, Callable[[], Any]]) -> None:
        self._stub = stub
        self._answers = answers
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._slot: int | None = None
        self._timer: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        self._leave()

    def data_received(self, data: bytes) -> None:
        """Answer once a request is whole."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < length_of(head):
            return
        self._received = b""
        line = head.split(b"\r\n", 1)[0].rsplit(b" ", 1)[0]
        if line == b"POST /v1/chat/completions":
            self._generate(body)
        else:
            self._reply(line)

    def _generate(self, body: bytes) -> None:
        assert self._transport is not None
        self._slot = self._stub.begin(body)
        self._transport.write(_STREAM_HEAD + self._stub.frames[0])
        self._then(1)

    def _then(self, number: int) -> None:
        loop, pace_s = asyncio.get_running_loop(), self._stub.pace_s
        step = partial(self._step, number)
        self._timer = loop.call_later(pace_s, step) if pace_s else loop.call_soon(step)

    def _step(self, number: int) -> None:
        frames = self._stub.frames
        assert self._transport is not None
        if number == len(frames) - 1:
            self._leave()
        else:
            self._then(number + 1)
        self._transport.write(frames[number])

    def _leave(self) -> None:
        if self._slot is not None:
            self._stub.running[self._slot] -= 1
            self._slot = None

    def _reply(self, line: bytes) -> None:
        assert self._transport is not None
        answer = self._answers.get(line)
        missing = {
            "error": {"code": 501, "message": "the stub has no such thing", "type": "not_supported_error"}
        }
        body = msgspec.json.encode(missing if answer is None else answer())
        status = b"501 Not Implemented" if answer is None else b"200 OK"
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % (status, len(body)) + body)


def length_of(head: bytes) -> int:
    """Return the length of a request's body."""
    _, found, rest = head.lower().partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


def slot_of(body: bytes) -> int:
    """Return the slot that a body asks for; -1 for none. Parsing the whole of it would cost more than the rest."""
    _, found, rest = body.rpartition(_ID_SLOT)
    return int(rest[:16].lstrip().replace(b"}", b",").split(b",", 1)[0]) if found else -1


def frames(chunks: int) -> list[bytes]:
    """Return the stream in the pieces in which it is written: progress, each word, and the end."""
    opening = {"role": "assistant", "content": None}
    progress = {"total": PROMPT, "cache": CACHED, "processed": CACHED, "time_ms": 0}
    usage = {
        "completion_tokens": chunks,
        "prompt_tokens": PROMPT,
        "total_tokens": PROMPT + chunks,
        "prompt_tokens_details": {"cached_tokens": CACHED},
    }
    timings = {"cache_n": CACHED, "prompt_n": PROMPT - CACHED, "prompt_ms": 1.0}
    timings |= {"predicted_n": chunks, "predicted_ms": 1.0}
    end = _frame(
        _event([_choice({}, "stop")]) + _event([], usage=usage, timings=timings) + b"data: [DONE]\n\n"
    )
    return [
        _frame(_event([_choice(opening)], prompt_progress=progress) + _event([_choice(opening)])),
        *[_frame(_event([_choice({"content": WORD})]))] * chunks,
        end + b"0\r\n\r\n",
    ]


def _choice(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"finish_reason": finish_reason, "index": 0, "delta": delta}


def _event(choices: list[Any], **more: Any) -> bytes:
    about = {"created": 1, "id": "chatcmpl-stub", "model": "stub", "system_fingerprint": "b0-unknown"}
    chunk = {"choices": choices, **about, "object": "chat.completion.chunk", **more}
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def _frame(data: bytes) -> bytes:
    """Return one chunk of HTTP's chunked encoding."""
    return b"%x\r\n%s\r\n" % (len(data), data)


async def serve(port: int, stub: Stub) -> None:
    """Serve until the process is ended."""
    answers = stub.answers()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(stub, answers), "127.0.0.1", port
    )
    print(f"stub listens on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--chunks", type=int, default=32)
    parser.add_argument("--pace-ms", type=float, default=0.0)
    given = parser.parse_args()
    uvloop.run(serve(given.port, Stub(given.slots, given.chunks, given.pace_ms / 1e3)))


if __name__ == "__main__":
    main()
