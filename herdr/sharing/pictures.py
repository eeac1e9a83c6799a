"""What is worked out of graph, sessions and artifacts together: texts that fit a budget, each with its hash."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from herdr.context.blobs import Blob, Blobs, is_ref
from herdr.context.excerpt import Excerpt
from herdr.context.graph.map_text import PIECES_MAX, Piece, render
from herdr.context.paths import checked_path
from herdr.context.sessions.message import Message as Said
from herdr.context.sessions.pieces import listing, pieces, texts
from herdr.context.sessions.state import Summary
from herdr.context.sessions.window import TRIES_MAX, Window, choose, compose
from herdr.context.shown import shown_artifact, shown_window
from herdr.context.tokens import Fallback, estimate
from herdr.errors import InvalidInput, NotFound
from herdr.sharing.folding import read_summary, said_of
from herdr.sharing.graphs import Graphs
from herdr.sharing.sessions import Sessions
from herdr.sharing.shelf import ArtifactShelf
from herdr.sharing.written import Summariser

TEXT = "text/plain; charset=utf-8"
NEWEST_MAX = 400  # messages that a window may end with; one of 100,000 tokens holds some 300
NEWEST_BYTES_MAX = 1024 * 1024  # and their bytes
WRITTEN_FROM = 20  # messages; a shorter session says it better itself
WRITTEN_SHARE = 3  # a written summary takes at most one part in so many of a window
SOURCE_TOKENS = 6_000  # of what the model reads, by estimate
MAPS_MAX = 64  # questions whose last map is remembered, some KiB each; a tool asks the same one or two
LISTED_MAX = 100  # sessions and artifacts of a manifest; the lists have all


class Paragraph(NamedTuple):
    """A text and its tokens."""

    text: str
    tokens: int


class RecentMaps:
    """What the last map for each question held, so that the next one can stay with it."""

    def __init__(self) -> None:
        self._chosen: dict[tuple[Any, ...], tuple[str, ...]] = {}

    def get(self, key: tuple[Any, ...], default: tuple[str, ...]) -> tuple[str, ...]:
        """Return the symbols of the last map."""
        return self._chosen.get(key, default)

    def put(self, key: tuple[Any, ...], chosen: tuple[str, ...]) -> None:
        """Remember a map's symbols; the map that was asked for longest ago goes."""
        self._chosen.pop(key, None)
        self._chosen[key] = chosen
        if len(self._chosen) > MAPS_MAX:
            del self._chosen[next(iter(self._chosen))]


