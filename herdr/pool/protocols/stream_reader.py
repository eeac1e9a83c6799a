"""Pure: what the readers of all backends' streams have in common: bytes in, chunks out, and how one may break off."""

from herdr.pool.chunk import Chunk
from herdr.pool.failures import ModelError
from herdr.pool.protocols.quote import quoted
from herdr.pool.protocols.refusal import stream_failure
from herdr.pool.protocols.sse import SseDecoder

HELD_MAX = 16 * 1024 * 1024
"""Characters of tool calls, and of what waits behind them, in one answer: as much as one event may have."""
_HEAD_MAX = 4096  # bytes kept of a body that may turn out to be no event stream


class StreamReader:
    """Reads one answer. Feed it the body as it comes, call `finish` at its end, stop when `ended` is set.

    A subclass says what an event means (`_event`), and what follows the last one (`_last`) if anything does.
    Implements `herdr.pool.backend.Decoder`.
    """

    def __init__(self) -> None:
        self.heard = 0
        """Events so far; what only says that the server is still there does not count."""
        self.ended = False
        """The answer's `End` is out: what the backend still sends is not wanted."""
        self.is_cut = False
        """It is out before the backend's own end: the backend knows nothing of that and goes on."""
        self._begun = False
        """Whether the answer has begun; until then an error may come that is no stream."""
        self._sse = SseDecoder()
        self._head = b""
        self._failure: ModelError | None = None

    def check(self) -> None:
        """Raise the failure that stood behind the chunks which `feed` returned last, if there was one."""
        if self._failure is not None:
            raise self._failure

    def feed(self, data: bytes) -> list[Chunk]:
        """Return what a piece of the body adds.

        Raises ModelError when the backend says that it failed, or says what cannot be read; when chunks stand
        before that in the same piece, these are returned, and `check` and the next call raise.
        """
        self.check()
        out: list[Chunk] = []
        if self.ended:
            return out
        if len(self._head) < _HEAD_MAX:
            self._head += data[:_HEAD_MAX]
        try:
            for event, payload in self._sse.feed(data):
                self._event(event, payload, out)
                if self.ended:
                    break
        except ModelError as error:
            self._failure = error
            if not out:
                raise
        return out

    def finish(self) -> list[Chunk]:
        """Return what is left when the body is over; nothing after an `End`.

        Raises ModelError `backend_failed` when the backend broke off: that must never look like an end.
        """
        self.check()
        out: list[Chunk] = []
        if not self.ended:
            self._last(out)
        if not self.ended:
            raise self._broken_off()
        return out

    def _event(self, event: str, data: bytes, out: list[Chunk]) -> None:
        """Add to `out` what one event means; `event` is its name, empty where it has none."""
        raise NotImplementedError

    def _last(self, out: list[Chunk]) -> None:
        """Add to `out` what the end of the body means; an answer that is whole without more ends here."""

    def _broken_off(self) -> ModelError:
        head = self._head
        if self._begun:
            return ModelError("backend_failed", "the backend broke off in the middle of its answer")
        if head.lstrip()[:1] in (b"{", b"[") and b"error" in head:
            return stream_failure(head)
        if head.strip() and b"data:" not in head and not head.startswith((b":", b"event:")):
            said = quoted(head, 120)
            return ModelError(
                "backend_failed", f"the backend answered with something else than a stream: {said}"
            )
        return ModelError("backend_failed", "the backend closed the connection before its answer began")
