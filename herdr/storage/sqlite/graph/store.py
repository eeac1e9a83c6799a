"""Writing the stored graph of one workspace; reading it is `herdr.storage.sqlite.graph.reader`."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from herdr.context.graph.files import Numbers, Parsed, call_counts, file_version, symbol_names
from herdr.context.graph.import_keys import import_keys
from herdr.storage.sqlite.connection import is_damage, transaction
from herdr.storage.sqlite.graph.reader import GraphReader, decode_outline, paths_of
from herdr.storage.sqlite.graph.schema import open_graph, remove

_NOT_OURS = ("SQLITE_NOTADB", "SQLITE_CONSTRAINT")

_INSERT_FILE = (
    "INSERT INTO files (id, path, folder, base, size, mtime_ns, inode, settled, hash, skipped, language, package, "
    "symbols, calls, imports, outline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class GraphDamaged(Exception):
    """The graph's file does not hold what was written to it. It is of no use, and nothing is lost with it."""


def is_worthless(error: BaseException) -> bool:
    """Tell whether an error means that the file is damaged, so that only beginning it anew helps."""
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "")
        return is_damage(error) or name.startswith(_NOT_OURS)
    return isinstance(error, GraphDamaged | msgspec.DecodeError)


class GraphStore(GraphReader):
    """One workspace's graph: `apply` brings in what files were found to hold. One thread only."""

    def __init__(self, path: Path, form: str) -> None:
        """Open the file, or begin it where it is missing or damaged; raises OSError and sqlite3.Error."""
        super().__init__(open_graph(path, form))
        self._path = path
        self._inode = path.stat().st_ino
        self._next = 1
        self._version = 0
        self.changes = 0
        """Files that were brought in, or left, since this was opened."""
        try:
            self._reload()
        except sqlite3.DatabaseError:
            self.close()
            remove(path)
            self._db = open_graph(path, form)
            self._inode = path.stat().st_ino
            self._reload()

    def _reload(self) -> None:
        """Believe the file."""
        self._ids = paths_of(self._db)
        self._next = max(self._ids.values(), default=0) + 1
        self._version = 0
        for row in self._db.execute("SELECT path, hash, skipped FROM files"):
            self._version ^= file_version(*row)
        self.forget_cached()

    def require_file(self) -> None:
        """Raise GraphDamaged when the file was deleted or replaced: what is written would go nowhere."""
        try:
            in_place = self._path.stat().st_ino == self._inode
        except OSError:
            in_place = False
        if not in_place:
            raise GraphDamaged("its file was deleted")

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
        self.forget_cached()

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
            outline = decode_outline(row[2])
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

    def copy_to(self, file: Path) -> None:
        """Write all of the graph into a new file, without what was deleted; raises sqlite3.Error."""
        self._db.execute("VACUUM INTO ?", (str(file),))


def _with(file: int, names: Iterable[str]) -> list[tuple[str, int]]:
    return [(name, file) for name in names]