class Pictures:
    """Answers ready to encode; every text is kept as a blob under its hash."""

    def __init__(
        self,
        graphs: Graphs,
        sessions: Sessions,
        shelf: ArtifactShelf,
        blobs: Blobs,
        counter: Fallback,
        window_tokens: int,
        summariser: Summariser | None,
    ) -> None:
        """`window_tokens`: of a session's window when nobody says how many.

        `summariser`: who writes summaries beside the rules' own.
        """
        self._graphs = graphs
        self._sessions = sessions
        self._shelf = shelf
        self._blobs = blobs
        self._counter = counter
        self._window_tokens = window_tokens
        self._summariser = summariser
        self._maps = RecentMaps()

    async def manifest(self, workspace: str) -> dict[str, Any]:
        """Return what there is of a workspace; raises NotFound."""
        graph, head, sessions, shelf = await asyncio.gather(
            self._graphs.state(workspace),
            self._graphs.head(workspace),
            self._sessions.listed(workspace, LISTED_MAX),
            self._shelf.listed(workspace, None, None, LISTED_MAX),
        )
        if (
            graph["state"] == "none"
            and not sessions["sessions"]
            and not shelf.artifacts
            and workspace != "default"
        ):
            raise NotFound(
                f"nothing is known of a workspace {workspace!r}; GET /v1/workspaces lists those that are watched",
                "unknown_workspace",
            )
        names = ("name", "kind", "ref", "bytes", "expires")
        shown = [shown_artifact(artifact) for artifact in shelf.artifacts]
        return {
            "workspace": workspace,
            "graph": graph,
            "head": dict(zip(("branch", "commit"), head, strict=True)),
            "sessions": sessions["sessions"],
            "artifacts": [{name: artifact[name] for name in names} for artifact in shown],
        }

    async def map_of(
        self, workspace: str, tokens: int, focus: Sequence[str], names: Sequence[str]
    ) -> dict[str, Any]:
        """Return the ranked outline of the project; raises NotFound, InvalidInput."""
        paths = tuple(map(checked_path, focus))
        key = (workspace, tokens, paths, tuple(names))
        asked: dict[str, Any] = {
            "focus": paths,
            "names": names,
            "previous": self._maps.get(key, ()),
            "limit": min(tokens, PIECES_MAX),
        }
        answer = await self._graphs.ask(workspace, "pieces", **asked)
        found = msgspec.convert(answer["pieces"], list[Piece])

        async def size(number: int) -> int:
            return (await self._counter.count([render(found[:number])])).total

        chosen = found[: await largest(size, len(found), tokens)]
        self._maps.put(key, tuple(piece.symbol for piece in chosen))
        shown = {"files": len({piece.path for piece in chosen}), "symbols": len(chosen), "focus": list(paths)}
        return {**shown, "of_files": answer["files"], **await self._counted(render(chosen))}

    async def file(self, workspace: str, path: str) -> dict[str, Any]:
        """Return the outline of one file; raises NotFound, InvalidInput."""
        found: dict[str, Any] = await self._graphs.ask(workspace, "file", path=checked_path(path))
        return {**found, **await self._counted(found["text"])}

    async def window(self, session: str, tokens: int | None) -> dict[str, Any]:
        """Return a session's summary and newest messages; raises NotFound."""
        budget = self._window_tokens if tokens is None else tokens
        state = await self._sessions.state(session)
        summary = read_summary(state.state)
        messages = await self._sessions.newest(session, NEWEST_MAX, NEWEST_BYTES_MAX)
        newest = [said_of(message) for message in messages]
        written = await self._written(session, summary, newest, budget)
        window = await self._composed(summary, newest, budget - written.tokens)
        text = written.text + window.text
        return {
            "session": session,
            "workspace": state.workspace,
            "messages": state.messages,
            "full_tokens": state.full_tokens,
            "saved_tokens": max(state.full_tokens - await self._sessions.count(text), 0),
            "summariser": "model" if written.text else "rules",
            **shown_window(window),
            "all_decisions": await self._all_decisions(summary, window),
            **await self._counted(text),
        }

    async def _all_decisions(self, summary: Summary, window: Window) -> str | None:
        """Return the hash of a text with every decision, when the window does not hold them all."""
        if not window.more.decisions:
            return None
        return await self._blobs.put(listing(summary).encode(), TEXT)

    async def _written(
        self, session: str, summary: Summary, newest: Sequence[Said], budget: int
    ) -> Paragraph:
        """Return what a model wrote of a session, if it did and if it takes no more than WRITTEN_SHARE."""
        if self._summariser is None or summary.messages < WRITTEN_FROM:
            return Paragraph("", 0)

        def source() -> str:
            return compose(summary, newest, SOURCE_TOKENS, estimate).text

        found = self._summariser.find((session, summary.first_us), summary.messages, source)
        if found is None:
            return Paragraph("", 0)
        text = f"## In short, by a model\n\n{found}\n\n"
        tokens = (await self._counter.count([text])).total
        return Paragraph(text, tokens) if tokens <= budget // WRITTEN_SHARE else Paragraph("", 0)

    async def _composed(self, summary: Summary, newest: Sequence[Said], budget: int) -> Window:
        """Return the rules' window."""
        found = await asyncio.to_thread(pieces, summary, newest, budget)
        counts = (await self._counter.count(texts(found))).tokens
        left = budget
        for _ in range(TRIES_MAX):
            window = choose(summary, newest, found, counts, left)
            over = (await self._counter.count([window.text])).total - budget
            if over <= 0:
                return window
            left -= over
        return choose(summary, newest, found, counts, 0)

    async def blob(self, ref: str) -> Blob:
        """Return content by its hash; raises NotFound, InvalidInput, BlobDamaged."""
        if not is_ref(ref):
            raise InvalidInput(f"{ref[:80]!r} is not a SHA-256 in 64 lower-case hex digits", "bad_ref")
        blob = await self._blobs.get(ref)
        if blob is None:
            raise NotFound(
                f"no content has the hash {ref}; it may have gone to make room: ask again for what it came with",
                "unknown_blob",
            )
        return blob

    async def outline(self, workspace: str, path: str) -> Excerpt:
        """Return the outline of one file as a text; raises HerdrError."""
        return excerpt(await self.file(workspace, path))

    async def map(self, workspace: str, tokens: int, focus: tuple[str, ...]) -> Excerpt:
        """Return the ranked outline of the project as a text; raises HerdrError."""
        return excerpt(await self.map_of(workspace, tokens, focus, ()))

    async def session(self, session: str, tokens: int) -> Excerpt:
        """Return a session's window as a text; raises HerdrError."""
        return excerpt(await self.window(session, tokens))

    async def _counted(self, text: str) -> dict[str, Any]:
        """Return a text with its length in tokens and its hash, under which it is kept."""
        counted = await self._counter.count([text])
        ref = await self._blobs.put(text.encode(), TEXT)
        return {"text": text, "tokens": counted.total, "tokenizer": counted.tokenizer, "ref": ref}


async def largest(size: Callable[[int], Awaitable[int]], most: int, budget: int) -> int:
    """Return how many of the first `most` pieces the budget holds; `size` rises with their number.

    What is measured is the text as it will be, a few times: a sum over pieces would be another number.
    """
    fitting, too_many = 0, 1
    while too_many <= most and await size(too_many) <= budget:
        fitting, too_many = too_many, too_many * 2
    too_many = min(too_many, most + 1)
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if await size(middle) <= budget:
            fitting = middle
        else:
            too_many = middle
    return fitting


def excerpt(answer: dict[str, Any]) -> Excerpt:
    """Return the text of an answer."""
    return Excerpt(answer["text"], answer["tokens"], answer["tokenizer"], answer["ref"])
