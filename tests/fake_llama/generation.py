"""One answer of the fake server, good or bad."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from fake_llama.cues import BEFORE_HEADERS, Cues
from fake_llama.script import Die, Flood, Json, Piece, Pings, Raw, Refusal, Script, Stall, Think, Tool, delta
from fake_llama.slots import Call

MODEL = "fake.gguf"
BUILD = "b0-unknown"  # what xllamacpp says too


class Refused(Exception):
    """Ends a handler with this answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class Generation:
    """Answers one request that has its slot."""

    def __init__(
        self,
        cues: Cues,
        n_ctx: int,
        request: web.Request,
        call: Call,
        script: Script,
        release: Callable[[], None],
    ) -> None:
        self._release = release
        self._cues = cues
        self._request = request
        self._call = call
        self._script = script
        self._writer: Writer | None = None
        asked = call.body.get("max_tokens")
        room = n_ctx - call.prompt_tokens
        self._most = room if asked is None or asked < 0 else max(1, min(asked, room))  # 0 gives one token too

    async def answer(self) -> web.StreamResponse:
        """Write the whole answer."""
        script, call = self._script, self._call
        self._cues.now(call, "running")
        if script.before is not None:
            await self._odd(script.before)
        await self._cues.gate(call, BEFORE_HEADERS)
        if not call.body.get("stream"):
            return await self._whole()
        stream = web.StreamResponse(headers={"content-type": script.content_type, "x-accel-buffering": "no"})
        stream.enable_chunked_encoding()
        await stream.prepare(self._request)
        self._writer = Writer(stream, script.trickle_s)
        await self._stream(self._writer)
        return stream

    async def _stream(self, writer: "Writer") -> None:
        call, script = self._call, self._script
        opening = {"role": "assistant", "content": None}
        if call.body.get("return_progress") and script.progress:
            for processed in (call.cached, call.prompt_tokens):
                progress = {"total": call.prompt_tokens, "cache": call.cached, "processed": processed}
                await writer.chunk(choice(opening), prompt_progress={**progress, "time_ms": 1})
        await writer.chunk(choice(opening))
        reason = await self._pieces()
        self._release()  # before the last chunk, so that a client that has it may come back at once
        wants_usage = (call.body.get("stream_options") or {}).get("include_usage")
        timings = {"timings": timings_of(call)} if script.timings else {}
        if script.finish:
            await writer.chunk(choice({}, reason), **({} if wants_usage else timings))
        if wants_usage and script.usage:
            await writer.chunk(usage=usage_of(call), **timings)
        if script.done:
            await writer.write(b"data: [DONE]\n\n")

    async def _pieces(self) -> str:
        """Send the pieces; returns the finish reason."""
        call, script = self._call, self._script
        for number, piece in enumerate(script.chunks):
            await self._cues.gate(call, number)
            if script.pace_s:
                await asyncio.sleep(script.pace_s)  # the server's own pace; nothing is waited for
            if not isinstance(piece, str | Think | Tool):
                await self._odd(piece)
                continue
            if len(call.sent) >= self._most:
                return "length"
            call.sent.append(piece)
            if self._writer is not None:
                await self._writer.chunk(choice(delta(piece)))
            self._cues.changed()
        await self._cues.last_gate(call, len(script.chunks))
        calls = any(isinstance(piece, Tool) for piece in call.sent)
        return script.finish_reason or ("tool_calls" if calls else "stop")

    async def _odd(self, piece: Piece) -> None:
        """Do what a good server does not."""
        writer = self._writer
        if isinstance(piece, Raw) and writer is not None:
            await writer.write(piece.data)
        elif isinstance(piece, Stall):
            await self._cues.resume.wait()
        elif isinstance(piece, Die):
            await self._die(piece)
        elif isinstance(piece, Pings) and writer is not None:
            await self._ping(writer, piece.every_s)
        elif isinstance(piece, Flood) and writer is not None:
            await writer.write(b'data: {"choices":[{"index":0,"delta":{"content":"')
            while True:
                await writer.write(b"x" * 65536)

    async def _ping(self, writer: "Writer", every_s: float) -> None:
        over = asyncio.ensure_future(self._cues.resume.wait())
        try:
            while not over.done():
                await writer.write(b":\n\n")
                await asyncio.wait([over], timeout=every_s)
        finally:
            over.cancel()

    async def _die(self, how: Die) -> None:
        transport = self._request.transport
        assert isinstance(transport, asyncio.Transport)
        self._cues.now(self._call, "broken")
        if how.reset:
            transport.abort()
        else:
            transport.close()
        await asyncio.Event().wait()  # the end of the connection ends this handler

    async def _whole(self) -> web.Response:
        call = self._call
        reason = await self._pieces()
        thought = "".join(piece.text for piece in call.sent if isinstance(piece, Think))
        message: Json = {"role": "assistant", "content": "".join(p for p in call.sent if isinstance(p, str))}
        if thought:
            message["reasoning_content"] = thought
        self._release()
        return web.json_response(
            {
                "object": "chat.completion",
                "choices": [{"index": 0, "finish_reason": reason, "message": message}],
                "usage": usage_of(call),
                "timings": timings_of(call),
            }
        )


class Writer:
    """Writes the blocks of one stream."""

    def __init__(self, stream: web.StreamResponse, trickle_s: float | None) -> None:
        self._stream = stream
        self._trickle_s = trickle_s
        self._about = {"created": 1, "id": "chatcmpl-fake", "model": MODEL, "system_fingerprint": BUILD}

    async def chunk(self, *choices: Json, **more: Any) -> None:
        """Write one `data:` line."""
        chunk = {"choices": choices, **self._about, "object": "chat.completion.chunk", **more}
        data = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
        await self.write(f"data: {data}\n\n".encode())

    async def write(self, data: bytes) -> None:
        """Write bytes, one after the other when it trickles."""
        if self._trickle_s is None:
            await self._stream.write(data)
            return
        for byte in data:
            await self._stream.write(bytes([byte]))
            await asyncio.sleep(self._trickle_s)  # the server's own pace


def choice(delta: Mapping[str, Any], finish_reason: str | None = None) -> Json:
    return {"finish_reason": finish_reason, "index": 0, "delta": delta}


def usage_of(call: Call) -> Json:
    prompt, output = call.prompt_tokens, len(call.sent)
    return {
        "completion_tokens": output,
        "prompt_tokens": prompt,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": call.cached},
    }


def timings_of(call: Call) -> Json:
    return {
        "cache_n": call.cached,
        "prompt_n": call.prompt_tokens - call.cached,
        "prompt_ms": 1.5,
        "predicted_n": len(call.sent),
        "predicted_ms": 2.5,
    }
