"""Pure: tool calls out of an Anthropic stream, put in an order that every encoder can write.

Blocks should come one at a time. Some servers close all of them at the very end, or let calls interleave;
either way a call comes out as `ToolStart`, `ToolDelta`*, `ToolEnd` with nothing in between.
"""

import msgspec

from herdr.pool.chunk import Chunk, ToolCalls, ToolDelta, ToolEnd, ToolStart
from herdr.pool.failures import ModelError
from herdr.pool.protocols.json_text import is_object
from herdr.pool.protocols.stream_reader import HELD_MAX


class _Call(msgspec.Struct):
    id: str
    name: str
    initial: str
    pieces: list[str] = []


class Calls:
    """The tool calls of one answer."""

    def __init__(self, mode: ToolCalls) -> None:
        self._streams = mode == "stream"
        self._open: dict[int, _Call] = {}
        self._size = 0
        self.seen = False
        """Whether there was any call."""
        self.broken: str | None = None
        """The first tool whose arguments were no JSON object; that call was left out."""

    def start(self, index: int, id_: str, name: str, initial: str) -> list[Chunk]:
        """Begin the call at `index`; `initial` is its input where that does not come in pieces."""
        if not id_ or not name:
            raise ModelError("backend_failed", "the backend sent a tool call without an id or a name")
        ended = self.interrupt()
        self.seen = True
        self._grow(initial)
        self._open[index] = _Call(id_, name, initial)
        return [*ended, ToolStart(id_, name)] if self._streams else []

    def add(self, index: int, text: str) -> list[Chunk]:
        """Take a piece of arguments; of blocks that are no open call it is ignored."""
        call = self._open.get(index)
        if call is None or not text:
            return []
        self._grow(text)
        call.pieces.append(text)
        return [ToolDelta(text)] if self._streams else []

    def stop(self, index: int) -> list[Chunk]:
        """End the call at `index`, if there is one."""
        call = self._open.pop(index, None)
        return [] if call is None else self._ended(call)

    def interrupt(self) -> list[Chunk]:
        """Return what must come before a chunk of another kind: a call that is passed on in pieces ends."""
        return self.stop_all() if self._streams else []

    def stop_all(self) -> list[Chunk]:
        """End every call that is open, in the order in which they began."""
        calls, self._open = self._open, {}
        return [chunk for call in calls.values() for chunk in self._ended(call)]

    def _grow(self, text: str) -> None:
        self._size += len(text)
        if self._size > HELD_MAX:
            raise ModelError(
                "backend_failed",
                f"the backend sent tool calls of more than {HELD_MAX} characters in one answer",
            )

    def _ended(self, call: _Call) -> list[Chunk]:
        arguments = "".join(call.pieces)
        late = "" if arguments.strip() else call.initial
        arguments = late or arguments
        if self._streams:
            return [ToolDelta(late), ToolEnd()] if late else [ToolEnd()]
        if not arguments.strip():
            return [ToolStart(call.id, call.name), ToolEnd()]
        if not is_object(arguments):
            self.broken = self.broken or call.name
            return []
        return [ToolStart(call.id, call.name), ToolDelta(arguments), ToolEnd()]
