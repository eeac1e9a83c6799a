"""Workers that die, hang or speak nonsense cost the file that made them, and the pool goes on."""

from pathlib import Path

import pytest

from herdr.indexer import parse_pool
from herdr.indexer.parse_pool import ParsePool


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a", "b", "bad", "c"):
        (tmp_path / f"{name}.py").write_text(f"def {name}(): pass\n")
    return tmp_path


def worker_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    """Have the pool start workers that do this before each file."""
    program = tmp_path / "worker"
    program.write_text(
        "import os, signal, sys, time, herdr.indexer.parse_worker as worker\n"
        "read = worker.read_file\n"
        "def read_file(chunk, path, readers):\n"
        f"    if path == 'bad.py': {does}\n"
        "    return read(chunk, path, readers)\n"
        "worker.read_file = read_file\n"
        "worker.main()\n"
    )
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {parse_pool.sys.executable} {program}\n")
    python.chmod(0o755)
    monkeypatch.setattr(parse_pool.sys, "executable", str(python))


DOES = {
    "crashes": ("os.kill(os.getpid(), signal.SIGSEGV)", "parser_crashed"),
    "leaves": ("sys.exit(0)", "parser_crashed"),
    "fails": ("raise MemoryError", "parser_crashed"),
    "hangs": ("time.sleep(60)", "parser_timeout"),
    "speaks nonsense": ("os.write(1, b'\\0\\0\\0\\1\\xc1')", "parser_crashed"),
    "announces gigabytes": ("os.write(1, b'\\xff' * 100)", "parser_crashed"),
}


@pytest.mark.parametrize("what", DOES)
async def test_one_file_costs_only_itself(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    does, reason = DOES[what]
    worker_that(tmp_path, monkeypatch, does)
    if what == "hangs":
        monkeypatch.setattr(parse_pool, "CHUNK_S", 2.0)
    pool = ParsePool(1)
    try:
        found = await pool.parse(str(tree), ["a.py", "bad.py", "b.py"], {})
        assert [(row.path, row.skipped) for row in found] == [
            ("a.py", None),
            ("bad.py", reason),
            ("b.py", None),
        ]
        (again,) = await pool.parse(str(tree), ["c.py"], {})
        assert again.symbols == ("c",)
    finally:
        await pool.close()


async def test_a_worker_that_cannot_be_started_is_an_error_that_says_so(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_pool.sys, "executable", str(tree / "nothing"))
    pool = ParsePool(1)
    with pytest.raises(OSError, match="nothing"):
        await pool.parse(str(tree), ["a.py"], {})
    monkeypatch.undo()
    try:
        (found,) = await pool.parse(str(tree), ["a.py"], {})
        assert found.symbols == ("a",)
    finally:
        await pool.close()
