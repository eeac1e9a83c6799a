"""`python -m bench.micro`: the small comparisons that docs/explanation/performance.md gives as reasons.

Each is one decision of the gateway beside what it replaced, in one process, a few seconds in all.
"""

import re
import sqlite3
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from herdr.event import key_hash

ROWS, BODY = 256, b"x" * 360
SUSPICIOUS = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{200}|\\u[dD][89abAB]")
KEYS = 65_536
IDS_KNOWN, IDS_NEW = 400_000, 512


def main() -> None:
    """Measure and print the table."""
    print("| what | instead of | took | takes |")
    print("| --- | --- | --- | --- |")
    for row in (payload_check(), oldest_key(), *rows_beside_a_busy_loop(), index_writes()):
        print("| " + " | ".join(row) + " |")


def payload_check() -> tuple[str, str, str, str]:
    """Is a payload one that readers can take? A search for what may be wrong, or one decoding."""
    data = msgspec.json.encode({"text": "There are several exes here " * 9})
    decode = msgspec.json.Decoder().decode
    old, new = _each_us(lambda: SUSPICIOUS.search(data)), _each_us(lambda: decode(data))
    return "check a payload by decoding it", "searching it for bad numbers", f"{old:.2f} us", f"{new:.2f} us"


def oldest_key() -> tuple[str, str, str, str]:
    """Find the oldest of 65,536 ids, when each event adds one and takes one away."""
    plain = {str(n): n for n in range(KEYS)}
    ordered, order = dict(plain), deque(plain)
    fresh = iter(range(KEYS, 10**9))

    def by_dict() -> None:
        plain[str(next(fresh))] = 0
        del plain[next(iter(plain))]

    def by_deque() -> None:
        key = str(next(fresh))
        ordered[key] = 0
        order.append(key)
        del ordered[order.popleft()]

    old, new = _each_us(by_dict, 200_000), _each_us(by_deque, 200_000)
    return (
        "keep the order of ids in a deque",
        "asking the dict for its first key",
        f"{old:.2f} us",
        f"{new:.2f} us",
    )


def rows_beside_a_busy_loop() -> list[tuple[str, str, str, str]]:
    """Write batches of 256 rows on a thread while the event loop never sleeps: who gets the interpreter lock?"""
    row = "(?,?)"
    one = f"INSERT INTO t (seq, body) VALUES {','.join([row] * ROWS)}"
    many = "INSERT INTO t (seq, body) VALUES (?,?)"

    def by_many(db: sqlite3.Connection, first: int) -> None:
        db.executemany(many, [(first + n, BODY) for n in range(ROWS)])

    def by_one(db: sqlite3.Connection, first: int) -> None:
        db.execute(one, [value for n in range(ROWS) for value in (first + n, BODY)])

    usual = sys.getswitchinterval()
    old = _rows_per_s(by_many)
    new = _rows_per_s(by_one)
    sys.setswitchinterval(0.0005)
    newest = _rows_per_s(by_one)
    sys.setswitchinterval(usual)
    return [
        ("write a batch by one statement", "executemany", f"{old:,.0f} rows/s", f"{new:,.0f} rows/s"),
        ("switch interval of 0.5 ms", "5 ms", f"{new:,.0f} rows/s", f"{newest:,.0f} rows/s"),
    ]


def index_writes() -> tuple[str, str, str, str]:
    """Add 512 ids to an index of 400,000: spread over all of it, or neighbours."""
    hashes = sorted(key_hash(f"ci\0{n}") for n in range(IDS_KNOWN, IDS_KNOWN + 256 * IDS_NEW))
    spread, neighbours = hashes[::256], hashes[:IDS_NEW]
    old, new = (_wal_bytes(ids) / IDS_NEW for ids in (spread, neighbours))
    return "index ids by hash range", "in order of age", f"{old:,.0f} bytes of log an id", f"{new:,.0f} bytes"


def _each_us(work: Callable[[], object], count: int = 20_000) -> float:
    began = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - began) / count * 1e6


def _rows_per_s(insert: Callable[[sqlite3.Connection, int], None], seconds: float = 1.5) -> float:
    done = threading.Event()
    rows = 0

    def write(path: Path) -> None:
        nonlocal rows
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, body BLOB)")
        while not done.is_set():
            db.execute("BEGIN")
            insert(db, rows)
            db.execute("COMMIT")
            rows += ROWS
        db.close()

    with tempfile.TemporaryDirectory() as folder:
        thread = threading.Thread(target=write, args=(Path(folder) / "rows.db",))
        thread.start()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:  # as a busy event loop: Python code that never waits
            sum(range(100))
        done.set()
        thread.join()
    return rows / seconds


def _wal_bytes(hashes: list[int]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ids.db"
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE ids (hash INTEGER PRIMARY KEY, seq INTEGER)")
        db.execute("BEGIN")
        known = sorted(key_hash(f"ci\0{n}") for n in range(IDS_KNOWN))
        db.executemany("INSERT INTO ids VALUES (?, 1)", [(number,) for number in known])
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("BEGIN")
        db.executemany("INSERT INTO ids VALUES (?, 2)", [(number,) for number in hashes])
        db.execute("COMMIT")
        size = path.with_name("ids.db-wal").stat().st_size
        db.close()
        return size


if __name__ == "__main__":
    main()
