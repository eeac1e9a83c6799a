"""Reading the stored graph: implements `herdr.context.graph.project.Project` over one SQLite file."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from herdr.context.graph.language import Language
from herdr.context.graph.languages.registry import by_name
from herdr.context.graph.outline import Outline
from herdr.context.graph.project import Pair

OUTLINES_CACHED = 4_000  # decoded ones, some 10 KiB each: what a look-up of a common name goes through

decode_outline = msgspec.msgpack.Decoder(Outline).decode


class GraphReader:
    """Answers from the file and small caches. One thread only."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._ids = paths_of(db)
        """Every file by its path; kept by whoever writes."""
        self.outline = lru_cache(maxsize=OUTLINES_CACHED)(self._outline)
        """See `Files.outline`."""
        self.folder = lru_cache(maxsize=OUTLINES_CACHED)(self._folder)
        """See `Files.folder`."""
        self.named = lru_cache(maxsize=OUTLINES_CACHED)(self._named)
        """See `Files.named`."""

    def forget_cached(self) -> None:
        """Look everything up anew: something was written."""
        for cached in (self.outline, self.folder, self.named):
            cached.cache_clear()

    def has(self, path: str) -> bool:
        """See `Files.has`."""
        return path in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def _outline(self, path: str) -> Outline | None:
        row = self._db.execute("SELECT outline FROM files WHERE path = ?", (path,)).fetchone()
        return None if row is None or row[0] is None else decode_outline(row[0])

    def _folder(self, path: str) -> Sequence[str]:
        return self._paths("SELECT path FROM files WHERE folder = ? ORDER BY path", path)

    def _named(self, name: str) -> Sequence[str]:
        return self._paths("SELECT path FROM files WHERE base = ? ORDER BY path", name)

    def packaged(self, name: str) -> Sequence[str]:
        """See `Files.packaged`."""
        return self._paths("SELECT path FROM files WHERE package = ? AND package != '' ORDER BY path", name)

    def paths(self) -> Iterable[str]:
        """See `Project.paths`."""
        return self._paths("SELECT path FROM files WHERE outline IS NOT NULL ORDER BY path")

    def defining(self, name: str) -> Sequence[str]:
        """See `Project.defining`."""
        return self._paths(
            "SELECT path FROM symbols JOIN files ON id = file WHERE name = ? ORDER BY path", name
        )

    def calling(self, name: str) -> Sequence[str]:
        """See `Project.calling`."""
        return self._paths(
            "SELECT path FROM calls JOIN files ON id = file WHERE name = ? ORDER BY path", name
        )

    def importing(self, key: str) -> Sequence[str]:
        """See `Project.importing`."""
        return self._paths(
            "SELECT path FROM imports JOIN files ON id = file WHERE key = ? ORDER BY path", key
        )

    def names(self) -> Iterator[str]:
        """Yield every name that something in the workspace has, sorted."""
        return (name for (name,) in self._db.execute("SELECT DISTINCT name FROM symbols ORDER BY name"))

    def pairs(self, definers_max: int) -> Iterator[Pair]:
        """See `Project.pairs`."""
        rows = self._db.execute(
            "WITH few AS (SELECT name FROM symbols GROUP BY name HAVING count(*) <= ?) "
            "SELECT a.path, b.path, few.name, calls.times FROM few JOIN calls USING (name) "
            "JOIN symbols USING (name) JOIN files AS a ON a.id = calls.file "
            "JOIN files AS b ON b.id = symbols.file WHERE a.id != b.id",
            (definers_max,),
        )
        return (Pair(*row) for row in rows)

    def language(self, name: str) -> Language:
        """See `Project.language`."""
        return by_name(name)

    def described(self, path: str) -> tuple[int, bytes | None, str | None] | None:
        """Return a file's size in bytes, hash, and why it has no outline; None for an unknown file."""
        row = self._db.execute("SELECT size, hash, skipped FROM files WHERE path = ?", (path,)).fetchone()
        return None if row is None else (row[0], row[1], row[2])

    def skipped(self, limit: int) -> list[tuple[str, str, int]]:
        """Return files that were not read: path, reason, bytes."""
        return self._db.execute(
            "SELECT path, skipped, size FROM files WHERE skipped IS NOT NULL ORDER BY path LIMIT ?", (limit,)
        ).fetchall()

    def skipped_counts(self) -> dict[str, int]:
        """Return how many files were not read, by reason."""
        return dict(
            self._db.execute(
                "SELECT skipped, count(*) FROM files WHERE skipped IS NOT NULL GROUP BY skipped"
            ).fetchall()
        )

    def totals(self) -> Mapping[str, tuple[int, int, int, int]]:
        """Return by language: files, symbols, calls, imports."""
        rows = self._db.execute(
            "SELECT language, count(*), sum(symbols), sum(calls), sum(imports) FROM files "
            "WHERE outline IS NOT NULL GROUP BY language ORDER BY language"
        )
        return {
            language: (files, symbols, calls, imports) for language, files, symbols, calls, imports in rows
        }

    def _paths(self, sql: str, *values: str) -> list[str]:
        return [path for (path,) in self._db.execute(sql, values)]


def paths_of(db: sqlite3.Connection) -> dict[str, int]:
    """Return the number of every file by its path."""
    return {path: file for file, path in db.execute("SELECT id, path FROM files")}
