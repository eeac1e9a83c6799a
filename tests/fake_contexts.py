"""The shared context for tests of those who ask for it: texts that a test gives and changes, and failures."""

import asyncio
import hashlib
from collections.abc import Mapping

from herdr.context.excerpt import Excerpt
from herdr.errors import NotFound

TOKENIZER = "bytes/2.7"


def excerpt(text: str) -> Excerpt:
    size = len(text.encode(errors="surrogatepass"))
    ref = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return Excerpt(text, -int(-size // 2.7), TOKENIZER, ref)


def shown(text: str) -> dict[str, object]:
    """What stands beside an event for a text."""
    cut = excerpt(text)
    return {"text": text, "tokens": cut.tokens, "tokenizer": cut.tokenizer, "ref": cut.ref}


def told(text: str) -> dict[str, object]:
    """What an answer of a model says of a text that its prompt holds."""
    cut = excerpt(text)
    return {"ref": cut.ref, "tokens": cut.tokens}


class FakeContexts:
    """Answers by name: of a session, a workspace, or a path."""

    def __init__(
        self,
        sessions: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        maps: Mapping[str, str] | None = None,
    ) -> None:
        self.sessions = dict(sessions or {})
        self.files = dict(files or {})
        self.maps = dict(maps or {})
        self.asked: list[tuple[object, ...]] = []
        self.late: dict[str, asyncio.Event] = {}
        """Names whose answer waits for the event."""
        self.broken: set[str] = set()
        """Names whose look-up fails as it never should."""
        self.under_way = 0

    async def session(self, session: str, tokens: int) -> Excerpt:
        self.asked.append(("session", session, tokens))
        return await self._answer(session, self.sessions, "unknown_session")

    async def map(self, workspace: str, tokens: int, focus: tuple[str, ...]) -> Excerpt:
        self.asked.append(("map", workspace, tokens, focus))
        return await self._answer(workspace, self.maps, "unknown_workspace")

    async def outline(self, workspace: str, path: str) -> Excerpt:
        self.asked.append(("outline", workspace, path))
        return await self._answer(path, self.files, "unknown_file")

    async def _answer(self, name: str, texts: Mapping[str, str], code: str) -> Excerpt:
        self.under_way += 1
        try:
            if name in self.late:
                await self.late[name].wait()
            await asyncio.sleep(0)
        finally:
            self.under_way -= 1
        if name in self.broken:
            raise ZeroDivisionError("planted")
        if name not in texts:
            raise NotFound(f"there is no {name}", code)
        return excerpt(texts[name])
