"""What the pool needs of a backend, and the one loop that every kind of backend shares: bytes in, chunks out."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from herdr.pool.chunk import Chunk, Progress, Verbatim
from herdr.pool.failures import ModelError
from herdr.pool.request import ChatRequest
from herdr.pool.upstream import Answer, LimitName, Upstream

Emit = Callable[[Sequence[Chunk]], None]


class Job(msgspec.Struct, frozen=True):
    """One generation."""

    request: ChatRequest
    """The canonical request."""
    slot: int | None
    max_tokens: int
    prompt_estimate: int
    verbatim: bytes | None = None
    """The client's own body, where client and backend both speak Anthropic."""
    headers: Mapping[str, str] = {}
    """The client's headers, names in lower case; a backend passes on what it knows to be meant for it."""


class Sight(NamedTuple):
    """What a look at a backend shows."""

    total: int
    """Requests that it can run at once."""
    context: int | None
    """Tokens that one slot holds; None when nobody says so."""
    vision: bool
    restarted: bool = False
    """Whether it has been started anew since the last look: every slot is cold."""


class Backend(Protocol):
    """One server that generates text."""

    name: str
    kind: str
    url: str
    has_slots: bool
    """Whether its places are KV slots, which remember a prompt."""

    async def look(self) -> Sight:
        """Ask how it is; raises ModelError while it cannot take requests."""
        ...

    async def generate(self, job: Job, emit: Emit) -> bool:
        """Run one generation to its `End`; raises ModelError. Cancelling it ends the generation.

        False: it was cut here, and the backend may go on for a moment.
        """
        ...

    async def settle(self, slot: int) -> None:
        """Return once the slot is idle; raises ModelError when the backend does not say so."""
        ...

    async def save(self, slot: int, file: int) -> bool:
        """Save an idle slot's content to a numbered file; False when it could not."""
        ...

    async def restore(self, slot: int, file: int) -> int:
        """Load a numbered file into an idle slot; returns the tokens that it claims to hold, 0 for failure."""
        ...

    async def count(self, request: ChatRequest) -> int | None:
        """Return the tokens of a prompt without taking a slot; None when it cannot tell."""
        ...


class Decoder(Protocol):
    """Reads a backend's stream; `herdr.pool.protocols` has one for each kind."""

    heard: int
    """Events so far, without mere keep-alives."""
    ended: bool
    """The `End` is out."""
    is_cut: bool
    """It is out before the backend's own end."""

    def feed(self, data: bytes) -> list[Chunk]:
        """Return what these bytes complete; raises ModelError."""
        ...

    def check(self) -> None:
        """Raise the failure that stood behind the chunks which `feed` returned last."""
        ...

    def finish(self) -> list[Chunk]:
        """Return what is left when the stream ends; raises ModelError when it ended too early."""
        ...


class _Enough(Exception):
    """Leaves the stream; the answer is complete."""


async def run_stream(
    upstream: Upstream,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
    decoder: Decoder,
    emit: Emit,
    refused: Callable[[Answer], ModelError],
) -> bool:
    """Stream one answer through a decoder; returns whether the backend came to its own end."""
    answering = False

    def feed(data: bytes) -> LimitName | None:
        nonlocal answering
        heard = decoder.heard
        chunks = decoder.feed(data)
        if chunks:
            emit(chunks)
            decoder.check()
        if decoder.ended:
            raise _Enough
        if decoder.heard == heard:
            return None
        # While the prompt is evaluated, llama.cpp speaks once in 2,048 tokens
        answering = answering or any(type(chunk) not in (Progress, Verbatim) for chunk in chunks)
        return "between_chunks_s" if answering else "first_byte_s"

    try:
        await upstream.stream(path, body, headers, feed, refused)
        if chunks := decoder.finish():
            emit(chunks)
    except _Enough:
        pass
    except ModelError as error:
        upstream.without_secrets(error)
        raise
    return not decoder.is_cut
