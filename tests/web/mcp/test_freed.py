import json
from typing import Any

import pytest

from herdr.event import Event
from herdr.web.mcp import freed as module
from herdr.web.mcp.freed import Freed


def ended(lock: str, type_: str = "lock.released") -> Event:
    body = json.dumps({"type": type_, "data": {"lock": lock, "owner": "codex/1"}}).encode()
    return Event(1, "id", type_, "herdr", "default", "tool", body)


def conflict(lock: str, asked: str = "a.py") -> dict[str, Any]:
    return {"lock": lock, "asked": asked}


def test_who_was_refused_a_lock_hears_of_its_end_once() -> None:
    freed = Freed()
    freed.refused("cursor/1", [conflict("L1", "src/a.py")])
    freed.committed([ended("L2")])
    assert freed.take("cursor/1") == []
    freed.committed([ended("L1")])
    assert freed.take("cursor/2") == []
    assert freed.take("cursor/1") == [
        "src/a.py, which you were refused, is free again: codex/1 has released it."
    ]
    assert freed.take("cursor/1") == []
    freed.committed([ended("L1")])
    assert freed.take("cursor/1") == []


def test_a_lease_that_ran_out_is_told_as_such() -> None:
    freed = Freed()
    for name in ("cursor/1", "cursor/2"):
        freed.refused(name, [conflict("L1")])
    freed.committed([ended("L1", "lock.expired")])
    assert all("codex/1 held it for too long" in freed.take(f"cursor/{n}")[0] for n in (1, 2))


def test_other_events_are_not_looked_into() -> None:
    freed = Freed()
    freed.refused("cursor/1", [conflict("L1")])
    freed.committed([Event(1, "id", "note.x", "ci", "default", "tool", b"not even JSON")])
    assert freed.take("cursor/1") == []


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCKS_MAX", 2)
    monkeypatch.setattr(module, "NAMES_MAX", 1)
    freed = Freed()
    for lock in ("L1", "L2", "L3"):
        freed.refused("cursor/1", [conflict(lock, lock)])
        freed.refused("cursor/2", [conflict(lock, lock)])
    freed.committed([ended(lock) for lock in ("L1", "L2", "L3")])
    assert [line[:2] for line in freed.take("cursor/1")] == ["L2", "L3"]
    assert freed.take("cursor/2") == []
    for n in range(3):
        freed.refused(f"other/{n}", [conflict("L9")])
        freed.committed([ended("L9")])
    assert [bool(freed.take(f"other/{n}")) for n in range(3)] == [False, True, True]
