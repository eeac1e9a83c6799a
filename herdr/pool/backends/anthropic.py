"""The Anthropic API, or a server that speaks it: requests of its own clients pass through as they are."""

from herdr.clock import Clock
from herdr.pool.backend import Emit, Job, Sight, run_stream
from herdr.pool.failures import ModelError
from herdr.pool.protocols.anthropic_backend.body import headers as passed_on
from herdr.pool.protocols.anthropic_backend.body import messages_body, pass_through
from herdr.pool.protocols.anthropic_backend.decode import MessagesDecoder
from herdr.pool.protocols.anthropic_backend.refusal import refusal
from herdr.pool.protocols.retry_after import retry_after
from herdr.pool.request import ChatRequest
from herdr.pool.upstream import Answer, Upstream


class Anthropic:
    """One such server. Implements `Backend`; it has places, not slots."""

    kind = "anthropic"
    has_slots = False

    def __init__(self, upstream: Upstream, clock: Clock, *, model: str | None, concurrency: int) -> None:
        self.name = upstream.name
        self.url = upstream.url
        self._upstream = upstream
        self._clock = clock
        self._model = model
        self._concurrency = concurrency
        self._root = "" if self.url.endswith("/v1") else "/v1"

    async def look(self) -> Sight:
        """See `Backend.look`; a cloud is not asked, since that would count against its quota."""
        return Sight(self._concurrency, None, True)

    async def generate(self, job: Job, emit: Emit) -> None:
        """See `Backend.generate`."""
        if job.verbatim is not None:
            body = pass_through(job.verbatim, model=self._model)
        else:
            body = messages_body(
                job.request, model=self._model or job.request.model, max_tokens=job.max_tokens
            )
        decoder = MessagesDecoder(verbatim=job.verbatim is not None)
        sent = passed_on(job.headers, None)
        await run_stream(self._upstream, self._root + "/messages", body, sent, decoder, emit, self._refused)

    def _refused(self, answer: Answer) -> ModelError:
        wait_s = retry_after(answer.headers, self._clock.wall_us() / 1e6)
        return refusal(answer.status, answer.body, wait_s, self._model or self.name)

    async def settle(self, slot: int) -> None:
        """See `Backend.settle`: closing the connection is all that can be done."""

    async def save(self, slot: int, file: int) -> bool:
        """See `Backend.save`: there is nothing to save."""
        return False

    async def restore(self, slot: int, file: int) -> int:
        """See `Backend.restore`."""
        return 0

    async def count(self, request: ChatRequest) -> int | None:
        """See `Backend.count`: asking would count against the quota."""
        return None
