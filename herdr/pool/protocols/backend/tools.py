"""Pure: tool calls that come in fragments, several at once, put into the one order that clients can read."""

from collections import deque
from collections.abc import Callable

from herdr.pool.chunk import Chunk, TextDelta, ThinkingDelta, ToolCalls, ToolDelta, ToolEnd, ToolStart
from herdr.pool.failures import ModelError
from herdr.pool.protocols.json_text import is_object
from herdr.pool.protocols.quote import quoted
from herdr.pool.protocols.stream_reader import HELD_MAX

CALLS_MAX = 1024  # calls in one answer; the largest seen in the wild is below 100


class Call:
    """One call as far as it has come."""

    __slots__ = ("closed", "id", "name", "pieces", "sent", "started")

    def __init__(self) -> None:
        self.id = self.name = ""
        self.pieces: list[str] = []
        self.sent = 0  # pieces that went out
        self.started = self.closed = False

    def whole(self) -> bool:
        """Tell whether it can be closed now: named, and its arguments one JSON object."""
        return bool(self.name and self.pieces and self._ends() and is_object("".join(self.pieces)))

    def _ends(self) -> bool:
        """Spare the full check on most fragments."""
        return self.pieces[-1].rstrip().endswith("}")


class ToolBuffer:
    """Lets one call out at a time, and nothing of another kind while it is open.

    `buffer` sends a call only when its arguments are one whole JSON object; `stream` sends the fragments of the
    first open call at once. A call is over when it is whole and something else comes, or the answer ends; what
    comes earlier waits behind it, in the order in which it came.
    """

    def __init__(self, mode: ToolCalls, new_id: Callable[[], str]) -> None:
        self._stream = mode == "stream"
        self._new_id = new_id
        self._queue: deque[Call | TextDelta | ThinkingDelta] = deque()
        self._by_index: dict[int, Call] = {}
        self._last: Call | None = None
        self._ids: set[str] = set()
        self._held = 0
        self.made = 0
        """Calls that went out whole."""
        self.cut = 0
        """Calls that the end of the answer cut off."""

    def fragment(self, index: int | None, id_: str, name: str, arguments: str) -> list[Chunk]:
        """Take a piece of a call; empty strings are what the piece does not say."""
        call = self._find(index, id_, name)
        call.id = call.id or id_
        call.name = call.name or name
        self._last = call
        if arguments and (call.pieces or arguments.strip()):  # spaces alone are no arguments
            self._hold(len(arguments))
            if call.closed:
                return self._late(call, arguments)
            call.pieces.append(arguments)
        return self._advance()

    def other(self, chunk: TextDelta | ThinkingDelta) -> list[Chunk]:
        """Take text or reasoning: it passes, unless a call is open."""
        if not self._queue:
            return [chunk]
        self._hold(len(chunk.text))
        self._queue.append(chunk)
        return self._advance()

    def call(self, name: str, arguments: str) -> list[Chunk]:
        """Take a call that came in one piece without an id."""
        self._hold(len(arguments))
        call = self._open()
        call.name = name
        call.pieces.append(arguments)
        return self._advance()

    def finish(self, truncated: bool) -> list[Chunk]:
        """Return all that is left; the answer is over.

        A call whose arguments are no JSON object is dropped when the answer was `truncated` (in `stream` mode
        what is out stays out, and the call is closed); else it raises ModelError `backend_failed`.
        """
        out = self._advance()
        while self._queue:
            head = self._queue.popleft()
            if not isinstance(head, Call):
                out.append(head)
            elif head.name and (head.whole() or not (truncated or "".join(head.pieces).strip())):
                out += self._close(head)
            elif truncated or not (head.name or head.pieces):  # or a fragment that said nothing at all
                self.cut += truncated
                out += [ToolEnd()] if head.started else []
            else:
                raise _no_object(head)
        return out

    def _find(self, index: int | None, id_: str, name: str) -> Call:
        known = self._by_index.get(index) if index is not None else self._last
        if known is not None and not _is_another(known, index, id_, name):
            return known
        call = self._open()
        if index is not None:
            self._by_index[index] = call
        return call

    def _open(self) -> Call:
        if self.made + len(self._queue) >= CALLS_MAX:
            raise ModelError(
                "backend_failed", f"the backend made more than {CALLS_MAX} tool calls in one answer"
            )
        call = Call()
        self._queue.append(call)
        return call

    def _hold(self, size: int) -> None:
        self._held += size
        if self._held > HELD_MAX:
            raise ModelError(
                "backend_failed",
                f"the backend sent tool calls of more than {HELD_MAX} characters in one answer",
            )

    def _late(self, call: Call, arguments: str) -> list[Chunk]:
        if arguments.strip():
            call.pieces.append(arguments)
            raise _no_object(call)
        return []

    def _advance(self) -> list[Chunk]:
        out: list[Chunk] = []
        while self._queue:
            head = self._queue[0]
            if not isinstance(head, Call):
                out.append(head)
            elif len(self._queue) > 1 and head.whole():
                out += self._close(head)
            else:
                if self._stream and head.name:
                    out += self._send(head)
                break
            self._queue.popleft()
        return out

    def _send(self, call: Call) -> list[Chunk]:
        out: list[Chunk] = []
        if not call.started:
            call.started = True
            if not call.id or call.id in self._ids:
                call.id = self._new_id()
            self._ids.add(call.id)
            out.append(ToolStart(call.id, call.name))
        fresh = call.pieces[call.sent :]
        call.sent = len(call.pieces)
        out += [ToolDelta(text) for text in fresh] if self._stream else _whole_delta(fresh)
        return out

    def _close(self, call: Call) -> list[Chunk]:
        call.closed = True
        self.made += 1
        return [*self._send(call), ToolEnd()]


def _whole_delta(pieces: list[str]) -> list[Chunk]:
    text = "".join(pieces)
    return [ToolDelta(text)] if text.strip() else []


def _is_another(known: Call, index: int | None, id_: str, name: str) -> bool:
    """Some servers number every call 0, or none at all: then a call begins where a name comes again.

    A name that is only repeated comes with its call's id, or before the arguments are whole.
    """
    if not (name and known.name) or (id_ and id_ == known.id):
        return False
    return bool(id_ and known.id) or index is None or known.closed or known.whole()


def _no_object(call: Call) -> ModelError:
    said = quoted("".join(call.pieces), 80)
    if not call.name:
        return ModelError("backend_failed", f"the backend made a tool call without a name; arguments: {said}")
    return ModelError(
        "backend_failed",
        f"the model called {quoted(call.name, 80)}, but its arguments are no JSON object: {said}",
    )
