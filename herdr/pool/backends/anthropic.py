"""The Anthropic API, or a server that speaks it: requests of its own clients pass through as they are."""

import msgspec

from herdr.clock import Clock
from herdr.pool.backend import Emit, Job, run_stream
from herdr.pool.backends.slotless import Slotless
from herdr.pool.chunk import ToolCalls
from herdr.pool.failures import ModelError
from herdr.pool.protocols.anthropic_backend.body import count_request, messages_body, pass_through, passed_on
from herdr.pool.protocols.anthropic_backend.decode import MessagesDecoder
from herdr.pool.protocols.refusal import refusal
from herdr.pool.protocols.retry_after import retry_after
from herdr.pool.request import ChatRequest
from herdr.pool.upstream import Answer, Upstream


class _Counted(msgspec.Struct):
    input_tokens: int


_counted = msgspec.json.Decoder(_Counted)


class Anthropic(Slotless):
    """One such server. Implements `Backend`."""

    kind = "anthropic"

    def __init__(
        self,
        upstream: Upstream,
        clock: Clock,
        model: str | None,
        concurrency: int,
        tool_calls: ToolCalls,
    ) -> None:
        super().__init__(upstream, concurrency)
        self._tool_calls: ToolCalls = tool_calls
        self._clock = clock
        self._model = model

    async def generate(self, job: Job, emit: Emit) -> bool:
        """See `Backend.generate`."""
        if job.verbatim is not None:
            body = pass_through(job.verbatim, model=self._model)
        else:
            body = messages_body(
                job.request, model=self._model or job.request.model, max_tokens=job.max_tokens
            )
        decoder = MessagesDecoder(verbatim=job.verbatim is not None, tool_calls=self._tool_calls)
        sent = passed_on(job.headers)
        path = self._root + "/messages"
        return await run_stream(self._upstream, path, body, sent, decoder, emit, self._refused)

    async def count(self, request: ChatRequest) -> int | None:
        """See `Backend.count`."""
        body = count_request(request, model=self._model or request.model)
        sent = passed_on({})
        answer = await self._upstream.ask("POST", self._root + "/messages/count_tokens", body, headers=sent)
        try:
            return _counted.decode(answer.body).input_tokens if answer.status == 200 else None
        except msgspec.DecodeError:
            return None

    def _refused(self, answer: Answer) -> ModelError:
        wait_s = retry_after(answer.headers, self._clock.wall_us() / 1e6)
        return refusal(answer.status, answer.body, self._model or self.name, wait_s)
