"""Who counts tokens: the backend's own tokenizer, an installed one, and else an estimate."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec

from herdr.clock import Clock
from herdr.context.o200k import o200k
from herdr.context.tokens import Cached, Counter, CountFailed, Fallback

PAUSE_S = 30.0  # before a backend that could not count is asked again; meanwhile another counter counts
AT_ONCE = 4  # texts that a backend counts at the same time
WITHIN_S = 5.0  # for all texts of one answer

Tokenize = Callable[[str], Awaitable[int | None]]
"""Returns a text's tokens; None when the backend cannot say. Raises HerdrError when it does not answer."""


class BackendCounter:
    """Counts with a backend's own tokenizer."""

    def __init__(self, backend: str, tokenize: Tokenize, clock: Clock) -> None:
        self.name = f"backend:{backend}"
        self._tokenize = tokenize
        self._clock = clock
        self._again_at = float("-inf")
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def count(self, texts: Sequence[str]) -> Sequence[int]:
        """See `Counter.count`."""
        if self._clock.monotonic() < self._again_at:
            raise CountFailed(f"{self.name} could not count a moment ago")
        try:
            async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as group:
                counting = [group.create_task(self._one(text)) for text in texts]
        except (ExceptionGroup, TimeoutError) as error:
            self._again_at = self._clock.monotonic() + PAUSE_S
            raise CountFailed(f"{self.name} cannot count now") from error
        return [task.result() for task in counting]

    async def _one(self, text: str) -> int:
        async with self._turns:
            found = await self._tokenize(text)
        if found is None:
            raise CountFailed(f"{self.name} does not count")
        return found


class InstalledCounter:
    """Counts with o200k_base where the extra `tokens` is installed; loaded when something is counted first."""

    name = "o200k_base"

    def __init__(self) -> None:
        self._loading: asyncio.Task[Counter | None] | None = None

    async def count(self, texts: Sequence[str]) -> Sequence[int]:
        """See `Counter.count`."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(o200k))
        counter = await asyncio.shield(self._loading)
        if counter is None:
            raise CountFailed("bpe-openai is installed and cannot be loaded")
        return await counter.count(texts)


def local_counter() -> Fallback:
    """Return what counts without asking anybody."""
    return Fallback(_installed())


def preferred_counter(backends: Sequence[Counter]) -> Fallback:
    """Return what counts for answers: the first of these backends that can, and else what is here."""
    return Fallback([*map(Cached, backends), *_installed()])


def _installed() -> list[Counter]:
    return [Cached(InstalledCounter())] if find_spec("bpe_openai") is not None else []
