"""A prompter between the gateway and a real llama.cpp: the model's part is evaluated, its words are kept in hand.

A tiny model neither stops talking nor calls the tool that a check needs. So the request goes on as it came, with
few tokens to write, no tool calls of the model's own, and no luck in the choice. Only where the user's last message
holds `<<call NAME {…}>>` is the answer replaced by that tool call. Slots, prompts and cached tokens are real.
"""

import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web

Json = dict[str, Any]

CUE = re.compile(r"<<call (\w+) ")
WORDS_MAX = 12  # tokens of an answer: enough to be one
UNSAID = ("```", "\n", "\n\n", " ")  # how the template's tool calls begin, and what makes an answer empty


def cue_of(body: Json) -> tuple[str, str] | None:
    """Return the call (name, arguments) that the last user message asks for, if nothing was done about it yet."""
    for message in reversed(body["messages"]):
        if message["role"] != "user":
            return None
        if found := CUE.search(text_of(message)):
            return found[1], arguments_of(found.string[found.end() :])
    return None


def text_of(message: Json) -> str:
    """Return the text of a message, which is a string or a list of parts."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def arguments_of(text: str) -> str:
    """Return the JSON that a text begins with; opencode puts prompts in quotes, and escapes those inside."""
    unquoted = text.replace('\\"', '"') if text.startswith('{\\"') else text
    return json.dumps(json.JSONDecoder().raw_decode(unquoted)[0])


def hushed(body: Json, cue: tuple[str, str] | None) -> Json:
    """Return the request with little to write."""
    limit = 1 if cue else min(WORDS_MAX, body.get("max_tokens") or WORDS_MAX)
    quiet = {"max_tokens": limit, "temperature": 0, "tool_choice": "auto"}
    bias = [[text, False] for text in UNSAID]
    return {**body, **quiet, "logit_bias": bias, "ignore_eos": True}  # clients ask again for an empty answer


def rewritten(line: bytes, cue: tuple[str, str] | None) -> list[bytes]:
    """Return what becomes of one line of the stream: text goes unless there is a cue, and no end is a cut."""
    if not line.startswith(b"data: {"):
        return [line]
    chunk = json.loads(line[6:])
    for choice in chunk.get("choices", ()):
        if cue:
            choice["delta"].pop("content", None)
        if choice.get("finish_reason"):
            choice["finish_reason"] = "tool_calls" if cue else "stop"
            if cue:
                call = {"index": 0, "id": f"call_{chunk['id']}", "type": "function"}
                call["function"] = {"name": cue[0], "arguments": cue[1]}
                told = {
                    **chunk,
                    "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}],
                }
                told.pop("usage", None)
                return [_data(told), _data(chunk)]
    return [_data(chunk)]


def _data(chunk: Json) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


class Prompter:
    """The server; `seen` holds the bodies of all chats that came through."""

    def __init__(self, llama: str) -> None:
        self.seen: list[Json] = []
        self.url = ""
        self._llama = llama

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve on a free port of loopback."""
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_route("*", "/{tail:.*}", self._pass_on)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield
        finally:
            await runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.Response:
        async with aiohttp.ClientSession() as session:
            sent = session.request(request.method, self._llama + request.path_qs, data=await request.read())
            async with sent as answer:
                kind = answer.content_type
                return web.Response(status=answer.status, body=await answer.read(), content_type=kind)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.seen.append(body)
        cue = cue_of(body)
        timeout = aiohttp.ClientTimeout(total=None)
        async with (
            aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 20) as session,
            session.post(self._llama + request.path, json=hushed(body, cue)) as answer,
        ):
            if answer.status != 200:
                kind = answer.content_type
                return web.Response(status=answer.status, body=await answer.read(), content_type=kind)
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            async for line in answer.content:
                for part in rewritten(line, cue):
                    await response.write(part)
            await response.write_eof()
            return response
