"""One answer of a model while it is made: its chunks, and everyone who reads them."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from herdr.pool.chunk import Chunk, Progress, Usage, Verbatim
from herdr.pool.failures import ModelError

CHUNKS_MAX = 1_000_000  # about as many tokens; no model's answer is that long


class Place(NamedTuple):
    """Where a call runs, and how long it waited for that."""

    slot: int | None
    queue_ms: int
    passes_through: bool = False
    """Client and backend both speak Anthropic, and the backend's own events go out as they came."""


class Generation:
    """The chunks of one answer, kept from the first to the last, so that a reader may join at any time.

    A reader is a position in that list: a slow one holds up neither the model nor the others. The list is
    bounded by the answer's length: `max_tokens`, and CHUNKS_MAX for a backend that does not keep to it.
    """

    def __init__(self, call: str, prompt_estimate: int) -> None:
        self.call = call
        self.place: Place | None = None
        self.chunks: list[Chunk] = []
        self.failure: ModelError | None = None
        self.ended = False
        self.first_token_at: float | None = None
        self.is_counted = False
        """Whether the backend has said how many tokens the prompt has."""
        self._usage = Usage(prompt=prompt_estimate)
        self._readers: set[Reader] = set()

    @property
    def readers(self) -> int:
        """How many clients read this answer."""
        return len(self._readers)

    @property
    def usage(self) -> Usage:
        """What is known of the prompt's tokens: exact once the backend has said so."""
        return self._usage

    def read(self) -> "Reader":
        """Return a reader that begins with the first chunk."""
        reader = Reader(self)
        self._readers.add(reader)
        return reader

    def leave(self, reader: "Reader") -> int:
        """Count a reader out; returns how many are left."""
        self._readers.discard(reader)
        return len(self._readers)

    def begin(self, place: Place) -> None:
        """The call has its slot."""
        self.place = place
        self._wake()

    def withdraw(self) -> None:
        """The call has lost its slot again before the backend said anything, and waits for another."""
        self.place = None

    def append(self, chunks: Sequence[Chunk], now: float) -> None:
        """Take chunks from the backend."""
        for chunk in chunks:
            if type(chunk) is Progress:
                self._usage = Usage(prompt=chunk.total, cached=chunk.cached)
                self.is_counted = True
            elif self.first_token_at is None and type(chunk) is not Verbatim:
                self.first_token_at = now
        self.chunks.extend(chunks)
        if len(self.chunks) > CHUNKS_MAX:
            raise ModelError("backend_failed", f"the answer has more than {CHUNKS_MAX} pieces and no end")
        self._wake()

    def end(self) -> None:
        """The last chunk is there."""
        self.ended = True
        self._wake()

    def fail(self, error: ModelError) -> None:
        """There will be no further chunk."""
        if not self.ended:
            self.failure = error.again()
            self.end()

    def _wake(self) -> None:
        for reader in self._readers:
            reader.poke()


class Reader:
    """One client's place in an answer."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._position = 0
        self._moved = asyncio.Event()

    def poke(self) -> None:
        """Have whoever waits look around."""
        self._moved.set()

    async def moved(self) -> None:
        """Wait until there is something new, or until `poke`."""
        await self._moved.wait()
        self._moved.clear()

    def take(self) -> Sequence[Chunk]:
        """Return the chunks that came since the last call; maybe none."""
        chunks = self.generation.chunks
        position, self._position = self._position, len(chunks)
        return chunks[position:]

    @property
    def finished(self) -> bool:
        """Whether nothing is left to be read; raises ModelError when the answer failed."""
        generation = self.generation
        if not generation.ended or self._position < len(generation.chunks):
            return False
        if generation.failure is not None:
            raise generation.failure.again()
        return True
