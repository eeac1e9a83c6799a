"""The index of one workspace: told which files there are and which changed, it reads them and keeps the graph."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from herdr.clock import Clock
from herdr.context.graph.files import Numbers, Parsed
from herdr.context.graph.languages.registry import language_of
from herdr.errors import HerdrError
from herdr.indexer.backlog import Backlog
from herdr.indexer.disk import file_numbers
from herdr.indexer.news import News
from herdr.indexer.parse_pool import ParsePool
from herdr.indexer.ranked import Ranked
from herdr.storage.sqlite.connection import CAUSES, cause_of
from herdr.storage.sqlite.graph.store import GraphStore, is_worthless

State = Literal["waiting", "indexing", "ready", "failed"]
Tell = Callable[[str, Any], None]
"""Sends a note (`indexed`, `changed`) to the gateway."""

CHUNK_FILES = 64  # some 30 ms of parsing, and of storing; what a question may have to wait for
RETRY_S = 5.0  # while the graph's file cannot be written

_CAUSES = {
    **CAUSES,
    "SQLITE_FULL": "the disk is full; free some space, indexing then goes on by itself",
    **dict.fromkeys(("SQLITE_CORRUPT", "SQLITE_NOTADB"), "its file is damaged; it is begun anew"),
}

_log = logging.getLogger("herdr.indexer")


def reason_of(error: Exception) -> str:
    """Say in words why a graph cannot be kept or read."""
    if isinstance(error, sqlite3.Error):
        return cause_of(error, _CAUSES)
    return getattr(error, "strerror", None) or str(error)


class Index:
    """Keeps one graph. `run` does the work; everything else may be called between its steps."""

    def __init__(
        self, root: str, store: GraphStore, ranked: Ranked, pool: ParsePool, tell: Tell, clock: Clock
    ) -> None:
        self.store = store
        self.ranked = ranked
        self.state: State = "waiting"
        """`waiting` until the first list of files has come."""
        self.detail: str | None = None
        self.took_s = 0.0
        """Seconds of the last whole pass."""
        self.root = root
        self.parsed = self.same = 0
        """Files of the last whole pass that were parsed, and that were read and held known bytes."""
        self._pool = pool
        self._tell = tell
        self._clock = clock
        self._backlog = Backlog()
        self._news = News(store)
        self._wake = asyncio.Event()
        self._settled: set[asyncio.Future[None]] = set()
        self._listed: dict[str, Numbers] = {}
        self._touched: set[str] = set()
        self._dropped: set[str] = set()
        """Files that rules leave out and that may still wait to be read; cleared when nothing waits."""
        self._passing = False
        self._started = clock.monotonic()

    # What the gateway tells

    def table(self, rows: Iterable[tuple[str, Numbers]], first: bool, last: bool) -> None:
        """Take a part of the list of all files; with the last one, what differs from the graph is read."""
        if first:
            self._listed, self._touched = {}, set()
            self._passing = True
            self._started = self._clock.monotonic()
            if self.state == "waiting":
                self.state = "indexing"
        self._listed.update(rows)
        if last:
            self._compare()

    def _compare(self) -> None:
        known = self.store.numbers()
        news = [
            path
            for path, numbers in self._listed.items()
            if path not in self._touched and (known.get(path) != numbers or not numbers.settled)
        ]
        gone = [path for path in known if path not in self._listed and path not in self._touched]
        self._listed = {}
        self.parsed = self.same = 0
        self._backlog.restart_count()
        self._dropped.difference_update(news)
        self._backlog.add(news)
        self._backlog.add(gone)
        self._wake.set()

    def look(self, paths: Sequence[str]) -> None:
        """Read these files anew; those that are no longer there leave the graph."""
        self._dropped.difference_update(paths)
        self._look_at(paths)

    def _look_at(self, paths: Sequence[str]) -> None:
        if self._passing:
            self._touched.update(paths)
        self._backlog.add(paths)
        self._wake.set()

    def drop(self, paths: Sequence[str]) -> None:
        """Forget files that are still there and no longer belong to the workspace."""
        self._dropped.update(paths)
        self._look_at(paths)

    def read_all(self) -> None:
        """Parse every file anew, whatever its numbers say."""
        self._passing, self.state = True, "indexing"
        known = self.store.numbers()
        self.store.clear()
        self._started = self._clock.monotonic()
        self.parsed = self.same = 0
        self._backlog.restart_count()
        self._backlog.add(known)
        self._backlog.restart()
        self._wake.set()

    # What questions wait for

    async def caught_up(self) -> None:
        """Return once all that was told before is in the graph."""
        ticket = self._backlog.newest
        while self.state != "ready" or self._passing or not self._backlog.is_done(ticket):
            if self.state == "failed":
                raise HerdrError(f"the project graph cannot be kept: {self.detail}", "graph_unavailable")
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settled.add(future)
            try:
                await future
            finally:
                self._settled.discard(future)

    def fail(self, detail: str) -> None:
        """Nothing more is read: tell whoever waits."""
        self.state, self.detail = "failed", detail
        self._release()

    def progress(self) -> dict[str, Any] | None:
        """Return how far a whole pass is; None when none is under way."""
        if not self._passing:
            return None
        took_s = max(self._clock.monotonic() - self._started, 1e-6)
        done = self._backlog.done
        return {"done": done, "total": self._backlog.queued, "files_per_s": round(done / took_s, 1)}

    # The work

    async def run(self) -> None:
        """Read what waits, for ever; raises what shows that the graph's file is damaged."""
        working: set[asyncio.Task[None]] = set()
        try:
            await self._run(working)
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)

    async def _run(self, working: "set[asyncio.Task[None]]") -> None:
        while True:
            while self._backlog.waiting and len(working) < self._pool.size:
                paths = self._backlog.take(CHUNK_FILES)
                if not paths:
                    break  # all that wait are being read just now
                working.add(asyncio.create_task(self._read(paths)))
            if not working:
                self._settle()
                await self._wake.wait()
                self._wake.clear()
                continue
            done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                working.discard(task)
                task.result()
            self._release()

    async def _read(self, paths: list[str]) -> None:
        spoken = [path for path in paths if language_of(path) is not None and path not in self._dropped]
        try:
            found = await self._pool.parse(self.root, spoken, self._known(spoken)) if spoken else []
            found += [self._unread(path) for path in set(paths).difference(spoken)]
            self.store.require_file()
            self._store(found)
        except (sqlite3.Error, OSError) as error:
            if is_worthless(error):
                raise
            self.state, self.detail = "failed", reason_of(error)
            _log.error("the project graph cannot be kept: %s", self.detail)
            self._backlog.put_back(paths)
            self._release()
            await asyncio.sleep(RETRY_S)
            return
        if self.state == "failed":
            self.state, self.detail = "indexing" if self._passing else "ready", None
        self._backlog.finish(paths)

    def _known(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the hashes of what the graph knows of these files."""
        hashes = {path: self.store.hash_of(path) for path in paths}
        return {path: hash_ for path, hash_ in hashes.items() if hash_ is not None}

    def _unread(self, path: str) -> Parsed:
        """Return the row of a file in no language that is known: only that it is there, if it belongs here."""
        numbers = None if path in self._dropped else file_numbers(f"{self.root}/{path}")
        return Parsed(path, numbers or Numbers(0, 0, 0), None, gone=numbers is None)

    def _store(self, found: Sequence[Parsed]) -> None:
        with self.store.transaction():
            news = [row for parsed in found if (row := self._row(parsed)) is not None]
            if news:
                if not self._passing:
                    self._news.note(news)
                self.store.apply(news)

    def _row(self, parsed: Parsed) -> Parsed | None:
        """Return the row to store; None when the graph has it already."""
        if parsed.gone:
            return parsed if self.store.has(parsed.path) else None
        if not parsed.same:
            self.parsed += self._passing and parsed.outline is not None
            return parsed
        self.store.touch(parsed.path, parsed.numbers)
        self.same += self._passing
        return None

    def _release(self) -> None:
        """Let questions look whether they can be answered."""
        for future in self._settled:
            if not future.done():
                future.set_result(None)

    def _settle(self) -> None:
        """All is read: tell what came of it."""
        if self._passing and not self._listed and self.state != "waiting":
            self._passing, self.state = False, "ready"
            self.took_s = self._clock.monotonic() - self._started
            self._tell("indexed", self.summary())
        self._dropped.clear()
        if (changes := self._news.take()) is not None:
            self._tell("changed", changes)
        self._release()

    def summary(self) -> dict[str, Any]:
        """Return the counts of a whole pass."""
        totals = self.store.totals()
        return {
            "files": len(self.store),
            "parsed": sum(files for files, *_ in totals.values()),
            "symbols": sum(symbols for _, symbols, *_ in totals.values()),
            "took_s": round(self.took_s, 3),
            "skipped": self.store.skipped_counts(),
        }
