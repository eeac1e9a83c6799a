"""The endpoints of the fake server, and what they know."""

import asyncio
import json
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from aiohttp import web

from fake_llama.cues import Cues
from fake_llama.generation import BUILD, MODEL, Generation, Refused
from fake_llama.script import (
    LOADING,
    Json,
    Refusal,
    Script,
    echo,
    error,
    message_text,
    pieces,
    render,
    written,
)
from fake_llama.slots import Call, Slot, Slots, State

STREAM_TAKEN_OVER = "x-conversation-id"  # makes a real server go on generating after a disconnect


def invalid(message: str) -> Refusal:
    """Return the 400 for most that is wrong."""
    return error(400, "invalid_request_error", message)


def unsupported(what: str) -> Refusal:
    """Return the 501 for what is switched off."""
    return error(501, "not_supported_error", f"This server does not support {what}.")


NO_SUCH_FILE = invalid("Unable to restore slot: No available space in KV cache or invalid slot save file")
NO_EYES = error(
    500, "server_error", "image input is not supported - hint: you may need to provide the mmproj"
)
SYSTEM_FIRST = error(500, "server_error", "System message must be at the beginning.")


class Server:
    """The endpoints, and what they know."""

    slots: Slots

    def __init__(self, n_ctx: int) -> None:
        self.cues = Cues()
        self.n_ctx = n_ctx
        self.vision = False
        self.slots_endpoint = self.slot_files = self.restores = self.system_anywhere = True
        self.linger_s: float | None = 0.0
        self.loading = False
        self.requests: list[Call] = []
        self.actions: list[tuple[str, int, str]] = []
        """Action, slot and file name."""
        self.asked: Counter[str] = Counter()
        """Requests by path."""
        self.violations: list[str] = []
        """What a client that knows this server would not do."""
        self.files: dict[str, list[str]] = {}
        self.answer: Callable[[Json], Script] = echo
        self.lingering: set[asyncio.Task[None]] = set()
        self.connections: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()

    def app(self) -> web.Application:
        """Return all endpoints."""
        app = web.Application(middlewares=[self._around], client_max_size=64 * 1024 * 1024)
        app.router.add_get("/health", self._health)
        app.router.add_get("/props", self._props)
        app.router.add_get("/slots", self._list_slots)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/slots/{slot}", self._act)
        app.router.add_post("/tokenize", self._tokenize)
        app.router.add_post("/apply-template", self._template)
        app.router.add_post("/v1/chat/completions/input_tokens", self._count)
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    @web.middleware
    async def _around(
        self, request: web.Request, handler: Callable[[web.Request], Any]
    ) -> web.StreamResponse:
        transport = request.transport
        if isinstance(transport, asyncio.Transport):
            self.connections.add(transport)
        self.asked[request.path] += 1
        try:
            if self.loading:
                raise Refused(LOADING)
            answer: web.StreamResponse = await handler(request)
            return answer
        except Refused as no:
            return refuse(no.refusal)
        except web.HTTPException:
            return refuse(error(404, "not_found_error", "File Not Found"))

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _props(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "default_generation_settings": {"n_ctx": self.n_ctx, "params": {}},
                "total_slots": len(self.slots.all),
                "model_alias": MODEL,
                "model_path": MODEL,
                "modalities": {"vision": self.vision, "audio": False},
                "chat_template": "{{ chatml }}",
                "build_info": BUILD,
                "is_sleeping": False,
            }
        )

    async def _list_slots(self, request: web.Request) -> web.Response:
        if not self.slots_endpoint:
            raise Refused(unsupported("slots endpoint"))
        return web.json_response([self._slot_state(slot) for slot in self.slots])

    def _slot_state(self, slot: Slot) -> Json:
        state: Json = {"id": slot.id, "n_ctx": self.n_ctx, "speculative": False, "is_processing": slot.busy}
        call = slot.call
        if call is None:
            return state
        decoded, new = (len(call.sent), call.prompt_tokens - call.cached) if slot.busy else (0, 0)
        return state | {
            "id_task": slot.task,
            "n_prompt_tokens": len(slot.tokens),
            "n_prompt_tokens_processed": new,
            "n_prompt_tokens_cache": call.cached if slot.busy else 0,
            "next_token": [
                {"has_next_token": slot.busy, "has_new_line": False, "n_remain": -1, "n_decoded": decoded}
            ],
        }

    async def _models(self, request: web.Request) -> web.Response:
        about = {"id": MODEL, "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": self.n_ctx}}
        return web.json_response({"object": "list", "data": [about]})

    async def _tokenize(self, request: web.Request) -> web.Response:
        content = str((await self._json(request)).get("content", ""))
        return web.json_response({"tokens": [hash(piece) & 0xFFFF for piece in pieces(content)]})

    async def _template(self, request: web.Request) -> web.Response:
        return web.json_response({"prompt": self._prompt(await self._json(request))})

    async def _count(self, request: web.Request) -> web.Response:
        count = len(pieces(self._prompt(await self._json(request))))
        return web.json_response({"object": "response.input_tokens", "input_tokens": count})

    async def _act(self, request: web.Request) -> web.Response:
        """Save, restore or erase a slot; one that is busy makes the action wait, and then happen."""
        if not self.slot_files:
            raise Refused(unsupported("slots action"))
        action = request.query.get("action", "")
        body = await self._json(request)
        filename = str(body.get("filename", ""))
        if action not in ("save", "restore", "erase") or "/" in filename:
            raise Refused(invalid("Invalid filename" if "/" in filename else "Invalid action"))
        asked = int(request.match_info["slot"])
        number = self._number(asked)
        self.actions.append((action, number, filename))
        if self.slots.all[number].busy:
            self.violations.append(f"{action} of slot {number}, which is busy")
        slots = self.slots
        slot = await slots.take(number, [])
        try:
            return web.json_response({"id_slot": asked, **self._do(action, slot, filename)})
        finally:
            slots.free(slot)

    def _do(self, action: str, slot: Slot, filename: str) -> Json:
        held = slot.tokens
        if action == "erase":
            slot.tokens = []
            return {"n_erased": len(held)}
        if action == "save":
            self.files[filename] = held
            times = {"save_ms": 0.5}
            return {
                "filename": filename,
                "n_saved": len(held),
                "n_written": 23080 * len(held),
                "timings": times,
            }
        if filename not in self.files:
            raise Refused(NO_SUCH_FILE)
        held = self.files[filename]
        slot.tokens = held if self.restores else []
        times = {"restore_ms": 0.3}
        return {"filename": filename, "n_restored": len(held), "n_read": 23080 * len(held), "timings": times}

    async def _json(self, request: web.Request) -> Json:
        try:
            body = json.loads(await request.read())
        except ValueError as wrong:
            raise Refused(invalid(f"parse error: {wrong}")) from None
        if not isinstance(body, dict):
            raise Refused(invalid("not an object"))
        return body

    def _prompt(self, body: Json) -> str:
        messages = body.get("messages")
        if not isinstance(messages, list):
            raise Refused(invalid("'messages' is required"))
        if not self.vision and any("<|image|>" in message_text(message) for message in messages):
            raise Refused(NO_EYES)
        if not self.system_anywhere and any(message["role"] == "system" for message in messages[1:]):
            raise Refused(SYSTEM_FIRST)
        return render(body)

    def _number(self, asked: int) -> int:
        """A number that does not exist is not refused: it wraps round."""
        count = len(self.slots.all)
        if asked >= count:
            self.violations.append(f"slot {asked} of {count}")
        return asked % count

    # -- one generation -------------------------------------------------------------------------------------

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._json(request)
        prompt = self._prompt(body)
        call = self._record(request, body, prompt)
        script = self.answer(body)
        if script.refuse is not None:
            self.cues.ended(call, "refused")
            raise Refused(script.refuse)
        slots = self.slots
        try:
            slot = await slots.take(self._wanted(call), pieces(prompt))
        except asyncio.CancelledError:
            self.cues.ended(call, "cancelled")
            raise
        call.slot, slot.call, call.started = slot.id, call, time.monotonic()
        try:
            return await self._in_slot(slots, slot, request, call, script)
        except Refused:
            self._leave(slots, slot, call, "refused")
            raise
        except (asyncio.CancelledError, ConnectionResetError):
            self._leave(slots, slot, call, "broken" if call.state == "broken" else "cancelled")
            raise asyncio.CancelledError from None

    async def _in_slot(
        self, slots: Slots, slot: Slot, request: web.Request, call: Call, script: Script
    ) -> web.StreamResponse:
        if call.prompt_tokens >= self.n_ctx:
            raise Refused(too_long(call.prompt_tokens, self.n_ctx))
        call.cached = slots.evaluate(slot, pieces(call.prompt))

        def release() -> None:
            self._leave(slots, slot, call, "done")

        return await Generation(self.cues, self.n_ctx, request, call, script, release).answer()

    def _record(self, request: web.Request, body: Json, prompt: str) -> Call:
        headers = {name.lower(): value for name, value in request.headers.items()}
        if STREAM_TAKEN_OVER in headers:
            self.violations.append(f"{STREAM_TAKEN_OVER} was passed on")
        assert request.transport is not None
        port = request.transport.get_extra_info("peername")[1]
        call = Call(body, headers, port, time.monotonic(), prompt=prompt)
        call.prompt_tokens = len(pieces(prompt))
        self.requests.append(call)
        self.cues.changed()
        return call

    def _wanted(self, call: Call) -> int | None:
        asked = int(call.body.get("id_slot", -1))
        if asked < 0:
            return None
        number = self._number(asked)
        if self.slots.all[number].busy:
            self.violations.append(f"two requests at once in slot {number}")
        return number

    def _leave(self, slots: Slots, slot: Slot, call: Call, state: State) -> None:
        """End a request, if it has not ended yet, and free its slot, now or later."""
        if call.over:
            return
        if state != "refused":
            slot.tokens = pieces(call.prompt + written(call.sent))
        if state != "cancelled" or self.linger_s == 0:
            slots.free(slot)
        else:
            task = asyncio.ensure_future(self._linger(slots, slot))
            self.lingering.add(task)
            task.add_done_callback(self.lingering.discard)
        self.cues.ended(call, state)

    async def _linger(self, slots: Slots, slot: Slot) -> None:
        if self.linger_s is None:
            await self.cues.let_go.wait()
        else:
            await asyncio.sleep(self.linger_s)  # as llama.cpp goes on for a moment after its client left
        slots.free(slot)


def too_long(tokens: int, n_ctx: int) -> Refusal:
    """Return the 400 for a prompt that a slot does not hold."""
    message = (
        f"request ({tokens} tokens) exceeds the available context size ({n_ctx} tokens), try increasing it"
    )
    return error(400, "exceed_context_size_error", message, n_prompt_tokens=tokens, n_ctx=n_ctx)


def refuse(refusal: Refusal) -> web.Response:
    """Return a refusal as the real server sends it: it closes the connection."""
    body = refusal.body if isinstance(refusal.body, bytes) else json.dumps(refusal.body).encode()
    headers = {"content-type": "application/json; charset=utf-8", **refusal.headers}
    answer = web.Response(status=refusal.status, body=body, headers=headers)
    answer.force_close()
    return answer
