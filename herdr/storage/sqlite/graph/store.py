"""The stored graph: implements `herdr.context.graph.project.Project` over one SQLite file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import msgspec

from herdr.context.graph.files import Numbers, Parsed, call_counts, file_version, symbol_names
from herdr.context.graph.import_keys import import_keys
from herdr.context.graph.language import Language
from herdr.context.graph.languages.registry import by_name
from herdr.context.graph.outline import Outline
from herdr.context.graph.project import Pair
from herdr.storage.sqlite.connection import transaction
from herdr.storage.sqlite.graph.schema import open_graph

OUTLINES_CACHED = 4_000  # decoded ones, some 10 KiB each: what a look-up of a common name goes through

_decode = msgspec.msgpack.Decoder(Outline).decode
_INSERT_FILE = (
    "INSERT INTO files (id, path, folder, base, size, mtime_ns, inode, settled, hash, skipped, language, package, "
    "symbols, calls, imports, outline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class GraphStore:
    """One workspace's graph. One thread only.

    Reads answer from the file and small caches; `apply` brings in what files were found to hold.
    """

    def __init__(self, path: Path, form: str) -> None:
        """Open or begin the file; raises OSError and sqlite3.Error."""
        self._db = open_graph(path, form)
        self._ids: dict[str, int] = {}
        self._next = 1
        self._version = 0
        self.changes = 0
        """Files that were brought in, or left, since this was opened."""
        self.outline = lru_cache(maxsize=OUTLINES_CACHED)(self._outline)
        """See `Files.outline`."""
        self.folder = lru_cache(maxsize=OUTLINES_CACHED)(self._folder)
        """See `Files.folder`."""
        self.named = lru_cache(maxsize=OUTLINES_CACHED)(self._named)
        """See `Files.named`."""
        self._reload()

    def _reload(self) -> None:
        """Believe the file."""
        self._ids = {path: file for file, path in self._db.execute("SELECT id, path FROM files")}
        self._next = max(self._ids.values(), default=0) + 1
        self._version = 0
        for row in self._db.execute("SELECT path, hash, skipped FROM files"):
            self._version ^= file_version(*row)
        self._forget_cached()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def version(self) -> str:
        """What all files hold, in 32 hex digits."""
        return f"{self._version:032x}"

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the graph in the block, whatever another connection commits meanwhile."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("COMMIT")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the block whole, or leave the graph as it was; raises sqlite3.Error."""
        try:
            with transaction(self._db):
                yield
        except BaseException:
            self._reload()
            raise

    def apply(self, found: Sequence[Parsed]) -> None:
        """Bring in what files were found to hold."""
        self.changes += len(found)
        for parsed in found:
            self._forget(parsed.path)
            if not parsed.gone:
                self._insert(parsed)
        self._forget_cached()

    def _forget_cached(self) -> None:
        for cached in (self.outline, self.folder, self.named):
            cached.cache_clear()

    def clear(self) -> None:
        """Forget everything."""
        with self.transaction():
            for table in ("files", "symbols", "calls", "imports"):
                self._db.execute(f"DELETE FROM {table}")
        self._reload()

    def touch(self, path: str, numbers: Numbers) -> None:
        """Note that a file's numbers changed and its content did not."""
        self._db.execute(
            "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, settled = ? WHERE path = ?",
            (numbers.size, numbers.mtime_ns, numbers.inode, numbers.settled, path),
        )

    def _insert(self, parsed: Parsed) -> None:
        file = self._next
        self._next += 1
        folder, _, base = parsed.path.rpartition("/")
        numbers = parsed.numbers
        self._db.execute(
            _INSERT_FILE,
            (
                *(file, parsed.path, folder, base),
                *(numbers.size, numbers.mtime_ns, numbers.inode, numbers.settled),
                *(parsed.hash, parsed.skipped, parsed.language, parsed.package, *parsed.counts),
                parsed.outline,
            ),
        )
        put = self._db.executemany
        put("INSERT INTO symbols VALUES (?, ?)", [(name, file) for name in parsed.symbols])
        put("INSERT INTO calls VALUES (?, ?, ?)", [(name, file, n) for name, n in parsed.calls.items()])
        put("INSERT INTO imports VALUES (?, ?)", [(key, file) for key in parsed.imports])
        self._ids[parsed.path] = file
        self._version ^= file_version(parsed.path, parsed.hash, parsed.skipped)

    def _forget(self, path: str) -> None:
        file = self._ids.pop(path, None)
        if file is None:
            return
        row = self._db.execute("SELECT hash, skipped, outline FROM files WHERE id = ?", (file,)).fetchone()
        self._version ^= file_version(path, row[0], row[1])
        if row[2] is not None:
            outline = _decode(row[2])
            drop = self._db.executemany
            drop("DELETE FROM symbols WHERE name = ? AND file = ?", _with(file, symbol_names(outline)))
            drop("DELETE FROM calls WHERE name = ? AND file = ?", _with(file, call_counts(outline)))
            drop("DELETE FROM imports WHERE key = ? AND file = ?", _with(file, import_keys(outline)))
        self._db.execute("DELETE FROM files WHERE id = ?", (file,))

    def numbers(self) -> dict[str, Numbers]:
        """Return each file's numbers as they were when it was read last."""
        rows = self._db.execute("SELECT path, size, mtime_ns, inode, settled FROM files")
        return {
            path: Numbers(size, mtime_ns, inode, bool(settled))
            for path, size, mtime_ns, inode, settled in rows
        }

    def hash_of(self, path: str) -> bytes | None:
        """Return the SHA-256 of what the graph knows of a file; None when it does not know the file."""
        row = self._db.execute("SELECT hash FROM files WHERE path = ?", (path,)).fetchone()
        return None if row is None else row[0]

    def has(self, path: str) -> bool:
        """See `Files.has`."""
        return path in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def _outline(self, path: str) -> Outline | None:
        row = self._db.execute("SELECT outline FROM files WHERE path = ?", (path,)).fetchone()
        return None if row is None or row[0] is None else _decode(row[0])

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

    def copy_to(self, file: Path) -> None:
        """Write all of the graph into a new file, without what was deleted; raises sqlite3.Error."""
        self._db.execute("VACUUM INTO ?", (str(file),))

    def _paths(self, sql: str, *values: str) -> list[str]:
        return [path for (path,) in self._db.execute(sql, values)]


def _with(file: int, names: Iterable[str]) -> list[tuple[str, int]]:
    return [(name, file) for name in names]
