"""Copies of the log: `backup` beside a running gateway, `restore` in place of a stopped one, and `verify`.

A plain copy of events.db is not a backup: what was committed last is in the write-ahead log beside it
(measured: 200 acknowledged commits gone, `integrity_check` content).
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from herdr.clock import Clock
from herdr.errors import HerdrError
from herdr.storage.sqlite.connection import address, explain
from herdr.storage.sqlite.folder import claim
from herdr.storage.sqlite.readers import read_page
from herdr.storage.sqlite.schema import APPLICATION_ID, MIGRATIONS, extent_of, version_of

_PAGE_ROWS = 1000
_PAGE_BYTES = 4 * 1024**2
_NAMED_MAX = 100  # damaged rows that a report names; their count is always true


class Summary(msgspec.Struct, frozen=True):
    """What a log file holds and how sound it is."""

    path: str
    epoch: str
    schema: int
    first: int
    head: int
    events: int
    bytes: int
    damaged: int
    """Events whose checksum does not fit, that cannot be read, or that are missing between first and head."""
    damaged_seqs: tuple[int, ...]
    """The first of them."""
    problems: tuple[str, ...]
    """SQLite's own complaints, and how many events are damaged; empty for a sound file."""


def backup(source: Path, target: Path) -> Summary:
    """Copy a log, also while a gateway writes to it, and verify the copy.

    The copy is one moment's state, compacted. A damaged source gives a copy with `problems`, as that may
    be all there is. Raises HerdrError (code `backup_failed`) and then leaves no target; never overwrites.
    While it runs, the gateway's write-ahead log cannot start over and grows.
    """
    partial = target.with_name(target.name + ".partial")
    with _told_as("backup_failed", source):
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise HerdrError(
                f"{target} exists already: name a new file, backups are never overwritten", "backup_failed"
            ) from None
        try:
            _copy(source, partial)
            summary = verify(partial)
            partial.replace(target)
            _sync(target.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            target.unlink()
            raise
    return msgspec.structs.replace(summary, path=str(target))


def restore(
    source: Path, target: Path, *, clock: Clock, new_epoch: Callable[[], str], force: bool = False
) -> Summary:
    """Put a verified backup in place of a log, under a new epoch, so that readers learn of the rewind.

    Raises StartupError while a gateway uses the folder, and HerdrError (code `restore_refused`) when the
    backup is not sound or a log with events would be replaced, both of which `force` permits.
    """
    lock = claim(target.parent, clock)
    try:
        with _told_as("restore_refused", source):
            sound = verify(source)
            if sound.problems and not force:
                raise HerdrError(
                    f"{source} is damaged ({'; '.join(sound.problems)}): take another backup, "
                    "or repeat with --force to restore what is left of it",
                    "restore_refused",
                )
            _refuse_loss(target, force)
            return _replace(source, target, new_epoch())
    finally:
        lock.release()


def _replace(source: Path, target: Path, epoch: str) -> Summary:
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        _copy(source, partial)
        with closing(_open(partial, "rw")) as db:
            db.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (epoch,))
        summary = verify(partial)
        _sync(partial)
        # A leftover write-ahead log would be applied to the new file, so it goes first.
        for suffix in ("-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        _sync(target.parent)
        partial.replace(target)
        _sync(target.parent)
    finally:
        partial.unlink(missing_ok=True)
    return msgspec.structs.replace(summary, path=str(target))


def _refuse_loss(target: Path, force: bool) -> None:
    """Stop before a log with events is replaced; forced, fold its write-ahead log into it once more.

    So a crash before the rename leaves the old log whole.
    """
    if not target.exists():
        return
    try:
        with closing(_open(target, "rw")) as db:
            events = db.execute("SELECT count(*) FROM (SELECT 1 FROM events LIMIT 1)").fetchone()[0]
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        if not force:
            raise HerdrError(
                f"{explain(target, error)}; repeat with --force to replace it", "restore_refused"
            ) from error
        return
    if events and not force:
        raise HerdrError(
            f"{target} holds events: move it away, or repeat with --force to replace it", "restore_refused"
        )


def verify(path: Path) -> Summary:
    """Read a whole log file: SQLite's integrity_check, every checksum, and the sequence for gaps.

    Raises HerdrError (code `not_a_log`) for a file that is no log of a known schema, sqlite3.Error when it
    cannot be read at all.
    """
    with closing(_open(path, "ro")) as db:
        db.execute("BEGIN")  # one moment's state, should a gateway be writing
        schema = version_of(db)
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID or schema > len(MIGRATIONS):
            raise HerdrError(f"{path} is not a log, or one of a newer Herdr (schema {schema})", "not_a_log")
        complaints = [text for (text,) in db.execute("PRAGMA integrity_check(20)") if text != "ok"]
        epoch = str(db.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()[0])
        first, head = extent_of(db)
        damaged = list(_damaged(db, range(first, head + 1)))
    if damaged:
        complaints.append(f"{len(damaged)} damaged events, the first at seq {damaged[0]}")
    return Summary(
        path=str(path),
        epoch=epoch,
        schema=schema,
        first=first,
        head=head,
        events=head - first + 1,
        bytes=path.stat().st_size,
        damaged=len(damaged),
        damaged_seqs=tuple(damaged[:_NAMED_MAX]),
        problems=tuple(complaints),
    )


def _damaged(db: sqlite3.Connection, retained: range) -> Iterator[int]:
    expected = retained.start
    while expected < retained.stop:
        after = expected - 1
        page = read_page(db, (after, after, after), _PAGE_ROWS, _PAGE_BYTES, retained)
        for event in page:
            yield from range(expected, event.seq)
            if event.corrupt:
                yield event.seq
            expected = event.seq + 1
        if not page:
            yield from range(expected, retained.stop)
            return


def _copy(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    with closing(_open(source, "ro")) as db:
        db.execute("VACUUM INTO ?", (str(target),))
    target.chmod(0o600)
    _sync(target)


def _open(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(address(path, mode), uri=True, isolation_level=None)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _told_as(code: str, path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise HerdrError(explain(path, error), code) from error
    except OSError as error:
        raise HerdrError(f"{error.filename or path}: {error.strerror or error}", code) from error
