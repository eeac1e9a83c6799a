"""Any server that speaks OpenAI's chat completions: Ollama, vLLM, LM Studio, a cloud."""

from collections.abc import Callable
from typing import Literal

from herdr.clock import Clock
from herdr.pool.backend import Emit, Job, Sight, run_stream
from herdr.pool.failures import ModelError
from herdr.pool.protocols.backend.body import chat_body
from herdr.pool.protocols.backend.decode import ChatDecoder
from herdr.pool.protocols.backend.refusal import refusal
from herdr.pool.protocols.retry_after import retry_after
from herdr.pool.request import ChatRequest
from herdr.pool.upstream import Answer, Upstream


class OpenAi:
    """One such server. Implements `Backend`; it has places, not slots."""

    kind = "openai"
    has_slots = False

    def __init__(
        self,
        upstream: Upstream,
        clock: Clock,
        *,
        model: str | None,
        concurrency: int,
        tool_calls: Literal["buffer", "stream"],
        recover: bool,
        lower_schema: bool,
        new_id: Callable[[], str],
    ) -> None:
        self.name = upstream.name
        self.url = upstream.url
        self._upstream = upstream
        self._clock = clock
        self._model = model
        self._concurrency = concurrency
        self._tool_calls = tool_calls
        self._recover = recover
        self._lower_schema = lower_schema
        self._new_id = new_id
        self._root = "" if self.url.endswith("/v1") else "/v1"

    async def look(self) -> Sight:
        """See `Backend.look`; a cloud is not asked, since that would count against its quota."""
        return Sight(self._concurrency, None, True)

    async def generate(self, job: Job, emit: Emit) -> None:
        """See `Backend.generate`."""
        request = job.request
        body = chat_body(
            request,
            model=self._model or request.model,
            max_tokens=job.max_tokens,
            kind="openai",
            slot=None,
            lower_schema=self._lower_schema,
            vision=True,
        )
        decoder = ChatDecoder(
            stop=request.sampling.stop,
            tool_calls=self._tool_calls,
            recover=self._recover,
            tool_names=frozenset(tool.name for tool in request.tools),
            prompt_estimate=job.prompt_estimate,
            context=None,
            new_id=self._new_id,
            schemas={tool.name: tool.parameters for tool in request.tools} if self._recover else None,
        )
        path = self._root + "/chat/completions"
        await run_stream(self._upstream, path, body, {}, decoder, emit, self._refused)

    def _refused(self, answer: Answer) -> ModelError:
        wait_s = retry_after(answer.headers, self._clock.wall_us() / 1e6)
        return refusal(answer.status, answer.body, "openai", self._model or self.name, wait_s)

    async def settle(self, slot: int) -> None:
        """See `Backend.settle`: closing the connection is all that can be done."""

    async def save(self, slot: int, file: int) -> bool:
        """See `Backend.save`: there is nothing to save."""
        return False

    async def restore(self, slot: int, file: int) -> int:
        """See `Backend.restore`."""
        return 0

    async def count(self, request: ChatRequest) -> int | None:
        """See `Backend.count`: these servers have no common way to count."""
        return None
