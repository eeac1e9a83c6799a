"""llama.cpp's server: KV slots, pinned by number.

Always `/v1/chat/completions`: its own `/v1/messages` ignores `id_slot` (measured on b11434).
"""

import asyncio
import logging

import msgspec

from herdr.pool.backend import Emit, Job, Sight, run_stream
from herdr.pool.backends.chat import Chat
from herdr.pool.failures import ModelError
from herdr.pool.protocols.refusal import refusal
from herdr.pool.request import ChatRequest, Image, Message
from herdr.pool.upstream import Answer, Upstream

SETTLE_FIRST_S, SETTLE_MAX_S = 0.02, 1.0  # a cancelled slot is free after 0.06 s decoding, 1.4 s in prefill
FILE_S = 30.0  # for saving or restoring a slot; 35 MB took 0.02 s, and more than this is not worth the wait
FILE_NAME = "herdr-slot-{:03d}.bin"  # fixed names: the folder cannot fill up

_log = logging.getLogger("herdr.pool")


class _Defaults(msgspec.Struct, frozen=True):
    n_ctx: int = 0


class _Modalities(msgspec.Struct, frozen=True):
    vision: bool = False


class _Template(msgspec.Struct, frozen=True):
    supports_tools: bool = True  # builds that do not say it may well do


class _Props(msgspec.Struct):
    total_slots: int
    chat_template_caps: _Template = _Template()
    default_generation_settings: _Defaults = _Defaults()
    modalities: _Modalities = _Modalities()


class _Slot(msgspec.Struct):
    id: int
    is_processing: bool = False
    id_task: int = -1


class _Saved(msgspec.Struct):
    n_saved: int = 0
    n_restored: int = 0


class _Counted(msgspec.Struct):
    input_tokens: int


class _Tokenized(msgspec.Struct):
    tokens: list[msgspec.Raw]


_tokenized = msgspec.json.Decoder(_Tokenized)
_props = msgspec.json.Decoder(_Props)
_slots = msgspec.json.Decoder(list[_Slot])
_saved = msgspec.json.Decoder(_Saved)
_counted = msgspec.json.Decoder(_Counted)


