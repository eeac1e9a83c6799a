"""The indexer's loop: requests in, in their order; answers and notes out."""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from herdr.clock import Clock
from herdr.context.graph.files import Numbers
from herdr.context.graph.frames import Answer, Request, encode_frame
from herdr.errors import HerdrError, InvalidInput, NotFound
from herdr.indexer.index import Index
from herdr.indexer.parse_pool import ParsePool
from herdr.indexer.pipes import PipeEnded, read_frame
from herdr.indexer.questions import QUESTIONS
from herdr.indexer.ranked import Ranked
from herdr.storage.sqlite.connection import cause_of
from herdr.storage.sqlite.graph.schema import adopt
from herdr.storage.sqlite.graph.store import GraphStore

_log = logging.getLogger("herdr.indexer")
_decode = msgspec.msgpack.Decoder(Request).decode


class Opened(msgspec.Struct):
    """One workspace."""

    index: Index
    task: "asyncio.Task[None]"


class Program:
    """Serves requests until the pipe ends."""

    def __init__(self, send: Callable[[bytes], None], pool: ParsePool, form: str, clock: Clock) -> None:
        """`form`: what the rows of a graph depend on; a file of another one is begun anew."""
        self._send = send
        self._pool = pool
        self._form = form
        self._clock = clock
        self._open: dict[str, Opened] = {}
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
                    self._open_graph(request.workspace, **request.args)
                case "close":
                    await self._close(request.workspace)
                case "table":
                    rows = [(path, Numbers(*numbers)) for path, *numbers in request.args["rows"]]
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
            body = await question.answer(index, **request.args)
        except (HerdrError, sqlite3.Error, OSError) as error:
            self._refuse(request, error)
        except Exception:  # noqa: BLE001 (one question must not end the others)
            _log.exception("a question failed: %s", request.op)
            self._refuse(request, HerdrError("the indexer made a mistake; the gateway's log says which"))
        else:
            self._send(encode_frame(Answer(request.id, body=body)))

    def _refuse(self, request: Request, error: Exception) -> None:
        if isinstance(error, HerdrError):
            code, detail = error.code, error.detail
        elif isinstance(error, sqlite3.Error):
            code, detail = "graph_unavailable", f"the project graph cannot be used: {cause_of(error)}"
        else:
            code, detail = "graph_unavailable", f"the project graph cannot be used: {error}"
        kind = (
            "not_found"
            if isinstance(error, NotFound)
            else "invalid"
            if isinstance(error, InvalidInput)
            else "failed"
        )
        if request.id:
            self._send(encode_frame(Answer(request.id, error=kind, code=code, detail=detail)))
        else:
            _log.error("%s %s: %s", request.op, request.workspace, detail)

    def _index(self, workspace: str) -> Index:
        opened = self._open.get(workspace)
        if opened is None:
            raise NotFound(f"no workspace called {workspace!r} is indexed", "unknown_workspace")
        return opened.index

    def _open_graph(self, workspace: str, root: str, file: str, seed: str | None = None) -> None:
        """Open a workspace's graph; `seed`: the graph of a snapshot, which takes its place if it can be used."""

        def tell(note: str, body: Any) -> None:
            self._send(encode_frame(Answer(note=note, workspace=workspace, body=body)))

        if seed is not None and not adopt(Path(seed), Path(file), self._form):
            _log.warning(
                "the snapshot's graph was made by other parsers or is damaged; files are parsed anew"
            )
        store = GraphStore(Path(file), self._form)
        ranked = Ranked(Path(file), self._form, store)
        index = Index(root, store, ranked, self._pool, tell, self._clock)
        task = asyncio.create_task(index.run(), name=f"index {workspace}")
        task.add_done_callback(_report_crash)
        self._open[workspace] = Opened(index, task)

    async def _close(self, workspace: str) -> None:
        opened = self._open.pop(workspace, None)
        if opened is not None:
            opened.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await opened.task
            opened.index.store.close()


def _report_crash(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("%s has ended by an error", task.get_name(), exc_info=task.exception())
