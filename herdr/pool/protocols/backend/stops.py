"""Pure: stop sequences, matched by the gateway, because no backend says which of them it met."""


class StopMatcher:
    """Looks for stop sequences in text that comes in pieces, and holds back only what may yet become one.

    The match that begins first wins; of two that begin at the same place, the shorter one, because it was
    complete first. Nothing is left out when there is no stop sequence.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = tuple(dict.fromkeys(stop for stop in stops if stop))
        self._longest = max(map(len, self._stops), default=0)
        self._firsts = tuple({stop[0] for stop in self._stops})
        self._held = ""
        self.matched: str | None = None
        """The stop sequence that was found; nothing after it is looked at."""
        self.rest = ""
        """What followed the match in the same piece."""

    def feed(self, text: str) -> str:
        """Return what of the text so far can go out: all before a match, or all that cannot begin one."""
        if not self._stops:
            return text
        if self.matched is not None:
            return ""
        text = self._held + text
        found = self._certain(text)
        if found is not None:
            at, self.matched = found
            self._held, self.rest = "", text[at + len(self.matched) :]
            return text[:at]
        keep = self._begun(text)
        self._held = text[keep:]
        return text[:keep]

    def flush(self) -> str:
        """Return what was held back, when no more text follows it; `matched` may be set only now."""
        text, self._held = self._held, ""
        found = self._earliest(text)
        if found is None:
            return text
        at, self.matched = found
        return text[:at]

    def _earliest(self, text: str) -> tuple[int, str] | None:
        found = [(at, len(stop), stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if not found:
            return None
        at, _, stop = min(found)
        return at, stop

    def _certain(self, text: str) -> tuple[int, str] | None:
        found = self._earliest(text)
        if found is not None and self._begun(text) < found[0]:
            return None  # one that began earlier may still become whole
        return found

    def _begun(self, text: str) -> int:
        """Return where the first stop sequence begins that the text's end leaves open."""
        start = max(0, len(text) - self._longest + 1)
        end = text[start:]
        if not any([first in end for first in self._firsts]):
            return len(text)
        for at in range(start, len(text)):
            tail = text[at:]
            if any(stop.startswith(tail) for stop in self._stops):
                return at
        return len(text)