class LlamaCpp:
    """One llama.cpp server. Implements `Backend`."""

    kind = "llamacpp"
    has_slots = True

    def __init__(self, upstream: Upstream, chat: Chat) -> None:
        self.name = upstream.name
        self.url = upstream.url
        self._upstream = upstream
        self._chat = chat
        self._sight = Sight(0, None, False)
        self._newest_task = -1
        self._numbers_tasks = False
        """Whether it has ever told a task's number: not all builds do."""
        self._looks = 0
        self._generated = 0
        """Answers that began and ended since the last look."""
        self._saves = True
        self._tells_slots = True
        self._warned = False

    async def look(self) -> Sight:
        """See `Backend.look`."""
        answer = await self._upstream.ask("GET", "/props")
        if answer.status != 200:
            raise self._refused(answer)
        try:
            props = _props.decode(answer.body)
        except msgspec.DecodeError:
            raise ModelError(
                "backend_failed",
                f"{self.url}/props is not that of a llama.cpp server; for another server set kind: openai",
            ) from None
        ended = self._generated  # before we ask: what ends while the answer is on its way is not in it
        slots = await self._slots()
        restarted = self._tells_slots and self._is_younger(slots, ended)
        if restarted:
            self._saves = True
        if not props.chat_template_caps.supports_tools and not self._warned:
            self._warned = True
            _log.warning(
                "the chat template of %s knows no tools: agents will not be able to use any", self.name
            )
        context = props.default_generation_settings.n_ctx or None
        self._sight = Sight(max(1, props.total_slots), context, props.modalities.vision, restarted)
        return self._sight

    def _is_younger(self, slots: list[_Slot], ended: int) -> bool:
        """Tell whether the server has started anew: it numbers its tasks from 0, and each of ours was one."""
        newest = max((slot.id_task for slot in slots), default=-1)
        expected, self._newest_task = self._newest_task + ended, newest
        self._generated = 0
        self._looks += 1
        self._numbers_tasks = self._numbers_tasks or newest >= 0
        return self._numbers_tasks and newest < expected

    async def _slots(self) -> list[_Slot]:
        if not self._tells_slots:
            return []
        answer = await self._upstream.ask("GET", "/slots")
        if answer.status in (404, 501):  # switched off; anything else may pass, and tells nothing
            self._tells_slots = False
            _log.warning("%s does not serve /slots; a cut generation counts as ended at once", self.name)
            return []
        if answer.status != 200:
            raise self._refused(answer)
        try:
            return _slots.decode(answer.body)
        except msgspec.DecodeError:
            raise ModelError(
                "backend_failed", f"{self.url}/slots is not that of a llama.cpp server"
            ) from None

    async def generate(self, job: Job, emit: Emit) -> bool:
        """See `Backend.generate`."""
        request, sight, looks = job.request, self._sight, self._looks
        if not sight.vision and _shows_image(request.messages[-1]):
            detail = f"the model of {self.name} cannot see images: send text, or ask a model that can"
            raise ModelError("unsupported_input", detail)
        body = self._chat.body(request, job.max_tokens, slot=job.slot, vision=sight.vision)
        decoder = self._chat.decoder(request, job.prompt_estimate, sight.context)
        path = "/v1/chat/completions"
        is_whole = await run_stream(self._upstream, path, body, {}, decoder, emit, self._refused)
        self._generated += looks == self._looks
        return is_whole

    def _refused(self, answer: Answer) -> ModelError:
        error = refusal(answer.status, answer.body, self.name)
        return self._upstream.without_secrets(error)

    async def settle(self, slot: int) -> None:
        """See `Backend.settle`."""
        pause = SETTLE_FIRST_S
        while any(known.id == slot and known.is_processing for known in await self._slots()):
            await asyncio.sleep(pause)  # the server has no way to tell us; asking is all there is
            pause = min(SETTLE_MAX_S, 2 * pause)

    async def save(self, slot: int, file: int) -> bool:
        """See `Backend.save`."""
        if not self._saves:
            return False
        done = await self._file_action(slot, "save", file)
        if done is None:
            self._saves = False
            _log.info("%s cannot save slots (it needs --slot-save-path); not asked again", self.name)
        return done is not None and done.n_saved > 0

    async def restore(self, slot: int, file: int) -> int:
        """See `Backend.restore`."""
        done = await self._file_action(slot, "restore", file)
        return 0 if done is None else done.n_restored

    async def _file_action(self, slot: int, action: str, file: int) -> _Saved | None:
        body = msgspec.json.encode({"filename": FILE_NAME.format(file)})
        try:
            answer = await self._upstream.ask("POST", f"/slots/{slot}?action={action}", body, FILE_S)
            return _saved.decode(answer.body) if answer.status == 200 else None
        except (ModelError, msgspec.DecodeError):
            return None

    async def tokenize(self, text: str) -> int | None:
        """Return how many tokens a text has; None when the server does not say. Raises ModelError."""
        answer = await self._upstream.ask("POST", "/tokenize", msgspec.json.encode({"content": text}))
        try:
            return len(_tokenized.decode(answer.body).tokens) if answer.status == 200 else None
        except msgspec.DecodeError:
            return None

    async def count(self, request: ChatRequest) -> int | None:
        """See `Backend.count`."""
        body = self._chat.body(request, 1, slot=None, vision=self._sight.vision)
        answer = await self._upstream.ask("POST", "/v1/chat/completions/input_tokens", body)
        try:
            return _counted.decode(answer.body).input_tokens if answer.status == 200 else None
        except msgspec.DecodeError:
            return None


def _shows_image(message: Message) -> bool:
    """Tell whether a user shows an image now; in older turns and results of tools a note stands for it."""
    return message.role == "user" and any(isinstance(part, Image) for part in message.parts)
