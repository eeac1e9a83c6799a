"""Any server that speaks OpenAI's chat completions: Ollama, vLLM, LM Studio, a cloud."""

from herdr.clock import Clock
from herdr.pool.backend import Emit, Job, run_stream
from herdr.pool.backends.chat import Chat
from herdr.pool.backends.slotless import Slotless
from herdr.pool.failures import ModelError
from herdr.pool.protocols.refusal import refusal
from herdr.pool.protocols.retry_after import retry_after
from herdr.pool.upstream import Answer, Upstream


class OpenAi(Slotless):
    """One such server. Implements `Backend`."""

    kind = "openai"

    def __init__(self, upstream: Upstream, clock: Clock, chat: Chat, concurrency: int) -> None:
        super().__init__(upstream, concurrency)
        self._clock = clock
        self._chat = chat

    async def generate(self, job: Job, emit: Emit) -> bool:
        """See `Backend.generate`."""
        body = self._chat.body(job.request, job.max_tokens, slot=None, vision=True)
        decoder = self._chat.decoder(job.request, job.prompt_estimate, None)
        path = self._root + "/chat/completions"
        return await run_stream(self._upstream, path, body, {}, decoder, emit, self._refused)

    def _refused(self, answer: Answer) -> ModelError:
        wait_s = retry_after(answer.headers, self._clock.wall_us() / 1e6)
        return refusal(answer.status, answer.body, self.name, wait_s)
