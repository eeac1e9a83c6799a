"""The indexer's loop: requests in, in their order; answers and notes out."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from herdr.clock import Clock
from herdr.context.graph.files import Numbers
from herdr.context.graph.frames import Answer, Request, encode_frame
from herdr.errors import HerdrError, InvalidInput, NotFound
from herdr.indexer.index import Index, reason_of
from herdr.indexer.parse_pool import ParsePool
from herdr.indexer.pipes import PipeEnded, read_frame
from herdr.indexer.questions import QUESTIONS
from herdr.indexer.ranked import Ranked
from herdr.storage.sqlite.graph.schema import adopt, remove
from herdr.storage.sqlite.graph.store import GraphDamaged, GraphStore, is_worthless

_log = logging.getLogger("herdr.indexer")
_decode = msgspec.msgpack.Decoder(Request).decode


class Opened(msgspec.Struct):
    """One workspace."""

    index: Index
    task: "asyncio.Task[None]"
    file: Path
    lost: str = ""
    """Why it cannot be kept any more; it then waits until it is opened anew."""
    worthless: bool = False
    """Whether its file goes with it."""


class Program:
    """Serves requests until the pipe ends."""

    def __init__(self, send: Callable[[bytes], None], pool: ParsePool, form: str, clock: Clock) -> None:
        """`form`: what the rows of a graph depend on; a file of another one is begun anew."""
        self._send = send
        self._pool = pool
        self._form = form
        self._clock = clock
        self._open: dict[str, Opened] = {}
        self._unopened: dict[str, str] = {}
        """Graphs that could not be opened, and why."""
        self._answering: set[asyncio.Task[None]] = set()

    async def serve(self, requests: asyncio.StreamReader) -> None:
        """Serve until the pipe ends, then close everything."""
        try:
            while True:
                await self._take(_decode(await read_frame(requests)))
        except PipeEnded:
            pass
        finally:
            for name in list(self._open):
                await self._close(name)
            await self._pool.close()

    async def _take(self, request: Request) -> None:
        """Do what changes something at once, and leave questions to tasks of their own."""
        try:
            match request.op:
                case "open":
                    await self._open_graph(request.workspace, **request.args)
                case "close":
                    await self._close(request.workspace, **request.args)
                case "table":
                    rows = [(path, Numbers(*numbers)) for path, numbers in request.args["rows"]]
                    index = self._index(request.workspace)
                    index.table(rows, request.args["first"], request.args["last"])
                case "look":
                    self._index(request.workspace).look(request.args["paths"])
                case "drop":
                    self._index(request.workspace).drop(request.args["paths"])
                case "read_all":
                    self._index(request.workspace).read_all()
                case _:
                    task = asyncio.create_task(self._answer(request))
                    self._answering.add(task)
                    task.add_done_callback(self._answering.discard)
                    return
        except (HerdrError, sqlite3.Error, OSError) as error:
            self._refuse(request, error)
            return
        if request.id:
            self._send(encode_frame(Answer(request.id)))

    async def _answer(self, request: Request) -> None:
        try:
            index = self._index(request.workspace)
            question = QUESTIONS[request.op]
            if question.waits:
                await index.caught_up()
                index.store.require_file()
            body = await question.answer(index, **request.args)
        except (HerdrError, sqlite3.Error, OSError) as error:
            self._refuse(request, error)
            self._lose_if_worthless(request.workspace, error)
        except (GraphDamaged, msgspec.DecodeError) as error:
            self._refuse(request, _unavailable(reason_of(error)))
            self._lose_if_worthless(request.workspace, error)
        except Exception:  # noqa: BLE001 (one question must not end the others)
            _log.exception("a question failed: %s", request.op)
            self._refuse(request, HerdrError("the indexer made a mistake; the gateway's log says which"))
        else:
            self._send(encode_frame(Answer(request.id, body=body)))

    def _refuse(self, request: Request, error: Exception) -> None:
        told = error if isinstance(error, HerdrError) else _unavailable(reason_of(error))
        kind = (
            "not_found"
            if isinstance(error, NotFound)
            else "invalid"
            if isinstance(error, InvalidInput)
            else "failed"
        )
        if request.id:
            self._send(encode_frame(Answer(request.id, error=kind, code=told.code, detail=told.detail)))
        elif told.code != "graph_unavailable":  # that is logged once, when it begins
            _log.error("%s %s: %s", request.op, request.workspace, told.detail)

    def _index(self, workspace: str) -> Index:
        opened = self._open.get(workspace)
        lost = opened.lost if opened is not None else self._unopened.get(workspace)
        if lost:
            raise _unavailable(lost)
        if opened is None:
            raise NotFound(f"no workspace called {workspace!r} is indexed", "unknown_workspace")
        return opened.index

    async def _open_graph(self, workspace: str, root: str, file: str, seed: str | None = None) -> None:
        """Open a workspace's graph; `seed`: the graph of a snapshot, which takes its place if it can be used."""
        await self._close(workspace)
        before = self._unopened.pop(workspace, None)
        try:
            index = self._index_at(workspace, root, Path(file), seed)
        except (sqlite3.Error, OSError) as error:
            self._unopened[workspace] = why = reason_of(error)
            if why != before:
                _log.error("the project graph of %s cannot be opened: %s", workspace, why)
            self._note(workspace, "failed", None)
            return
        task = asyncio.create_task(index.run(), name=f"index {workspace}")
        task.add_done_callback(lambda task: self._ended(workspace, task))
        self._open[workspace] = Opened(index, task, Path(file))

    def _index_at(self, workspace: str, root: str, file: Path, seed: str | None) -> Index:
        if seed is not None and not adopt(Path(seed), file, self._form):
            _log.warning(
                "the snapshot's graph was made by other parsers or is damaged; files are parsed anew"
            )
        store = GraphStore(file, self._form)
        ranked = Ranked(file, store)
        return Index(root, store, ranked, self._pool, partial(self._note, workspace), self._clock)

    def _note(self, workspace: str, note: str, body: Any) -> None:
        self._send(encode_frame(Answer(note=note, workspace=workspace, body=body)))

    def _ended(self, workspace: str, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        opened = self._open.get(workspace)
        if error is None or opened is None or opened.task is not task:
            return
        if not is_worthless(error):
            _log.error("%s has ended by an error", task.get_name(), exc_info=error)
        self._lose(workspace, opened, error)

    def _lose_if_worthless(self, workspace: str, error: Exception) -> None:
        opened = self._open.get(workspace)
        if opened is not None and not opened.lost and is_worthless(error):
            self._lose(workspace, opened, error)

    def _lose(self, workspace: str, opened: Opened, error: BaseException) -> None:
        """A graph cannot be kept any more: refuse what is asked until the gateway opens it anew."""
        opened.worthless = is_worthless(error)
        opened.lost = reason_of(error) if isinstance(error, Exception) else "the indexer has failed"
        if opened.worthless:
            _log.error("the project graph of %s is begun anew: %s", workspace, opened.lost)
        opened.task.cancel()
        opened.index.fail(opened.lost)
        self._note(workspace, "failed", None)

    async def _close(self, workspace: str, forget: bool = False) -> None:
        """Close a workspace's graph; `forget`: nobody will ask for it again, so its file goes, too."""
        opened = self._open.pop(workspace, None)
        if opened is None:
            return
        opened.task.cancel()
        await asyncio.wait([opened.task])
        if not opened.lost:
            opened.index.fail("it was closed; ask again")
        await opened.index.ranked.close()
        opened.index.store.close()
        if opened.worthless or forget:
            remove(opened.file)


def _unavailable(why: str) -> HerdrError:
    return HerdrError(f"the project graph cannot be used: {why}", "graph_unavailable")
