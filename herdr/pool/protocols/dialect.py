"""Pure: what the gateway needs of a protocol that clients speak."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from herdr.pool.chunk import Chunk, Usage
from herdr.pool.inset import Report
from herdr.pool.request import ChatRequest


class Opening(msgspec.Struct, frozen=True):
    """What is known of a call when its answer begins."""

    call: str
    """The call's id, a ULID."""
    model: str
    """The model as the client named it."""
    agent: str
    slot: int | None
    queue_ms: int
    created: int
    """Seconds since the Unix epoch."""
    usage: Usage = Usage()
    """The prompt's tokens: exact when the backend has said so, else estimated. `output` is 0."""
    context: Report | None = None
    """What the prompt holds of the shared context, where that was asked for."""


class Ending(msgspec.Struct, frozen=True):
    """What is known of a call when it is over, beside its last chunk; milliseconds from its arrival."""

    queue_ms: int
    first_token_ms: int
    total_ms: int


class Encoder(Protocol):
    """Writes one client's stream. Everything that it returns is whole SSE blocks, or nothing."""

    def start(self) -> bytes:
        """Return how the stream opens; not called where a backend's own events are passed on (`Verbatim`)."""
        ...

    def feed(self, chunk: Chunk) -> bytes:
        """Return what one chunk becomes. `End` is not fed but given to `end`."""
        ...

    def end(self, chunk: Chunk, ending: Ending) -> bytes:
        """Return how the stream closes; `chunk` is the answer's `End` (or its `Verbatim` end)."""
        ...

    def ping(self) -> bytes:
        """Return a keep-alive that the protocol's clients understand."""
        ...

    def error(self, status: int, code: str, detail: str) -> bytes:
        """Return how a stream that has begun says that it failed; nothing comes after it."""
        ...


class Dialect(Protocol):
    """One protocol. Modules of `herdr.pool.protocols` implement it with functions of these names."""

    def parse(self, body: bytes) -> ChatRequest:
        """Return what a body asks for; raises InvalidInput with the path of the wrong field."""
        ...

    def encoder(self, opening: Opening, request: ChatRequest) -> Encoder:
        """Return the writer of one stream."""
        ...

    def whole(self, opening: Opening, request: ChatRequest, chunks: Sequence[Chunk], ending: Ending) -> bytes:
        """Return the whole answer as one JSON object, for a client that does not stream."""
        ...

    def error_body(self, status: int, code: str, detail: str, call: str) -> bytes:
        """Return an error as the protocol's clients expect it."""
        ...
