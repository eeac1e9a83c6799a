"""Pure: what a model says, on its way to the client: stop sequences matched, calls found, the order kept."""

from collections.abc import Callable, Mapping

from herdr.pool.chunk import Chunk, TextDelta, ThinkingDelta, ToolCalls
from herdr.pool.protocols.backend.recover import Recovered, Recoverer
from herdr.pool.protocols.backend.stops import StopMatcher
from herdr.pool.protocols.backend.tools import ToolBuffer


class Answer:
    """Takes text, reasoning and calls as the backend sends them, and adds to `out` what can go on.

    `offered` are the tools whose calls are recovered from text, with their schemas; none: nothing is. Calls in
    reasoning count only if neither text nor a call followed, else the model had only thought of them; until
    that is known, the reasoning waits from its first call on.
    """

    def __init__(
        self,
        stop: tuple[str, ...],
        tool_calls: ToolCalls,
        offered: Mapping[str, str],
        new_id: Callable[[], str],
    ) -> None:
        self._tools = ToolBuffer(tool_calls, new_id)
        self._stops = StopMatcher(stop) if any(stop) else None
        self._in_text = Recoverer(offered) if offered else None
        self._in_thinking = Recoverer(offered) if offered else None
        self._trapped: list[str | Recovered] = []
        self._spoke = False
        self.stopped: str | None = None
        """The stop sequence that was met: nothing after it counts."""

    @property
    def called(self) -> bool:
        """Whether calls were made, and none of them was cut off by the answer's end."""
        return self._tools.made > 0 and not self._tools.cut

    def say(self, text: str, out: list[Chunk]) -> None:
        """Take text."""
        if self._in_text is None:
            self._show(text, out)
            return
        if not self._spoke and text.strip():
            self._spoke = True
            self._release(out)
        self._items(self._in_text.feed(text), out)

    def think(self, text: str, out: list[Chunk]) -> None:
        """Take reasoning."""
        self._settle(out)
        if self.stopped is not None:
            return
        if self._in_thinking is None or self._spoke:
            out += self._tools.other(ThinkingDelta(text))
            return
        for item in self._in_thinking.feed(text):
            if self._trapped or isinstance(item, Recovered):
                self._trapped.append(item)
            else:
                out += self._tools.other(ThinkingDelta(item))

    def call(self, index: int | None, id_: str, name: str, arguments: str, out: list[Chunk]) -> None:
        """Take a fragment of a call; empty strings are what it does not say."""
        self._settle(out)
        if self.stopped is not None:
            return
        self._spoke = True
        self._release(out)
        out += self._tools.fragment(index, id_, name, arguments)

    def finish(self, truncated: bool, out: list[Chunk]) -> None:
        """Let out all that is held; a call that `truncated` or a stop sequence left in pieces is dropped."""
        self._settle(out)
        if self.stopped is None:
            self._recover(out)
        out += self._tools.finish(truncated or self.stopped is not None)

    def _items(self, items: list[str | Recovered], out: list[Chunk]) -> None:
        for item in items:
            if isinstance(item, str):
                self._show(item, out)
            else:
                self._settle_stops(out)
                if self.stopped is None:
                    out += self._tools.call(item.name, item.arguments)

    def _show(self, text: str, out: list[Chunk]) -> None:
        if self.stopped is not None:
            return
        if self._stops is not None:
            text = self._stops.feed(text)
            self.stopped = self._stops.matched
        if text:
            out += self._tools.other(TextDelta(text))

    def _settle(self, out: list[Chunk]) -> None:
        """Let out what text is held back, since something of another kind follows it, or nothing."""
        if self._in_text is not None:
            self._items(self._in_text.finish(), out)
        self._settle_stops(out)

    def _settle_stops(self, out: list[Chunk]) -> None:
        if self._stops is None or self.stopped is not None:
            return
        held = self._stops.flush()
        self.stopped = self._stops.matched
        if held:
            out += self._tools.other(TextDelta(held))

    def _release(self, out: list[Chunk]) -> None:
        """Let reasoning out as it came: something followed it, so its calls were only thought of."""
        if self._in_thinking is None:
            return
        for item in [*self._trapped, *self._in_thinking.finish()]:
            text = item if isinstance(item, str) else item.raw
            if text:
                out += self._tools.other(ThinkingDelta(text))
        self._trapped.clear()

    def _recover(self, out: list[Chunk]) -> None:
        if self._in_thinking is None:
            return
        for item in [*self._trapped, *self._in_thinking.finish()]:
            if isinstance(item, str):
                out += self._tools.other(ThinkingDelta(item))
            else:
                out += self._tools.call(item.name, item.arguments)
        self._trapped.clear()
