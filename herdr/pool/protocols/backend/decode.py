"""Pure: the stream of a backend's chat completions as neutral chunks, in the order that `chunk.py` promises."""

from collections.abc import Callable, Mapping

import msgspec

from herdr.pool.chunk import Chunk, End, Progress, StopReason, Timings, ToolCalls, Usage
from herdr.pool.failures import ModelError
from herdr.pool.protocols.backend.answer import Answer
from herdr.pool.protocols.backend.chunks import (
    Choice,
    Counts,
    Delta,
    Part,
    PromptProgress,
    StreamChunk,
    ToolCall,
    Work,
)
from herdr.pool.protocols.quote import quoted
from herdr.pool.protocols.refusal import stream_failure
from herdr.pool.protocols.stream_reader import StreamReader

_decode = msgspec.json.Decoder(StreamChunk).decode
_encode = msgspec.json.Encoder().encode

_CUT_SHORT = {"length", "max_tokens"}
_BROKEN = {"error", "abort", "aborted", "cancelled", "canceled", "insufficient_system_resource"}


class ChatDecoder(StreamReader):
    """Reads one answer.

    `stop` are the client's stop sequences, looked for in text only. `prompt_estimate` counts until the backend
    does; `context` is the slot's size in tokens, by which a full context is told from a full `max_tokens`.
    `recover` looks for calls of `tool_names` in text, and in reasoning that nothing followed; `schemas` (a
    tool's JSON Schema under its name) tells it which of their parameters are strings.
    """

    def __init__(
        self,
        *,
        stop: tuple[str, ...],
        tool_calls: ToolCalls,
        recover: bool,
        tool_names: frozenset[str],
        prompt_estimate: int,
        context: int | None,
        new_id: Callable[[], str],
        schemas: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        offered = {name: (schemas or {}).get(name, "") for name in tool_names} if recover else {}
        self._answer = Answer(stop, tool_calls, offered, new_id)
        self._prompt_estimate, self._context = prompt_estimate, context
        self._usage: Counts | None = None
        self._work: Work | None = None
        self._progress: PromptProgress | None = None
        self._finish_reason: str | None = None
        self._refused = False
        self._pieces = 0  # a token each, as nearly all backends send them

    def _last(self, out: list[Chunk]) -> None:
        if self._finish_reason is not None:
            self._close(out)

    def _event(self, event: str, data: bytes, out: list[Chunk]) -> None:
        self.heard += 1
        if data[:1] != b"{":
            said = data.strip()
            if said == b"[DONE]":
                self._done(out)
                return
            if not said and event != "error":
                return
        try:
            chunk = _decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            if event == "error":
                raise stream_failure(data) from None
            why = "nested too deep" if isinstance(error, RecursionError) else str(error)
            detail = f"the backend sent what cannot be read ({why}): {quoted(data, 120)}"
            raise ModelError("backend_failed", detail) from None
        if event == "error" or chunk.error or chunk.object == "error":
            raise stream_failure(data)
        self._count(chunk, out)
        if chunk.choices:
            self._choice(chunk.choices, out)
            self._begun = self._pieces > 0

    def _count(self, chunk: StreamChunk, out: list[Chunk]) -> None:
        if chunk.usage is not None:
            self._usage = chunk.usage
        if chunk.timings is not None:
            self._work = chunk.timings
        progress = chunk.prompt_progress
        if progress is not None and not self._pieces:
            self._progress = progress
            out.append(Progress(progress.total, progress.cache, progress.processed))

    def _choice(self, choices: list[Choice], out: list[Chunk]) -> None:
        choice = choices[0]
        if choice.index:  # of several answers, which nobody asked for, the first
            return
        if choice.delta is not None:
            self._delta(choice.delta, out)
            if self._answer.stopped is not None:
                self.is_cut = True
                self._close(out)
                return
        if choice.usage is not None:
            self._usage = choice.usage
        if choice.finish_reason:
            if choice.finish_reason in _BROKEN:
                raise ModelError("backend_failed", f"the backend gave up its answer: {choice.finish_reason}")
            self._finish_reason = choice.finish_reason

    def _delta(self, delta: Delta, out: list[Chunk]) -> None:
        thinking = delta.reasoning_content or delta.reasoning
        if thinking:
            self._pieces += 1
            self._answer.think(thinking, out)
        content = delta.content
        if content:
            self._pieces += 1
            if isinstance(content, str):
                self._answer.say(content, out)
            else:
                self._parts(content, out)
        if delta.refusal:
            self._pieces += 1
            self._refused = True
            self._answer.say(delta.refusal, out)
        if delta.tool_calls:
            self._pieces += 1
            self._call(delta.tool_calls, out)

    def _parts(self, parts: list[Part], out: list[Chunk]) -> None:
        for part in parts:
            thinking = part.thinking
            if isinstance(thinking, list):
                thinking = "".join([inner.text or "" for inner in thinking])
            if thinking:
                self._answer.think(thinking, out)
            if part.text:
                self._answer.say(part.text, out)

    def _call(self, fragments: list[ToolCall], out: list[Chunk]) -> None:
        for fragment in fragments:
            function = fragment.function
            name = arguments = ""
            if function is not None:
                name = function.name or ""
                given = function.arguments
                arguments = _encode(given).decode() if isinstance(given, dict) else given or ""
            self._answer.call(fragment.index, fragment.id or "", name, arguments, out)

    def _done(self, out: list[Chunk]) -> None:
        if self._finish_reason is None:
            if not self._pieces:
                raise ModelError("backend_failed", "the backend ended its answer before it began")
            self._finish_reason = "stop"  # `[DONE]` alone is how a few servers end
        self._close(out)

    def _close(self, out: list[Chunk]) -> None:
        self._answer.finish(self._finish_reason in _CUT_SHORT, out)
        usage = self._counted()
        reason = self._stop_reason(usage)
        sequence = self._answer.stopped if reason == "stop_sequence" else None
        work = self._work
        timings = Timings() if work is None else Timings(work.prompt_ms, work.predicted_ms)
        out.append(End(reason, usage, sequence, timings))
        self.ended = True

    def _stop_reason(self, usage: Usage) -> StopReason:
        """Return why it ended: whole calls count more than how the text ended, unless one was cut off."""
        if self._refused or self._finish_reason == "content_filter":
            return "refusal"
        if self._answer.called:
            return "tool_use"
        if self._answer.stopped is not None:
            return "stop_sequence"
        if self._finish_reason not in _CUT_SHORT:
            return "end_turn"
        full = self._context is not None and usage.prompt + usage.output >= self._context
        return "context_full" if full else "max_tokens"

    def _counted(self) -> Usage:
        """Return the tokens as exactly as the backend says: its usage, else its timings, else our count."""
        usage, work = self._usage or Counts(), self._work or Work()
        progress = self._progress or PromptProgress()
        prompt = (
            usage.prompt_tokens or work.cache_n + work.prompt_n or progress.total or self._prompt_estimate
        )
        details, of_output = usage.prompt_tokens_details, usage.completion_tokens_details
        cached = details.cached_tokens if details is not None else None
        if cached is None:
            cached = work.cache_n or progress.cache
        output = usage.completion_tokens
        if output is None:
            output = work.predicted_n or self._pieces
        reasoning = of_output.reasoning_tokens if of_output is not None else None
        return Usage(prompt, min(prompt, cached), output, reasoning or 0)
